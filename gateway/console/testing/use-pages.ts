import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll } from 'vitest';
import { launchChromium } from '../../../testing/launch-chromium.ts';
import { type OpenPage, openPage, type PageOptions } from './chromium.ts';
import { type MarketFixture, openMarketFixture } from './market-fixture.ts';

export interface PageFixture {
  /** Available in tests, not before them. */
  market(): MarketFixture;
  /** Opens a page in its own profile, closed after the test. @param url by default the market's */
  open(options?: PageOptions, url?: string): Promise<OpenPage>;
}

/** A market and a browser for the tests of a file. @param prepare the market, before the first test */
export function usePages(prepare: (market: MarketFixture) => Promise<void>): PageFixture {
  let market: MarketFixture;
  let browser: Browser;
  const pages: OpenPage[] = [];
  beforeAll(async () => {
    browser = await launchChromium();
    market = await openMarketFixture();
    await prepare(market);
  });
  afterEach(async () => {
    for (const one of pages.splice(0)) await one.close();
  });
  afterAll(async () => {
    await browser?.close();
    await market?.close();
  });
  return {
    market: () => market,
    async open(options, url = market.url) {
      const opened = await openPage(browser, url, options);
      pages.push(opened);
      return opened;
    },
  };
}

/** The state of a page that is connected; a market without recent pills adds when the last one came. */
export const LIVE = /^Live( No pill since \d\d:\d\d:\d\d\.)?$/;

/** The text that the page shows about its connection. */
export function stateOf(page: Page): Promise<string> {
  return page.getByRole('status').innerText();
}
