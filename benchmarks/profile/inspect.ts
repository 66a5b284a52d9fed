import { setTimeout as sleep } from 'node:timers/promises';
import WebSocket from 'ws';
import type { CpuProfile } from './areas.ts';

const LISTENS_MAX_MS = 10_000;
const ANSWER_MAX_MS = 30_000;
/** A sample every so many µs: 2,000 a second. */
const INTERVAL_MICROS = 500;

/**
 * Takes a CPU profile of a Node process that was started with `--inspect-port`, while `work` runs.
 * The inspector is opened (SIGUSR1) just now: a process that nobody profiles runs without it.
 * @throws when the inspector does not answer
 */
export async function profileDuring<T>(
  pid: number,
  inspectPort: number,
  work: () => Promise<T>,
): Promise<{ readonly profile: CpuProfile; readonly result: T }> {
  process.kill(pid, 'SIGUSR1');
  const socket = new WebSocket(await addressOf(inspectPort), { perMessageDeflate: false });
  try {
    await new Promise((resolve, reject) => {
      socket.once('open', resolve);
      socket.once('error', reject);
    });
    await ask(socket, 'Profiler.enable');
    await ask(socket, 'Profiler.setSamplingInterval', { interval: INTERVAL_MICROS });
    await ask(socket, 'Profiler.start');
    const result = await work();
    const { profile } = (await ask(socket, 'Profiler.stop')) as { profile: CpuProfile };
    return { profile, result };
  } finally {
    socket.terminate();
  }
}

async function addressOf(port: number): Promise<string> {
  const deadline = performance.now() + LISTENS_MAX_MS;
  for (;;) {
    try {
      const answer = await fetch(`http://127.0.0.1:${port}/json/list`);
      const [first] = (await answer.json()) as { webSocketDebuggerUrl: string }[];
      if (first !== undefined) return first.webSocketDebuggerUrl;
    } catch (error) {
      if (performance.now() > deadline) {
        throw new Error(`The inspector at port ${port} does not answer.`, { cause: error });
      }
    }
    await sleep(100);
  }
}

let lastId = 0;
function ask(socket: WebSocket, method: string, params: object = {}): Promise<unknown> {
  lastId += 1;
  const id = lastId;
  return new Promise((resolve, reject) => {
    const end = () => {
      clearTimeout(timer);
      socket.off('message', onMessage);
      socket.off('close', onClose);
    };
    const onClose = () => {
      end();
      reject(new Error(`The inspector closed before it answered ${method}.`));
    };
    const timer = setTimeout(() => {
      end();
      reject(new Error(`The inspector did not answer ${method} in ${ANSWER_MAX_MS} ms.`));
    }, ANSWER_MAX_MS);
    const onMessage = (data: Buffer) => {
      const told = JSON.parse(data.toString('utf8')) as {
        id?: number;
        result?: unknown;
        error?: { message: string };
      };
      if (told.id !== id) return;
      end();
      if (told.error === undefined) resolve(told.result);
      else reject(new Error(`${method}: ${told.error.message}`));
    };
    socket.on('message', onMessage);
    socket.once('close', onClose);
    socket.send(JSON.stringify({ id, method, params }));
  });
}
