import { Agent, request } from 'undici';
import type { ClickHouse } from '../../lib/clickhouse.ts';
import { askOpenLoop, type OpenLoop } from './open-loop.ts';
import { SYMBOLS, symbolOf } from './rows.ts';

/** What is asked: a day of one symbol. */
export type QueryName = 'bars' | 'summary';

export interface QueryRun extends OpenLoop {
  readonly query: QueryName;
  /** `api`: over the API with a key. `bare`: the same statement straight to ClickHouse. */
  readonly over: 'api' | 'bare';
  readonly pills: number;
}

export interface Asked {
  readonly apiPort: number;
  readonly key: string;
  readonly clickhouse: ClickHouse;
  readonly perS: number;
  readonly seconds: number;
}

const STATEMENTS: Readonly<Record<QueryName, string>> = {
  bars: `SELECT * FROM bars(symbols = [{symbol:String}], step_s = 60,
           since = {since:DateTime64(6, 'UTC')}, until = {until:DateTime64(6, 'UTC')}) ORDER BY start`,
  summary: `SELECT * FROM summary(symbol = {symbol:String},
              since = {since:DateTime64(6, 'UTC')}, until = {until:DateTime64(6, 'UTC')})`,
};

/** Asks in an open loop. No two questions are equal, so that no kept answer is measured. */
export async function runQueries(
  query: QueryName,
  over: 'api' | 'bare',
  pills: number,
  asked: Asked,
): Promise<QueryRun> {
  const agent = new Agent({ connections: 16 });
  const ask = over === 'api' ? askApi : askBare;
  const answered = await askOpenLoop(asked, (at) => ask(query, at, asked, agent));
  await agent.close();
  return { query, over, pills, ...answered };
}

/** A day that ends some hours back, another one for each question. */
function windowOf(at: number) {
  const until = Date.now() - (1 + ((at * 7) % 180)) * 60_000 - at * 1_000;
  return {
    symbol: symbolOf((at * 13) % SYMBOLS),
    from: new Date(until - 86_400_000),
    to: new Date(until),
  };
}

async function askApi(query: QueryName, at: number, { apiPort, key }: Asked, agent: Agent) {
  const { symbol, from, to } = windowOf(at);
  const parameters = new URLSearchParams({
    symbol,
    from: from.toISOString(),
    to: to.toISOString(),
  });
  if (query === 'bars') parameters.set('limit', '1000');
  const url = `http://127.0.0.1:${apiPort}/api/analytics/${query}?${parameters}`;
  const { statusCode, body } = await request(url, {
    headers: { 'x-api-key': key },
    dispatcher: agent,
  });
  const answer = (await body.json()) as { data?: unknown[]; count?: number };
  return statusCode === 200 && (answer.data?.length ?? answer.count ?? 0) > 0;
}

async function askBare(query: QueryName, at: number, { clickhouse }: Asked) {
  const { symbol, from, to } = windowOf(at);
  const seconds = (of: Date) => (of.getTime() / 1_000).toFixed(6);
  const answer = await clickhouse.query({
    query: STATEMENTS[query],
    query_params: { symbol, since: seconds(from), until: seconds(to) },
    format: 'JSONEachRow',
  });
  return (await answer.json()).length > 0;
}
