import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { packageRoot } from '../../lib/files/package-root.ts';
import { SetupError } from './setup-error.ts';

interface Jar {
  readonly file: string;
  readonly sha256: string;
}

const PINNED = path.join(packageRoot, 'deploy', 'local', 'jars.json');

/**
 * Checks that a folder holds exactly the pinned files of an engine, byte for byte: Maven compares a
 * download only with a checksum from the same server.
 * @throws SetupError naming the first file that differs, is missing or is not pinned
 */
export function checkJars(engine: 'kafka' | 'registry', folder: string): void {
  const pinned = (JSON.parse(readFileSync(PINNED, 'utf8')) as Record<string, readonly Jar[]>)[
    engine
  ]!;
  const expected = new Map(pinned.map(({ file, sha256 }) => [file, sha256]));
  for (const file of readdirSync(folder).sort()) {
    const sha256 = createHash('sha256')
      .update(readFileSync(path.join(folder, file)))
      .digest('hex');
    if (!expected.has(file)) throw refused(engine, `${file} is not in jars.json`);
    if (expected.get(file) !== sha256) throw refused(engine, `${file} has the SHA-256 ${sha256}`);
    expected.delete(file);
  }
  const [missing] = expected.keys();
  if (missing !== undefined) throw refused(engine, `${missing} is missing`);
}

function refused(engine: string, fault: string): SetupError {
  return new SetupError(
    `${engine}: the download is not what this version was tested with: ${fault}. Nothing of it was ` +
      'kept. Delete the file from the local Maven repository and start again; if the error stays, ' +
      'do not trust your source of Maven packages.',
  );
}
