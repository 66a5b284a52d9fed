import axe from 'axe-core';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { waitFor } from '../../../testing/wait.ts';

/**
 * Themes and widths at which pages are checked: two of them in the suite, all for the album, whose
 * folder is `CONSOLE_SHOTS`.
 */
export const LOOKS = (
  process.env.CONSOLE_SHOTS === undefined
    ? [
        ['light', 1_280],
        ['dark', 390],
      ]
    : (['light', 'dark'] as const).flatMap((scheme) =>
        [390, 1_280, 1_600].map((width) => [scheme, width] as const),
      )
) as readonly (readonly ['light' | 'dark', number])[];

/**
 * Checks a page that has its data: no fault of accessibility, nothing wider than the window. With
 * `CONSOLE_SHOTS` set to a folder, keeps a picture.
 */
export async function checkPage(page: Page, title: string, scheme: string): Promise<void> {
  await page.getByRole('heading', { name: title, exact: true }).first().waitFor();
  await waitFor('the data', async () => (await page.locator('.skeleton').count()) === 0);
  await checkState(page, title);
  const folder = process.env.CONSOLE_SHOTS;
  if (folder === undefined) return;
  const file = `${title}-${page.viewportSize()!.width}-${scheme}.png`.replaceAll(' ', '-');
  await page.screenshot({ path: `${folder}/${file}`, fullPage: true });
}

/** Checks a page as it is now. @param what for the message */
export async function checkState(page: Page, what: string): Promise<void> {
  await page.evaluate(axe.source);
  const { violations } = (await page.evaluate('axe.run()')) as axe.AxeResults;
  const found = violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)]);
  expect(found, what).toEqual([]);
  const wider = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
  expect(wider, what).toBe(0);
}
