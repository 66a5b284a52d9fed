import { existsSync, writeFileSync } from 'node:fs';
import os from 'node:os';

/**
 * Sets the priority of a process: -20 (first) to 19 (last). Where Linux groups processes by session
 * (autogroup), each child's session is a group of one, and the group's value counts.
 * @returns false when the system does not allow the change; the priority then stays as it was
 */
export function setPriority(pid: number, nice: number): boolean {
  try {
    os.setPriority(pid, nice);
    const group = `/proc/${pid}/autogroup`;
    if (existsSync(group)) writeFileSync(group, String(nice));
    return true;
  } catch {
    return false;
  }
}
