import type { Browser, Page } from 'playwright-core';
import { launchChromium } from '../../../testing/launch-chromium.ts';
import { GiveUp, waitFor } from '../../../testing/wait.ts';
import { type OpenPage, openPage, type PageOptions } from './chromium.ts';

/**
 * Pages of the console in a browser, as one person after the other uses them.
 * @param password of all of them
 */
export async function openAppPages(base: () => string, password: string) {
  const browser: Browser = await launchChromium();
  const pages: OpenPage[] = [];
  return {
    async open(path: string, options?: PageOptions): Promise<OpenPage> {
      const opened = await openPage(browser, `${base()}${path}`, options);
      pages.push(opened);
      return opened;
    },
    /** Signs in on the page that asks for it. @param heading of the page that follows */
    async signIn(page: Page, email: string, heading = 'Overview'): Promise<void> {
      await page.getByLabel('E-mail').fill(email);
      await page.getByLabel('Password').fill(password);
      await press(page, 'Sign in', hasHeading(page, heading));
    },
    async closePages(): Promise<void> {
      for (const one of pages.splice(0)) await one.close();
    },
    close: () => browser.close(),
  };
}

const BUSY = /unavailable|busy|overloaded|does not answer/i;

/**
 * Presses a button, again after a refusal for a busy database.
 * @param name of the button, the newest one with this name
 * @throws with the text of any other refusal
 */
export async function press(page: Page, name: string, done: () => Promise<boolean>): Promise<void> {
  const button = page.getByRole('button', { name, exact: true }).last();
  await button.click();
  await waitFor(`${name} to work`, async () => {
    if (await done()) return true;
    const alerts = (await page.getByRole('alert').allInnerTexts()).join('\n');
    if (alerts === '') return false;
    if (!BUSY.test(alerts)) throw new GiveUp(`${name} was refused: ${alerts}`);
    await button.click();
    return false;
  });
}

export const hasHeading = (page: Page, name: string) => async (): Promise<boolean> =>
  (await page.getByRole('heading', { name, exact: true }).count()) > 0;
