import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { getPort } from '../../../testing/ports.ts';
import { startProcess, type TestProcess } from '../../../testing/process.ts';
import { waitFor } from '../../../testing/wait.ts';
import { type AccountApi, openAccountApi } from '../testing/account-api.ts';
import type { Customer } from '../testing/customer.ts';
import {
  expectStatus,
  openTrial,
  register,
  type SignatureScheme,
  send,
  signed,
  switchOn,
  switchTo,
} from '../testing/schemes.ts';

const ROOT = '/api/manager/authentication';

let accounts: AccountApi;
/** Address of a second process. */
let elsewhere: string;
let base: string;
let customer: Customer;
let stranger: Customer;
let scheme: SignatureScheme;
let stream: TestProcess;
let streamUrl: string;

beforeAll(async () => {
  accounts = await openAccountApi();
  base = accounts.base;
  // The same public address, as behind a proxy.
  elsewhere = await accounts.start({ PUBLIC_URL: base });
  const port = await getPort();
  streamUrl = `ws://127.0.0.1:${port}`;
  stream = await startProcess('gateway/stream/main.js', [], {
    ...accounts.namespace.env,
    STREAM_PORT: String(port),
  });
  customer = await accounts.customer('firm', 'institutional');
  stranger = await accounts.customer('other', 'institutional');
  scheme = await register(customer, 'ed25519');
  await switchOn(customer, base, scheme.id, (url) => signed(scheme, url));
  await stream.ready();
});

const sockets = new Set<WebSocket>();
afterEach(() => {
  for (const socket of sockets) socket.terminate();
  sockets.clear();
});

afterAll(async () => {
  await stream?.stop();
  await accounts?.close();
});

const ACCOUNT = '/api/account';

/** Sends a signed GET, perhaps with other headers than were signed. */
const get = (more: Parameters<typeof signed>[2] = {}, changes: object = {}, at = base) => {
  const url = `${base}${ACCOUNT}`;
  return send(`${at}${ACCOUNT}`, { ...signed(scheme, url, more), ...changes });
};

/** Opens a socket with these headers, and collects its frames until it closes. */
function connect(path: string, headers: Record<string, string>) {
  const socket = new WebSocket(`${streamUrl}${path}`, { headers });
  sockets.add(socket);
  const frames: { type: string; code?: string; account?: string; message?: string }[] = [];
  socket.on('message', (data) => frames.push(JSON.parse(String(data))));
  socket.on('error', () => undefined);
  const closed = new Promise<number>((resolve) => socket.on('close', resolve));
  const first = () => waitFor('a frame', () => frames[0] && { ...frames[0] });
  return { frames, closed, first };
}

const socketHeaders = (of = scheme, path = '/api/stream', more = {}) =>
  signed(of, `${streamUrl}${path}`, more);

