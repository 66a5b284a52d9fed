import { renameSync, writeFileSync } from 'node:fs';

/** Replaces `file` in one step; a reader sees the old content or the new, never half of it. */
export function writeFileAtomically(file: string, content: string): void {
  const beside = `${file}.${process.pid}.tmp`;
  writeFileSync(beside, content);
  renameSync(beside, file);
}
