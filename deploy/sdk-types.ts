import { EVENT_CATALOGUE, type EventEntry } from '../domain/webhooks/events/event-catalogue.ts';
import { Pill } from '../domain/webhooks/events/event-fields.ts';
import { CLIENT_FRAMES } from '../gateway/stream/protocol/client-frame-schemas.ts';
import { CLOSE_CODES } from '../gateway/stream/protocol/close-codes.ts';
import { SERVER_FRAME_SCHEMAS } from '../gateway/stream/protocol/server-frame-schemas.ts';

/** Frames that answer operations which the client never sends. */
const NOT_READ: ReadonlySet<string> = new Set(['unsubscribed', 'pong']);
/** Types whose names have no suffix; customers import some of them, so the names never change. */
const WITHOUT_SUFFIX: ReadonlySet<string> = new Set([
  ...['welcome', 'subscribed', 'quiet', 'heartbeat', 'drain'],
]);
/** Types that customers import: only these get docstrings, the AsyncAPI document has the others. */
const EXPORTED = new Set([
  'StreamFilter',
  'StreamMode',
  'Quiet',
  'Heartbeat',
  'StatusFrame',
  'Drain',
]);

/** The client library's types of a stream's frames, as `sdk/stream/stream-frames.ts` has them. */
export function streamFrameTypes(): string {
  const { filter, mode } = CLIENT_FRAMES.subscribe.schema.properties;
  const { pill, pills, snapshot } = SERVER_FRAME_SCHEMAS;
  const pillMembers = Object.keys(pills.properties.pills.items.properties);
  const print = createPrinter({
    names: new Map<unknown, string>([
      [mode, 'StreamMode'],
      [filter.anyOf[0], 'StreamFilter'],
      [pills.properties.pills.items, 'Pill'],
      [snapshot.properties.pills.items, 'SnapshotPill'],
    ]),
    open: /\.(reason|code|component|close)$|^StatusFrame\.state$/,
    hasDocs: (name) => EXPORTED.has(name),
  });
  const nameOf = (type: string) => `${capital(type)}${WITHOUT_SUFFIX.has(type) ? '' : 'Frame'}`;
  const server = (Object.entries(SERVER_FRAME_SCHEMAS) as [string, Schema][]).filter(
    ([type]) => !NOT_READ.has(type),
  );
  const union = server.map(([type]) => `| ${nameOf(type)}`).join(' ');
  const closeCodes = Object.entries(CLOSE_CODES).map(([name, { code }]) => `${code}: '${name}',`);
  return [
    header('gateway/stream/protocol'),
    `import type { Pill, SnapshotPill } from '../rest/responses.ts';\n`,
    print('StreamFilter', filter.anyOf[0], { doc: 'Which pills a stream sends.' }),
    print('StreamMode', mode, { doc: '`all`: every pill. `latest`: see `skipped` of a pill.' }),
    print('Auth', CLIENT_FRAMES.auth.schema),
    print('Subscribe', CLIENT_FRAMES.subscribe.schema),
    ...server.map(([type, schema]) =>
      schema === pill
        ? print('PillFrame', without(schema, pillMembers), { base: 'Pill' })
        : print(nameOf(type), schema),
    ),
    `/** The frames that the client reads, by their \`type\`; the server may send others. */
export type ServerFrame = ${union};\n`,
    `/** Names of the close codes, as error frames carry them in \`code\`. */
export const CLOSE_NAMES: Readonly<Record<number, string>> = {${closeCodes.join('')}};\n`,
  ].join('\n');
}

/** The client library's types of webhook bodies, as `sdk/webhooks/webhook-events.ts` has them. */
export function webhookEventTypes(): string {
  const print = createPrinter({ names: new Map([[Pill, 'PublishedPill']]) });
  const events = Object.values<EventEntry>(EVENT_CATALOGUE);
  const nameOf = (type: string) => type.split('.').map(capital).join('');
  return [
    header('domain/webhooks/events'),
    `import type { PublishedPill } from '../rest/responses.ts';

interface Event<Type extends string> {
  readonly type: Type;
  /** When it happened; for pills, when the platform received the oldest. UTC, six decimals. */
  readonly timestamp: string;
}\n`,
    ...events.map(({ type, schema, raised }) =>
      print(nameOf(type), without(schema as Schema, ['type', 'timestamp']), {
        doc: raised,
        base: `Event<'${type}'>`,
      }),
    ),
    `/**
 * A verified delivery; \`type\` is the name of its event. Later versions of the platform may add
 * types: the \`default\` branch of a \`switch\` receives them, as \`UnknownWebhookEvent\`.
 */
export type WebhookEvent = ${events.map(({ type }) => `| ${nameOf(type)}`).join(' ')};\n`,
  ].join('\n');
}

