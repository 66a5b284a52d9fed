import axe from 'axe-core';
import type { Page } from 'playwright-core';
import { request } from 'undici';
import { describe, expect, test } from 'vitest';
import { nowMicros } from '../../lib/timing/clock.ts';
import { partitionOf } from '../../schemas/partition.ts';
import { makePill, openPillWriter } from '../../testing/pills.ts';
import { waitFor } from '../../testing/wait.ts';
import { LIVE, stateOf, usePages } from './testing/use-pages.ts';

const { market, open } = usePages(async (market) => {
  await market.send({ symbol: 'A.T', gross_spread_percent: 0.3, confidence: 10 });
  await market.send({ symbol: 'B.HK', gross_spread_percent: 0.1, market_state: 'lunch_break' });
  await market.send({ symbol: 'C.T', gross_spread_percent: -0.2, confidence: 99 });
});

interface Facts {
  readonly spreads: readonly unknown[];
}
interface PageWindow {
  getComputedStyle(element: unknown, pseudo: string): { readonly content: string };
}

const rowOf = (page: Page, symbol: string) => page.locator(`tr[data-symbol="${symbol}"]`);
const cellOf = (page: Page, symbol: string, column: string) =>
  rowOf(page, symbol).locator(`.${column}`);
const symbolsOf = (page: Page) => page.locator('tbody .symbol a').allTextContents();

/** Waits until the page is live and shows all three symbols. */
async function ready(page: Page): Promise<void> {
  await waitFor('a live page', async () => {
    const state = await stateOf(page);
    return LIVE.test(state) || state;
  });
  await waitFor('all rows to appear', async () => {
    const symbols = await symbolsOf(page);
    return ['A.T', 'B.HK', 'C.T'].every((one) => symbols.includes(one)) || symbols.join();
  });
}

describe('the market', () => {
  test('a snapshot row, a change of it, and a row of a new symbol', async () => {
    const { page, complaints } = await open();
    await ready(page);
    const symbol = `N${nowMicros()}.T`;
    await market().send({ symbol, gross_spread_percent: 0.125, market_state: 'open' });
    await rowOf(page, symbol).waitFor();
    expect(await cellOf(page, symbol, 'spread').innerText()).toBe('0.1250');
    expect(await cellOf(page, symbol, 'change').innerText()).toBe('–');
    await market().send({ symbol, gross_spread_percent: 0.1, market_state: 'lunch_break' });
    await waitFor('the change', async () => {
      const spread = await cellOf(page, symbol, 'spread').innerText();
      return spread === '0.1000' || spread;
    });
    expect(await cellOf(page, symbol, 'change').innerText()).toMatch(/^▼\s*−0\.0250$/);
    expect(await cellOf(page, symbol, 'state').innerText()).toMatch(/lunch break$/);
    expect(await cellOf(page, symbol, 'trend').innerText()).toBe('2 spreads from 0.1000 to 0.1250');
    expect(complaints).toEqual([]);
  });

  test('a late pill changes nothing', async () => {
    const { page } = await open();
    await ready(page);
    const timestamp = nowMicros() - 30_000_000;
    // A new pill first: the first pill of the test may be older than the late pill.
    await market().send({ symbol: 'A.T', gross_spread_percent: 0.3, confidence: 10 });
    await market().send({ symbol: 'A.T', gross_spread_percent: 9, timestamp });
    // A symbol of the same partition, so that its pill comes after the late one.
    const { partitions } = market().namespace.settings;
    const names = Array.from({ length: 100 }, (_, n) => `L${n}.T`);
    const after = names.find((name) => {
      return partitionOf(name, partitions) === partitionOf('A.T', partitions);
    })!;
    await market().send({ symbol: after });
    await rowOf(page, after).waitFor();
    expect(await cellOf(page, 'A.T', 'spread').innerText()).toBe('0.3000');
  });

  test('ages grow without new pills, by the clock of the platform', async () => {
    const { page } = await open();
    await ready(page);
    const ageOf = async () => {
      const [, text, unit] =
        /^(\d+) (s|min)$/.exec(await cellOf(page, 'C.T', 'age').innerText()) ?? [];
      return text === undefined ? 0 : Number(text) * (unit === 'min' ? 60 : 1);
    };
    await market().send({ symbol: 'C.T', gross_spread_percent: -0.2, confidence: 99 });
    const first = await waitFor('the new pill', async () => {
      const age = await ageOf();
      return age < 20 ? age : `${age} s`;
    });
    const second = await waitFor('the age to grow', async () => {
      const age = await ageOf();
      return age > first && age;
    });
    await waitFor('the age to grow further', async () => (await ageOf()) > second);
  });

  test('a local clock that is wrong by an hour changes no age', async () => {
    const { page } = await open();
    await page.clock.install({ time: Date.now() + 3_600_000 });
    await page.reload();
    await ready(page);
    await market().send({ symbol: 'C.T', gross_spread_percent: -0.2, confidence: 99 });
    await waitFor('an age of seconds', async () => {
      const age = await cellOf(page, 'C.T', 'age').innerText();
      return /^(now|\d+ s)$/.test(age) || age;
    });
  });
});

