import { createHmac, randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { Webhook } from 'standardwebhooks';
import { describe, expect, expectTypeOf, test } from 'vitest';
import type { WebhookExample } from '../../domain/webhooks/events/event-catalogue.ts';
import type { UnknownWebhookEvent, WebhookEvent } from '../exports.ts';
import { challengeAnswer, verifyWebhook, WebhookVerificationError } from '../index.ts';

const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const OTHER = `whsec_${Buffer.alloc(32, 8).toString('base64')}`;
const BODY = JSON.stringify({
  type: 'endpoint.test',
  timestamp: '2026-11-20T01:02:03.011000Z',
  data: { endpoint: 'whe_abc', challenge: 'c-1' },
});
const NOW = new Date('2026-11-20T01:02:04Z');

/** Headers of a delivery, signed by the reference library. */
function signed(body: string, secrets: readonly string[] = [SECRET], at = NOW) {
  const signatures = secrets.map((secret) => new Webhook(secret).sign('msg_1', at, body));
  return {
    'webhook-id': 'msg_1',
    'webhook-timestamp': String(Math.floor(at.getTime() / 1_000)),
    'webhook-signature': signatures.join(' '),
  };
}

async function refusal(...args: Parameters<typeof verifyWebhook>) {
  const error = await verifyWebhook(...args).then(
    (event) => event,
    (thrown) => thrown,
  );
  expect(error).toBeInstanceOf(WebhookVerificationError);
  return (error as WebhookVerificationError).code;
}

describe('signatures of the reference library', () => {
  test('are accepted for text and bytes; the answer to a test is its challenge', async () => {
    const event = await verifyWebhook(BODY, signed(BODY), SECRET, { now: NOW });
    expect(event).toEqual(JSON.parse(BODY));
    expect(challengeAnswer(event)).toBe('c-1');
    const bytes = new Uint8Array(Buffer.from(BODY));
    expect(await verifyWebhook(bytes, signed(BODY), SECRET, { now: NOW })).toEqual(event);
    expect(await verifyWebhook(Buffer.from(BODY), signed(BODY), [SECRET], { now: NOW })).toEqual(
      event,
    );
  });

  test('are accepted for any body, id and secret', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.record({ text: fc.string({ unit: 'grapheme' }), number: fc.double({ noNaN: true }) }),
        fc.string({ unit: fc.constantFrom(...'abc_.-0'), minLength: 1, maxLength: 40 }),
        fc.uint8Array({ minLength: 24, maxLength: 64 }),
        async (data, id, key) => {
          const secret = `whsec_${Buffer.from(key).toString('base64')}`;
          const body = JSON.stringify({ type: 'x.y', timestamp: 't', data });
          const headers = {
            ...signed(body, [secret]),
            'webhook-id': id,
            'webhook-signature': new Webhook(secret).sign(id, NOW, body),
          };
          const event = await verifyWebhook(body, headers, secret, { now: NOW });
          expect(event).toEqual(JSON.parse(body));
          expect(challengeAnswer(event)).toBeUndefined();
        },
      ),
    );
  });

  test('are rejected if any byte of body, id, time or signature differs', async () => {
    const headers = signed(BODY);
    await fc.assert(
      fc.asyncProperty(
        fc.nat(BODY.length - 1),
        fc.integer({ min: 1, max: 127 }),
        async (at, bit) => {
          const bytes = Buffer.from(BODY);
          bytes[at]! ^= bit;
          expect(await refusal(bytes, headers, SECRET, { now: NOW })).toBe('signature_mismatch');
        },
      ),
    );
    const signature = headers['webhook-signature'];
    for (let at = 3; at < signature.length; at += 1) {
      const letter = signature[at] === 'A' ? 'B' : 'A';
      const changed = `${signature.slice(0, at)}${letter}${signature.slice(at + 1)}`;
      const code = await refusal(BODY, { ...headers, 'webhook-signature': changed }, SECRET, {
        now: NOW,
      });
      expect(code).toBe('signature_mismatch');
    }
    const seconds = String(Number(headers['webhook-timestamp']) - 1);
    for (const change of [{ 'webhook-id': 'msg_2' }, { 'webhook-timestamp': seconds }]) {
      const code = await refusal(BODY, { ...headers, ...change }, SECRET, { now: NOW });
      expect(code).toBe('signature_mismatch');
    }
  });

  test('both libraries agree, whatever the signature header contains', async () => {
    const at = new Date();
    const good = signed(BODY, [SECRET], at)['webhook-signature'];
    const parts = fc.constantFrom(
      good,
      good.slice(3),
      `v1a,${good.slice(3)}`,
      'v1,',
      'v1',
      'x',
      '',
    );
    await fc.assert(
      fc.asyncProperty(fc.array(parts, { minLength: 1, maxLength: 4 }), async (list) => {
        const headers = { ...signed(BODY, [SECRET], at), 'webhook-signature': list.join(' ') };
        let theirs = true;
        try {
          new Webhook(SECRET).verify(BODY, headers);
        } catch {
          theirs = false;
        }
        const ours = await verifyWebhook(BODY, headers, SECRET).then(
          () => true,
          () => false,
        );
        expect(ours).toBe(theirs);
      }),
    );
  });
});

