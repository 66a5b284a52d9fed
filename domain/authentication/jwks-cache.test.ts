import { generateKeyPairSync } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { silentLog } from '../../lib/log/log.ts';
import { type Jwks, readJwks } from './jwks.ts';
import { createJwksCache, JWKS_LIMITS } from './jwks-cache.ts';

function jwksOf(kid: string): Jwks {
  const { publicKey } = generateKeyPairSync('ed25519');
  const keys = readJwks(
    Buffer.from(JSON.stringify({ keys: [{ kid, ...publicKey.export({ format: 'jwk' }) }] })),
  );
  if (typeof keys === 'string') throw new Error(keys);
  return keys;
}

/** A cache under a clock of the test, and an issuer that it may switch off. */
function openCache(limits: Partial<typeof JWKS_LIMITS> = {}) {
  const state = { nowMs: 0, fetches: 0, keys: jwksOf('a'), isAway: false };
  const cache = createJwksCache({
    async fetch() {
      state.fetches += 1;
      if (state.isAway) throw new Error('away');
      return state.keys;
    },
    log: silentLog,
    nowMs: () => state.nowMs,
    limits: { ...JWKS_LIMITS, ...limits },
  });
  const key = (kid: string, id = 'aut_a') =>
    cache.key(id, 'https://id.example', { kid, alg: 'EdDSA' });
  return { state, key };
}

describe('keys of an issuer', () => {
  test('are fetched once by all who wait, and then kept', async () => {
    const { state, key } = openCache();
    const found = await Promise.all(Array.from({ length: 20 }, () => key('a')));
    expect(found.every((one) => typeof one === 'object')).toBe(true);
    await key('a');
    expect(state.fetches).toBe(1);
  });

  test('a flood of unknown names fetches once in the cool-down, which begins before the fetch', async () => {
    const { state, key } = openCache();
    state.isAway = true;
    const { coolDownMs } = JWKS_LIMITS;
    for (let i = 0; i < 100; i += 1) {
      expect(await key(`x${i}`)).toBe('unavailable');
      state.nowMs += 1;
    }
    expect(state.fetches).toBe(1);
    state.nowMs = coolDownMs;
    state.isAway = false;
    expect(await key('x')).toBe('unknown_key');
    expect(state.fetches).toBe(2);
    state.keys = jwksOf('b');
    expect(await key('b')).toBe('unknown_key');
    state.nowMs = 2 * coolDownMs;
    expect(typeof (await key('b'))).toBe('object');
    expect(await key('a')).toBe('unknown_key');
  });

  test('go on serving while the issuer is away, for a day and no longer', async () => {
    const { state, key } = openCache();
    await key('a');
    state.isAway = true;
    for (const nowMs of [JWKS_LIMITS.freshMs, JWKS_LIMITS.staleMs - 1]) {
      state.nowMs = nowMs;
      expect(typeof (await key('a'))).toBe('object');
      await setImmediate(); // the fetch in the background ends
    }
    expect(state.fetches).toBe(3);
    state.nowMs = JWKS_LIMITS.staleMs + JWKS_LIMITS.coolDownMs;
    expect(await key('a')).toBe('unavailable');
  });

  test('of more issuers at a time than the bound are not fetched', async () => {
    const { state, key } = openCache({ fetchesMax: 2 as never });
    const found = await Promise.all(['1', '2', '3'].map((id) => key('a', id)));
    expect(found.map((one) => (typeof one === 'object' ? 'key' : one))).toEqual([
      'key',
      'key',
      'unavailable',
    ]);
    expect(state.fetches).toBe(2);
  });
});

describe('a JWK set', () => {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const jwk = publicKey.export({ format: 'jwk' });
  test.each([
    [
      'of more keys than the bound',
      Array.from({ length: 51 }, (_, i) => ({ ...jwk, kid: `${i}` })),
    ],
    [
      'with one name twice',
      [
        { ...jwk, kid: 'a' },
        { ...jwk, kid: 'a' },
      ],
    ],
    ['of a private key', [{ ...privateKey.export({ format: 'jwk' }), kid: 'a' }]],
    ['of a secret', [{ kty: 'oct', k: 'c2VjcmV0', kid: 'a' }]],
    ['without names', [jwk]],
    ['for encryption', [{ ...jwk, kid: 'a', use: 'enc' }]],
    ['of nothing', [null, 1, 'x']],
  ])('%s is refused', (_name, keys) => {
    expect(typeof readJwks(Buffer.from(JSON.stringify({ keys })))).toBe('string');
  });
});
