import { describe, expect, test } from 'vitest';
import { hasDigests, readSignatureInput } from './signature-input.ts';

const NOW_MS = 1_764_000_000_000;
const INPUT =
  'sig1=("@method" "@target-uri" "content-digest");created=1764000000;' +
  'keyid="aut_k3yq7v2bqm9c";nonce="0123456789abcdef"';

function readWith(contentDigest: string) {
  return readSignatureInput(
    {
      method: 'POST',
      url: 'https://api.example.com/api/tickets',
      headers: [
        ['signature-input', INPUT],
        ['signature', 'sig1=:AAAA:'],
        ['content-digest', contentDigest],
      ],
      hasBody: true,
    },
    NOW_MS,
  );
}

describe('Content-Digest', () => {
  test.each(['constructor=:AAAA:', 'md5=:AAAA:', 'sha-256="AAAA"', 'sha-256', '', 'sha-256=:A'])(
    '%s: malformed, since no known algorithm has a digest',
    (text) => {
      expect(readWith(text)).toMatchObject({ ok: false, fault: { check: 'content_digest' } });
    },
  );

  test('an unknown algorithm beside a known one is ignored; the known one counts', () => {
    const ofEmpty = 'sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:';
    const read = readWith(`constructor=:AAAA:, ${ofEmpty}`);
    if (!read.ok) throw new Error(read.fault.detail);
    expect([...read.value.digests!.keys()]).toEqual(['sha256']);
    expect(hasDigests(Buffer.alloc(0), read.value.digests!)).toBe(true);
    expect(hasDigests(Buffer.from('x'), read.value.digests!)).toBe(false);
  });
});
