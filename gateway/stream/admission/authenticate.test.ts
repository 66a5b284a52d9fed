import { describe, expect, test } from 'vitest';
import type { ProofVerdict } from '../../../domain/authentication/authenticator.ts';
import { authenticate, type StreamKeyring } from './authenticate.ts';

const refusalOf = async (verdict: ProofVerdict) => {
  const keyring = { authenticator: { identify: async () => verdict } } as unknown as StreamKeyring;
  const credential = { kind: 'proof', proof: { kind: 'token', token: 'eyJ.x.y' } } as const;
  const authentication = await authenticate(keyring, credential, '127.0.0.1');
  return authentication.ok ? undefined : authentication.refusal;
};

describe('a proof is refused by the cause', () => {
  test.each([
    [{ kind: 'nonces_full' }, 'too_fast', 60_000],
    [{ kind: 'issuer_unavailable' }, 'accounts_unavailable', 30_000],
    [{ kind: 'unavailable' }, 'accounts_unavailable', 1_000],
    [{ kind: 'replayed' }, 'key_invalid', undefined],
    [{ kind: 'address_refused' }, 'address_refused', undefined],
  ] as const)('%j: %s', async (verdict, code, retryAfterMs) => {
    const refusal = await refusalOf(verdict);
    expect(refusal?.code).toBe(code);
    expect(refusal?.more).toEqual(
      retryAfterMs === undefined ? {} : { retry_after_ms: retryAfterMs },
    );
  });
});