describe('filter, order, keyboard', () => {
  test('a heading sorts rows, reverses the order on the second click, and announces it', async () => {
    const { page } = await open();
    await ready(page);
    const heading = page.getByRole('columnheader', { name: /Spread/ }).first();
    expect(await heading.getAttribute('aria-sort')).toBe('none');
    await heading.getByRole('button').click();
    await waitFor('order', async () => (await heading.getAttribute('aria-sort')) === 'descending');
    const known = async () => (await symbolsOf(page)).filter((one) => /^[ABC]\./.test(one));
    expect(await known()).toEqual(['A.T', 'B.HK', 'C.T']);
    await heading.getByRole('button').press('Enter');
    await waitFor('order', async () => (await heading.getAttribute('aria-sort')) === 'ascending');
    expect(await known()).toEqual(['C.T', 'B.HK', 'A.T']);
  });

  test('"/" moves to the filter, which matches symbols and states; Escape clears and leaves it', async () => {
    const { page } = await open();
    await ready(page);
    await page.keyboard.press('/');
    await page.keyboard.type('b.h');
    await waitFor('one row to remain', async () => (await symbolsOf(page)).join() === 'B.HK');
    await page.keyboard.press('Escape');
    const focused = () => page.evaluate('document.activeElement.tagName');
    await waitFor('the filter to be left', async () => (await focused()) === 'BODY');
    await ready(page);
    await page.keyboard.press('/');
    await page.keyboard.type('lunch');
    await waitFor('by state', async () => {
      const symbols = await symbolsOf(page);
      return (symbols.includes('B.HK') && !symbols.includes('A.T')) || symbols.join();
    });
    await page.keyboard.press('Escape');
    await page.keyboard.press('/');
    await page.keyboard.type('nothing has this name');
    await page.getByText('No symbol matches.').waitFor();
    await page.getByRole('button', { name: 'Show all' }).press('Enter');
    await ready(page);
  });

  test('Tab reaches every control, in visual order', async () => {
    const { page } = await open();
    await ready(page);
    const names: string[] = [];
    // Venues that are closed at the time of the test are buttons between filter and headings.
    while (names.length < 12) {
      await page.keyboard.press('Tab');
      const isVenue = "document.activeElement.closest('.closed-venues') !== null";
      if (await page.evaluate(isVenue)) continue;
      const name = `document.activeElement.getAttribute('aria-label')
        ?? document.activeElement.labels?.[0]?.innerText ?? document.activeElement.innerText`;
      names.push(String(await page.evaluate(name)).trim());
    }
    expect(names).toEqual([
      ...['Generator', 'API', 'Sign in', 'Switch to dark'],
      'Filter by symbol, name, venue or market state',
      ...[
        'Symbol\n↑',
        'Spread %',
        'Change\nsince the previous pill',
        'Confidence',
        'Market',
        'Age',
      ],
      expect.stringMatching(/^[A-Z]/), // the link of the first row
    ]);
  });

  test('the theme follows the system until the user chooses; the choice is stored', async () => {
    const { page } = await open({ scheme: 'dark' });
    await ready(page);
    const ground = () =>
      page.evaluate('getComputedStyle(document.documentElement).backgroundColor');
    const dark = await ground();
    await page.getByRole('button', { name: 'Switch to light' }).click();
    await waitFor('light', async () => (await ground()) !== dark);
    const light = await ground();
    await page.reload();
    await ready(page);
    expect(await ground()).toBe(light);
  });

  test('a change of the system theme also changes the button', async () => {
    const { page } = await open({ scheme: 'light' });
    await ready(page);
    await page.getByRole('button', { name: 'Switch to dark' }).waitFor();
    await page.emulateMedia({ colorScheme: 'dark' });
    await page.getByRole('button', { name: 'Switch to light' }).click();
    await page.getByRole('button', { name: 'Switch to dark' }).waitFor();
    await page.emulateMedia({ colorScheme: 'light' });
    await page.emulateMedia({ colorScheme: 'dark' });
    expect(await page.locator('html').getAttribute('data-theme')).toBe('light');
  });

  test('a row is highlighted only by its own pill: not during or after a burst', async () => {
    const { page } = await open();
    await ready(page);
    await page.evaluate(`window.lit = []; addEventListener('animationstart', ({ target }) => {
      lit.push(target.closest('tr').dataset.symbol);
    })`);
    const lit = async () => (await page.evaluate('lit')) as string[];
    const writer = await openPillWriter(market().namespace);
    try {
      await writer.write(
        Array.from({ length: 1_000 }, () =>
          makePill({ symbol: 'B.HK', gross_spread_percent: 0.1, market_state: 'lunch_break' }),
        ),
      );
    } finally {
      await writer.close();
    }
    const rate = page.locator('.figures dd').first();
    await waitFor('many pills per second', async () => Number(await rate.innerText()) > 50);
    await page.evaluate('lit.length = 0');
    await waitFor('the rate to fall to 0', async () => (await rate.innerText()) === '0.0');
    await market().send({ symbol: 'A.T', gross_spread_percent: 0.3, confidence: 10 });
    await waitFor('a highlighted row', async () => (await lit()).length > 0);
    expect(await lit()).toEqual(['A.T']);
  });

  test('nothing moves with reduced motion', async () => {
    const { page } = await open();
    const animation = `getComputedStyle(document.querySelector('.figure.fresh')).animationName`;
    await ready(page);
    // Without the event that ends the animation, the class stays.
    await page.evaluate(`
      addEventListener('animationend', (event) => event.stopImmediatePropagation(), true);
      document.querySelector('.figure').classList.add('fresh')`);
    expect(await page.evaluate(animation)).toBe('fresh');
    await page.emulateMedia({ reducedMotion: 'reduce' });
    expect(await page.evaluate(animation)).toBe('none');
  });
});

