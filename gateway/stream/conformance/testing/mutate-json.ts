import { CLIENT_FRAMES } from '../../protocol/client-frame-schemas.ts';
import type { Random } from './seeded-random.ts';

type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };

const SUBSCRIBE = CLIENT_FRAMES.subscribe.examples[0];
/** Valid frames of every type; `<epoch>` is replaced by the epoch of the log. */
const SEEDS: readonly Json[] = [
  ...Object.values(CLIENT_FRAMES).flatMap(({ examples }) => [...examples]),
  { ...SUBSCRIBE, resume: '<epoch>:0-0,1-0' },
  { ...SUBSCRIBE, resume: '<epoch>:' },
  { ...SUBSCRIBE, resume: { since: '2026-11-20T01:02:03.000000Z' } },
  { ...SUBSCRIBE, resume: null, filter: null },
  { op: 'subscribe', symbols: ['FUZZ.T'], mode: 'latest', backfill: true },
];

const KEYS = ['op', 'id', 't', 'key', 'symbols', 'resume', 'filter', 'since', 'states', 'type'];
const ODD_KEYS = ['__proto__', 'constructor', 'toString', '', 'x'.repeat(300), '\ud800', 'é', '\0'];
const ODD_VALUES: readonly Json[] = [
  ...[null, true, false, 0, -0, -1, 1.5, 2 ** 53, 1e308, -1e308, 5e-324],
  ...['', ' ', '*', 'A', 'a', '0700 HK', 'TEST:A', '\0', '\ud800', '\u2028', '😀'.repeat(40)],
  ...['x'.repeat(64), 'x'.repeat(65), 'x'.repeat(2_000), '__proto__', 'ping', 'subscribe', 'all'],
  ...['k7f3:0-1', '<epoch>:0-9007199254740991', '<epoch>:99999-1', '<epoch>:0-1,0-2', ':', 'e:'],
  ...['2026-11-20T01:02:03Z', '1969-12-31T23:59:59Z', '9999-12-31T23:59:59Z', 'yesterday'],
  ...[[], {}, ['*'], ['*', 'A'], ['A', 'A'], [null], [[]], [{}], { since: null }, { since: {} }],
  Array.from({ length: 1_001 }, () => 'A'),
  Array.from({ length: 33 }, () => 'open'),
  JSON.parse(`${'['.repeat(15)}${']'.repeat(15)}`),
  JSON.parse(`${'['.repeat(400)}${']'.repeat(400)}`),
];
const TEXT_TWISTS: readonly ((text: string) => string)[] = [
  (text) => text.replace('{', '{"op":"ping",'),
  (text) => text.replace('{', '{"\\u006fp":"ping",'),
  (text) => text.replace('}', ',}'),
  (text) => text.replace(/\d+/, '1e999'),
  (text) => text.replace(/\d+/, 'NaN'),
  (text) => text.replace(/\d+/, '01'),
  (text) => text.replaceAll('"', "'"),
  (text) => `\ufeff${text}`,
  (text) => `${text}${text}`,
  (text) => ` \r\n\t${text} `,
  (text) => `/* */${text}`,
  (text) => text.replace('{', '{"__proto__":{"op":"ping"},'),
];

/** A client frame as text, changed as by a buggy or hostile program. */
export function mutateJson(random: Random, epoch: string): string {
  let frame = random.pick(SEEDS);
  for (let left = random.below(3); left > 0; left -= 1) frame = mutate(frame, random);
  const text = JSON.stringify(frame).replaceAll('<epoch>', epoch);
  return random.chance(0.1) ? random.pick(TEXT_TWISTS)(text) : text;
}

function mutate(value: Json, random: Random): Json {
  if (typeof value !== 'object' || value === null || random.chance(0.05)) {
    return random.pick(ODD_VALUES);
  }
  if (Array.isArray(value)) {
    const at = random.below(value.length + 1);
    return [...value.slice(0, at), mutate(value[at] ?? null, random), ...value.slice(at + 1)];
  }
  const entries = Object.entries(value);
  const at = random.below(entries.length);
  const [name, member] = entries[at] ?? ['op', null];
  switch (random.below(5)) {
    case 0:
      entries.splice(at, 1);
      break;
    case 1:
      entries[at] = [random.pick(random.chance(0.5) ? KEYS : ODD_KEYS), member];
      break;
    case 2:
      entries.push([random.pick([...KEYS, ...ODD_KEYS]), random.pick(ODD_VALUES)]);
      break;
    default:
      entries[at] = [name, mutate(member, random)];
  }
  return Object.fromEntries(entries);
}

/** Random byte changes; ASCII mostly stays ASCII, because invalid UTF-8 ends the connection. */
export function mutateBytes(bytes: Buffer, random: Random): Buffer {
  let changed = Buffer.from(bytes);
  const bits = random.chance(0.1) ? 8 : 7;
  const odd = (length: number) => random.bytes(length).map((byte) => byte & (2 ** bits - 1));
  for (let left = 1 + random.below(3); left > 0; left -= 1) {
    const at = random.below(changed.length + 1);
    const [before, after] = [changed.subarray(0, at), changed.subarray(at)];
    switch (random.below(5)) {
      case 0:
        changed = Buffer.concat([before, odd(1 + random.below(4)), after]);
        break;
      case 1:
        changed = Buffer.concat([before, after.subarray(1 + random.below(8))]);
        break;
      case 2:
        changed = Buffer.concat([before, after.subarray(0, 12), after]);
        break;
      case 3:
        changed = Buffer.from(before);
        break;
      default:
        if (at < changed.length) changed[at]! ^= 1 << random.below(bits);
    }
  }
  return changed;
}
