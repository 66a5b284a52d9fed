import { writeFileAtomically } from '../../lib/files/write-file.ts';
import { AdminError } from './admin-session.ts';

/**
 * Replaces a file that only its owner may read; its content is on disk before it counts.
 * @throws AdminError
 */
export function replacePrivateFile(file: string, text: string): void {
  try {
    writeFileAtomically(file, text);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new AdminError(
      `${file} cannot be written (${code}): choose a folder that you may write to.`,
    );
  }
}
