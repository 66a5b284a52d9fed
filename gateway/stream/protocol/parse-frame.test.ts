import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isOriginAllowed } from '../../http/origins.ts';
import { createLogAvailability } from '../log/log-availability.ts';
import { CLOSE_CODES } from './close-codes.ts';
import { ERROR_CODES } from './error-codes.ts';
import { parseClientFrame } from './parse-frame.ts';

const parse = (text: string) => parseClientFrame(Buffer.from(text));

describe('parseClientFrame', () => {
  test('reads a subscribe frame as documented', () => {
    const text =
      '{"op":"subscribe","id":"1","symbols":["7203.T","0700 HK"],"mode":"latest","snapshot":false,' +
      '"backfill":true,"resume":"k7f3:0-77,3-104","filter":{"min_confidence":80,"min_spread":-1,' +
      '"max_spread":1,"states":["open"]}}';
    expect(parse(text)).toEqual({
      ok: true,
      frame: {
        op: 'subscribe',
        id: '1',
        symbols: ['7203.T', '0700 HK'],
        mode: 'latest',
        snapshot: false,
        backfill: true,
        resume: {
          kind: 'position',
          position: {
            epoch: 'k7f3',
            offsets: new Map([
              [0, 77],
              [3, 104],
            ]),
          },
        },
        filter: { minConfidence: 80, minSpread: -1, maxSpread: 1, states: ['open'] },
      },
    });
  });

  test.each([
    ['{"op":"subscrib","id":"5"}', 'No op "subscrib". Known: auth, subscribe, unsubscribe, ping.'],
    ['{"op":"ping","mode":"all"}', '"ping" has no field "mode". Known: op, id, t.'],
    ['{"op":"subscribe","symbols":"A"}', 'array of 1 to 1,000 symbols, or ["*"], not "A".'],
    ['{"op":"subscribe","symbols":["A",7]}', '"symbols" is an array of strings, not 7.'],
    ['{"op":"subscribe","symbols":["A"],"mode":"fast"}', '"mode" is "all" or "latest"'],
    ['{"op":"subscribe","symbols":["A"],"filter":{"x":1}}', 'Known: min_confidence, min_spread,'],
    ['{"op":"subscribe","symbols":["A"],"filter":{"min_spread":2,"max_spread":1}}', 'is above'],
    ['{"op":"subscribe","symbols":["A"],"filter":{"states":[]}}', 'holds 0; send 1 to 32'],
    [
      '{"op":"subscribe","symbols":["A"],"resume":{"since":"yesterday"}}',
      '"since": The form must be YYYY',
    ],
    ['{"op":"ping","t":1e999}', '#/t: Not a finite double.'],
    ['{"op":"ping","__proto__":{}}', '#/__proto__'],
    ['', 'The body is empty.'],
  ])('%s is refused with a helpful message', (text, message) => {
    const parsed = parse(text);
    expect(parsed.ok).toBe(false);
    if (!parsed.ok) expect(parsed.fault.message).toContain(message);
  });

  test('never throws, whatever the bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        parseClientFrame(Buffer.from(bytes));
      }),
    );
    const odd = fc.anything({ withNullPrototype: false });
    const keys = fc.constantFrom('op', 'id', 'symbols', 'mode', 'resume', 'filter', 't', 'key');
    fc.assert(
      fc.property(
        fc.dictionary(keys, odd),
        fc.constantFrom('subscribe', 'ping', 'x'),
        (frame, op) => {
          const text = JSON.stringify({ ...frame, op }) ?? '';
          parseClientFrame(Buffer.from(text));
        },
      ),
    );
  });
});

test.each([
  ['', true],
  ['http://localhost:3000', true],
  ['https://127.0.0.1', true],
  ['http://[::1]:8080', true],
  ['http://localhost.evil.com', false],
  ['https://127.0.0.1.evil.com', false],
  ['https://example.com', false],
  ['file://localhost', false],
  ['null', false],
  ['garbage', false],
])('a page of origin "%s" may connect: %s', (origin, allowed) => {
  expect(isOriginAllowed(origin, [])).toBe(allowed);
  expect(isOriginAllowed(origin, [origin])).toBe(true);
});

test('close codes are distinct; 45xx means "do not reconnect"', () => {
  const codes = Object.values(CLOSE_CODES);
  expect(new Set(codes.map(({ code }) => code)).size).toBe(codes.length);
  for (const { code, reconnect } of codes) expect(reconnect).toBe(code < 4500);
  for (const error of Object.values(ERROR_CODES)) {
    if ('close' in error) expect(CLOSE_CODES).toHaveProperty(error.close);
  }
});

test('the log counts as down after a delay, and as up at once', () => {
  const availability = createLogAvailability(2_000);
  const seconds = [0, 1, 1.9, 2, 3, 4, 5, 6];
  const connected = [true, false, false, true, false, false, false, true];
  const changes = seconds.map((s, i) => availability.observe(connected[i]!, s * 1e6));
  expect(changes).toEqual([
    undefined,
    undefined,
    undefined,
    undefined,
    undefined,
    undefined,
    { state: 'down', since: 3e6 },
    { state: 'up', since: 6e6 },
  ]);
});
