import { existsSync } from 'node:fs';
import { type Browser, chromium, type Page } from 'playwright-core';

const USUAL_PATHS = [
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/opt/google/chrome/chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
];

/** Starts a real Chromium: the one of CHROMIUM_PATH, else one at a usual place. */
export async function launchChromium(): Promise<Browser> {
  const named = process.env.CHROMIUM_PATH;
  const executablePath = named ?? USUAL_PATHS.find((path) => existsSync(path));
  if (executablePath === undefined || !existsSync(executablePath)) {
    throw new Error(
      `There is no Chromium${named === undefined ? '' : ` at CHROMIUM_PATH=${named}`}: install it ` +
        '(Debian: apt-get install -y chromium), or name one by CHROMIUM_PATH.',
    );
  }
  // Its sandbox does not work for root, who runs the tests in a container.
  const args = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
  return chromium.launch({ executablePath, args });
}

export interface Visit {
  readonly page: Page;
  /** What the browser complained of so far: errors, and what the page's policy forbade. */
  readonly complaints: readonly string[];
  close(): Promise<void>;
}

export interface VisitOptions {
  readonly scheme?: 'light' | 'dark';
  readonly width?: number;
  readonly height?: number;
  /** A phone: touch, and what the page says of its own width counts. */
  readonly isPhone?: true;
}

/** Opens an address in a profile of its own. */
export async function visit(
  browser: Browser,
  url: string,
  { scheme = 'light', width = 1280, height = 720, isPhone }: VisitOptions = {},
): Promise<Visit> {
  const context = await browser.newContext({
    ...{ colorScheme: scheme, viewport: { width, height } },
    ...(isPhone ? { isMobile: true, hasTouch: true, deviceScaleFactor: 2 } : {}),
  });
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
  });
  await page.addInitScript(
    `addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) =>
      console.error('policy: ' + violatedDirective + ' ' + blockedURI))`,
  );
  await page.goto(url);
  return { page, complaints, close: () => context.close() };
}