test('during a rotation either side may have both secrets', async () => {
  const both = signed(BODY, [OTHER, SECRET]);
  for (const secrets of [SECRET, OTHER, [SECRET, OTHER], [OTHER]]) {
    expect(await verifyWebhook(BODY, both, secrets, { now: NOW })).toBeDefined();
  }
  expect(await verifyWebhook(BODY, signed(BODY), [OTHER, SECRET], { now: NOW })).toBeDefined();
  expect(await refusal(BODY, signed(BODY), OTHER, { now: NOW })).toBe('signature_mismatch');
});

test('headers may have any case, and be a Headers object or those of Node', async () => {
  const headers = signed(BODY);
  const loud = Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toUpperCase(), value]),
  );
  const listed = Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, [value]]),
  );
  for (const given of [loud, listed, new Headers(headers), { ...headers, cookie: undefined }]) {
    expect(await verifyWebhook(BODY, given, SECRET, { now: NOW })).toBeDefined();
  }
  for (const name of Object.keys(headers)) {
    const { [name as keyof typeof headers]: _, ...rest } = headers;
    expect(await refusal(BODY, rest, SECRET, { now: NOW })).toBe('header_missing');
    expect(await refusal(BODY, new Headers(rest), SECRET, { now: NOW })).toBe('header_missing');
  }
});

describe('time', () => {
  const ago = (seconds: number) =>
    signed(BODY, [SECRET], new Date(NOW.getTime() - seconds * 1_000));

  test.each([
    [300, undefined],
    [301, 'too_old'],
    [-300, undefined],
    [-301, 'too_new'],
  ] as const)('sent %i s ago: %s', async (seconds, code) => {
    const verifying = [BODY, ago(seconds), SECRET, { now: NOW }] as const;
    if (code !== undefined) expect(await refusal(...verifying)).toBe(code);
    else expect(await verifyWebhook(...verifying)).toBeDefined();
  });

  test('another tolerance; one that is not a number is an error of the caller', async () => {
    expect(
      await verifyWebhook(BODY, ago(900), SECRET, { now: NOW, toleranceS: 900 }),
    ).toBeDefined();
    expect(await refusal(BODY, ago(2), SECRET, { now: NOW, toleranceS: 1 })).toBe('too_old');
    for (const toleranceS of [Number.NaN, -1, '300 s' as unknown as number]) {
      await expect(verifyWebhook(BODY, ago(0), SECRET, { toleranceS })).rejects.toThrow(RangeError);
    }
  });

  test.each(['', 'soon', '1.5', '-1', '0x10', '1e9', ' 1', '01', '9'.repeat(13)])(
    '%j is not a timestamp',
    async (text) => {
      const headers = { ...signed(BODY), 'webhook-timestamp': text };
      const code = await refusal(BODY, headers, SECRET, { now: NOW });
      expect(code).toBe(text === '' ? 'header_missing' : 'timestamp_malformed');
    },
  );
});