describe('a signed request', () => {
  test.each(['ed25519', 'ecdsa-p256-sha256', 'hmac-sha256'] as const)(
    'with %s is let in, on every process',
    async (algorithm) => {
      const own = await register(customer, algorithm);
      await switchOn(customer, base, own.id, (url) => signed(own, url));
      for (const at of [base, elsewhere]) {
        const { status, body } = await send(`${at}${ACCOUNT}`, signed(own, `${base}${ACCOUNT}`));
        expect([status, body.tier]).toEqual([200, 'institutional']);
      }
    },
  );

  test('opens a socket, and a ticket opens another', async () => {
    const { first } = connect('/api/stream', socketHeaders());
    expect(await first()).toMatchObject({ type: 'welcome', tier: 'institutional' });
    const url = `${base}/api/stream/tickets`;
    const made = await send(url, signed(scheme, url, { method: 'POST' }), { method: 'POST' });
    const { ticket } = expectStatus(made, 201).body;
    expect(await connect(`/api/stream?ticket=${ticket}`, {}).first()).toMatchObject({
      type: 'welcome',
    });
  });

  test('with a body must have the digest that was signed', async () => {
    const url = `${base}/api/support`;
    const body = JSON.stringify({ subject: 'hello', message: 'a question' });
    const headers = signed(scheme, url, { method: 'POST', body });
    const altered = body.replace('question', 'complaint');
    const refused = await send(url, headers, { method: 'POST', body: altered });
    expect([refused.status, refused.body.code]).toEqual([401, 'signature_invalid']);
    const uncovered = signed(scheme, url, { method: 'POST' });
    const open = await send(url, uncovered, { method: 'POST', body });
    expect([open.status, open.body.code, open.body.check]).toEqual([
      ...[401, 'signature_malformed', 'components'],
    ]);
    const sent = await send(url, signed(scheme, url, { method: 'POST', body }), {
      method: 'POST',
      body,
    });
    expect(sent.status).toBeLessThan(300);
  });

  test('is accepted once, whichever process gets it again', async () => {
    const headers = signed(scheme, `${base}${ACCOUNT}`);
    const answers = await Promise.all(
      [base, elsewhere, base, elsewhere, base].map((at) => send(`${at}${ACCOUNT}`, headers)),
    );
    const codes = answers.map(({ status, body }) => (status === 200 ? 'ok' : body.code));
    expect(codes.filter((code) => code === 'ok')).toHaveLength(1);
    expect(codes.filter((code) => code === 'signature_replayed')).toHaveLength(4);
  });

  test('for a socket is accepted once', async () => {
    const headers = socketHeaders();
    expect(await connect('/api/stream', headers).first()).toMatchObject({ type: 'welcome' });
    const again = connect('/api/stream', headers);
    expect(await again.first()).toMatchObject({ type: 'error', code: 'key_invalid' });
    expect(await again.closed).toBe(4501);
  });

  test('that differs from what was signed is refused', async () => {
    const url = `${base}/api/pills/latest?symbol=7203.T`;
    const headers = () => signed(scheme, url);
    const path = await send(`${base}/api/pills/latest?symbol=9984.T`, headers());
    const method = await send(url, headers(), { method: 'HEAD' });
    expect([path.status, path.body.code]).toEqual([401, 'signature_invalid']);
    expect(method.status).toBe(401);
    const socket = connect('/api/stream?x=1', socketHeaders());
    expect(await socket.closed).toBe(4501);
  });

  test('behind a proxy covers the public address, never what a header of the client says', async () => {
    const env = { PUBLIC_URL: 'https://api.example', TRUSTED_PROXIES: '127.0.0.1' };
    const behind = await accounts.start(env);
    const ask = (origin: string, host: string) => {
      const headers = { host, 'x-forwarded-host': host, 'x-forwarded-proto': 'https' };
      const proof = signed(scheme, `${origin}${ACCOUNT}`);
      return send(`${behind}${ACCOUNT}`, { ...proof, ...headers });
    };
    const right = await ask('https://api.example', 'evil.example');
    const wrong = await ask('https://evil.example', 'evil.example');
    expect([right.status, wrong.status]).toEqual([200, 401]);
    expect(wrong.body.code).toBe('signature_invalid');
  });
});

describe('a signature is refused', () => {
  const now = () => Math.floor(Date.now() / 1_000);
  test.each([
    ['expired', () => get({ created: now() - 90 }), 'created'],
    ['of the future', () => get({ created: now() + 60 }), 'created'],
    ['past its expires', () => get({ more: `;expires=${now() - 1}` }), 'created'],
    ['without the method', () => get({ components: ['@target-uri'] }), 'components'],
    ['without the target', () => get({ components: ['@method', '@path'] }), 'components'],
    ['with a short nonce', () => get({ nonce: 'short' }), 'parameters'],
    ['with an unknown parameter', () => get({ more: ';x=1' }), 'parameters'],
    [
      'with a component of a response',
      () => get({ components: ['@method";req', '@target-uri'] }),
      undefined,
    ],
    ['without Signature', () => get({}, { signature: '' }), 'headers'],
  ])('%s', async (_name, ask, check) => {
    const { status, body } = await ask();
    expect([status, body.code]).toEqual([401, 'signature_malformed']);
    if (check !== undefined) expect(body.check).toBe(check);
  });

  test('with two labels, two headers, or one label twice', async () => {
    const url = `${base}${ACCOUNT}`;
    const [one, two] = [signed(scheme, url), signed(scheme, url, { label: 'sig2' })];
    const three = signed(scheme, url);
    const both = (name: 'signature' | 'signature-input', other: typeof one) =>
      [one[name]!, other[name]!] as const;
    for (const other of [two, three]) {
      const joined = {
        signature: both('signature', other).join(', '),
        'signature-input': both('signature-input', other).join(', '),
      };
      const repeated = {
        signature: [...both('signature', other)],
        'signature-input': [...both('signature-input', other)],
      };
      for (const headers of [joined, repeated]) {
        const { status, body } = await send(url, headers as Record<string, string[]>);
        expect([status, body.code, body.check]).toEqual([401, 'signature_malformed', 'headers']);
      }
    }
  });

  test('of an unknown scheme, a wrong key, and another customer, with one answer', async () => {
    const theirs = await register(stranger, 'ed25519');
    await switchOn(stranger, base, theirs.id, (url) => signed(theirs, url));
    const url = `${base}${ACCOUNT}`;
    const answers = [
      await send(url, signed({ ...scheme, id: 'aut_aaaabbbbcccc' }, url)),
      await send(url, signed({ ...scheme, key: theirs.key }, url)),
      await send(url, signed({ ...scheme, id: theirs.id }, url)),
      await get({ more: ';alg="hmac-sha256"' }),
    ];
    const shape = ({ status, body: { request_id: _, ...body } }: (typeof answers)[0]) => [
      status,
      body,
    ];
    for (const answer of answers) expect(shape(answer)).toEqual(shape(answers[0]!));
    expect(answers[0]!.body.code).toBe('signature_invalid');
  });

  test('by HMAC with the public key as its secret', async () => {
    const { body } = await customer.send('GET', `${ROOT}/schemes/${scheme.id}`);
    for (const secret of [Buffer.from(body.public_key), Buffer.from(body.public_key.trim())]) {
      const key = { algorithm: 'hmac-sha256', secret } as const;
      const url = `${base}${ACCOUNT}`;
      const answer = await send(
        url,
        signed({ id: scheme.id, key }, url, { more: ';alg="hmac-sha256"' }),
      );
      expect([answer.status, answer.body.code]).toEqual([401, 'signature_invalid']);
    }
  });

  test('beside a key or a token', async () => {
    for (const more of [{ 'x-api-key': 'pil_live_x' }, { authorization: 'Bearer eyJ.eyJ.x' }]) {
      const { status, body } = await get({}, more);
      expect([status, body.code]).toEqual([401, 'credentials_mixed']);
    }
  });
});

