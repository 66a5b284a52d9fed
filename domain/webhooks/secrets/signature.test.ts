import { Webhook } from 'standardwebhooks';
import { expect, test } from 'vitest';
import { newSecret } from './secret.ts';
import { signatureOf } from './signature.ts';

const body = '{"type":"pill.published","data":{"symbol":"7203.T","note":"\u20ac \u{1f48a}"}}';
const timestampS = Math.floor(Date.now() / 1_000);

function headersOf(secrets: readonly Buffer[], id = 'msg_1') {
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestampS),
    'webhook-signature': signatureOf(secrets, id, timestampS, body),
  };
}

test('an independent library verifies the signature with each of several secrets', () => {
  const secrets = [newSecret(), newSecret(), newSecret()];
  const headers = headersOf(secrets.map(({ bytes }) => bytes));
  expect(headers['webhook-signature'].split(' ')).toHaveLength(3);
  for (const { text } of secrets) {
    expect(new Webhook(text).verify(body, headers)).toEqual(JSON.parse(body));
  }
  expect(() => new Webhook(newSecret().text).verify(body, headers)).toThrow('No matching');
});

test('the signature equals that of the library, the newest secret first', () => {
  const [newest, older] = [newSecret(), newSecret()];
  const at = new Date(timestampS * 1_000);
  const theirs = [newest, older].map(({ text }) => new Webhook(text).sign('msg_1', at, body));
  expect(signatureOf([newest.bytes, older.bytes], 'msg_1', timestampS, body)).toBe(
    theirs.join(' '),
  );
});

test.each([
  ['body', (headers: ReturnType<typeof headersOf>) => [body.replace('7203', '7204'), headers]],
  ['id', (headers) => [body, { ...headers, 'webhook-id': 'msg_2' }]],
  ['time', (headers) => [body, { ...headers, 'webhook-timestamp': String(timestampS + 1) }]],
  [
    'signature',
    (headers) => {
      const signature = headers['webhook-signature'];
      const changed = signature[3] === 'A' ? 'B' : 'A';
      return [body, { ...headers, 'webhook-signature': `v1,${changed}${signature.slice(4)}` }];
    },
  ],
] as [string, (headers: ReturnType<typeof headersOf>) => [string, Record<string, string>]][])(
  'one changed byte in the %s is refused',
  (_, change) => {
    const { text, bytes } = newSecret();
    const [changed, headers] = change(headersOf([bytes]));
    expect(() => new Webhook(text).verify(changed, headers)).toThrow('No matching');
  },
);
