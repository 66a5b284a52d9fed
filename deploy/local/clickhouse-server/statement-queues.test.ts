import { expect, test } from 'vitest';
import { createStatementQueues } from './statement-queues.ts';

const never = new AbortController().signal;

function gate(): { opened: Promise<void>; open: () => void } {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

test('over the bound a statement is refused at once with 503', async () => {
  const queues = createStatementQueues({ waitingMax: 2 });
  const { opened, open } = gate();
  const accepted = [1, 2, 3].map(() => queues.run('write', false, never, () => opened));
  await expect(queues.run('write', true, never, () => opened)).rejects.toMatchObject({
    status: 503,
    message: expect.stringContaining('2 statements are waiting already'),
  });
  open();
  await Promise.all(accepted);
  expect([queues.waiting(), queues.running()]).toEqual([0, 0]);
});

test('inserts go before other statements, in order of arrival', async () => {
  const queues = createStatementQueues();
  const { opened, open } = gate();
  const order: string[] = [];
  const add = (name: string, urgent: boolean) =>
    queues.run('write', urgent, never, async () => void order.push(name));
  const all = [
    queues.run('write', false, never, () => opened),
    add('alter', false),
    add('insert 1', true),
    add('insert 2', true),
  ];
  open();
  await Promise.all(all);
  expect(order).toEqual(['insert 1', 'insert 2', 'alter']);
});

test('the queues do not wait for one another', async () => {
  const queues = createStatementQueues();
  const { opened, open } = gate();
  const analyst = queues.run('analyst', false, never, () => opened);
  await queues.run('write', true, never, async () => {});
  await queues.run('read', false, never, async () => {});
  open();
  await analyst;
});

test('a statement that waits too long is refused, one whose client left is dropped', async () => {
  const queues = createStatementQueues({ waitMsMax: 20 });
  const { opened, open } = gate();
  const running = queues.run('write', false, never, () => opened);
  const gone = new AbortController();
  let ran = false;
  const abandoned = queues.run('write', false, gone.signal, async () => {
    ran = true;
  });
  gone.abort();
  await expect(abandoned).rejects.toThrow('went away');
  await expect(queues.run('write', false, never, async () => {})).rejects.toMatchObject({
    status: 503,
  });
  open();
  await running;
  expect(ran).toBe(false);
});

test('close refuses waiting statements and lets running ones finish', async () => {
  const queues = createStatementQueues();
  const { opened, open } = gate();
  const running = queues.run('write', false, never, () => opened);
  const waiting = queues.run('write', false, never, async () => {});
  const closed = queues.close();
  await expect(waiting).rejects.toThrow('stopping');
  open();
  await Promise.all([running, closed]);
});
