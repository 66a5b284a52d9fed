import type { Browser, Page } from 'playwright-core';

/**
 * A page answers within a second. Beside other test runs the API reference, the heaviest page, took
 * 50 s and more to be drawn.
 */
const PAGE_MS = 180_000;

export interface OpenPage {
  readonly page: Page;
  /**
   * Errors and warnings of the browser so far, including violations of the page's policy, but
   * without calls that were answered with 503.
   */
  readonly complaints: readonly string[];
  close(): Promise<void>;
}

export interface PageOptions {
  readonly scheme?: 'light' | 'dark';
  readonly width?: number;
  readonly height?: number;
  /** A phone: with touch, and with the page's viewport meta tag in effect. */
  readonly isPhone?: true;
}

/** Opens an address in a profile of its own. */
export async function openPage(
  browser: Browser,
  url: string,
  { scheme = 'light', width = 1280, height = 720, isPhone }: PageOptions = {},
): Promise<OpenPage> {
  const context = await browser.newContext({
    colorScheme: scheme,
    viewport: { width, height },
    ...(isPhone ? { isMobile: true, hasTouch: true, deviceScaleFactor: 2 } : {}),
  });
  const page = await context.newPage();
  page.setDefaultTimeout(PAGE_MS);
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('console', (message) => {
    // The page repeats a call that a busy PostgreSQL answers with 503.
    if (message.text().includes('status of 503')) return;
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
  });
  await page.addInitScript(
    `addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) =>
      console.error('policy: ' + violatedDirective + ' ' + blockedURI))`,
  );
  await page.goto(url);
  return { page, complaints, close: () => context.close() };
}
