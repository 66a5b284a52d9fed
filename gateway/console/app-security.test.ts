import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Page } from 'playwright-core';
import { request } from 'undici';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { waitFor } from '../../testing/wait.ts';
import { type AccountApi, openAccountApi } from '../api/testing/account-api.ts';
import { type Customer, PASSWORD } from '../api/testing/customer.ts';
import { openAppPages } from './testing/app-pages.ts';

/** What a foreign site, and foreign text, can do to the console in a real browser: nothing. */
let api: AccountApi;
let pages: Awaited<ReturnType<typeof openAppPages>>;
let customer: Customer;
/** Another site: the same machine by its other name. */
let foreign: Server;

beforeAll(async () => {
  pages = await openAppPages(() => api.base, PASSWORD);
  api = await openAccountApi();
  customer = await api.customer('target', 'pro');
  foreign = createServer((_, response) =>
    response.setHeader('content-type', 'text/html').end('<title>foreign</title>'),
  );
  await new Promise<void>((resolve) => foreign.listen(0, '127.0.0.1', resolve));
});

afterEach(() => pages.closePages());

afterAll(async () => {
  await pages?.close();
  foreign?.close();
  await api?.close();
});

const foreignUrl = () => `http://localhost:${(foreign.address() as AddressInfo).port}/`;

async function signedIn(path: string, heading: string): Promise<Page> {
  const { page } = await pages.open(path);
  await pages.signIn(page, customer.email, heading);
  return page;
}

test.each(['/', '/app', '/app/settings/api-keys'])(
  '%s has a policy without anything unsafe, and may not be framed',
  async (address) => {
    const { headers, body } = await request(`${api.base}${address}`);
    await body.dump();
    const policy = String(headers['content-security-policy']);
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("script-src 'self';");
    expect(policy).toContain("style-src 'self';");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).toContain("form-action 'none'");
    expect(policy).toContain("base-uri 'none'");
    expect(policy).toContain("require-trusted-types-for 'script'");
    expect(policy).not.toMatch(/unsafe|data:|\*/);
  },
);

test('the browser refuses inline code, inline styles, and text as HTML or code', async () => {
  const page = await signedIn('/app', 'Overview');
  const outcomes = await page.evaluate(`(() => {
    const attempt = (act) => { try { act(); return 'done'; } catch (error) { return error.name; } };
    const violations = [];
    addEventListener('securitypolicyviolation', ({ violatedDirective }) =>
      violations.push(violatedDirective));
    const tried = [
      attempt(() => { document.body.innerHTML = '<b>broken</b>'; }),
      attempt(() => { document.createElement('script').textContent = 'broken = 1'; }),
      attempt(() => { document.createElement('script').src = '/console/assets/x.js'; }),
      attempt(() => document.createRange().createContextualFragment('<b>broken</b>')),
    ];
    const style = document.createElement('style');
    style.textContent = 'body { opacity: 0 }';
    document.head.append(style);
    const link = document.createElement('a');
    link.setAttribute('style', 'color: red');
    document.body.append(link);
    // Later, since the tool that runs this text lifts the ban on eval until it returns.
    return new Promise((resolve) => setTimeout(() => {
      tried.push(attempt(() => eval('1')));
      resolve({ tried, violations, opacity: getComputedStyle(document.body).opacity });
    }, 0));
  })()`);
  const { tried, violations, opacity } = outcomes as {
    readonly tried: readonly string[];
    readonly violations: readonly string[];
    readonly opacity: string;
  };
  expect(tried.slice(0, 4)).toEqual(['TypeError', 'TypeError', 'TypeError', 'TypeError']);
  expect(tried[4]).toBe('EvalError');
  expect(opacity).toBe('1');
  expect(violations.filter((name) => name.startsWith('style-src')).length).toBeGreaterThan(0);
});

test('another site cannot frame the console', async () => {
  const page = await signedIn('/app', 'Overview');
  await page.goto(foreignUrl());
  await page.evaluate(`(() => {
    const frame = document.createElement('iframe');
    frame.src = '${api.base}/app';
    document.body.append(frame);
  })()`);
  const frame = await waitFor('the frame to be refused', () =>
    page.frames().find((one) => one !== page.mainFrame() && one.url().startsWith('chrome-error:')),
  );
  expect(frame.url()).toMatch(/^chrome-error:/);
});

test('another site changes nothing with the cookie of who is signed in', async () => {
  const page = await signedIn('/app', 'Overview');
  const keys = async () => (await customer.send('GET', '/api/keys')).body.data.length;
  const before = await keys();
  await page.goto(foreignUrl());
  const send = (type: string) =>
    page.evaluate(`fetch('${api.base}/api/keys', {
      method: 'POST', credentials: 'include', mode: 'no-cors',
      headers: { 'content-type': '${type}' }, body: '{"name":"stolen"}',
    }).then(() => 'sent', () => 'refused')`);
  // JSON needs a preflight, which is refused; a form's type does not, but is no JSON.
  await send('text/plain');
  await send('application/json');
  expect(await keys()).toBe(before);
  // From the same site too, the token is what counts: the cookie alone is not enough.
  const { cookie } = customer.credentials();
  const forged = await request(`${api.base}/api/keys`, {
    method: 'POST',
    headers: { cookie: cookie!, 'content-type': 'application/json', 'x-csrf-token': 'guessed' },
    body: JSON.stringify({ name: 'stolen' }),
  });
  expect(forged.statusCode).toBe(403);
  expect(await forged.body.json()).toMatchObject({ code: 'csrf_token_invalid' });
  expect(await keys()).toBe(before);
});

test('the cookie is out of reach of scripts, of other sites, and of the address', async () => {
  const page = await signedIn('/app', 'Overview');
  const [cookie] = await page.context().cookies(api.base);
  expect(cookie).toMatchObject({ httpOnly: true, path: '/' });
  expect(['Lax', 'Strict']).toContain(cookie!.sameSite);
  expect(await page.evaluate('document.cookie')).toBe('');
  const kept = await page.evaluate(
    '[location.href, JSON.stringify(history.state), ...Object.values(localStorage),' +
      ' ...Object.values(sessionStorage)].join()',
  );
  expect(kept).not.toContain(cookie!.value);
});

test('foreign text in names, addresses and mails is shown as text', async () => {
  const html = '<img src=x onerror="document.title=\'broken\'">';
  await customer.send('POST', '/api/keys', { name: html });
  await customer.send('PATCH', '/api/account', { name: html });
  const page = await signedIn('/app/settings/api-keys', 'API keys');
  await page.getByText(html).first().waitFor();
  await page.getByRole('link', { name: 'Profile', exact: true }).click();
  await page.getByText(html).first().waitFor();
  expect(await page.locator('img').count()).toBe(0);
  // A search that is nobody's, in the address, is not run either.
  await page.goto(`${api.base}/app/symbols?q=${encodeURIComponent(html)}`);
  await page.getByRole('heading', { name: 'Symbols' }).waitFor();
  expect(await page.title()).toBe('Symbols · pillole');
});

test.each(['https://evil.example/', '//evil.example', '/\\evil.example', 'javascript:alert(1)'])(
  'sign-in does not lead to %s',
  async (to) => {
    const { page } = await pages.open(`/app/sign-in?to=${encodeURIComponent(to)}`);
    await pages.signIn(page, customer.email, 'Overview');
    expect(new URL(page.url()).origin).toBe(api.base);
  },
);
