import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import {
  addToReceipt,
  EMPTY_RECEIPT,
  joinReceipts,
  type ReceiptPill,
  receiptOf,
  receiptText,
} from './receipt.ts';

/** Pills with their texts, and the receipt of all. Released values: they never change. */
const FIXTURES: {
  readonly pills: readonly { readonly pill: ReceiptPill; readonly text: string }[];
  readonly receipt: object;
} = JSON.parse(readFileSync(path.join(import.meta.dirname, 'receipt-fixtures.json'), 'utf8'));
const pills = FIXTURES.pills.map(({ pill }) => pill);

test('texts and digests of the fixtures', () => {
  for (const { pill, text } of FIXTURES.pills) expect(receiptText(pill)).toBe(text);
  expect(receiptOf(addToReceipt(EMPTY_RECEIPT, pills), 'k7f3')).toEqual(FIXTURES.receipt);
});

test('neither order nor division matters; a missing, repeated or changed pill does', () => {
  const all = addToReceipt(EMPTY_RECEIPT, pills);
  expect(addToReceipt(EMPTY_RECEIPT, [...pills].reverse())).toEqual(all);
  const [head, tail] = [pills.slice(0, 2), pills.slice(2)];
  expect(addToReceipt(addToReceipt(EMPTY_RECEIPT, head), tail)).toEqual(all);
  const joined = joinReceipts(addToReceipt(EMPTY_RECEIPT, tail), addToReceipt(EMPTY_RECEIPT, head));
  expect(joined).toEqual(all);
  expect(joinReceipts(EMPTY_RECEIPT, all)).toEqual(all);
  const changed = pills.map((pill, n) => (n === 1 ? { ...pill, confidence: 1 } : pill));
  for (const other of [pills.slice(1), [...pills, pills[0]!], changed]) {
    expect(addToReceipt(EMPTY_RECEIPT, other).digest).not.toBe(all.digest);
  }
});
