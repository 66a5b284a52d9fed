import { expect, test } from 'vitest';
import { createQueue } from './queue.ts';

const never = new AbortController().signal;

function gate(): { opened: Promise<void>; open: () => void } {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

test('over the bound a statement is refused at once, with 503', async () => {
  const queue = createQueue({ waitingMax: 2 });
  const { opened, open } = gate();
  const accepted = [1, 2, 3].map(() => queue.run('write', false, never, () => opened));
  await expect(queue.run('write', true, never, () => opened)).rejects.toMatchObject({
    status: 503,
    message: expect.stringContaining('2 statements wait already'),
  });
  open();
  await Promise.all(accepted);
  expect([queue.waiting(), queue.running()]).toEqual([0, 0]);
});

test('inserts go before what else waits, in their own order', async () => {
  const queue = createQueue();
  const { opened, open } = gate();
  const order: string[] = [];
  const add = (name: string, urgent: boolean) =>
    queue.run('write', urgent, never, async () => void order.push(name));
  const all = [
    queue.run('write', false, never, () => opened),
    add('alter', false),
    add('insert 1', true),
    add('insert 2', true),
  ];
  open();
  await Promise.all(all);
  expect(order).toEqual(['insert 1', 'insert 2', 'alter']);
});

test('a lane does not wait for another', async () => {
  const queue = createQueue();
  const { opened, open } = gate();
  const analyst = queue.run('analyst', false, never, () => opened);
  await queue.run('write', true, never, async () => {});
  await queue.run('read', false, never, async () => {});
  open();
  await analyst;
});

test('who waits too long is refused, who went away is forgotten', async () => {
  const queue = createQueue({ waitMsMax: 20 });
  const { opened, open } = gate();
  const running = queue.run('write', false, never, () => opened);
  const gone = new AbortController();
  let ran = false;
  const abandoned = queue.run('write', false, gone.signal, async () => {
    ran = true;
  });
  gone.abort();
  await expect(abandoned).rejects.toThrow('went away');
  await expect(queue.run('write', false, never, async () => {})).rejects.toMatchObject({
    status: 503,
  });
  open();
  await running;
  expect(ran).toBe(false);
});

test('close refuses what waits and lets finish what runs', async () => {
  const queue = createQueue();
  const { opened, open } = gate();
  const running = queue.run('write', false, never, () => opened);
  const waiting = queue.run('write', false, never, async () => {});
  const closed = queue.close();
  await expect(waiting).rejects.toThrow('stopping');
  open();
  await Promise.all([running, closed]);
});
