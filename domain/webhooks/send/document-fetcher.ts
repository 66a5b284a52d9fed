import { AttemptError, exchangeError } from './attempt-error.ts';
import { openConnections } from './connections.ts';
import type { Egress } from './egress.ts';
import { checkUrl } from './url-policy.ts';

export type DocumentFetcher = ReturnType<typeof createDocumentFetcher>;

/** An address that does not answer takes at most a third of the time. */
const DIALS_PER_FETCH = 3;

/**
 * Creates the reader of small documents at addresses that customers name, behind the same wall as
 * webhooks: the URL and every address of its name are checked, the vetted address is dialled, and no
 * redirect is followed.
 */
export function createDocumentFetcher(egress: Egress & { readonly ca?: string | undefined }) {
  return {
    /**
     * Gets a document, over a connection of its own.
     * @returns the body of a 200, uncompressed
     * @throws AttemptError: the URL is refused, the answer is not a 200, or is larger than `bytesMax`,
     *   or is not complete in `timeoutMs`
     */
    async fetchDocument(
      text: string,
      { bytesMax, timeoutMs }: { readonly bytesMax: number; readonly timeoutMs: number },
    ): Promise<Buffer> {
      const checked = checkUrl(text, egress.policy);
      if (!checked.ok) throw new AttemptError('url_refused', checked.fault.detail);
      const { url } = checked;
      const connections = openConnections(url.origin, {
        policy: egress.policy,
        resolver: egress.resolver,
        proxy: egress.proxy,
        dialTimeoutMs: Math.ceil(timeoutMs / DIALS_PER_FETCH),
        connectionsMax: 1,
        ca: egress.ca,
        ageMaxMs: timeoutMs,
      });
      const signal = AbortSignal.timeout(timeoutMs);
      const connection = await connections.acquire(signal);
      const end = () => connection.destroy(tooLate(timeoutMs));
      signal.addEventListener('abort', end, { once: true });
      try {
        const path = `${url.pathname}${url.search}`;
        const headers = { accept: 'application/json', 'accept-encoding': 'identity' };
        const answer = await connection.client.request({ method: 'GET', path, headers });
        if (answer.statusCode !== 200) {
          const detail = `${url.hostname} answered ${answer.statusCode}, not 200; redirects are not followed.`;
          throw new AttemptError('protocol', detail);
        }
        return await readUpTo(answer.body as AsyncIterable<Buffer>, bytesMax);
      } catch (error) {
        throw signal.aborted ? tooLate(timeoutMs) : exchangeError(url.hostname, error);
      } finally {
        signal.removeEventListener('abort', end);
        connections.release(connection, false);
      }
    },
  };
}

async function readUpTo(body: AsyncIterable<Buffer>, bytesMax: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > bytesMax) {
      throw new AttemptError('protocol', `The document has more than ${bytesMax} bytes.`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function tooLate(timeoutMs: number): AttemptError {
  return new AttemptError('timeout', `There was no complete answer within ${timeoutMs / 1_000} s.`);
}
