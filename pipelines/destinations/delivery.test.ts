import { createHash } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makePill } from '../../testing/pills.ts';
import type { TestProcess } from '../../testing/process.ts';
import { waitFor } from '../../testing/wait.ts';
import {
  type DestinationFixture,
  linesOf,
  openDestinationFixture,
} from './testing/destination-fixture.ts';

const SYMBOLS = ['7203.T', '0700.HK', 'M&M.NS', '9984.T', 'BHP.AX', 'S2.T'];
const somePills = (count: number) =>
  Array.from({ length: count }, (_, n) => makePill({ symbol: SYMBOLS[n % SYMBOLS.length]! }));

let fixture: DestinationFixture;
let first: TestProcess;

beforeAll(async () => {
  fixture = await openDestinationFixture();
  first = await fixture.start();
});
afterAll(() => fixture?.close());

/** Each manifest names an object of its size and digest, and continues the one before. */
function expectWhole(bucket: string): void {
  const ends = new Map<number, number | null>();
  const manifests = fixture.manifests(bucket);
  for (const manifest of manifests) {
    const { partition, object, sha256, bytes } = manifest;
    const content = fixture.object(bucket, object);
    expect(content.length).toBe(bytes);
    expect(createHash('sha256').update(content).digest('hex')).toBe(sha256);
    expect([partition, manifest.previous_end_offset]).toEqual([
      partition,
      ends.get(partition) ?? null,
    ]);
    ends.set(partition, manifest.end_offset);
  }
}

test('pills that pass the filter are in objects that manifests name, in order, each once', async () => {
  const { bucket } = await fixture.add({ filter: { symbols: ['7203.T', '0700.HK'] } });
  const pills = somePills(600);
  const cursors = await fixture.write(pills);
  const wanted = cursors.filter((_, n) => ['7203.T', '0700.HK'].includes(pills[n]!.symbol));
  await fixture.waitForPills(bucket, wanted);
  expect([...fixture.cursors(bucket)].sort()).toEqual([...wanted].sort());
  expectWhole(bucket);
  const { object } = fixture.manifests(bucket)[0]!;
  expect(object).toMatch(
    /^all\/pills\/destination=dst_[a-z0-9]+\/epoch=[a-z0-9]+\/date=\d{4}-\d\d-\d\d\/partition=0000\d\/\d{16}\.ndjson$/,
  );
});

test('two destinations with other filters share a bucket and a prefix, and each pill reaches it for both', async () => {
  const { bucket, settings } = await fixture.add({ filter: { symbols: ['7203.T'] } });
  await fixture.add({ settings, filter: { symbols: ['9984.T'] } });
  const pills = somePills(600);
  const cursors = await fixture.write(pills);
  const wanted = cursors.filter((_, n) => ['7203.T', '9984.T'].includes(pills[n]!.symbol));
  await fixture.waitForPills(bucket, wanted);
  expect(fixture.keys(bucket).filter((key) => !key.includes('/destination=dst_'))).toEqual([]);
});

test('after repeated kill -9 under load nothing is missing, and every object is whole', async () => {
  const { bucket } = await fixture.add();
  const cursors: string[] = [];
  let process = first;
  for (let turn = 0; turn < 4; turn += 1) {
    for (let batch = 0; batch < 10; batch += 1)
      cursors.push(...(await fixture.write(somePills(200))));
    const before = fixture.manifests(bucket).length;
    await waitFor('more manifests', () => fixture.manifests(bucket).length > before);
    await process.kill();
    process = await fixture.start();
  }
  await fixture.waitForPills(bucket, cursors);
  const found = fixture.cursors(bucket);
  expect(found.length, 'no pill is in two objects that manifests name').toBe(new Set(found).size);
  expectWhole(bucket);
  // Objects that no manifest names are those of a kill before the manifest: none is left.
  const named = new Set(fixture.manifests(bucket).map(({ object }) => object));
  const objects = fixture.keys(bucket).filter((key) => key.endsWith('.ndjson'));
  expect(objects.filter((key) => !named.has(key))).toEqual([]);
  const last = new Map<string, string>();
  const lines = fixture
    .manifests(bucket)
    .flatMap(({ object }) => linesOf(fixture.object(bucket, object)));
  for (const { symbol, cursor, prev } of lines) {
    if (last.has(symbol))
      expect(`${cursor} after ${prev}`).toBe(`${cursor} after ${last.get(symbol)}`);
    last.set(symbol, cursor);
  }
}, 900_000);
