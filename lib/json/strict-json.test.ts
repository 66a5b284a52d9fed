import fc from 'fast-check';
import { visit } from 'jsonc-parser';
import { describe, expect, test } from 'vitest';
import { parseStrictJson, parseStrictJsonArray } from './strict-json.ts';

const codesOf = (text: string | Buffer) => {
  const parsed = parseStrictJson(Buffer.from(text));
  return parsed.ok ? [] : parsed.faults.map(({ code, pointer }) => `${code} ${pointer}`);
};
const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);

describe('refused documents and their faults', () => {
  test.each([
    ['empty', '', 'json_syntax #'],
    ['only white space', ' \r\n\t', 'json_syntax #'],
    ['truncated', '{"a":1', 'json_syntax #'],
    ['two documents', '{"a":1}{"a":2}', 'json_syntax #'],
    ['trailing comma', '{"a":1,}', 'json_syntax #'],
    ['comment', '{"a":1}//', 'json_syntax #'],
    ['NaN', '{"a":NaN}', 'json_syntax #'],
    ['leading zero', '{"a":01}', 'json_syntax #'],
    ['control character in a string', '{"a":"\u0001"}', 'json_syntax #'],
    ['single quotes', "{'a':1}", 'json_syntax #'],
    ['too large', '{"a":1e999}', 'not_finite #/a'],
    ['too small', '{"a":{"b":[-1e999]}}', 'not_finite #/a/b/0'],
    ['same key', '{"a":1,"a":1}', 'duplicate_key #/a'],
    ['same key, first one nested', '{"a":[{"b":"c"}],"a":1}', 'duplicate_key #/a'],
    ['same key by an escape', String.raw`{"symbol":1,"\u0073ymbol":1}`, 'duplicate_key #/symbol'],
    ['same key inside', '{"a":{"b":1,"b":2}}', 'duplicate_key #/a/b'],
    ['__proto__', '{"__proto__":1}', 'forbidden_key #/__proto__'],
    ['__proto__ by an escape', String.raw`{"\u005f_proto__":{"a":1}}`, 'forbidden_key #/__proto__'],
    ['broken key', String.raw`{"\ud800":1}`, 'lone_surrogate #/%EF%BF%BD'],
    ['17 deep', nested(17), 'json_too_deep #'],
    ['10,000 deep', nested(10_000), 'json_too_deep #'],
    ['10,000 deep, not closed', '['.repeat(10_000), 'json_too_deep #'],
    ['deep behind a repeated key', `{"a":${nested(20)},"a":1}`, 'json_too_deep #'],
    ['BOM', '\ufeff{}', 'byte_order_mark #'],
    ['0xFF', Buffer.from([0x22, 0xff, 0x22]), 'invalid_utf8 #'],
    ['half a character', Buffer.from([0x22, 0xe2, 0x82, 0x22]), 'invalid_utf8 #'],
    ['UTF-16 with BOM', Buffer.from('\ufeff{"a":1}', 'utf16le'), 'invalid_utf8 #'],
    ['UTF-16 without BOM', Buffer.from('{"a":1}', 'utf16le'), 'json_syntax #'],
  ])('%s', (_name, text, fault) => {
    expect(codesOf(text)).toEqual([fault]);
  });

  test('5 million nested arrays, and 5 million nested objects', () => {
    expect(codesOf(nested(5_000_000))).toEqual(['json_too_deep #']);
    expect(codesOf('{"a":'.repeat(5_000_000))).toEqual(['json_too_deep #']);
  });

  test('all faults are reported at once, a syntax error with its position', () => {
    const text = '{"a":1,"b":1e999,"a":2,"c":{"d":1,"d":2}}';
    expect(codesOf(text)).toEqual(['not_finite #/b', 'duplicate_key #/a', 'duplicate_key #/c/d']);
    const broken = parseStrictJson(Buffer.from('{\n  "a": x}'));
    expect(broken.ok ? '' : broken.faults[0]!.detail).toContain('Line 2, column 8');
  });

  test('the number of reported faults is bounded', () => {
    expect(codesOf(`{${'"a":1,'.repeat(5_000)}"a":1}`).length).toBe(100);
  });
});

test('valid documents give the value of JSON.parse', () => {
  for (const text of [
    'null',
    '"\u20ac"',
    String.raw`{"a":"\ud800","b":"\"","c\\\"":"\\"}`,
    '{"constructor":1,"hasOwnProperty":"x","":""}',
    '{"1":1,"0":"x","a":[{"1":2},{"1":3}]}',
    nested(16),
    ' {"a" : -0 } ',
  ]) {
    expect(parseStrictJson(Buffer.from(text))).toEqual({ ok: true, value: JSON.parse(text) });
  }
});