describe('a trial', () => {
  test('is demanded before a scheme is on, and says which part fails', async () => {
    const own = await register(customer, 'ed25519');
    const early = await switchTo(customer, own.id, 'on');
    expect([early.status, early.body.code]).toEqual([409, 'state_conflict']);
    const url = `${base}/api/authentication/check`;
    const closed = await send(url, signed(own, url));
    expect([closed.status, closed.body.code]).toEqual([401, 'signature_invalid']);
    await openTrial(customer, own.id);
    const wrong = await waitFor('the trial to be open', async () => {
      const { status, body } = await send(url, signed(own, `${url}?x=1`));
      return status === 200 && body;
    });
    expect(wrong).toMatchObject({ ok: false, check: 'signature', scheme: own.id });
    expect(wrong.detail).toContain(`"@target-uri": ${url}\n`);
    const body = '{"a":1}';
    const altered = await send(url, signed(own, url, { method: 'POST', body }), {
      method: 'POST',
      body: '{"a":2}',
    });
    expect(altered.body).toMatchObject({ check: 'content_digest' });
    const still = await switchTo(customer, own.id, 'on');
    expect(still.status).toBe(409);
    // Being tried does not let in.
    const early2 = await send(`${base}${ACCOUNT}`, signed(own, `${base}${ACCOUNT}`));
    expect(early2.body.code).toBe('signature_invalid');
    const right = await send(url, signed(own, url, { method: 'POST', body }), {
      method: 'POST',
      body,
    });
    expect(right.body).toMatchObject({ ok: true, scopes: ['read', 'stream', 'support'] });
    const { last_trial: last, state } = (await customer.send('GET', `${ROOT}/schemes/${own.id}`))
      .body;
    expect([last.ok, state]).toEqual([true, 'off']);
    expectStatus(await switchTo(customer, own.id, 'on'), 200);
  });
});

