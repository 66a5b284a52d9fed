import axe from 'axe-core';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { launchChromium } from '../../testing/launch-chromium.ts';
import { makePill } from '../../testing/pills.ts';
import { waitFor } from '../../testing/wait.ts';
import { type Generators, openGenerators, pillOf, tokenOf } from '../api/testing/generators.ts';
import { type OpenPage, openPage, type PageOptions } from './testing/chromium.ts';

let generators: Generators;
let browser: Browser;
/** Pages of an API that knows the generators' credentials, and of one where all is open. */
let closedUrl: string;
let openUrl: string;
const pages: OpenPage[] = [];

beforeAll(async () => {
  browser = await launchChromium();
  generators = await openGenerators(['desk1', 'desk2', 'desk3', 'desk4']);
  const { platform } = generators;
  closedUrl = `${platform.url}/`;
  openUrl = `${await platform.startApi({})}/`;
});

afterEach(async () => {
  for (const one of pages.splice(0)) await one.close();
});

afterAll(async () => {
  await browser?.close();
  await generators?.close();
});

/** Opens the panel. @param url without a hash */
async function open(url: string, options?: PageOptions, hash = '#generator') {
  const opened = await openPage(browser, `${url}${hash}`, options);
  pages.push(opened);
  return opened;
}

async function giveToken(page: Page, token: string): Promise<void> {
  await page.getByLabel('Generator token').fill(token);
  await page.keyboard.press('Enter');
}

/** The texts of the cells of a table, row by row. */
async function rowsOf(page: Page, title: string): Promise<string[][]> {
  const rows = await page.getByRole('table', { name: title }).locator('tbody tr').all();
  return Promise.all(rows.map((row) => row.locator('th, td').allInnerTexts()));
}

/** Waits until a row that begins with `name` is this one. */
function untilRow(page: Page, title: string, expected: readonly string[]): Promise<true> {
  return waitFor(`${title}: ${expected}`, async () => {
    const rows = await rowsOf(page, title);
    return rows.some((row) => row.join() === expected.join()) || JSON.stringify(rows);
  });
}

async function refuse(name: string, fields: object = {}): Promise<void> {
  const { status } = await generators.post(name, pillOf({ confidence: 'high', ...fields }));
  expect(status).toBe(400);
}

test('counts, reasons and a sample of one generator; later refusals follow by themselves', async () => {
  const symbol = 'DESK1.T';
  const [good, old] = [pillOf({ symbol }), pillOf({ symbol, timestamp: '2026-01-01T00:00:00Z' })];
  await generators.accepted('desk1', good);
  await generators.accepted('desk1', old);
  expect((await generators.post('desk1', good)).headers['idempotent-replayed']).toBe('true');
  await refuse('desk1', { symbol });
  await refuse('desk2', { symbol: 'DESK2.T' });

  const { page } = await open(closedUrl);
  await giveToken(page, tokenOf('desk1'));
  await untilRow(page, 'By source', ['desk1', '2', '1', '1', '1', '0', '1']);
  expect(await rowsOf(page, 'By source')).toHaveLength(1);
  const [shown] = await rowsOf(page, 'Reasons');
  expect(shown).toEqual(['pill_invalid', expect.stringMatching(/^\w+$/), 'desk1', 'refused', '1']);
  const [hour, ...figures] = (await rowsOf(page, 'By hour'))[0]!;
  expect(hour).toMatch(/\d\d:\d\d$/);
  expect(figures[0]).toBe('desk1');
  // The sample, read before the counts, may follow only with the next reading.
  const [pill] = await waitFor('the sample', async () => {
    const rows = await rowsOf(page, 'Newest refused and rejected pills');
    return rows.length > 0 && rows;
  });
  expect(pill?.slice(1, 4)).toEqual(['desk1', symbol, 'refused']);
  expect(pill?.[4]).toMatch(/^pill_invalid .*confidence/);
  const time = page.getByRole('table', { name: 'Newest refused' }).locator('time').first();
  expect(await time.getAttribute('title')).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6} UTC$/);

  await refuse('desk1', { symbol: 'LATER.T' });
  await untilRow(page, 'By source', ['desk1', '2', '1', '1', '1', '0', '2']);
  await waitFor('the later pill', async () => {
    const rows = await rowsOf(page, 'Newest refused and rejected pills');
    return rows[0]?.[2] === 'LATER.T' || JSON.stringify(rows);
  });
  await page.getByText('A sample: the newest 2 of 2.').waitFor();
});

test('a wrong token is refused with the reason, not sent again, and no token is stored', async () => {
  const { page, complaints } = await open(closedUrl);
  const sent: string[] = [];
  page.on('request', (request) => {
    if (request.url().includes('/api/generator/')) sent.push(request.url());
  });
  await page.clock.install();
  await page.reload();
  const alert = page.getByRole('alert');
  await alert.getByText(/^A generator credential is required\./).waitFor();
  await giveToken(page, 'gen_short\u{1f511}');
  await alert.getByText(/^The text is no generator token\. A generator credential is/).waitFor();
  await giveToken(page, tokenOf('nobody'));
  await alert.getByText(/^The generator credential was refused\. Ask the operator/).waitFor();
  const before = sent.length;
  await page.clock.runFor(120_000);
  expect(sent.length).toBe(before);

  await giveToken(page, tokenOf('desk3'));
  await page.getByText('No pill was sent in the last 24 hours.').waitFor();
  expect(await page.getByLabel('Generator token').count()).toBe(0);
  expect(await alert.count()).toBe(0);
  const stored =
    'JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, history.state])';
  expect(await page.evaluate(stored)).toBe('[{},{},"",null]');
  expect(sent.concat(page.url()).filter((url) => url.includes('gen_'))).toEqual([]);
  // It outlasts the view, but not the page.
  await page.keyboard.press('Escape');
  await page.getByRole('link', { name: 'Generator' }).click();
  await page.getByText('No pill was sent in the last 24 hours.').waitFor();
  await page.reload();
  await alert.getByText(/^A generator credential is required\./).waitFor();
  expect(complaints.filter((text) => !/status of 40[13]/.test(text))).toEqual([]);
});