function capital(word: string): string {
  return `${word.charAt(0).toUpperCase()}${word.slice(1)}`;
}

/** A schema without some of its members. */
function without(schema: Schema, names: readonly string[]): Schema {
  const members = Object.entries(schema.properties ?? {}).filter(([key]) => !names.includes(key));
  return { ...schema, properties: Object.fromEntries(members) };
}

/** The parts of JSON schema that our schemas use. */
interface Schema {
  readonly type?: 'string' | 'number' | 'integer' | 'boolean' | 'null' | 'array' | 'object';
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[] | undefined;
  readonly description?: string;
}

/**
 * Prints JSON schemas as TypeScript; descriptions become docstrings.
 * @param options `names`: schemas that have a type of their own. `open`: members (`Type.member`)
 *   whose values grow with the platform, so that they are typed without the values.
 */
function createPrinter(options: {
  readonly names: ReadonlyMap<unknown, string>;
  readonly open?: RegExp;
  readonly hasDocs?: (name: string) => boolean;
}) {
  const { names, open = /^$/, hasDocs = () => true } = options;
  const typeOf = (schema: Schema, path: string): string => {
    const name = names.get(schema);
    const values = literalsOf(schema);
    if (name !== undefined) return name;
    if (values !== undefined) {
      return open.test(path) ? typeof values[0] : values.map(literal).join(' | ');
    }
    if (schema.anyOf !== undefined) return schema.anyOf.map((one) => typeOf(one, path)).join(' | ');
    if (schema.type === 'array') return arrayOf(typeOf(schema.items!, path));
    if (schema.type === 'object') return bodyOf(schema, path);
    return schema.type === 'integer' ? 'number' : schema.type!;
  };
  const bodyOf = ({ properties = {}, required = [] }: Schema, path: string) => {
    const members = Object.entries(properties).map(([key, schema]) => {
      const mark = required.includes(key) ? '' : '?';
      const doc = hasDocs(path.split('.')[0]!) ? comment(schema.description) : '';
      return `${doc}readonly ${key}${mark}: ${typeOf(schema, `${path}.${key}`)};`;
    });
    // Without a line break after the brace, the formatter writes a short type in one line.
    return `{${members.some((member) => member.includes('\n')) ? '\n' : ''}${members.join('\n')}}`;
  };

  /** An exported type; its docstring is the schema's description unless `doc` says more. */
  return (
    name: string,
    schema: Schema,
    { doc = schema.description, base }: { readonly doc?: string; readonly base?: string } = {},
  ): string => {
    const head = `${hasDocs(name) ? comment(doc) : ''}export`;
    if (schema.type !== 'object') return `${head} type ${name} = ${unionOf(schema, name)};\n`;
    const extended = base === undefined ? '' : ` extends ${base}`;
    return `${head} interface ${name}${extended} ${bodyOf(schema, name)}\n`;
  };
  function unionOf({ anyOf = [] }: Schema, name: string): string {
    return anyOf.map((one) => `| ${typeOf(one, name)}`).join(' ');
  }
}

function literalsOf({ const: value, enum: values, anyOf }: Schema): readonly unknown[] | undefined {
  if (value !== undefined) return [value];
  if (values !== undefined) return values;
  const all = anyOf?.map((one) => one.const);
  return all?.includes(undefined) ? undefined : all;
}

function literal(value: unknown): string {
  return typeof value === 'string' ? `'${value}'` : String(value);
}

function arrayOf(type: string): string {
  return `readonly ${type.includes(' | ') && !type.startsWith('{') ? `(${type})` : type}[]`;
}

const COMMENT_WIDTH = 90;

function comment(text: string | undefined): string {
  if (text === undefined || text === '') return '';
  const sentence = /[.!?:]$/.test(text) ? text : `${text}.`;
  if (sentence.length <= COMMENT_WIDTH) return `/** ${sentence} */\n`;
  const lines = sentence.match(new RegExp(`.{1,${COMMENT_WIDTH}}(?: |$)`, 'g')) ?? [];
  return `/**\n${lines.map((line) => ` * ${line.trim()}\n`).join('')} */\n`;
}

function header(source: string): string {
  return `// Generated from the schemas of ${source}:
// \`npx vitest run deploy/sdk-types.test.ts -u\` writes it.\n`;
}
