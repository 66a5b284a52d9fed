import { QUIET_REASONS } from '../../../domain/market/quiet/silence.ts';
import { API_VERSION } from '../../http/problems.ts';
import { LIMITS } from '../limits.ts';
import { CLIENT_FRAMES, type ClientOp } from './client-frame-schemas.ts';
import { CLOSE_CODES } from './close-codes.ts';
import { ERROR_CODES } from './error-codes.ts';
import { namesOf } from './frame-parts.ts';
import { RESUME_REASONS } from './resume-reasons.ts';
import { SERVER_FRAME_EXAMPLES } from './server-frame-examples.ts';
import { SERVER_FRAME_SCHEMAS, type ServerFrameType } from './server-frame-schemas.ts';

type Message = ClientOp | ServerFrameType;

/** Answers that the server also sends without a request. */
const ALSO_UNREQUESTED: readonly string[] = ['welcome', 'pill', 'pills'];
const ANSWERS: readonly string[] = Object.values(CLIENT_FRAMES)
  .flatMap(({ replies }): readonly string[] => replies)
  .filter((name) => !ALSO_UNREQUESTED.includes(name));

const CHANNEL = { $ref: '#/channels/stream' };
const inChannel = (name: Message) => ({ $ref: `#/channels/stream/messages/${name}` });
const component = (name: Message) => ({ $ref: `#/components/messages/${name}` });

/**
 * Makes the AsyncAPI 3.0 document of the stream from the schemas that tests check the server
 * against. AsyncAPI has no place for close codes, error codes and reasons, so they are `x-` members
 * of the channel.
 */
export function asyncApi(): object {
  const names = [...Object.keys(CLIENT_FRAMES), ...Object.keys(SERVER_FRAME_SCHEMAS)] as Message[];
  return {
    asyncapi: '3.0.0',
    info: {
      title: 'pillole stream',
      version: API_VERSION,
      description: DESCRIPTION,
      license: { name: 'Apache-2.0', url: 'https://www.apache.org/licenses/LICENSE-2.0' },
    },
    defaultContentType: 'application/json',
    servers: SERVERS,
    channels: {
      stream: {
        address: '/api/stream',
        title: 'Pills in real time',
        servers: [{ $ref: '#/servers/stream' }],
        messages: Object.fromEntries(names.map((name) => [name, component(name)])),
        bindings: { ws: BINDING },
        'x-close-codes': Object.entries(CLOSE_CODES).map(([name, code]) => ({ name, ...code })),
        'x-error-codes': Object.entries(ERROR_CODES).map(([code, error]) => ({
          code,
          meaning: error.meaning,
          ...('close' in error ? { close: CLOSE_CODES[error.close].code } : {}),
        })),
        'x-resume-reasons': reasons(RESUME_REASONS),
        'x-quiet-reasons': reasons(QUIET_REASONS),
      },
      dedicated: {
        address: '/api/stream/dedicated/{name}',
        title: 'A dedicated socket',
        description:
          'A process of its own for one Institutional account. It has the operations, messages and ' +
          'codes of the channel `stream`; GET /api/account lists its address.',
        parameters: { name: { description: 'Of the socket, e.g. `ded_k3yq7v2bqm9c`.' } },
        servers: [{ $ref: '#/servers/dedicated' }],
        messages: Object.fromEntries(names.map((name) => [name, component(name)])),
        bindings: { ws: BINDING },
      },
    },
    operations: operations(),
    components: {
      messages: {
        ...mapEntries(CLIENT_FRAMES, (name, { summary, schema, examples }) =>
          messageOf(name, summary, schema, examples),
        ),
        ...mapEntries(SERVER_FRAME_SCHEMAS, (name, schema) => {
          const { summary, examples } = SERVER_FRAME_EXAMPLES[name];
          return messageOf(name, summary, schema, examples);
        }),
      },
      securitySchemes: SECURITY_SCHEMES,
    },
  };
}

const operations = () => ({
  ...mapEntries(CLIENT_FRAMES, (op, { summary, replies }) => ({
    action: 'receive',
    channel: CHANNEL,
    summary,
    messages: [inChannel(op)],
    reply: { channel: CHANNEL, messages: [...replies, 'error' as const].map(inChannel) },
  })),
  push: {
    action: 'send',
    channel: CHANNEL,
    summary: 'Frames that the server sends without a request.',
    messages: namesOf(SERVER_FRAME_SCHEMAS)
      .filter((name) => !ANSWERS.includes(name))
      .map(inChannel),
  },
});

const reasons = (all: Readonly<Record<string, { readonly meaning: string }>>) =>
  Object.entries(all).map(([reason, { meaning }]) => ({ reason, meaning }));

const mapEntries = <T extends object>(
  all: T,
  map: (key: keyof T & string, value: T[keyof T]) => object,
) =>
  Object.fromEntries(
    Object.entries(all).map(([key, value]) => [key, map(key as keyof T & string, value)]),
  );

function messageOf(name: string, summary: string, payload: object, examples: readonly object[]) {
  return { name, summary, payload, examples: examples.map((example) => ({ payload: example })) };
}

const SECURITY_SCHEMES = {
  key: { type: 'httpApiKey', name: 'X-API-Key', in: 'header' },
  ticket: {
    type: 'httpApiKey',
    name: 'ticket',
    in: 'query',
    description: 'For browsers: issued by the API for a key or a session, and valid once.',
  },
  signature: {
    type: 'httpApiKey',
    name: 'Signature',
    in: 'header',
    description:
      'HTTP message signature (RFC 9421) of the handshake, by a scheme of an Institutional ' +
      'account; Signature-Input names the scheme in keyid.',
  },
  token: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description: 'Token of the own issuer of an Institutional account.',
  },
};

const SECURITY = Object.keys(SECURITY_SCHEMES).map((name) => ({
  $ref: `#/components/securitySchemes/${name}`,
}));

const SERVERS = {
  stream: {
    host: '127.0.0.1:8082',
    protocol: 'ws',
    description: 'Pro and Institutional.',
    security: SECURITY,
  },
  dedicated: {
    host: '127.0.0.1:{port}',
    protocol: 'ws',
    description: 'Institutional; by DEDICATED_URL of the operator.',
    variables: { port: { description: 'The `port` of the socket.' } },
    security: SECURITY,
  },
};

const BINDING = {
  method: 'GET',
  query: { type: 'object', properties: { ticket: { type: 'string' } } },
  headers: {
    type: 'object',
    properties: {
      'X-API-Key': { type: 'string' },
      'Sec-WebSocket-Protocol': { type: 'string', enum: ['pills.v1.json', 'pills.v1.avro'] },
    },
  },
  bindingVersion: '0.1.0',
};

const DESCRIPTION = [
  `Each text frame is one JSON object. A client may send ${LIMITS.framesInPerSecond} frames per second`,
  `(burst ${LIMITS.framesInBurst}) of at most ${LIMITS.frameInBytesMax} bytes each.`,
  'Authenticate with the X-API-Key header, with `?ticket=`, or with `auth` as the first frame.',
  'The server refuses with an `error` frame and a close code of its own. Violations of RFC 6455,',
  'such as a frame over 16 KiB or text that is not UTF-8, end the socket without either (1006).',
  'With the subprotocol `pills.v1.avro`, pills arrive as binary frames; all other frames stay JSON.',
].join(' ');
