import { setTimeout as sleep } from 'node:timers/promises';
import type { Pepper } from '../../domain/access/pepper.ts';
import { addLiftedAccount } from '../access/lifted-account.ts';
import { isOnTime } from '../harness/cells.ts';
import { meterCpu } from '../harness/cpu.ts';
import { monotonicMicros, runOpenLoop } from '../harness/open-loop.ts';
import type { Stage } from '../harness/stage.ts';
import { type Connection, connect } from '../http-load/connection.ts';

const CONNECTIONS = 16;
const HEAD_START_MS = 200;
const ANSWERS_MAX_MS = 10_000;

/**
 * Makes accounts, and calls `GET /api/pills/latest` in an open loop, with their keys in turn.
 * @returns the CPU of the processes, and the calls that were not answered with 200
 */
export async function callInTurn(options: {
  readonly db: ReturnType<Stage['openDatabase']>;
  readonly pepper: Pepper;
  readonly port: number;
  readonly accounts: number;
  readonly perS: number;
  readonly seconds: number;
  readonly pids: Parameters<typeof meterCpu>[0];
}) {
  const { db, pepper, port, accounts, perS, seconds, pids } = options;
  const heads: string[] = [];
  for (let n = 0; n < accounts; n += 1) {
    const { key } = await addLiftedAccount(db, 'pro', pepper);
    const path = 'GET /api/pills/latest?symbol=BENCH.0 HTTP/1.1';
    heads.push(`${path}\r\nHost: 127.0.0.1:${port}\r\nX-API-Key: ${key}\r\n\r\n`);
  }
  const all = await Promise.all(Array.from({ length: CONNECTIONS }, () => connect(port)));
  const idle: Connection[] = [...all];
  const calls = perS * seconds;
  let [answered, good] = [0, 0];
  const call = (at: number) => {
    const connection = idle.shift();
    // All are in use: the call counts as missing.
    if (connection === undefined) {
      answered += 1;
      return;
    }
    connection.send(heads[at % heads.length]!, ({ status }) => {
      answered += 1;
      if (status === 200) good += 1;
      idle.push(connection);
    });
  };
  // The first call of a key reads it from PostgreSQL, which is not what is measured.
  for (const at of heads.keys()) {
    call(at);
    while (idle.length === 0) await sleep(1);
  }
  while (idle.length < CONNECTIONS) await sleep(1);
  [answered, good] = [0, 0];
  const startMicros = monotonicMicros() + HEAD_START_MS * 1_000;
  const meter = meterCpu(pids);
  const lateness = await runOpenLoop({ startMicros, perS, pills: calls }, call);
  const deadline = performance.now() + ANSWERS_MAX_MS;
  while (answered < calls && performance.now() < deadline) await sleep(10);
  const cpu = meter();
  for (const connection of all) connection.close();
  return { cpu, valid: isOnTime(lateness), missing: calls - good };
}
