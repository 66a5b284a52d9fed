import axe from 'axe-core';
import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { nowMicros } from '../../lib/clock.ts';
import { makePill, openPillWriter } from '../../lib/testing/pills.ts';
import { waitFor } from '../../lib/testing/wait.ts';
import { partitionOf } from '../../schemas/partition.ts';
import { stateOf, useVisits } from './testing/visits.ts';

const { place, open } = useVisits(async (market) => {
  await market.send({ symbol: 'A.T', gross_spread_percent: 0.3, confidence: 10 });
  await market.send({ symbol: 'B.HK', gross_spread_percent: 0.1, market_state: 'lunch_break' });
  await market.send({ symbol: 'C.T', gross_spread_percent: -0.2, confidence: 99 });
});

interface PageWindow {
  getComputedStyle(element: unknown, pseudo: string): { readonly content: string };
}

const rowOf = (page: Page, symbol: string) => page.locator(`tr[data-symbol="${symbol}"]`);
const cellOf = (page: Page, symbol: string, column: string) =>
  rowOf(page, symbol).locator(`.${column}`);
const symbolsOf = (page: Page) => page.locator('tbody .symbol').allTextContents();

/** The page is live, and shows all three. */
async function ready(page: Page): Promise<void> {
  await waitFor('a live page', async () => {
    const state = await stateOf(page);
    // It also says so where no pill has come for a while.
    return /^Live( No pill since|$)/.test(state) || state;
  });
  await waitFor('all rows', async () => {
    const symbols = await symbolsOf(page);
    return ['A.T', 'B.HK', 'C.T'].every((one) => symbols.includes(one)) || symbols.join();
  });
}

describe('the market', () => {
  test('a row of what was there, changed by what comes, and a new row', async () => {
    const { page, complaints } = await open();
    await ready(page);
    const symbol = `N${nowMicros()}.T`;
    await place().send({ symbol, gross_spread_percent: 0.125, market_state: 'open' });
    await rowOf(page, symbol).waitFor();
    expect(await cellOf(page, symbol, 'spread').innerText()).toBe('0.1250');
    expect(await cellOf(page, symbol, 'change').innerText()).toBe('–');
    await place().send({ symbol, gross_spread_percent: 0.1, market_state: 'lunch_break' });
    await waitFor('the change', async () => {
      const spread = await cellOf(page, symbol, 'spread').innerText();
      return spread === '0.1000' || spread;
    });
    expect(await cellOf(page, symbol, 'change').innerText()).toMatch(/^▼\s*−0\.0250$/);
    expect(await cellOf(page, symbol, 'state').innerText()).toBe('lunch break');
    expect(await cellOf(page, symbol, 'trend').innerText()).toBe('2 spreads from 0.1000 to 0.1250');
    expect(complaints).toEqual([]);
  });

  test('a late pill changes nothing', async () => {
    const { page } = await open();
    await ready(page);
    const timestamp = nowMicros() - 30_000_000;
    await place().send({ symbol: 'A.T', gross_spread_percent: 9, timestamp });
    // Of one partition, so that it comes after the late one.
    const { partitions } = place().namespace.settings;
    const names = Array.from({ length: 100 }, (_, n) => `L${n}.T`);
    const after = names.find((name) => {
      return partitionOf(name, partitions) === partitionOf('A.T', partitions);
    })!;
    await place().send({ symbol: after });
    await rowOf(page, after).waitFor();
    expect(await cellOf(page, 'A.T', 'spread').innerText()).toBe('0.3000');
  });

  test('ages go on by themselves, by the clock of the platform', async () => {
    const { page } = await open();
    await ready(page);
    const ageOf = async () => {
      const [, text, unit] =
        /^(\d+) (s|min)$/.exec(await cellOf(page, 'C.T', 'age').innerText()) ?? [];
      return text === undefined ? 0 : Number(text) * (unit === 'min' ? 60 : 1);
    };
    await place().send({ symbol: 'C.T', gross_spread_percent: -0.2, confidence: 99 });
    const first = await ageOf();
    const second = await waitFor('an older one', async () => {
      const age = await ageOf();
      return age > first && age;
    });
    await waitFor('a still older one', async () => (await ageOf()) > second);
  });

  test('a clock of this machine that is an hour wrong changes no age', async () => {
    const { page } = await open();
    await page.clock.install({ time: Date.now() + 3_600_000 });
    await page.reload();
    await ready(page);
    await place().send({ symbol: 'C.T', gross_spread_percent: -0.2, confidence: 99 });
    await waitFor('an age of seconds', async () => {
      const age = await cellOf(page, 'C.T', 'age').innerText();
      return /^(now|\d+ s)$/.test(age) || age;
    });
  });
});

