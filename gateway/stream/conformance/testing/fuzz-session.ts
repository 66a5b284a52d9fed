import { isUtf8 } from 'node:buffer';
import { LIMITS } from '../../limits.ts';
import { enter } from './enter.ts';
import { faultOfAnswers, isOurs } from './expected-answers.ts';
import { mutateBytes, mutateJson } from './mutate-json.ts';
import { mutateFrame, mutateHandshake, spreadText } from './mutate-wire.ts';
import { handshakeText, openRaw, type RawClient } from './raw-client.ts';
import { createRandom, type Random } from './seeded-random.ts';
import { closeFrame, textFrame } from './wire.ts';

export interface FuzzPlace {
  readonly port: number;
  readonly key: string;
  /** Epoch of the log, so that some positions are real. */
  readonly epoch: string;
}

/** The inputs of one connection, and the fault of its answers. */
export interface FuzzResult {
  readonly inputs: readonly Buffer[];
  /** How it ended, for the statistics: `pong`, a close code, `tcp` … */
  readonly outcome: string;
  readonly fault: string | undefined;
}

interface Session {
  readonly place: FuzzPlace;
  readonly random: Random;
  readonly inputs: Buffer[];
  /** The header of a client behind a proxy: one address would exceed its rate of handshakes. */
  readonly forwarded: { readonly 'X-Forwarded-For': string };
}

const HTTP_STATUSES = /^HTTP\/1\.1 (101|200|400|404|426|429|431|505) /;
const END = 'end-of-session';

/** Runs one connection from its seed, which alone determines the inputs. */
export async function runFuzzSession(place: FuzzPlace, seed: number): Promise<FuzzResult> {
  const random = createRandom(seed);
  const roll = random.below(100);
  const address = ['10', ...[1, 2, 3].map(() => random.below(256))].join('.');
  const forwarded = { 'X-Forwarded-For': address };
  const session: Session = { place, random, inputs: [], forwarded };
  const run = roll < 55 ? sendTexts : roll < 85 ? sendFrames : roll < 95 ? shakeHands : sayWho;
  try {
    const client =
      run === sendTexts || run === sendFrames
        ? await enter(place.port, { headers: { 'X-API-Key': place.key, ...forwarded } })
        : await openRaw(place.port);
    const outcome = await run(session, client);
    const fault = faultOfAnswers(client);
    client.abort();
    return { inputs: session.inputs, outcome, fault };
  } catch (error) {
    return { inputs: session.inputs, outcome: 'fault', fault: (error as Error).message };
  }
}

/** Messages in well-formed frames: the server must answer the last, or say why it closes. */
async function sendTexts(session: Session, client: RawClient): Promise<string> {
  const { random, inputs } = session;
  let isReadable = true;
  // One less than the burst, for the ping at the end.
  for (let left = 1 + random.below(LIMITS.framesInBurst - 1); left > 0 && isReadable; left -= 1) {
    const payload = textOf(session);
    inputs.push(payload);
    isReadable = isUtf8(payload) && payload.length <= LIMITS.frameInBytesMax;
    deliver(client, spreadText(payload, random), random);
  }
  client.send({ op: 'ping', id: END });
  const isAnswered = () => client.frames.some(({ type, id }) => type === 'pong' && id === END);
  await client.until('the answer to the last ping', () => isAnswered() || client.socket.closed);
  if (!isAnswered()) {
    const { code } = await client.ended;
    const isTold = code !== undefined && isOurs(code);
    if (isReadable && !isTold) throw new Error(`ended with ${code} after frames that are allowed`);
    return isTold ? `closed ${code}` : 'cut: not UTF-8, or too long';
  }
  if (!isReadable) throw new Error('read on after a frame that no WebSocket may read');
  return leave(session, client);
}

/** Frames that violate RFC 6455, among a few valid ones. */
async function sendFrames(session: Session, client: RawClient): Promise<string> {
  const { random, inputs } = session;
  for (let left = 1 + random.below(6); left > 0; left -= 1) {
    const payload = textOf(session).subarray(0, LIMITS.frameInBytesMax);
    const frame = random.chance(0.7) ? mutateFrame(payload, random) : textFrame(payload);
    inputs.push(frame);
    deliver(client, [frame], random);
  }
  return hangUp(client);
}

async function shakeHands(session: Session, client: RawClient): Promise<string> {
  const { place, random, inputs, forwarded } = session;
  const headers = { 'X-API-Key': random.chance(0.5) ? place.key : null, ...forwarded };
  const bytes = mutateHandshake({ headers }, random);
  inputs.push(bytes);
  deliver(client, [bytes], random);
  if (random.chance(0.5)) client.write(textFrame(textOf(session)));
  await hangUp(client);
  const head = client.head();
  if (head !== '' && !HTTP_STATUSES.test(head)) throw new Error(`answered ${head.slice(0, 200)}`);
  return `HTTP ${head.slice(9, 12) || 'none'}`;
}

/** A credential in the first frame, valid or not; some clients disconnect during the check. */
async function sayWho(session: Session, client: RawClient): Promise<string> {
  const { place, random, inputs, forwarded } = session;
  client.write(handshakeText({ headers: forwarded }));
  await client.until('the handshake', () => client.head() !== '');
  const right = Buffer.from(JSON.stringify({ op: 'auth', key: place.key, id: '0' }));
  const auth = random.chance(0.4)
    ? right
    : random.chance(0.5)
      ? mutateBytes(right, random)
      : textOf(session);
  inputs.push(auth);
  client.write(textFrame(auth));
  for (let left = random.below(4); left > 0; left -= 1) {
    const payload = textOf(session);
    inputs.push(payload);
    client.write(textFrame(payload));
  }
  if (random.chance(0.3)) {
    client.abort();
    return 'gone while it was looked up';
  }
  await client.until('an answer', () => client.frames.length > 0 || client.socket.closed);
  return hangUp(client);
}

function textOf({ place, random }: Session): Buffer {
  const text = Buffer.from(mutateJson(random, place.epoch));
  return random.chance(0.3) ? mutateBytes(text, random) : text;
}

/** Writes in one segment, or cut anywhere. */
function deliver(client: RawClient, parts: readonly Buffer[], random: Random): void {
  const bytes = Buffer.concat(parts);
  if (random.chance(0.7)) {
    client.socket.write(bytes);
    return;
  }
  for (let at = 0; at < bytes.length; ) {
    const until = at + 1 + random.below(random.chance(0.5) ? 4 : 200);
    client.socket.write(bytes.subarray(at, until));
    at = until;
  }
}

/** Half-closes and waits for the server, which cannot expect more input then. */
async function hangUp(client: RawClient): Promise<string> {
  client.socket.end();
  await client.until('the server to close the socket', () => client.socket.closed);
  const { code } = await client.ended;
  return code === undefined ? 'cut' : `closed ${code}`;
}

/** Disconnects in one of the ways of real clients. */
async function leave({ random, inputs }: Session, client: RawClient): Promise<string> {
  const way = random.below(4);
  if (way === 0) client.abort();
  else if (way === 1) client.socket.end();
  else if (way === 2) client.socket.destroy();
  else {
    const code = random.pick([1000, 1001, 3000, 4000, 999, 1005, 5000]);
    inputs.push(closeFrame(code));
    client.write(closeFrame(code));
    const ending = await client.ended;
    const echo = code === 1000 || code === 1001 || code === 4000 ? code : 1005;
    if (ending.code !== echo) throw new Error(`close ${code} was answered by ${ending.code}`);
  }
  await client.ended;
  return 'pong';
}