describe('accessibility and screen sizes', () => {
  test.each([
    ['light', 1440, undefined],
    ['dark', 1440, undefined],
    ['light', 390, true],
    ['dark', 390, true],
  ] as const)('axe finds no violation: %s, %i px', async (scheme, width, isPhone) => {
    const { page, complaints } = await open({ scheme, width, ...(isPhone && { isPhone }) });
    await ready(page);
    await page.evaluate(axe.source);
    const found = (await page.evaluate('axe.run()')) as axe.AxeResults;
    expect(found.violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)])).toEqual(
      [],
    );
    expect(found.passes.length).toBeGreaterThan(15);
    expect(complaints).toEqual([]);
  });

  test.each([320, 390, 768, 1920])('%i px wide: no horizontal scrolling', async (width) => {
    const { page } = await open({ width, ...(width < 640 && { isPhone: true as const }) });
    await ready(page);
    expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBe(0);
  });

  test('on a phone a select sorts the rows, since headings are hidden', async () => {
    const { page } = await open({ width: 390, height: 844, isPhone: true });
    await ready(page);
    await page.getByLabel('Sort by').selectOption('spread');
    const known = async () => (await symbolsOf(page)).filter((one) => /^[ABC]\./.test(one));
    await waitFor('order', async () => (await known()).join() === 'A.T,B.HK,C.T');
    await page.getByRole('button', { name: 'Descending' }).click();
    await waitFor('order', async () => (await known()).join() === 'C.T,B.HK,A.T');
    // The sorted column is visible, with its unit.
    const seen = (column: string) => cellOf(page, 'A.T', column).isVisible();
    expect([await seen('change'), await seen('confidence')]).toEqual([true, false]);
    await page.getByLabel('Sort by').selectOption('confidence');
    await waitFor('the confidence to be visible', () => seen('confidence'));
    expect(await seen('change')).toBe(false);
    const spread = cellOf(page, 'A.T', 'spread').locator('.figure');
    const after = await spread.evaluate((figure) => {
      return (globalThis as never as PageWindow).getComputedStyle(figure, '::after').content;
    });
    expect(after).toBe('" %"');
  });
});

