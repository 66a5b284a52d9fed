import type { CDPSession } from 'playwright-core';
import { waitFor } from '../../testing/wait.ts';

/** A page that nothing watches but what is asked for. */
export type BarePage = Awaited<ReturnType<typeof openBarePage>>;

interface Answer {
  readonly id: number;
  readonly result?: object;
  readonly error?: { readonly message: string };
}

/**
 * Opens a page outside of the library's contexts. The library has each frame of a page's sockets
 * reported to it, which took a quarter of the CPU of the whole browser at 1,000 pills/s.
 * @param browser a session of the browser, see `newBrowserCDPSession`
 */
export async function openBarePage(browser: CDPSession, url: string) {
  const { targetId } = await browser.send('Target.createTarget', { url });
  const { sessionId } = await browser.send('Target.attachToTarget', { targetId });
  const waiting = new Map<number, (answer: Answer) => void>();
  let count = 0;
  const onMessage = (event: { readonly sessionId: string; readonly message: string }) => {
    if (event.sessionId !== sessionId) return;
    const answer = JSON.parse(event.message) as Answer;
    waiting.get(answer.id)?.(answer);
    waiting.delete(answer.id);
  };
  browser.on('Target.receivedMessageFromTarget', onMessage);
  /** @throws if the browser refuses the command */
  const send = async (method: string, params: object = {}): Promise<unknown> => {
    count += 1;
    const id = count;
    const answered = new Promise<Answer>((resolve) => waiting.set(id, resolve));
    const message = JSON.stringify({ id, method, params });
    await browser.send('Target.sendMessageToTarget', { sessionId, message });
    const { result, error } = await answered;
    if (error !== undefined) throw new Error(`${method}: ${error.message}`);
    return result;
  };
  const screen = { width: 1_280, height: 720, deviceScaleFactor: 1, mobile: false };
  await send('Emulation.setDeviceMetricsOverride', screen);
  return {
    send,
    /** Waits until the page shows the text. */
    shows: (text: string) =>
      waitFor(`the page to show ${text}`, async () => {
        const expression = `document.body.innerText.includes(${JSON.stringify(text)})`;
        const { result } = (await send('Runtime.evaluate', { expression })) as {
          readonly result: { readonly value?: unknown };
        };
        return result.value === true;
      }),
    async close(): Promise<void> {
      browser.off('Target.receivedMessageFromTarget', onMessage);
      await browser.send('Target.closeTarget', { targetId });
    },
  };
}