describe('the only way in', () => {
  test('refuses keys for REST and sockets within a second, and has a way back', async () => {
    const made = await customer.send('POST', '/api/keys', { name: 'old' });
    const { key } = expectStatus(made, 201).body;
    const byKey = connect('/api/stream', { 'x-api-key': key });
    expect(await byKey.first()).toMatchObject({ type: 'welcome' });
    const bySignature = connect('/api/stream', socketHeaders());
    expect(await bySignature.first()).toMatchObject({ type: 'welcome' });
    expectStatus(await customer.send('PATCH', ROOT, { keys: 'refused' }), 200);
    expect(await byKey.closed).toBe(4502);
    expect(byKey.frames.at(-1)).toMatchObject({ code: 'keys_refused' });
    for (const at of [base, elsewhere]) {
      await waitFor('the key to be refused', async () => {
        const { status, body } = await send(`${at}${ACCOUNT}`, { 'x-api-key': key });
        return status === 403 && body.code === 'keys_refused';
      });
    }
    expect(await connect('/api/stream', { 'x-api-key': key }).closed).toBe(4502);
    expect((await get()).status).toBe(200);
    expect(bySignature.frames.some(({ type }) => type === 'error')).toBe(false);
    expectStatus(await customer.send('PATCH', ROOT, { keys: 'accepted' }), 200);
    await waitFor('the key to be accepted', async () => {
      const { status } = await send(`${base}${ACCOUNT}`, { 'x-api-key': key });
      return status === 200;
    });
  });

  test('cannot be chosen, nor lose its last scheme, by accident', async () => {
    const none = await accounts.customer('empty', 'institutional');
    expect((await none.send('PATCH', ROOT, { keys: 'refused' })).status).toBe(409);
    const own = await register(none, 'hmac-sha256');
    await switchOn(none, base, own.id, (url) => signed(own, url));
    expectStatus(await none.send('PATCH', ROOT, { keys: 'refused' }), 200);
    expect((await switchTo(none, own.id, 'off')).status).toBe(409);
    expect((await none.send('DELETE', `${ROOT}/schemes/${own.id}`)).status).toBe(409);
    expectStatus(await none.send('PATCH', ROOT, { keys: 'accepted' }), 200);
    expectStatus(await none.send('DELETE', `${ROOT}/schemes/${own.id}`), 204);
  });

  test('may be of one key: its schemes have its rights and its life', async () => {
    const made = await customer.send('POST', '/api/keys', { name: 'desk', scopes: ['read'] });
    const { key, record } = expectStatus(made, 201).body;
    const own = await register(customer, 'ed25519', { key_id: record.id });
    await switchOn(customer, base, own.id, (url) => signed(own, url));
    const to = `${ROOT}/keys/${record.id}`;
    expectStatus(await customer.send('PATCH', to, { secret: 'refused' }), 200);
    await waitFor('the key to be refused', async () => {
      const { body } = await send(`${base}${ACCOUNT}`, { 'x-api-key': key });
      return body.code === 'keys_refused';
    });
    expect(await connect('/api/stream', socketHeaders(own)).closed).toBe(4501);
    expectStatus(await customer.send('DELETE', `/api/keys/${record.id}`), 200);
    await waitFor('the scheme to end with the key', async () => {
      const url = `${base}${ACCOUNT}`;
      const { body } = await send(url, signed(own, url));
      return body.code === 'signature_invalid';
    });
  });
});

describe('a change of a scheme', () => {
  test.each(['switched off', 'removed', 'narrowed to other networks'])(
    '%s: its sockets are closed, and requests refused everywhere',
    async (change) => {
      const own = await register(customer, 'ecdsa-p256-sha256');
      await switchOn(customer, base, own.id, (url) => signed(own, url));
      const socket = connect('/api/stream', socketHeaders(own));
      expect(await socket.first()).toMatchObject({ type: 'welcome' });
      const to = `${ROOT}/schemes/${own.id}`;
      if (change === 'removed') expectStatus(await customer.send('DELETE', to), 204);
      else if (change === 'switched off')
        expectStatus(await switchTo(customer, own.id, 'off'), 200);
      else {
        const networks = { allow_cidrs: ['203.0.113.0/24'] };
        expectStatus(await customer.send('PATCH', to, networks), 200);
      }
      expect(await socket.closed).toBe(change.startsWith('narrowed') ? 4509 : 4502);
      for (const at of [base, elsewhere]) {
        await waitFor('the scheme to be refused', async () => {
          const { status } = await send(`${at}${ACCOUNT}`, signed(own, `${base}${ACCOUNT}`));
          return status === 401 || status === 403;
        });
      }
    },
  );

  test('is refused to sessions of other accounts, and of lower tiers', async () => {
    const to = `${ROOT}/schemes/${scheme.id}`;
    expect((await stranger.send('GET', to)).status).toBe(404);
    expect((await stranger.send('DELETE', to)).status).toBe(404);
    const basic = await accounts.customer('basic', 'basic');
    const body = { name: 'x', algorithm: 'hmac-sha256' };
    const refused = await basic.send('POST', `${ROOT}/signature-schemes`, body);
    expect([refused.status, refused.body.code]).toEqual([403, 'tier_too_low']);
  });

  test('is in the audit log', async () => {
    const { body } = await customer.send('GET', '/api/account/audit?limit=200');
    const actions = body.data.map(({ action }: { action: string }) => action);
    for (const action of [
      'scheme.created',
      'scheme.trial_opened',
      'scheme.switched_on',
      'keys.refused',
    ]) {
      expect(actions).toContain(action);
    }
  });
});