describe('invalid secrets and bodies', () => {
  test.each([
    ...['', 'whsec_', 'pil_live_abcdefgh', 'whsec_%%%', `whsec_${'A'.repeat(31)}`],
    `whsec_${Buffer.alloc(65).toString('base64')}`,
    undefined as unknown as string,
  ])('the secret %j', async (secret) => {
    expect(await refusal(BODY, signed(BODY), secret ?? [], { now: NOW })).toBe('secret_malformed');
    expect(await refusal(BODY, signed(BODY), [SECRET, secret], { now: NOW })).toBe(
      'secret_malformed',
    );
  });

  test('a secret may end with a line break, and may lack its prefix', async () => {
    for (const secret of [`${SECRET}\n`, SECRET.slice(6), SECRET.replace(/=+$/, '')]) {
      expect(await verifyWebhook(BODY, signed(BODY), secret, { now: NOW })).toBeDefined();
    }
  });

  test('a parsed body is rejected', async () => {
    const parsed = JSON.parse(BODY);
    expect(await refusal(parsed, signed(BODY), SECRET, { now: NOW })).toBe('body_malformed');
  });

  test.each(['', 'null', '[]', '{}', '{"type":1,"timestamp":"t","data":{}}', '{"type":"x"', '7'])(
    'the signed body %j',
    async (body) => {
      expect(await refusal(body, signed(body), SECRET, { now: NOW })).toBe('body_malformed');
    },
  );

  test('signed bytes that are not UTF-8', async () => {
    const body = Buffer.concat([Buffer.from('{"type":"x","timestamp":"'), Buffer.from([0xff])]);
    const key = Buffer.alloc(32, 7);
    const seconds = String(Math.floor(NOW.getTime() / 1_000));
    const mac = createHmac('sha256', key).update(`m.${seconds}.`).update(body).digest('base64');
    const headers = {
      'webhook-id': 'm',
      'webhook-timestamp': seconds,
      'webhook-signature': `v1,${mac}`,
    };
    expect(await refusal(body, headers, SECRET, { now: NOW })).toBe('body_malformed');
  });

  test('garbage always causes a WebhookVerificationError', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uint8Array({ maxLength: 200 }),
        fc.dictionary(
          fc.constantFrom('webhook-id', 'webhook-timestamp', 'webhook-signature'),
          fc.string(),
        ),
        async (body, headers) => {
          await refusal(body, headers, `whsec_${randomBytes(32).toString('base64')}`);
        },
      ),
    );
  });
});

test('the types match the catalogue', () => {
  expectTypeOf<WebhookExample>().toExtend<WebhookEvent>();
  expectTypeOf<WebhookEvent['type']>().toEqualTypeOf<WebhookExample['type']>();
  const textOf = (event: WebhookEvent): string => {
    switch (event.type) {
      case 'pill.published':
        return event.data.symbol;
      case 'pills.published':
        return event.data.pills.map(({ symbol }) => symbol).join(' ');
      case 'quota.warning':
        return `${event.data.percent}`;
      case 'endpoint.disabled':
        return event.data.recover;
      case 'endpoint.test':
      case 'endpoint.failing':
      case 'key.expiring':
      case 'payment.failed':
      case 'payment.reminder':
      case 'subscription.changed':
        return event.type;
      default: {
        const unknown: UnknownWebhookEvent = event;
        return unknown.type;
      }
    }
  };
  expect(textOf({ type: 'later.one', timestamp: 't', data: {} } as never)).toBe('later.one');
});
