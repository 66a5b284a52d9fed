import { QUIET_REASONS } from '../../../lib/signal/silence.ts';
import { LIMITS } from '../limits.ts';
import { CLOSE_CODES } from './close-codes.ts';
import { ERROR_CODES } from './error-codes.ts';
import { SERVER_FRAME_EXAMPLES } from './frame-examples.ts';
import { SERVER_FRAME_SCHEMAS, type ServerFrameType } from './frame-schemas.ts';
import { CLIENT_FRAMES } from './frame-schemas-client.ts';
import { RESUME_REASONS } from './resume-reasons.ts';

interface Shape {
  readonly type?: string;
  readonly const?: unknown;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Shape>>;
  readonly required?: readonly string[];
  readonly items?: Shape;
  readonly anyOf?: readonly Shape[];
}

/** The reference for people, made from what the AsyncAPI document is made from. */
export function protocolMarkdown(): string {
  return `${[
    '# The stream: frames and codes',
    INTRODUCTION,
    '## What a client sends',
    ...Object.entries(CLIENT_FRAMES).map(([name, { summary, schema, examples }]) =>
      section(name, summary, schema as Shape, examples),
    ),
    '## What the server sends',
    ...Object.entries(SERVER_FRAME_SCHEMAS).map(([name, schema]) => {
      const { summary, examples } = SERVER_FRAME_EXAMPLES[name as ServerFrameType];
      return section(name, summary, schema as Shape, examples);
    }),
    '## Close codes',
    'Connect again after 40xx, not after 45xx. 1006 = TCP ended without a close frame.',
    table(
      ['code', 'name', 'connect again', 'meaning'],
      Object.entries(CLOSE_CODES).map(([name, { code, reconnect, meaning }]) => [
        ...[String(code), `\`${name}\``, reconnect ? 'yes' : 'no', meaning],
      ]),
    ),
    '## Error codes',
    'Of `error` frames, and of rejected symbols in `subscribed`. Those with a close code end the connection.',
    table(
      ['code', 'close code', 'meaning'],
      Object.entries(ERROR_CODES).map(([code, error]) => [
        ...[`\`${code}\``, 'close' in error ? String(CLOSE_CODES[error.close].code) : ''],
        error.meaning,
      ]),
    ),
    '## Reasons why a resume was not possible',
    'In `subscribed` and `gap`.',
    reasons(RESUME_REASONS),
    '## Reasons why no pill comes',
    'In `quiet`; `generator_silent` is told of all symbols together.',
    reasons(QUIET_REASONS),
  ].join('\n\n')}\n`;
}

function section(name: string, summary: string, schema: Shape, examples: readonly object[]) {
  const rows = fieldsOf(schema);
  const told = examples.map((example) => JSON.stringify(example)).join('\n');
  return [
    `### \`${name}\``,
    summary,
    table(['field', 'type', ''], rows),
    `\`\`\`json\n${told}\n\`\`\``,
  ].join('\n\n');
}

/** Fields of an object, of the objects in it too; of several forms together. */
function fieldsOf(schema: Shape, path = ''): string[][] {
  const forms = schema.anyOf?.filter(({ properties }) => properties !== undefined) ?? [schema];
  const names = new Set(forms.flatMap(({ properties = {} }) => Object.keys(properties)));
  const rows = new Map<string, string[]>();
  for (const name of names) {
    const fields = forms.flatMap(({ properties }) => properties?.[name] ?? []);
    const isRequired = forms.every(({ required = [] }) => required.includes(name));
    const notes = new Set(fields.map(({ description = '' }) => description));
    const told = [isRequired ? '' : 'optional', ...notes].filter(Boolean);
    const types = new Set(fields.map(typeOf));
    const place = `${path}${name}`;
    rows.set(`\`${place}\``, [`\`${place}\``, [...types].join(' or '), told.join('; ')]);
    for (const row of fields.flatMap((field) => nestedOf(field, place))) rows.set(row[0]!, row);
  }
  return [...rows.values()];
}

function nestedOf(field: Shape, place: string): string[][] {
  if (field.items !== undefined) return fieldsOf(field.items, `${place}[].`);
  const holder = [field, ...(field.anyOf ?? [])].find(({ properties }) => properties);
  return holder === undefined ? [] : fieldsOf(holder, `${place}.`);
}

function typeOf({ const: value, anyOf, type, items }: Shape): string {
  if (value !== undefined) return `\`${JSON.stringify(value)}\``;
  if (anyOf !== undefined) {
    if (anyOf.length > 8) return 'one of the codes below';
    return [...new Set(anyOf.map(typeOf))].join(' or ');
  }
  return items === undefined ? (type ?? 'any') : `array of ${typeOf(items)}`;
}

const reasons = (all: Readonly<Record<string, { readonly meaning: string }>>) =>
  table(
    ['reason', 'meaning'],
    Object.entries(all).map(([reason, { meaning }]) => [`\`${reason}\``, meaning]),
  );

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

const INTRODUCTION = `\`GET {stream_url}/api/stream\` as a WebSocket; one JSON object a text frame. This page and
\`asyncapi.json\`, which the API serves as \`GET /asyncapi.json\`, are made from the schemas that tests
hold the server to: \`npx vitest run gateway/stream/contract/asyncapi.test.ts -u\` writes both anew.

Dedicated sockets are at \`/api/stream/dedicated/{name}\` of their own address and speak the same. A frame
of over ${LIMITS.frameInBytesMax} bytes is refused with 4506; one of over ${LIMITS.frameReadBytesMax} ends the socket with 1006, unread. Frames count, pings of the
WebSocket layer too: ${LIMITS.framesInPerSecond} a second, ${LIMITS.framesInBurst} at once. While a resume is prepared frames are kept, ${LIMITS.heldFrameBytesMax} bytes of them, and answered in order.
A resume from a position brings again what came after it, if it was sent before the cut: the cursor tells.

Order after \`subscribe\`: \`subscribed\`, then the replay or \`gap\` and \`snapshot\`, \`live\`, then new pills.
Fields may be added; ignore those that you do not know.`;