describe('array', () => {
  test('a fault inside one row leaves the other rows usable', () => {
    const parsed = parseStrictJsonArray(
      Buffer.from('[{"a":1},{"b":1,"b":{"c":1e999}},5,{"__proto__":1}]'),
    );
    if (!parsed.ok) throw new Error('refused');
    expect(parsed.rows.length).toBe(4);
    expect([...parsed.faults].map(([row, faults]) => [row, faults.map((f) => f.pointer)])).toEqual([
      [1, ['#/b', '#/b/c']],
      [3, ['#/__proto__']],
    ]);
  });

  test.each([
    ['{"a":1}', 'not_an_array'],
    ['{"a":1,"a":2}', 'not_an_array'],
    ['null', 'not_an_array'],
    ['[1,]', 'json_syntax'],
    [`[${nested(16)}]`, 'json_too_deep'],
    ['', 'json_syntax'],
  ])('%s is refused as a whole', (text, code) => {
    const parsed = parseStrictJsonArray(Buffer.from(text));
    expect(parsed.ok ? '' : parsed.faults[0]!.code).toBe(code);
  });
});

/** A document as its members appear in the text, where a key may occur twice. */
type Doc =
  | { kind: 'plain'; text: string }
  | { kind: 'string'; text: string }
  | { kind: 'array'; items: Doc[] }
  | { kind: 'object'; members: [string, Doc][] };

// Few keys, so that some occur twice; each character written plainly or as an escape.
const character = fc.constantFrom('a', 'b', '"', '\\', '/', '\u20ac', '\n', '[', '{', ':', ',');
const written = fc
  .array(fc.tuple(character, fc.boolean()), { maxLength: 3 })
  .map((characters) =>
    characters
      .map(([c, escaped]) =>
        escaped
          ? `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`
          : JSON.stringify(c).slice(1, -1),
      )
      .join(''),
  )
  .map((inner) => `"${inner}"`);
const { doc } = fc.letrec<{ doc: Doc }>((tie) => ({
  doc: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.record({
      kind: fc.constant('plain' as const),
      text: fc.constantFrom('1', '-0', 'true', 'null', '1e5'),
    }),
    fc.record({ kind: fc.constant('string' as const), text: written }),
    fc.record({
      kind: fc.constant('array' as const),
      items: fc.array(tie('doc'), { maxLength: 4 }),
    }),
    fc.record({
      kind: fc.constant('object' as const),
      members: fc.array(fc.tuple(written, tie('doc')), { maxLength: 5 }),
    }),
  ),
}));

function textOf(node: Doc): string {
  if (node.kind === 'array') return `[${node.items.map(textOf).join(' ,')}]`;
  if (node.kind === 'object') {
    return `{${node.members.map(([key, value]) => `${key}: ${textOf(value)}`).join(',')}}`;
  }
  return node.text;
}

function hasDuplicate(node: Doc): boolean {
  if (node.kind === 'array') return node.items.some(hasDuplicate);
  if (node.kind !== 'object') return false;
  const keys = new Set(node.members.map(([key]) => JSON.parse(key) as string));
  return keys.size < node.members.length || node.members.some(([, value]) => hasDuplicate(value));
}

/** Duplicate keys of a text, found by another parser. */
function duplicatesByVisitor(text: string): number {
  const open: Set<string>[] = [];
  let count = 0;
  visit(text, {
    onObjectBegin: () => void open.push(new Set()),
    onObjectEnd: () => void open.pop(),
    onObjectProperty(key) {
      if (open.at(-1)!.has(key)) count += 1;
      open.at(-1)!.add(key);
    },
  });
  return count;
}

test('property: counting string tokens finds exactly the documents with duplicate keys', () => {
  fc.assert(
    fc.property(doc, (node) => {
      const text = textOf(node);
      const parsed = parseStrictJson(Buffer.from(text), 1_000);
      expect(parsed.ok).toBe(!hasDuplicate(node));
      if (parsed.ok) expect(parsed.value).toEqual(JSON.parse(text));
      else expect(parsed.faults.length).toBe(Math.min(100, duplicatesByVisitor(text)));
    }),
    { numRuns: 2_000 },
  );
});

test('property: rows of an array are refused individually', () => {
  const row = fc.record({
    kind: fc.constant('object' as const),
    members: fc.array(fc.tuple(written, doc), { maxLength: 4 }),
  });
  fc.assert(
    fc.property(fc.array(row, { minLength: 1, maxLength: 6 }), (rows) => {
      const text = textOf({ kind: 'array', items: rows });
      const parsed = parseStrictJsonArray(Buffer.from(text), 1_000);
      if (!parsed.ok) throw new Error('refused');
      const faulty = rows.flatMap((node, index) => (hasDuplicate(node) ? [index] : []));
      // At most 100 faults are reported for a document; these have far fewer.
      expect([...parsed.faults.keys()].sort((a, b) => a - b)).toEqual(faulty);
    }),
    { numRuns: 1_000 },
  );
});

test('property: no bytes cause an exception or are accepted although JSON.parse rejects them', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
      const buffer = Buffer.from(bytes);
      const parsed = parseStrictJson(buffer);
      if (parsed.ok) expect(parsed.value).toEqual(JSON.parse(buffer.toString('utf8')));
    }),
    { numRuns: 2_000 },
  );
});
