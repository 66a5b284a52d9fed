// Both clients: exports with broken downloads, and receipts from pages and files.
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { parquetReadObjects } from 'hyparquet';
import { compressors } from 'hyparquet-compressors';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openPlatform, type Platform } from '../gateway/api/testing/api-platform.ts';
import { packageRoot } from '../lib/files/package-root.ts';
import { nowMicros } from '../lib/timing/clock.ts';
import { formatTimestamp } from '../schemas/timestamp.ts';
import { makePill } from '../testing/pills.ts';
import { makePython } from '../testing/python.ts';
import { createClient, type Pill, type ReceiptRow, verifyReceipt } from './index.ts';

const PILLS = 900;
const run = promisify(execFile);
let platform: Platform;
let folder: string;
let range: { from: string; to: string };

beforeAll(async () => {
  platform = await openPlatform();
  folder = await mkdtemp(path.join(os.tmpdir(), 'pillole-exports-test-'));
  const start = nowMicros() - 3_600_000_000;
  range = { from: formatTimestamp(start), to: formatTimestamp(start + 7_200_000_000) };
  await platform.write(
    Array.from({ length: PILLS }, (_, n) =>
      makePill({
        symbol: ['7203.T', '0700.HK'][n % 2]!,
        timestamp: start + n * 1_000_003,
        gross_spread_percent: (n - 450) / 7,
        confidence: n / 9,
        market_state: n % 3 === 0 ? '開場中' : 'open',
        id: `π "${n}", x`,
      }),
    ),
  );
  await platform.waitUntilStored();
});
afterAll(async () => {
  await platform?.close();
  if (folder !== undefined) await rm(folder, { recursive: true, force: true });
});

/** A fetch whose downloads break after some bytes, the first `times` times. */
function breaking(times: number, changes: (bytes: Uint8Array) => Uint8Array = (bytes) => bytes) {
  const starts: (string | null)[] = [];
  const own: typeof fetch = async (url, init) => {
    const answer = await fetch(url, init);
    if (!String(url).includes('/file?')) return answer;
    starts.push(new Headers(init?.headers).get('range'));
    const bytes = changes(new Uint8Array(await answer.arrayBuffer()));
    const body = starts.length > times ? bytes : bytes.subarray(0, 1_000);
    return new Response(body, { status: answer.status, headers: answer.headers });
  };
  return { fetch: own, starts };
}

test('TypeScript: a download continues where it broke, and the file holds its receipt', async () => {
  const { fetch, starts } = breaking(2);
  const client = createClient({ apiUrl: platform.url, key: platform.account.key, fetch });
  const file = path.join(folder, 'a.parquet');
  const info = await client.export({ ...range, path: file });
  expect(starts).toEqual([null, 'bytes=1000-', 'bytes=2000-']);
  const rows = await parquetReadObjects({
    file: new Uint8Array(await readFile(file)).buffer,
    compressors,
    parsers: { timestampFromMicroseconds: (micros: bigint) => micros } as never,
  });
  expect(rows).toHaveLength(PILLS);
  await verifyReceipt(rows as unknown as ReceiptRow[], info.file!.receipt);
  await expect(verifyReceipt(rows.slice(1) as never, info.file!.receipt)).rejects.toMatchObject({
    code: 'receipt_mismatch',
  });
  const changed = rows.map((row, n) => (n === 7 ? { ...row, confidence: 1e-9 } : row));
  await expect(verifyReceipt(changed as never, info.file!.receipt)).rejects.toMatchObject({
    code: 'receipt_mismatch',
  });
});

test('TypeScript: another content is refused, and nothing is left in the folder', async () => {
  const { fetch } = breaking(0, (bytes) => bytes.map((byte, n) => (n === 50 ? byte ^ 1 : byte)));
  const client = createClient({ apiUrl: platform.url, key: platform.account.key, fetch });
  const before = await readdir(folder);
  const exported = client.export({ ...range, path: path.join(folder, 'b.parquet') });
  await expect(exported).rejects.toMatchObject({ code: 'checksum_mismatch' });
  expect(await readdir(folder)).toEqual(before);
});

test('TypeScript: the pages of a range have the receipt of its pills', async () => {
  const client = createClient({ apiUrl: platform.url, key: platform.account.key });
  const pages = client.history(['7203.T', '0700.HK'], range.from);
  const pills: Pill[] = [];
  for await (const pill of pages) pills.push(pill);
  expect(pages.receipt).toMatchObject({ count: PILLS, complete: true });
  await verifyReceipt(pills, pages.receipt!);
});

