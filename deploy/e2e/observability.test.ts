import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { request } from 'undici';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { packageRoot } from '../../lib/files/package-root.ts';
import {
  launchStack,
  makeStackFolder,
  removeStackFolder,
  type Stack,
} from '../../testing/stack.ts';
import { waitFor } from '../../testing/wait.ts';
import {
  conventionFaults,
  type MetricList,
  mergeMetrics,
  metricTable,
  type ReportedMetric,
} from '../observability/metric-list.ts';

/** A loaded machine may be slow to show the first canary pill. */
const SEEN_MS = 60_000;
const CHANNELS = ['ingest', 'latest', 'stream', 'webhook'];
const PAGE = path.join(packageRoot, 'docs/metrics.md');
const TABLE = /(?<=<!-- metrics -->\n\n)[\s\S]*?(?=\n\n<!-- end of metrics -->)/;

let stack: Stack;

beforeAll(async () => {
  // The most that a log may say.
  vi.stubEnv('LOG_LEVEL', 'debug');
  stack = await launchStack(await makeStackFolder(), ['--canary', '--pills-per-s', '2']);
}, 900_000);

afterAll(async () => {
  vi.unstubAllEnvs();
  await stack?.stop();
  if (stack !== undefined) await removeStackFolder(stack.folder);
});

async function scrape(name: string): Promise<readonly ReportedMetric[]> {
  const { metrics } = stack.addresses().processes[name]!;
  const { body } = await request(`${metrics}.json`);
  return (await body.json()) as ReportedMetric[];
}

async function canaryPills(outcome: string): Promise<ReadonlyMap<string, number>> {
  const metrics = await scrape('canary');
  const { values = [] } = metrics.find(({ name }) => name === 'pillole_canary_pills_total') ?? {};
  return new Map(
    values
      .filter(({ labels }) => labels.outcome === outcome)
      .map((value) => [String(value.labels.channel), (value as { value?: number }).value ?? 0]),
  );
}

async function ask(
  pathAndQuery: string,
): Promise<{ readonly status: number; readonly text: string }> {
  const { statusCode, body } = await request(`${stack.addresses().api}${pathAndQuery}`, {
    headers: { 'x-api-key': stack.demoKeys().institutional },
  });
  return { status: statusCode, text: await body.text() };
}

test('the canary sees its pills in every channel, and no reader sees them that does not name them', async () => {
  await waitFor(
    'canary pills in every channel',
    async () => {
      const seen = await canaryPills('seen');
      return CHANNELS.every((channel) => (seen.get(channel) ?? 0) >= 3) || [...seen].join(' ');
    },
    SEEN_MS,
  );
  const named = JSON.parse((await ask('/api/pills/latest?symbol=TEST:CANARY')).text);
  expect(named.data.symbol).toBe('TEST:CANARY');
  const symbols = await ask('/api/symbols');
  expect(symbols.status).toBe(200);
  expect(symbols.text).not.toContain('TEST:CANARY');
  const newest = await ask('/api/pills/latest');
  expect(newest.text).not.toContain('TEST:CANARY');
});

test('docs/metrics.md lists exactly the metrics that the processes report, by one convention', async () => {
  const names = Object.keys(stack.addresses().processes);
  expect(names).toContain('canary');
  expect(names).toContain('demo');
  const reports = await Promise.all(names.map(async (name) => [name, await scrape(name)] as const));
  const list: MetricList = mergeMetrics(new Map(reports));
  expect([...list.values()].flatMap(({ metric }) => conventionFaults(metric))).toEqual([]);
  const page = readFileSync(PAGE, 'utf8');
  const table = metricTable(list);
  if (process.env.METRICS_WRITE === '1')
    writeFileSync(
      PAGE,
      page.replace(TABLE, () => table),
    );
  else expect(TABLE.exec(page)?.[0]).toBe(table);
});

test('a process that the canary needs is missed in its channel alone', async () => {
  const before = await canaryPills('missed');
  const pid = stack.pidOf('latest');
  // Frozen, it keeps its place; a killed one would be restarted at once.
  process.kill(pid, 'SIGSTOP');
  try {
    const missed = async (channel: string) =>
      ((await canaryPills('missed')).get(channel) ?? 0) - (before.get(channel) ?? 0);
    await waitFor('misses of the latest view', async () => (await missed('latest')) >= 2, SEEN_MS);
    const seen = await canaryPills('seen');
    await waitFor(
      'pills on the socket meanwhile',
      async () => (await canaryPills('seen')).get('stream')! > seen.get('stream')!,
      SEEN_MS,
    );
  } finally {
    process.kill(pid, 'SIGCONT');
  }
});

test('logs are JSON lines that hold none of the secrets that were used', async () => {
  const keys = [
    ...Object.values(stack.demoKeys()),
    readFileSync(file('canary-key'), 'utf8').trim(),
  ];
  // Refused requests are logged as well: a wrong key, a key in the URL, and a faulty pill.
  const wrong = `${keys[0]!.slice(0, -1)}x`;
  await request(`${stack.addresses().api}/api/pills/latest`, { headers: { 'x-api-key': wrong } });
  await request(`${stack.addresses().api}/api/pills/latest?api_key=${keys[1]}`);
  await request(`${stack.addresses().stream}/api/stream?key=${keys[2]}`.replace('ws:', 'http:'));
  const passwords = Object.values(
    JSON.parse(readFileSync(file('passwords.json'), 'utf8')) as Record<string, string>,
  );
  const secrets = [...keys, wrong, readFileSync(file('pepper'), 'utf8').trim(), ...passwords];
  expect(secrets.length).toBeGreaterThan(8);
  for (const secret of secrets) expect(secret.length).toBeGreaterThan(15);
  const processes = Object.keys(stack.addresses().processes);
  const logs = readdirSync(file('logs')).filter((name) => name.endsWith('.log'));
  for (const name of processes) expect(logs).toContain(`${name}.log`);
  for (const name of logs) {
    const text = readFileSync(path.join(file('logs'), name), 'utf8');
    expect(
      secrets.filter((secret) => text.includes(secret)),
      name,
    ).toEqual([]);
    if (!processes.includes(name.replace('.log', ''))) continue;
    for (const line of text.split('\n').filter((one) => one.startsWith('{'))) {
      expect(JSON.parse(line), name).toMatchObject({
        level: expect.any(Number),
        name: expect.any(String),
      });
    }
  }
});

test('lines name the request as its answer does, and the pill from ingest to webhook', async () => {
  const refused = JSON.parse((await ask('/api/pills/latest?symbol=TEST:NEVER')).text);
  const linesOf = (name: string) =>
    readFileSync(path.join(file('logs'), `${name}.log`), 'utf8')
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>);
  const line = await waitFor('the line of the refusal', () =>
    linesOf('api').find(({ request_id }) => request_id === refused.request_id),
  );
  expect(line).toMatchObject({ code: 'no_pill', status: 404, route: '/api/pills/latest' });
  const pill = await waitFor('a pill from ingest to webhook', () => {
    const posted = linesOf('webhooks').flatMap(({ pill_ids }) => (pill_ids as string[]) ?? []);
    return linesOf('ingest').find(({ pill_id }) => posted.includes(pill_id as string));
  });
  expect(pill.cursor).toMatch(/^\d+-\d+$/);
});

const file = (name: string) => path.join(stack.folder, name);
