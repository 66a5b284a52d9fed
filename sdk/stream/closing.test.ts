import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { waitFor } from '../../testing/wait.ts';
import { pillAt, pillFrame, sendHandover } from '../testing/scripted-frames.ts';
import { useScriptedServer } from '../testing/use-scripted-server.ts';

const fixture = useScriptedServer();

describe('a stream that its consumer closes', () => {
  test('in the middle of a frame: the position includes only delivered pills', async () => {
    const stream = fixture.open();
    const cursors: string[] = [];
    stream.on('pill', ({ cursor }) => {
      cursors.push(cursor);
      stream.close();
    });
    const connection = await fixture.server.connection();
    await sendHandover(connection, 'e1:0-5', { snapshot: [] });
    const pills = [pillFrame(6, null), pillFrame(7, 6), pillFrame(8, 7)];
    connection.send({ type: 'pills', sent_at: '2026-11-20T01:02:03.020000Z', pills });
    await waitFor('a pill', () => cursors.length > 0);
    await sleep(20);
    expect(cursors).toEqual(['0-6']);
    expect(stream.position).toBe('e1:0-6');
  });

  test('while a gap is filled: it stays closed, and the position is before the gap', async () => {
    const stream = fixture.open();
    const events = fixture.record('open', 'pill', 'closed');
    const held = new AbortController();
    fixture.server.answer(async () => {
      await once(held.signal, 'abort');
      return { body: { data: [pillAt(8, 6)], next: null } };
    });
    const connection = await fixture.server.connection();
    await sendHandover(connection, 'e1:0-5', { snapshot: [] });
    connection.send(pillFrame(6, null), pillFrame(9, 8), pillFrame(10, 9));
    await waitFor('the request for history', () => fixture.server.requests.length > 0);
    stream.close();
    held.abort();
    await waitFor('the close', () => events.at(-1)?.event === 'closed');
    await sleep(20);
    expect(events.map(({ event }) => event)).toEqual(['open', 'pill', 'closed']);
    expect(stream.position).toBe('e1:0-6');
  });
});
