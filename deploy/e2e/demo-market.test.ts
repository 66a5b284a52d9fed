import { afterAll, beforeAll, test } from 'vitest';
import { closeClients, connect } from '../../gateway/stream/testing/client.ts';
import {
  launchStack,
  makeStackFolder,
  removeStackFolder,
  type Stack,
} from '../../lib/testing/stack.ts';
import { waitFor } from '../../lib/testing/wait.ts';

let folder: string;
let stack: Stack;

beforeAll(async () => {
  folder = await makeStackFolder();
  stack = await launchStack(folder, ['--pills-per-s', '50', '--status-every', '1']);
}, 150_000);

afterAll(async () => {
  closeClients();
  await stack?.stop();
  await removeStackFolder(folder);
});

/** The last line of status whose text has such a form. */
const told = (what: string, form: RegExp) =>
  waitFor(what, () => {
    const lines = stack.output().split('\n');
    return lines.findLast((line) => form.test(line)) === undefined ? lines.at(-2)! : true;
  });

test('a fresh start shows a living market, and tells how it does in plain lines', async () => {
  await told('pills', /^pills [1-9][\d.]*\/s in, [1-9][\d.]*\/s acknowledged; lag analytics \d+/);
  const { stream } = stack.addresses();
  const client = await connect(`${stream}/api/stream`, { key: stack.demoKeys().pro });
  client.send({ op: 'subscribe', id: '1', symbols: ['*'] });
  await waitFor('symbols', () => {
    const seen = new Set(client.pills().map(({ symbol }) => symbol));
    return seen.size >= 45 || `${seen.size} symbols`;
  });
  await told('a socket', /; sockets 1 \([1-9].*receive to socket p50 [\d.]+ ms, p99 [\d.]+ ms/);
});

test('a process that was killed is told of, and comes back', async () => {
  process.kill(stack.pidOf('latest'), 'SIGKILL');
  await told('the end', /^latest .*SIGKILL.*, restart in [\d.]+ s$/);
  await told('its return', /^latest is back after [\d.]+ s$/);
});
