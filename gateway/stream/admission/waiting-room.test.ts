import { expect, test } from 'vitest';
import { createWaitingRoom, type Waiting } from './waiting-room.ts';

/** A room, and what became of each socket that was sent in. */
function openRoom(max: number, perNetworkMax: number) {
  const room = createWaitingRoom(max, perNetworkMax);
  const ended: string[] = [];
  let serial = 0;
  const socket = (network: string): Waiting & { readonly name: string } => {
    serial += 1;
    const name = `${network}${serial}`;
    const one: Waiting & { readonly name: string } = {
      ...{ name, network },
      giveWay: () => {
        ended.push(name);
        room.leave(one); // as the close of a socket does
      },
    };
    return one;
  };
  return { room, ended, socket, enter: (network: string) => room.enter(socket(network)) };
}

test('the oldest socket of the network with the most gives way to other networks', () => {
  const { ended, enter } = openRoom(6, 4);
  for (const network of 'aaabbc') expect(enter(network)).toBeUndefined();
  expect(enter('d')).toBeUndefined();
  expect(ended).toEqual(['a1']);
  // a2 a3, b4 b5, c6, d7
  expect(enter('c')).toBe('full');
  expect(enter('a')).toBe('full');
  expect(enter('e')).toBeUndefined();
  expect(ended).toEqual(['a1', 'a2']);
});

test('networks with one socket each do not displace each other', () => {
  const { ended, enter } = openRoom(3, 2);
  for (const network of 'abc') enter(network);
  expect(enter('d')).toBe('full');
  expect(ended).toEqual([]);
});

test('one network never has more than its part, and nobody gives way for it', () => {
  const { ended, enter } = openRoom(10, 2);
  for (const network of 'aa') expect(enter(network)).toBeUndefined();
  expect(enter('a')).toBe('full_of_network');
  expect(enter('b')).toBeUndefined();
  expect(ended).toEqual([]);
});

test('a socket that has left makes room, once', () => {
  const { room, socket, enter } = openRoom(2, 2);
  const one = socket('a');
  expect(room.enter(one)).toBeUndefined();
  enter('b');
  expect(enter('c')).toBe('full');
  room.leave(one);
  room.leave(one);
  expect(enter('c')).toBeUndefined();
  expect(enter('d')).toBe('full');
});

test('a socket of another network always gets in, however a few networks fill the room', () => {
  const { enter } = openRoom(1_000, 250);
  for (let i = 0; i < 5_000; i += 1) enter(['a', 'b', 'c', 'd', 'e'][i % 5]!);
  for (let i = 0; i < 100; i += 1) expect(enter(`client-${i}`)).toBeUndefined();
});
