import { Pool } from 'undici';
import { pillJson } from '../lib/pill-json.ts';
import { type HttpAnswer, noAnswer, readBatchAnswer, readSingleAnswer } from './http-answer.ts';
import { type Attempt, sendWithRetries } from './retry.ts';
import { type RetryPolicy, SendError, type Sender } from './sender.ts';

export interface HttpSenderOptions {
  /** Origin of the ingest server; one pill goes to `/api/pillole`, several to `…/batch`. */
  readonly url: string;
  /** Generator credential, `gen_…`; needed where ingest is not on loopback. */
  readonly credential?: string | undefined;
  /** How a batch is written. */
  readonly format?: 'ndjson' | 'json';
  /** Requests at a time, at the most. */
  readonly connections?: number;
  readonly retry: RetryPolicy;
}

/** The server's own deadline is 2 s; a silence longer than this is a dead connection. */
const ANSWER_TIMEOUT_MS = 5_000;
const PATH = '/api/pillole';

interface Row {
  readonly index: number;
  readonly json: string;
}

/** Sends pills as any customer's generator would. */
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
    let answer: HttpAnswer;
    try {
      if (rows.length === 1) answer = await post(PATH, 'application/json', first!.json);
      else if (format === 'ndjson') {
        const lines = rows.map(({ json }) => `${json}\n`).join('');
        answer = await post(`${PATH}/batch`, 'application/x-ndjson', lines);
      } else {
        const array = `[${rows.map(({ json }) => json).join(',')}]`;
        answer = await post(`${PATH}/batch`, 'application/json', array);
      }
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
    throw new SendError(`"${url}" is not an address of an ingest server.`);
  }
  return new Pool(origin, {
    connections: connections ?? 1,
    headersTimeout: ANSWER_TIMEOUT_MS,
    bodyTimeout: ANSWER_TIMEOUT_MS,
    connect: { timeout: 2_000 },
  });
}
