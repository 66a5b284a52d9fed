import { lstatSync, mkdirSync } from 'node:fs';

/**
 * Creates a folder that only this user can read, or checks an existing one: in the temp directory,
 * another user may have created it first, with records of processes to be ended.
 * @param remedy a sentence that names another way out
 * @throws Error when the path belongs to another user, is open to others, or is not a folder
 */
export function requirePrivateFolder(folder: string, remedy: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const fault = faultOf(folder);
  if (fault === undefined) return;
  throw new Error(`${folder} ${fault}. Remove it if it is yours. ${remedy}`);
}

function faultOf(folder: string): string | undefined {
  // Links are not followed, because their owner chooses the target.
  const stat = lstatSync(folder);
  if (!stat.isDirectory()) return 'is a link, not a folder';
  const uid = process.getuid?.();
  if (uid !== undefined && stat.uid !== uid) return `belongs to user ${stat.uid}, not to ${uid}`;
  const mode = stat.mode & 0o777;
  if (mode !== 0o700) return `has the mode 0${mode.toString(8)} and must have 0700`;
  return undefined;
}
