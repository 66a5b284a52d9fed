import { expect, test } from 'vitest';
import { createModel } from '../testing/model.ts';

test('a socket that drops a frame of a snapshot in a later turn is closed in that turn', () => {
  const model = createModel({ frameOutBytesMax: 300, snapshotFramesPerTurn: 2 });
  for (let n = 0; n < 50; n += 1) model.publish([{ symbol: `S${n}` }]);
  model.pass(100);
  const socket = model.connect(1e9);
  const send = socket.send.bind(socket);
  let dropped = 0;
  socket.send = (bytes) => {
    // Two frames of the snapshot are sent in the turn of the request; the others later.
    if (socket.frames.filter(({ type }) => type === 'snapshot').length < 3) return send(bytes);
    dropped += 1;
    return 2;
  };
  socket.connection!.receive(Buffer.from('{"op":"subscribe","symbols":["*"]}'), false);
  expect(socket.closed).toBeUndefined();
  model.pass(100);
  expect(dropped).toBe(1);
  expect(socket.closed).toEqual({ code: 4001, reason: 'slow_consumer' });
});
