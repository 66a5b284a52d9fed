import { existsSync } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';

const USUAL_PATHS = [
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/opt/google/chrome/chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
];

/** A launch takes a second; the library's limit of 30 s is too short beside two test runs. */
const LAUNCH_MS = 120_000;

/** Starts a real Chromium: the one at CHROMIUM_PATH, else one at a usual path. @param more switches */
export async function launchChromium(more: readonly string[] = []): Promise<Browser> {
  const named = process.env.CHROMIUM_PATH;
  const executablePath = named ?? USUAL_PATHS.find((path) => existsSync(path));
  if (executablePath === undefined || !existsSync(executablePath)) {
    throw new Error(
      `Chromium was not found${named === undefined ? '' : ` at CHROMIUM_PATH=${named}`}: install it ` +
        '(Debian: apt-get install -y chromium), or set CHROMIUM_PATH.',
    );
  }
  // The sandbox does not work for root, which runs the tests in a container.
  const args = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
  return chromium.launch({ executablePath, args: [...args, ...more], timeout: LAUNCH_MS });
}
