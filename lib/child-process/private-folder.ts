import { lstatSync, mkdirSync } from 'node:fs';

/**
 * Makes a folder that this user alone can look into, or checks that one that is there is such: in
 * the temp directory anybody may have made it first, with records of processes to be ended.
 * @param remedy a sentence that says what else one may do
 * @throws Error when it is somebody else's, open to others, or no folder
 */
export function requirePrivateFolder(folder: string, remedy: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const fault = faultOf(folder);
  if (fault === undefined) return;
  throw new Error(`${folder} ${fault}. Remove it if it is yours. ${remedy}`);
}

function faultOf(folder: string): string | undefined {
  // Not followed: a link leads wherever its owner wants.
  const stat = lstatSync(folder);
  if (!stat.isDirectory()) return 'is a link, not a folder';
  const uid = process.getuid?.();
  if (uid !== undefined && stat.uid !== uid) return `belongs to user ${stat.uid}, not to ${uid}`;
  const mode = stat.mode & 0o777;
  if (mode !== 0o700) return `has the mode 0${mode.toString(8)} and must have 0700`;
  return undefined;
}
