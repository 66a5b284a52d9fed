import type { Asked } from './plan.ts';

/** The requests of a run, one after the other. */
export interface Requests {
  /** Bytes of the next one; text is ASCII. */
  next(): Buffer | string;
  /** Whether an answer with status 200 says that all was done. */
  isDone(body: Buffer): boolean;
}

export function createRequests(asked: Asked): Requests {
  return asked.kind === 'read' ? createReads(asked) : createWrites(asked);
}

/** Bytes of a request for the latest pill of a symbol. */
export function requestOf(symbol: string, key: string | null): Buffer {
  const lines = [
    `GET /api/pills/latest?symbol=${encodeURIComponent(symbol)} HTTP/1.1`,
    'host: 127.0.0.1',
    ...(key === null ? [] : [`x-api-key: ${key}`]),
  ];
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
}

function createReads({ symbols, key }: Extract<Asked, { kind: 'read' }>): Requests {
  const requests = symbols.map((symbol) => requestOf(symbol, key));
  let at = 0;
  return {
    next() {
      at = (at + 1) % requests.length;
      return requests[at]!;
    },
    isDone: () => true,
  };
}

function createWrites({ symbols, run, pills }: Extract<Asked, { kind: 'write' }>): Requests {
  let pill = 0;
  const nextPill = () => {
    const symbol = symbols[pill % symbols.length]!;
    const spread = 0.1 + (pill % 100) / 1_000;
    pill += 1;
    return (
      `{"id":"${run}-${pill}","timestamp":"${isoNow()}","symbol":"${symbol}",` +
      `"gross_spread_percent":${spread},"market_state":"open","confidence":87.5}`
    );
  };
  const allStored = Buffer.from(`{"status":"ok","ok":${pills},`);
  return pills === 1
    ? { next: () => post('/api/pillole', nextPill()), isDone: () => true }
    : {
        next() {
          const rows = Array.from({ length: pills }, nextPill);
          return post('/api/pillole/batch', `[${rows.join(',')}]`);
        },
        isDone: (body) => body.subarray(0, allStored.length).equals(allStored),
      };
}

function post(path: string, body: string): string {
  return (
    `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n` +
    `content-length: ${body.length}\r\n\r\n${body}`
  );
}

let isoAt = 0;
let iso = '';
/** The wall clock's time, made once a millisecond: what the client takes is missing elsewhere. */
function isoNow(): string {
  const now = Date.now();
  if (now !== isoAt) {
    isoAt = now;
    iso = new Date(now).toISOString();
  }
  return iso;
}