test('the command line makes the file', async () => {
  const file = path.join(folder, 'c.csv.gz');
  const { stdout } = await run(
    process.execPath,
    [
      path.join(packageRoot, 'dist/sdk/cli/main.js'),
      ...['export', '7203.T', '--from', range.from, '--to', range.to, '--format', 'csv.gz'],
      ...['--output', file, '--api-url', platform.url, '--json'],
    ],
    { env: { ...process.env, PILLOLE_KEY: platform.account.key } },
  );
  expect(JSON.parse(stdout)).toMatchObject({
    path: file,
    state: 'done',
    progress: { rows: PILLS / 2 },
  });
});

const SCRIPT = `
import asyncio, os, sys
import httpx
from pillole import AsyncClient, Client, PilloleError, verify_receipt
url, key, start, end, folder = sys.argv[1:]

class Broken(httpx.SyncByteStream):
    def __init__(self, data): self.data = data
    def __iter__(self): yield self.data

class Breaking(httpx.HTTPTransport):
    """Downloads end early, twice."""
    starts = []
    def handle_request(self, request):
        answer = super().handle_request(request)
        if "/file?" not in str(request.url): return answer
        self.starts.append(request.headers.get("range"))
        if len(self.starts) > 2: return answer
        data = b"".join(answer.stream)[:1000]
        return httpx.Response(answer.status_code, stream=Broken(data))

with Client(key, api_url=url) as client:
    client._http = httpx.Client(transport=Breaking())
    target = os.path.join(folder, "d.parquet")
    export = client.export(start, end, path=target, verify=True)
    assert Breaking.starts == [None, "bytes=1000-", "bytes=2000-"], Breaking.starts
    assert os.path.exists(target) and export.receipt["count"] == ${PILLS}
    frame = export.to_df(tz="Asia/Tokyo")
    assert len(frame) == ${PILLS} and str(frame["timestamp"].dt.tz) == "Asia/Tokyo"
    verify_receipt(frame, export.receipt)
    assert export.to_df(engine="polars").height == ${PILLS}
    verify_receipt(export.to_df(engine="polars"), export.receipt)
    try:
        verify_receipt(frame.iloc[1:], export.receipt)
        raise SystemExit("a missing pill was not noticed")
    except PilloleError as error:
        assert error.code == "receipt_mismatch"
class Changing(httpx.HTTPTransport):
    def handle_request(self, request):
        answer = super().handle_request(request)
        if "/file?" not in str(request.url): return answer
        data = bytearray(b"".join(answer.stream))
        data[50] ^= 1
        return httpx.Response(answer.status_code, stream=Broken(bytes(data)))

before = os.listdir(folder)
with Client(key, api_url=url) as client:
    client._http = httpx.Client(transport=Changing())
    try:
        client.export(start, end, path=os.path.join(folder, "f.parquet"))
        raise SystemExit("another content was not noticed")
    except PilloleError as error:
        assert error.code == "checksum_mismatch"
assert os.listdir(folder) == before
with Client(key, api_url=url) as client:
    for format in ("arrow", "csv.gz", "ndjson.zst"):
        other = client.export(start, end, format=format, verify=True)
        assert other.receipt == export.receipt, format
    history = client.history(["7203.T", "0700.HK"], start)
    pills = list(history)
    verify_receipt(pills, history.receipt)
    assert history.receipt["digest"] == export.receipt["digest"]

async def main():
    async with AsyncClient(key, api_url=url) as client:
        export = await client.export(start, end, symbols=["7203.T"])
        assert len(export.to_df()) == ${PILLS / 2}
asyncio.run(main())
print("ok")
`;

test('Python: the same, from all formats; and its command line', async () => {
  const made = await makePython(path.join(packageRoot, 'sdk/python/requirements.txt'));
  if ('reason' in made) throw new Error(`No Python with the client's packages: ${made.reason}`);
  const script = path.join(folder, 'script.py');
  await writeFile(script, SCRIPT);
  const env = {
    ...process.env,
    PYTHONPATH: path.join(packageRoot, 'sdk/python/src'),
    PILLOLE_KEY: platform.account.key,
  };
  const args = [script, platform.url, platform.account.key, range.from, range.to, folder];
  expect((await run(made.python, args, { env })).stdout).toBe('ok\n');
  const file = path.join(folder, 'e.parquet');
  const { stdout } = await run(
    made.python,
    [
      ...['-m', 'pillole', '--api-url', platform.url, 'export', '--from', range.from],
      ...['--to', range.to, '--output', file, '--verify'],
    ],
    { env },
  );
  expect(JSON.parse(stdout)).toMatchObject({ path: file, state: 'done' });
});