describe('a symbol', () => {
  test('a row opens the view of its symbol by keyboard and by click; Escape leads back', async () => {
    const { page, complaints } = await open();
    await ready(page);
    await rowOf(page, 'A.T').getByRole('link').press('Enter');
    const heading = page.getByRole('heading', { name: 'A.T' });
    await heading.waitFor();
    expect(page.url()).toMatch(/#A\.T$/);
    expect(await page.locator('table.market').count()).toBe(0);
    const verdict = page.getByRole('region', { name: 'Verdict' });
    await verdict.getByText(/Do not act on the newest pill|can be acted on/).waitFor();
    await verdict.getByText('Too old after').waitFor();
    await page.keyboard.press('Escape');
    await rowOf(page, 'A.T').waitFor();
    const focused = () => page.evaluate('document.activeElement.textContent');
    await waitFor('the focus to be back', async () => (await focused()) === 'A.T');
    await cellOf(page, 'C.T', 'spread').click();
    await page.getByRole('heading', { name: 'C.T' }).waitFor();
    await page.getByRole('link', { name: 'All symbols' }).click();
    await ready(page);
    // The fixture has no sink: the chart reports with 503 that history is unavailable.
    expect(complaints).toEqual([]);
  });

  test('a link opens it at once, with a chart of the answer; the ranges change it', async () => {
    const { page, complaints } = await open();
    await page.route('**/analytics/bars?*', (route) => {
      const query = new URL(route.request().url()).searchParams;
      const stepMs = { '1s': 1_000, '1m': 60_000, '1h': 3_600_000 }[query.get('interval')!]!;
      const data = Array.from({ length: 40 }, (_, n) => ({
        start: new Date(Date.now() - n * stepMs).toISOString(),
        ...{ low: 0.1, high: 0.3, close: 0.2 + n / 1_000 },
      }));
      return route.fulfill({ json: { data } });
    });
    await page.goto(`${market().url}#B.HK`);
    await page.reload();
    const chart = page.getByRole('img', { name: 'Spread of B.HK over 6 hours, 40 steps' });
    await chart.locator('canvas').waitFor();
    await page.getByRole('button', { name: '7 days' }).click();
    const week = page.getByRole('img', { name: 'Spread of B.HK over 7 days, 40 steps' });
    await week.locator('canvas').waitFor();
    await page.getByText('The newest steps as a table').click();
    const steps = page.getByRole('table', { name: 'Newest steps' });
    await steps.getByRole('cell', { name: '0.2000', exact: true }).waitFor();
    expect(await steps.getByRole('row').count()).toBe(1 + 40);
    await page.evaluate(axe.source);
    const { violations } = (await page.evaluate('axe.run()')) as axe.AxeResults;
    expect(violations.map(({ id }) => id)).toEqual([]);
    expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBe(0);
    expect(complaints).toEqual([]);
  });

  test('an address that names no known symbol says so', async () => {
    const { page } = await open();
    await ready(page);
    await page.goto(`${market().url}#NONE.T`);
    await page.getByText('No pill of this symbol has arrived.').waitFor();
  });
});

describe('what the stream does not carry', () => {
  test('sparkline and change are there at once, with the name and the venue', async () => {
    const symbol = '7203.T';
    for (const spread of [0.1, 0.4, 0.2]) {
      await market().send({ symbol, gross_spread_percent: spread });
    }
    // The API reads the log on its own, and the page asks once.
    await waitFor('the spreads at the API', async () => {
      const answer = await request(new URL(`/console/market?symbols=${symbol}`, market().url));
      const { symbols } = (await answer.body.json()) as Record<'symbols', Record<string, Facts>>;
      return symbols[symbol]!.spreads.length >= 3;
    });
    const { page } = await open();
    await ready(page);
    await waitFor('the earlier spreads', async () => {
      const text = await cellOf(page, symbol, 'trend').innerText();
      return /spreads from 0\.1000 to 0\.4000$/.test(text) || text;
    });
    expect(await cellOf(page, symbol, 'change').innerText()).toMatch(/^▼\s*−0\.2000$/);
    await cellOf(page, symbol, 'change').hover();
    expect(await cellOf(page, symbol, 'change').getAttribute('title')).toMatch(/^since \d/);
    expect(await cellOf(page, symbol, 'symbol').innerText()).toContain('Toyota Motor');
    expect(await cellOf(page, symbol, 'state').innerText()).toMatch(/^Tokyo/);
    await page.keyboard.press('/');
    await page.keyboard.type('toyota');
    await waitFor('one row to remain', async () => (await symbolsOf(page)).join() === symbol);
  });

  test('a closed venue is listed once, and not in each row', async () => {
    const { page } = await open();
    await page.route('**/console/market?*', async (route) => {
      const answer = await (await route.fetch()).json();
      const closed = { state: 'holiday', opens_at: '2100-01-02T00:00:00Z', changes_at: null };
      Object.assign(answer.venues.XTKS, closed);
      await route.fulfill({ json: answer });
    });
    for (const symbol of ['A.T', 'C.T']) await market().send({ symbol, market_state: 'closed' });
    await page.reload();
    await ready(page);
    const listed = page.locator('.closed-venues li', { hasText: 'Tokyo' });
    await waitFor('Tokyo', async () => (await listed.count()) === 1);
    expect(await listed.innerText()).toMatch(/^Tokyo holiday until 2 Jan/);
    for (const symbol of ['A.T', 'C.T']) {
      // For screen readers each row says so.
      const label = cellOf(page, symbol, 'state').getByText('closed', { exact: true });
      expect([symbol, await label.getAttribute('class')]).toEqual([symbol, 'unseen']);
    }
    await listed.getByRole('button').click();
    await waitFor('its symbols alone', async () => !(await symbolsOf(page)).includes('B.HK'));
  });
});

describe('the API reference', () => {
  test.each([
    ['light', 1280, undefined],
    ['dark', 390, true],
  ] as const)('our style, a way back, no complaint: %s, %i px', async (scheme, width, isPhone) => {
    const { page, complaints } = await open(
      { scheme, width, ...(isPhone && { isPhone }) },
      `${market().url}docs`,
    );
    await page.getByText('/api/pills/latest', { exact: true }).click();
    await page.getByText('Parameters').first().waitFor();
    expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBe(0);
    const ground = 'getComputedStyle(document.documentElement).backgroundColor';
    expect(await page.evaluate(ground)).toBe(
      scheme === 'light' ? 'rgb(244, 245, 244)' : 'rgb(12, 15, 17)',
    );
    expect(complaints).toEqual([]);
    await page.getByRole('link', { name: '← pillole' }).click();
    await ready(page);
  });
});

// The last test, since its symbols stay.
test('a thousand symbols: all are counted and found, only visible rows are in the document', async () => {
  const { page, complaints } = await open();
  await ready(page);
  const names = Array.from({ length: 1_000 }, (_, n) => `Z${String(n).padStart(4, '0')}.T`);
  const writer = await openPillWriter(market().namespace);
  try {
    for (let round = 0; round < 3; round += 1) {
      await writer.write(names.map((symbol) => makePill({ symbol })));
    }
  } finally {
    await writer.close();
  }
  const rows = page.locator('tr[data-symbol]');
  const count = async () => Number(await page.locator('table').getAttribute('aria-rowcount'));
  await waitFor(
    'all symbols to be counted',
    async () => (await count()) > 1_000 || String(await count()),
  );
  expect(await rows.count()).toBeLessThan(60);
  await page.keyboard.press('End');
  await rowOf(page, 'Z0999.T').waitFor();
  expect(await rowOf(page, 'Z0999.T').getAttribute('aria-rowindex')).toBe(String(await count()));
  expect(await rows.count()).toBeLessThan(60);
  await page.keyboard.press('/');
  await page.keyboard.type('z0500');
  await waitFor('one row to remain', async () => (await symbolsOf(page)).join() === 'Z0500.T');
  expect(complaints).toEqual([]);
});
