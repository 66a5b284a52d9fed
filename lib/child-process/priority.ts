import { existsSync, writeFileSync } from 'node:fs';
import os from 'node:os';

/**
 * Sets how a process shares the cores: -20 (first) to 19 (last). Where Linux groups processes by
 * session (autogroup), each session of ours is a group of one, and the group's own value counts.
 * @returns false when the system does not allow it; then all stays as it was
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
