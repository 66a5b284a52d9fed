import { QUIET_REASONS } from '../../../lib/signal/silence.ts';
import { API_VERSION } from '../../http/problems.ts';
import { LIMITS } from '../limits.ts';
import { CLOSE_CODES } from './close-codes.ts';
import { ERROR_CODES } from './error-codes.ts';
import { SERVER_FRAME_EXAMPLES } from './frame-examples.ts';
import { SERVER_FRAME_SCHEMAS, type ServerFrameType } from './frame-schemas.ts';
import { CLIENT_FRAMES } from './frame-schemas-client.ts';
import { RESUME_REASONS } from './resume-reasons.ts';

type ClientFrameType = keyof typeof CLIENT_FRAMES;
type Message = ClientFrameType | ServerFrameType;

/** What answers each frame of a client; an `error` may answer any. */
const REPLIES: Readonly<Record<ClientFrameType, readonly ServerFrameType[]>> = {
  auth: ['welcome'],
  subscribe: ['subscribed', 'gap', 'snapshot', 'pill', 'pills', 'live'],
  unsubscribe: ['unsubscribed'],
  ping: ['pong'],
};

/** What comes without being asked for. */
const TOLD: readonly ServerFrameType[] = [
  ...(['welcome', 'pill', 'pills', 'quiet', 'heartbeat', 'status', 'drain', 'error'] as const),
];

const CHANNEL = { $ref: '#/channels/stream' };
const inChannel = (name: Message) => ({ $ref: `#/channels/stream/messages/${name}` });
const component = (name: Message) => ({ $ref: `#/components/messages/${name}` });

/**
 * Makes the AsyncAPI 3.0 document of the stream from the schemas that tests hold the server to. It
 * has no place for close codes, error codes and reasons: they stand in `x-` members of the channel.
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
    servers: {
      stream: {
        host: '127.0.0.1:8082',
        protocol: 'ws',
        description: 'Pro and Institutional.',
        security: [
          { $ref: '#/components/securitySchemes/key' },
          { $ref: '#/components/securitySchemes/ticket' },
        ],
      },
    },
    channels: {
      stream: {
        address: '/api/stream',
        title: 'Pills as they come',
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
    },
    operations: { ...receives(), tell: told() },
    components: {
      messages: { ...clientMessages(), ...serverMessages() },
      securitySchemes: {
        key: { type: 'httpApiKey', name: 'X-API-Key', in: 'header' },
        ticket: {
          type: 'httpApiKey',
          name: 'ticket',
          in: 'query',
          description: 'For browsers: taken from the API with a key or a session, used once.',
        },
      },
    },
  };
}

const reasons = (all: Readonly<Record<string, { readonly meaning: string }>>) =>
  Object.entries(all).map(([reason, { meaning }]) => ({ reason, meaning }));

function receives() {
  return Object.fromEntries(
    (Object.keys(CLIENT_FRAMES) as ClientFrameType[]).map((op) => [
      op,
      {
        action: 'receive',
        channel: CHANNEL,
        summary: CLIENT_FRAMES[op].summary,
        messages: [inChannel(op)],
        reply: { channel: CHANNEL, messages: [...REPLIES[op], 'error' as const].map(inChannel) },
      },
    ]),
  );
}

const told = () => ({
  action: 'send',
  channel: CHANNEL,
  summary: 'What comes without being asked for.',
  messages: TOLD.map(inChannel),
});

function clientMessages() {
  return Object.fromEntries(
    Object.entries(CLIENT_FRAMES).map(([name, { summary, schema, examples }]) => [
      name,
      messageOf(name, summary, schema, examples),
    ]),
  );
}

function serverMessages() {
  return Object.fromEntries(
    Object.entries(SERVER_FRAME_SCHEMAS).map(([name, schema]) => {
      const { summary, examples } = SERVER_FRAME_EXAMPLES[name as ServerFrameType];
      return [name, messageOf(name, summary, schema, examples)];
    }),
  );
}

function messageOf(name: string, summary: string, payload: object, examples: readonly object[]) {
  return { name, summary, payload, examples: examples.map((example) => ({ payload: example })) };
}

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
  `One JSON object a text frame; of a client ${LIMITS.frameInBytesMax} bytes and`,
  `${LIMITS.framesInPerSecond} frames a second at most (burst ${LIMITS.framesInBurst}).`,
  'Say who you are by the X-API-Key header, by `?ticket=`, or by `auth` as the first frame.',
  'The server refuses by an `error` frame and a close code of its own. What breaks RFC 6455 itself,',
  'as a frame over 16 KiB or text that is not UTF-8, is cut without one (1006).',
  'With the subprotocol `pills.v1.avro` pills come as binary frames; all else stays JSON.',
].join(' ');
