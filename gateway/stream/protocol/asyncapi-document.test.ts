import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { Ajv } from 'ajv';
import type { TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { describe, expect, test } from 'vitest';
import { QUIET_REASONS } from '../../../domain/market/quiet/silence.ts';
import { asyncApi } from './asyncapi-document.ts';
import { CLIENT_FRAMES } from './client-frame-schemas.ts';
import { CLOSE_CODES } from './close-codes.ts';
import { ERROR_CODES } from './error-codes.ts';
import { parseClientFrame } from './parse-frame.ts';
import { protocolMarkdown } from './protocol-markdown.ts';
import { RESUME_REASONS } from './resume-reasons.ts';
import { SERVER_FRAME_EXAMPLES } from './server-frame-examples.ts';
import { SERVER_FRAME_SCHEMAS } from './server-frame-schemas.ts';

interface Document {
  readonly channels: { readonly stream: Readonly<Record<string, readonly Named[]>> };
  readonly components: { readonly messages: object };
}
interface Named {
  readonly name?: string;
  readonly code?: string;
  readonly reason?: string;
}

const document = JSON.parse(JSON.stringify(asyncApi())) as Document;

/** The official JSON schema of AsyncAPI 3.0. */
const schema = createRequire(import.meta.url)('@asyncapi/specs/schemas/3.0.0-without-$id.json');

test('the document is valid AsyncAPI 3.0, by the official schema', () => {
  // The schema uses formats and keywords that only serve readers.
  const ajv = new Ajv({ strict: false, validateFormats: false, allErrors: true });
  const validate = ajv.compile(schema);
  validate(document);
  expect(validate.errors ?? []).toEqual([]);
  expect(validate({ ...document, channels: { stream: { address: 7 } } })).toBe(false);
});

test('every reference resolves', () => {
  const refs = [...JSON.stringify(document).matchAll(/"\$ref":"#\/([^"]+)"/g)];
  expect(refs.length).toBeGreaterThan(20);
  for (const [, path] of refs) {
    const found = path!
      .split('/')
      .reduce<unknown>((at, step) => (at as Record<string, unknown> | undefined)?.[step], document);
    expect(found, path).toBeDefined();
  }
});

describe('the committed files equal the generated ones', () => {
  // Rewritten by `vitest -u`.
  test('asyncapi.json', async () => {
    await expect(`${JSON.stringify(document, null, 2)}\n`).toMatchFileSnapshot('asyncapi.json');
  });

  test('PROTOCOL.md', async () => {
    await expect(protocolMarkdown()).toMatchFileSnapshot('../PROTOCOL.md');
  });
});

describe('catalogues, AsyncAPI document and PROTOCOL.md agree', () => {
  const { stream } = document.channels;
  const page = () => readFile(new URL('../PROTOCOL.md', import.meta.url), 'utf8');
  /** First cells of the table under a heading. */
  const rowsUnder = async (heading: string) => {
    const [, text = ''] = (await page()).split(`\n## ${heading}\n`);
    const [section = ''] = text.split('\n## ');
    return [...section.matchAll(/^\| `?([a-z0-9_]+)`? \|/gm)]
      .map(([, cell]) => cell!)
      .filter((cell) => cell !== 'code' && cell !== 'reason');
  };

  test('close codes', async () => {
    expect(stream['x-close-codes']!.map(({ name }) => name)).toEqual(Object.keys(CLOSE_CODES));
    const codes = Object.values(CLOSE_CODES).map(({ code }) => String(code));
    expect(await rowsUnder('Close codes')).toEqual(codes);
    expect(new Set(codes).size).toBe(codes.length);
  });

  test('error codes', async () => {
    expect(stream['x-error-codes']!.map(({ code }) => code)).toEqual(Object.keys(ERROR_CODES));
    expect(await rowsUnder('Error codes')).toEqual(Object.keys(ERROR_CODES));
  });

  test('reasons', async () => {
    const documented = (name: string) => stream[name]!.map(({ reason }) => reason);
    expect(documented('x-resume-reasons')).toEqual(Object.keys(RESUME_REASONS));
    expect(documented('x-quiet-reasons')).toEqual(Object.keys(QUIET_REASONS));
    const resume = 'Reasons why a resume was not possible';
    expect(await rowsUnder(resume)).toEqual(Object.keys(RESUME_REASONS));
    expect(await rowsUnder('Reasons why no pills arrive')).toEqual(Object.keys(QUIET_REASONS));
  });
});

describe('examples', () => {
  test.each(Object.keys(SERVER_FRAME_SCHEMAS) as (keyof typeof SERVER_FRAME_SCHEMAS)[])(
    'of %s match its schema',
    (type) => {
      const check = Compile(SERVER_FRAME_SCHEMAS[type] as TSchema);
      const { examples } = SERVER_FRAME_EXAMPLES[type];
      expect(examples.length).toBeGreaterThan(0);
      for (const example of examples) {
        expect(check.Errors(example)).toEqual([]);
        expect(check.Check({ ...example, surprise: 1 })).toBe(false);
      }
    },
  );

  test.each(Object.entries(CLIENT_FRAMES))('of %s are accepted by the server', (_op, frame) => {
    const check = Compile(frame.schema as TSchema);
    for (const example of frame.examples) {
      expect(check.Errors(example)).toEqual([]);
      expect(parseClientFrame(Buffer.from(JSON.stringify(example)))).toMatchObject({ ok: true });
    }
  });
});

describe('the schemas of client frames and the parser agree', () => {
  test.each<[string, boolean]>([
    ['{"op":"ping"}', true],
    ['{"op":"ping","t":1.5,"id":""}', true],
    ['{"op":"ping","t":"1"}', false],
    ['{"op":"ping","x":1}', false],
    ['{"op":"ping","id":7}', false],
    [`{"op":"ping","id":"${'x'.repeat(64)}"}`, true],
    [`{"op":"ping","id":"${'x'.repeat(65)}"}`, false],
    ['{"op":"auth"}', false],
    ['{"op":"auth","key":""}', true],
    ['{"op":"subscribe"}', false],
    ['{"op":"subscribe","symbols":[]}', false],
    ['{"op":"subscribe","symbols":["A",7]}', false],
    ['{"op":"subscribe","symbols":["A"],"mode":"fast"}', false],
    ['{"op":"subscribe","symbols":["A"],"resume":null,"filter":null}', true],
    ['{"op":"subscribe","symbols":["A"],"resume":"x"}', false],
    ['{"op":"subscribe","symbols":["A"],"resume":"k7f3:"}', true],
    ['{"op":"subscribe","symbols":["A"],"resume":{"since":"2026-11-20T01:02:03Z"}}', true],
    ['{"op":"subscribe","symbols":["A"],"resume":{}}', false],
    ['{"op":"subscribe","symbols":["A"],"filter":{"states":[]}}', false],
    ['{"op":"subscribe","symbols":["A"],"filter":{"x":1}}', false],
    ['{"op":"unsubscribe","symbols":["A"],"mode":"all"}', false],
  ])('%s', (text, isAllowed) => {
    const frame = JSON.parse(text);
    const { schema: own } = CLIENT_FRAMES[frame.op as keyof typeof CLIENT_FRAMES];
    expect(Compile(own as TSchema).Check(frame)).toBe(isAllowed);
    expect(parseClientFrame(Buffer.from(text)).ok).toBe(isAllowed);
  });
});