describe('filter, order, keyboard', () => {
  test('a heading puts rows in order, the second time the other way round, and says so', async () => {
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

  test('"/" goes to the filter, which takes symbols and states; Escape empties it', async () => {
    const { page } = await open();
    await ready(page);
    await page.keyboard.press('/');
    await page.keyboard.type('b.h');
    await waitFor('one row', async () => (await symbolsOf(page)).join() === 'B.HK');
    await page.keyboard.press('Escape');
    await page.keyboard.type('lunch');
    await waitFor('by state', async () => {
      const symbols = await symbolsOf(page);
      return (symbols.includes('B.HK') && !symbols.includes('A.T')) || symbols.join();
    });
    await page.keyboard.press('Escape');
    await page.keyboard.type('nothing has this name');
    await page.getByText('No symbol matches.').waitFor();
    await page.getByRole('button', { name: 'Show all' }).press('Enter');
    await ready(page);
  });

  test('Tab reaches everything that can be used, in the order in which it stands', async () => {
    const { page } = await open();
    await ready(page);
    const names: string[] = [];
    for (let press = 0; press < 9; press += 1) {
      await page.keyboard.press('Tab');
      const name = `document.activeElement.getAttribute('aria-label')
        ?? document.activeElement.labels?.[0]?.innerText ?? document.activeElement.innerText`;
      names.push(String(await page.evaluate(name)).trim());
    }
    expect(names).toEqual([
      ...['API', 'Switch to dark', 'Filter by symbol or market state'],
      ...['Symbol\n↑', 'Spread %', 'Change', 'Confidence', 'Market', 'Age'],
    ]);
  });

  test('light or dark as the system is, until somebody chooses; the choice is kept', async () => {
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

  test('a theme that the system changes is taken over, by the button too', async () => {
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

  test('a line lights up for its own pill alone: not when many have come, nor when they end', async () => {
    const { page } = await open();
    await ready(page);
    await page.evaluate(`window.lit = []; addEventListener('animationstart', ({ target }) => {
      lit.push(target.closest('tr').dataset.symbol);
    })`);
    const lit = async () => (await page.evaluate('lit')) as string[];
    const writer = await openPillWriter(place().namespace);
    try {
      await writer.write(
        Array.from({ length: 500 }, () =>
          makePill({ symbol: 'B.HK', gross_spread_percent: 0.1, market_state: 'lunch_break' }),
        ),
      );
    } finally {
      await writer.close();
    }
    const rate = page.locator('.figures dd').first();
    await waitFor('many', async () => Number(await rate.innerText()) > 50);
    await page.evaluate('lit.length = 0');
    await waitFor('the end of them', async () => (await rate.innerText()) === '0.0');
    await place().send({ symbol: 'A.T', gross_spread_percent: 0.3, confidence: 10 });
    await waitFor('a light', async () => (await lit()).length > 0);
    expect(await lit()).toEqual(['A.T']);
  });

  test('nothing moves for those who asked for less motion', async () => {
    const { page } = await open();
    const animation = `getComputedStyle(document.querySelector('.figure.fresh')).animationName`;
    await ready(page);
    // One that is told of no end does not go out.
    await page.evaluate(`
      addEventListener('animationend', (event) => event.stopImmediatePropagation(), true);
      document.querySelector('.figure').classList.add('fresh')`);
    expect(await page.evaluate(animation)).toBe('fresh');
    await page.emulateMedia({ reducedMotion: 'reduce' });
    expect(await page.evaluate(animation)).toBe('none');
  });
});

describe('everybody, everywhere', () => {
  test.each([
    ['light', 1440, undefined],
    ['dark', 1440, undefined],
    ['light', 390, true],
    ['dark', 390, true],
  ] as const)('axe finds nothing: %s, %i px', async (scheme, width, isPhone) => {
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

  test.each([320, 390, 768, 1920])('%i px wide: nothing to scroll sideways', async (width) => {
    const { page } = await open({ width, ...(width < 640 && { isPhone: true as const }) });
    await ready(page);
    expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBe(0);
  });

  test('on a phone rows are sorted by a choice, since headings are away', async () => {
    const { page } = await open({ width: 390, height: 844, isPhone: true });
    await ready(page);
    await page.getByLabel('Sort by').selectOption('spread');
    const known = async () => (await symbolsOf(page)).filter((one) => /^[ABC]\./.test(one));
    await waitFor('order', async () => (await known()).join() === 'A.T,B.HK,C.T');
    await page.getByRole('button', { name: 'Descending' }).click();
    await waitFor('order', async () => (await known()).join() === 'C.T,B.HK,A.T');
    // What they are sorted by is there, with what it is.
    const seen = (column: string) => cellOf(page, 'A.T', column).isVisible();
    expect([await seen('change'), await seen('confidence')]).toEqual([true, false]);
    await page.getByLabel('Sort by').selectOption('confidence');
    await waitFor('its figure', () => seen('confidence'));
    expect(await seen('change')).toBe(false);
    const spread = cellOf(page, 'A.T', 'spread').locator('.figure');
    const after = await spread.evaluate((figure) => {
      return (globalThis as never as PageWindow).getComputedStyle(figure, '::after').content;
    });
    expect(after).toBe('" %"');
  });
});

// Last, since its symbols stay.
test('a thousand symbols: all are counted and found, those in sight are in the document', async () => {
  const { page, complaints } = await open();
  await ready(page);
  const names = Array.from({ length: 1_000 }, (_, n) => `Z${String(n).padStart(4, '0')}.T`);
  const writer = await openPillWriter(place().namespace);
  try {
    for (let round = 0; round < 3; round += 1) {
      await writer.write(names.map((symbol) => makePill({ symbol })));
    }
  } finally {
    await writer.close();
  }
  const rows = page.locator('tr[data-symbol]');
  const count = async () => Number(await page.locator('table').getAttribute('aria-rowcount'));
  await waitFor('all of them', async () => (await count()) > 1_000 || String(await count()));
  expect(await rows.count()).toBeLessThan(60);
  await page.keyboard.press('End');
  await rowOf(page, 'Z0999.T').waitFor();
  expect(await rowOf(page, 'Z0999.T').getAttribute('aria-rowindex')).toBe(String(await count()));
  expect(await rows.count()).toBeLessThan(60);
  await page.keyboard.press('/');
  await page.keyboard.type('z0500');
  await waitFor('one row', async () => (await symbolsOf(page)).join() === 'Z0500.T');
  expect(complaints).toEqual([]);
});
