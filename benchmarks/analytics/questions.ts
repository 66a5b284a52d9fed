import { Agent, request } from 'undici';
import { createLatencies } from '../harness/histogram.ts';
import { monotonicMicros, plannedMicros, runOpenLoop } from '../harness/open-loop.ts';
import { type PillTable, SYMBOLS } from './pill-table.ts';

/** The API, called with a key over keep-alive connections. */
export type Api = ReturnType<typeof openApi>;
type Parameters = Readonly<Record<string, string>>;

const HEAD_START_MICROS = 20_000;
const CONNECTIONS = 50;

/** Queries of a day of one symbol, as the API sends them to ClickHouse. */
const STATEMENTS = {
  bars: `SELECT * FROM bars(symbols = [{symbol:String}], step_s = 60,
           since = {since:DateTime64(6, 'UTC')}, until = {until:DateTime64(6, 'UTC')}) ORDER BY start`,
  summary: `SELECT * FROM summary(symbol = {symbol:String},
              since = {since:DateTime64(6, 'UTC')}, until = {until:DateTime64(6, 'UTC')})`,
};
export type QueryName = keyof typeof STATEMENTS;

export function openApi(port: number, key: string) {
  const dispatcher = new Agent({ connections: CONNECTIONS });
  return {
    close: () => dispatcher.close(),
    /** @returns the JSON of a 200 @throws for any other status */
    async get<T>(path: string, parameters: Parameters): Promise<T> {
      const url = `http://127.0.0.1:${port}${path}?${new URLSearchParams(parameters)}`;
      const answer = await request(url, { headers: { 'x-api-key': key }, dispatcher });
      const json = await answer.body.json();
      if (answer.statusCode !== 200) throw new Error(`HTTP ${answer.statusCode}`);
      return json as T;
    },
  };
}

/**
 * Asks in an open loop, timed from the planned send, in µs.
 * @param ask resolves to whether the answer is right
 */
export async function runQuestions(
  perS: number,
  seconds: number,
  ask: (number: number) => Promise<boolean>,
) {
  const latencies = createLatencies();
  const answers: Promise<void>[] = [];
  const startMicros = monotonicMicros() + HEAD_START_MICROS;
  const schedule = { startMicros, perS, pills: perS * seconds };
  let failed = 0;
  const askOne = async (number: number) => {
    const isRight = await ask(number).catch(() => false);
    latencies.record(monotonicMicros() - plannedMicros(schedule, number));
    if (!isRight) failed += 1;
  };
  await runOpenLoop(schedule, (number) => void answers.push(askOne(number)));
  await Promise.all(answers);
  return { perS, latency: latencies.percentiles(), failed };
}

/** A query over the API with a key. @returns whether there were rows */
export async function queryApi(api: Api, query: QueryName, number: number): Promise<boolean> {
  const { symbol, from, to } = windowOf(number);
  const window = { symbol, from: from.toISOString(), to: to.toISOString() };
  const parameters = query === 'bars' ? { ...window, limit: '1000' } : window;
  const { data, count = 0 } = await api.get<{ data?: unknown[]; count?: number }>(
    `/api/analytics/${query}`,
    parameters,
  );
  return (data?.length ?? count) > 0;
}

/** The same statement directly to ClickHouse. @returns whether there were rows */
export async function queryBare(table: PillTable, query: QueryName, number: number) {
  const { symbol, from, to } = windowOf(number);
  const seconds = (of: Date) => (of.getTime() / 1_000).toFixed(6);
  const parameters = { symbol, since: seconds(from), until: seconds(to) };
  return (await table.select(STATEMENTS[query], parameters)).length > 0;
}

/** Asks `market verify`. @returns whether the answer is certain, and has a pill */
export async function verify(api: Api, subject: Parameters): Promise<boolean> {
  type Answer = { pill: object | null; reasons?: { code: string }[] };
  const { pill, reasons } = await api.get<Answer>('/api/market/verify', subject);
  const isSure = reasons?.every(({ code }) => !code.endsWith('_unavailable')) === true;
  return isSure && pill !== null;
}

/** A day that ends some hours ago, a different one for each query: no cached answer is measured. */
function windowOf(number: number) {
  const until = Date.now() - (1 + ((number * 7) % 180)) * 60_000 - number * 1_000;
  const symbol = `BENCH.${(number * 13) % SYMBOLS}`;
  return { symbol, from: new Date(until - 86_400_000), to: new Date(until) };
}
