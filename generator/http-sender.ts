import { Pool } from 'undici';
import { pillJson } from '../schemas/public-pill.ts';
import { type HttpAnswer, noAnswer, readBatchAnswer, readSingleAnswer } from './http-answer.ts';
import { type Attempt, sendWithRetries } from './retry.ts';
import { type RetryPolicy, SendError, type Sender } from './sender.ts';

interface HttpSenderOptions {
  /** Origin of the ingest server; one pill goes to `/api/pillole`, several to `…/batch`. */
  readonly url: string;
  /** Generator credential, `gen_…`; required where ingest is not on loopback. */
  readonly credential?: string | undefined;
  /** Format of a batch. */
  readonly format?: 'ndjson' | 'json';
  /** Bound of concurrent requests. */
  readonly connections?: number;
  readonly retry: RetryPolicy;
}

/** The server's own deadline is 2 s; a connection silent for this long is dead. */
const ANSWER_TIMEOUT_MS = 5_000;
const PATH = '/api/pillole';

interface Row {
  readonly index: number;
  readonly json: string;
}

/** Sends pills over HTTP, as a customer's generator does. */
export function createHttpSender(options: HttpSenderOptions): Sender {
  const pool = openPool(options);
  const format = options.format ?? 'ndjson';
  const authorization =
    options.credential === undefined ? {} : { authorization: `Bearer ${options.credential}` };

  const post = async (path: string, contentType: string, body: string): Promise<HttpAnswer> => {
    const response = await pool.request({
      method: 'POST',
      path,
      body,
      headers: { 'content-type': contentType, ...authorization },
    });
    return {
      status: response.statusCode,
      replayed: response.headers['idempotent-replayed'] === 'true',
      retryAfter: response.headers['retry-after']?.toString(),
      body: await response.body.text(),
    };
  };
  const attempt = async (rows: readonly Row[]): Promise<Attempt<Row>> => {
    const [first] = rows;
    const jsons = rows.map(({ json }) => json);
    let answer: HttpAnswer;
    try {
      if (rows.length === 1) answer = await post(PATH, 'application/json', first!.json);
      else if (format === 'json') {
        answer = await post(`${PATH}/batch`, 'application/json', `[${jsons.join(',')}]`);
      } else answer = await post(`${PATH}/batch`, 'application/x-ndjson', `${jsons.join('\n')}\n`);
    } catch (error) {
      return noAnswer(rows, error);
    }
    return rows.length === 1 ? readSingleAnswer(first!, answer) : readBatchAnswer(rows, answer);
  };
  return {
    send(pills) {
      const rows = pills.map((pill, index) => ({ index, json: pillJson(pill) }));
      return sendWithRetries(rows, options.retry, attempt);
    },
    close: () => pool.destroy(),
  };
}

function openPool({ url, connections }: HttpSenderOptions): Pool {
  let origin: string;
  try {
    origin = new URL(url).origin;
  } catch {
    throw new SendError(`"${url}" is not a valid URL of an ingest server.`);
  }
  return new Pool(origin, {
    connections: connections ?? 1,
    headersTimeout: ANSWER_TIMEOUT_MS,
    bodyTimeout: ANSWER_TIMEOUT_MS,
    connect: { timeout: 2_000 },
  });
}
