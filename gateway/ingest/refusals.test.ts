import { expect, test } from 'vitest';
import { createRefusals, REFUSAL_LIMITS, type Refusal } from './refusals.ts';

const SPAN = REFUSAL_LIMITS.spanMicros;
const refusal = (fields: Partial<Refusal> = {}): Refusal => ({
  source: 'desk-1',
  code: 'pill_invalid',
  at: 10 * SPAN + 1,
  faults: [{ pointer: '#/id', code: 'missing_field', detail: '`id` is required.' }],
  ...fields,
});

test('counts are totals: what is not acknowledged is reported again, with what came meanwhile', () => {
  const refusals = createRefusals('run');
  refusals.note(refusal());
  const counted = { since: 10 * SPAN, source: 'desk-1', code: 'pill_invalid' };
  const first = refusals.report()!;
  expect(first.counts).toEqual([{ ...counted, fault: 'missing_field', count: 1 }]);
  refusals.note(refusal({ pills: 3 }));
  refusals.acknowledge(first, 10 * SPAN);
  expect(refusals.report()!.counts).toEqual([{ ...counted, fault: 'missing_field', count: 4 }]);
  refusals.acknowledge(refusals.report()!, 10 * SPAN);
  expect(refusals.report()).toBeUndefined();
  refusals.note(refusal());
  expect(refusals.report()!.counts).toMatchObject([{ count: 5 }]);
});

test('a span that is over and acknowledged is forgotten, one that is not acknowledged never', () => {
  const refusals = createRefusals('run');
  refusals.note(refusal());
  const report = refusals.report()!;
  refusals.note(refusal({ code: 'body_too_large' }));
  refusals.acknowledge(report, 20 * SPAN);
  expect(refusals.report()!.counts).toMatchObject([{ code: 'body_too_large', count: 1 }]);
  refusals.note(refusal());
  expect(refusals.report()!.counts[1]).toMatchObject({ code: 'pill_invalid', count: 1 });
});

test('beyond the bound, the sum stays exact, and reasons are counted together', () => {
  const refusals = createRefusals('run');
  for (let at = 0; at < REFUSAL_LIMITS.countsMax + 7; at += 1) {
    refusals.note(refusal({ source: `desk-${at}` }));
  }
  let sum = 0;
  const others: number[] = [];
  for (let report = refusals.report(); report !== undefined; report = refusals.report()) {
    expect(report.counts.length).toBeLessThanOrEqual(REFUSAL_LIMITS.reportCountsMax);
    for (const { code, count } of report.counts) {
      sum += count;
      if (code === 'other') others.push(count);
    }
    refusals.acknowledge(report, 0);
  }
  expect([sum, others]).toEqual([REFUSAL_LIMITS.countsMax + 7, [7]]);
});

test('samples: a few of each reason, cut, and no body is made for the others', () => {
  const refusals = createRefusals('run');
  let made = 0;
  const body = () => {
    made += 1;
    return Buffer.alloc(REFUSAL_LIMITS.bodyBytesMax + 1, 'x');
  };
  for (let at = 0; at < 50; at += 1) refusals.note(refusal({ body }));
  const { samples } = refusals.report()!;
  expect([samples.length, made]).toEqual([
    REFUSAL_LIMITS.samplesOfReasonMax,
    REFUSAL_LIMITS.samplesOfReasonMax,
  ]);
  expect(samples[0]).toMatchObject({
    number: 1,
    reason: '#/id: `id` is required.',
    body: Buffer.alloc(REFUSAL_LIMITS.bodyBytesMax, 'x'),
    body_bytes: REFUSAL_LIMITS.bodyBytesMax + 1,
  });
  for (let at = 0; at < 500; at += 1) refusals.note(refusal({ source: `desk-${at}`, body }));
  expect(refusals.report()!.samples.length).toBe(REFUSAL_LIMITS.samplesMax);
  refusals.acknowledge(refusals.report()!, 0);
  expect(refusals.report()?.samples ?? []).toEqual([]);
});
