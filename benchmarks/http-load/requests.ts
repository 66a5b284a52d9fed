/** The requests of a run, with the symbols in turn. */
export type RequestPlan = { readonly symbols: readonly string[] } & (
  | /** The latest pill of a symbol; `key` is sent as X-API-Key, null sends none. */
  { readonly kind: 'read'; readonly key: string | null }
  /** `pills` new pills a request, ids beginning with `run`: 1 goes alone, more as a batch. */
  | { readonly kind: 'write'; readonly run: string; readonly pills: number }
);

export interface Requests {
  /** Bytes of the next one; text is ASCII. */
  next(): Buffer | string;
  /** Whether a response with status 200 reports complete success. */
  isSuccess(body: Buffer): boolean;
}

export function createRequests(plan: RequestPlan): Requests {
  let next = 0;
  const nextSymbol = () => {
    next += 1;
    return plan.symbols[(next - 1) % plan.symbols.length]!;
  };
  if (plan.kind === 'read') {
    const requests = new Map(plan.symbols.map((one) => [one, readRequest(one, plan.key)]));
    return { next: () => requests.get(nextSymbol())!, isSuccess: () => true };
  }
  const { run, pills } = plan;
  const nextPill = () => {
    const spread = 0.1 + (next % 100) / 1_000;
    const symbol = nextSymbol();
    return (
      `{"id":"${run}-${next}","timestamp":"${isoNow()}","symbol":"${symbol}",` +
      `"gross_spread_percent":${spread},"market_state":"open","confidence":87.5}`
    );
  };
  if (pills === 1) {
    return { next: () => post('/api/pillole', nextPill()), isSuccess: () => true };
  }
  const allStored = Buffer.from(`{"status":"ok","ok":${pills},`);
  return {
    next() {
      const rows = Array.from({ length: pills }, nextPill);
      return post('/api/pillole/batch', `[${rows.join(',')}]`);
    },
    isSuccess: (body) => body.subarray(0, allStored.length).equals(allStored),
  };
}

/** Bytes of a request for the latest pill of a symbol. */
export function readRequest(symbol: string, key: string | null): Buffer {
  const lines = [
    `GET /api/pills/latest?symbol=${encodeURIComponent(symbol)} HTTP/1.1`,
    'host: 127.0.0.1',
    ...(key === null ? [] : [`x-api-key: ${key}`]),
  ];
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
}

function post(path: string, body: string): string {
  return (
    `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n` +
    `content-length: ${body.length}\r\n\r\n${body}`
  );
}

let isoAt = 0;
let iso = '';
/** Wall-clock time, formatted once a millisecond, because the client takes CPU from the server. */
function isoNow(): string {
  const now = Date.now();
  if (now !== isoAt) {
    isoAt = now;
    iso = new Date(now).toISOString();
  }
  return iso;
}
