import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll } from 'vitest';
import { launchChromium, type Visit, type VisitOptions, visit } from './browser.ts';
import { type MarketPlace, openMarketPlace } from './market-place.ts';

export interface Visits {
  /** There from the first test on. */
  place(): MarketPlace;
  /** Opens a page in a profile of its own, which is closed after the test. @param url the market's */
  open(options?: VisitOptions, url?: string): Promise<Visit>;
}

/** A market place and a browser for the tests of a file. @param prepare the place, before the first */
export function useVisits(prepare: (place: MarketPlace) => Promise<void>): Visits {
  let place: MarketPlace;
  let browser: Browser;
  const visits: Visit[] = [];
  beforeAll(async () => {
    browser = await launchChromium();
    place = await openMarketPlace();
    await prepare(place);
  }, 120_000);
  afterEach(async () => {
    for (const one of visits.splice(0)) await one.close();
  });
  afterAll(async () => {
    await browser?.close();
    await place?.close();
  });
  return {
    place: () => place,
    async open(options, url = place.url) {
      const opened = await visit(browser, url, options);
      visits.push(opened);
      return opened;
    },
  };
}

/** What the page says of its connection. */
export function stateOf(page: Page): Promise<string> {
  return page.getByRole('status').innerText();
}