test('a failed refresh says why and keeps the figures with their age', async () => {
  await refuse('desk4');
  const { page } = await open(closedUrl);
  await page.clock.install();
  await page.reload();
  await giveToken(page, tokenOf('desk4'));
  const rows = page.getByRole('table', { name: 'By source' }).locator('tbody tr');
  await waitFor('the figures', async () => {
    await page.clock.runFor(1_000);
    return (await rows.count()) === 1;
  });
  const problem = { status: 503, code: 'x', title: 'Closed <b>today</b>', detail: 'Until noon.' };
  await page.route('**/api/generator/**', (route) =>
    route.fulfill({ status: 503, json: problem, contentType: 'application/problem+json' }),
  );
  const alert = page.getByRole('alert');
  await waitFor('the fault', async () => {
    await page.clock.runFor(5_000);
    return (await alert.count()) === 1;
  });
  expect(await alert.innerText()).toBe(
    'The figures could not be refreshed. Closed <b>today</b>. Until noon.',
  );
  expect(await rows.count()).toBe(1);
  await page.clock.runFor(120_000);
  await page.getByText(/As of .*, \d+ min ago\./).waitFor();
  await page.unroute('**/api/generator/**');
  await waitFor('figures of now', async () => {
    await page.clock.runFor(5_000);
    return (await alert.count()) === 0;
  });
});

test('nothing is read in a hidden tab, or after the view is left', async () => {
  const { page } = await open(openUrl);
  await page.clock.install();
  await page.reload();
  let reads = 0;
  page.on('request', (request) => {
    if (request.url().includes('/api/generator/')) reads += 1;
  });
  const untilRead = async () => {
    const before = reads;
    await waitFor('the next read', async () => {
      await page.clock.runFor(5_000);
      return reads > before;
    });
  };
  const hide = (isHidden: boolean) =>
    page.evaluate(`Object.defineProperty(document, 'hidden', {
      configurable: true, get: () => ${isHidden} })`);
  await untilRead();
  await untilRead();
  await hide(true);
  // A read that has begun is two requests.
  await page.waitForLoadState('networkidle');
  const hidden = reads;
  await page.clock.runFor(600_000);
  expect(reads).toBe(hidden);
  await hide(false);
  await untilRead();
  await page.keyboard.press('Escape');
  await page.getByRole('heading', { name: 'Generator' }).waitFor({ state: 'detached' });
  const left = reads;
  await page.clock.runFor(600_000);
  expect(reads).toBe(left);
});

test('the keyboard reaches the view, and leads back to the link', async () => {
  const { page } = await open(openUrl, {}, '');
  const focused = () => page.evaluate('document.activeElement.textContent.trim()');
  await page.getByRole('navigation', { name: 'Pages' }).waitFor();
  await page.keyboard.press('Tab');
  expect(await focused()).toBe('Generator');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Generator' }).waitFor();
  await waitFor(
    'the heading',
    async () => (await page.evaluate('document.activeElement.tagName')) === 'H2',
  );
  const link = page.getByRole('link', { name: 'Generator' });
  expect(await link.getAttribute('aria-current')).toBe('page');
  await page.keyboard.press('Escape');
  await waitFor('the link', async () => {
    return (
      (await page.getByRole('heading', { name: 'Generator' }).count()) === 0 &&
      (await focused()) === 'Generator'
    );
  });
  expect(page.url()).toMatch(/#all$/);
});

test.each([
  ['light', 1280, undefined],
  ['dark', 1280, undefined],
  ['light', 390, true],
  ['dark', 390, true],
] as const)('hostile names stay text in their cells: %s, %i px', async (scheme, width, isPhone) => {
  const wrong = `\u202ehsarc\n<img src=x onerror=alert(1)>${'W'.repeat(10_000)}`;
  await refuse('desk2', { symbol: wrong });
  await generators.platform.write([makePill({ source: wrong })]);
  const { page, complaints } = await open(openUrl, { scheme, width, ...(isPhone && { isPhone }) });
  const names = page.locator('.data bdi', { hasText: '\u{fffd}hsarc\u{fffd}<img src=x' });
  await waitFor('the source and the symbol', async () => (await names.count()) >= 4);
  expect(await page.locator('.data img').count()).toBe(0);
  expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBe(0);
  for (const name of await names.all()) {
    expect((await name.innerText()).length).toBeLessThan(400);
    expect((await name.boundingBox())!.height).toBeLessThan(40);
  }
  await page.evaluate(axe.source);
  const { violations } = (await page.evaluate('axe.run()')) as axe.AxeResults;
  expect(violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)])).toEqual([]);
  expect(complaints).toEqual([]);
});
