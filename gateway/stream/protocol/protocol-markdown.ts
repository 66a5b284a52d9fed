import { QUIET_REASONS } from '../../../domain/market/quiet/silence.ts';
import { LIMITS } from '../limits.ts';
import { CLIENT_FRAMES } from './client-frame-schemas.ts';
import { CLOSE_CODES } from './close-codes.ts';
import { ERROR_CODES } from './error-codes.ts';
import type { Shape } from './frame-parts.ts';
import { RESUME_REASONS } from './resume-reasons.ts';
import { SERVER_FRAME_EXAMPLES } from './server-frame-examples.ts';
import { SERVER_FRAME_SCHEMAS, type ServerFrameType } from './server-frame-schemas.ts';

/** Makes PROTOCOL.md from the same schemas as the AsyncAPI document. */
export function protocolMarkdown(): string {
  return `${[
    '# The stream: frames and codes',
    INTRODUCTION,
    '## Client frames',
    ...Object.entries(CLIENT_FRAMES).map(([name, { summary, schema, examples }]) =>
      section(name, summary, schema as Shape, examples),
    ),
    '## Server frames',
    ...Object.entries(SERVER_FRAME_SCHEMAS).map(([name, schema]) => {
      const { summary, examples } = SERVER_FRAME_EXAMPLES[name as ServerFrameType];
      return section(name, summary, schema as Shape, examples);
    }),
    '## Close codes',
    'Connect again after 40xx, but not after 45xx. 1006 means that TCP ended without a close frame.',
    table(
      ['code', 'name', 'connect again', 'meaning'],
      Object.entries(CLOSE_CODES).map(([name, { code, reconnect, meaning }]) => {
        return [String(code), `\`${name}\``, reconnect ? 'yes' : 'no', meaning];
      }),
    ),
    '## Error codes',
    'Used in `error` frames and for rejected symbols in `subscribed`. An error with a close code ends the connection.',
    table(
      ['code', 'close code', 'meaning'],
      Object.entries(ERROR_CODES).map(([code, error]) => {
        const close = 'close' in error ? String(CLOSE_CODES[error.close].code) : '';
        return [`\`${code}\``, close, error.meaning];
      }),
    ),
    '## Reasons why a resume was not possible',
    'Used in `subscribed` and `gap`.',
    reasons(RESUME_REASONS),
    '## Reasons why no pills arrive',
    'Used in `quiet`. A further reason, `generator_silent`, applies to all symbols together.',
    reasons(QUIET_REASONS),
  ].join('\n\n')}\n`;
}

function section(name: string, summary: string, schema: Shape, examples: readonly object[]) {
  const rows = table(['field', 'type', ''], fieldsOf(schema));
  const lines = examples.map((example) => JSON.stringify(example)).join('\n');
  return [`### \`${name}\``, summary, rows, `\`\`\`json\n${lines}\n\`\`\``].join('\n\n');
}

/** Table rows for the fields of an object and of its nested objects, all forms of a union merged. */
function fieldsOf(schema: Shape, path = ''): string[][] {
  const forms = schema.anyOf?.filter(({ properties }) => properties !== undefined) ?? [schema];
  const names = new Set(forms.flatMap(({ properties = {} }) => Object.keys(properties)));
  const rows = new Map<string, string[]>();
  for (const name of names) {
    const fields = forms.flatMap(({ properties }) => properties?.[name] ?? []);
    const isRequired = forms.every(({ required = [] }) => required.includes(name));
    const notes = new Set(fields.map(({ description = '' }) => description));
    const remarks = [isRequired ? '' : 'optional', ...notes].filter(Boolean);
    const types = new Set(fields.map(typeOf));
    const full = `${path}${name}`;
    rows.set(`\`${full}\``, [`\`${full}\``, [...types].join(' or '), remarks.join('; ')]);
    for (const row of fields.flatMap((field) => nestedOf(field, full))) rows.set(row[0]!, row);
  }
  return [...rows.values()];
}

function nestedOf(field: Shape, path: string): string[][] {
  if (field.items !== undefined) return fieldsOf(field.items, `${path}[].`);
  const holder = [field, ...(field.anyOf ?? [])].find(({ properties }) => properties);
  return holder === undefined ? [] : fieldsOf(holder, `${path}.`);
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

const INTRODUCTION = `Open \`GET {stream_url}/api/stream\` as a WebSocket; each text frame is one JSON object. This page and
\`asyncapi.json\`, which the API serves as \`GET /asyncapi.json\`, are generated from the schemas that tests
check the server against: \`npx vitest run gateway/stream/protocol/asyncapi-document.test.ts -u\` rewrites both.

Dedicated sockets are at \`/api/stream/dedicated/{name}\` of their own address and use the same protocol.

- A client frame of more than ${LIMITS.frameInBytesMax} bytes is refused with 4506. A frame of more than ${LIMITS.frameReadBytesMax} bytes is not read and ends the socket with 1006.
- A client may send ${LIMITS.framesInPerSecond} frames per second, ${LIMITS.framesInBurst} in a burst; WebSocket pings count.
- While the server prepares a resume, it queues up to ${LIMITS.heldFrameBytesMax} bytes of client frames and answers them in order.
- A resume sends every pill after the position, including pills that were sent before the connection broke; recognise them by \`cursor\`.

After \`subscribe\` the server sends \`subscribed\`, then the replay, or \`gap\` frames and a \`snapshot\`, then \`live\`, then new pills.
Later versions may add fields; ignore fields you do not know.`;
