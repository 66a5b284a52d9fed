import { choice, type ProcessName, port, text, usedBy, yesNo } from '../setting.ts';

const PUBLIC = ['ingest', 'api', 'stream', 'dedicated', 'webhooks', 'destinations'] as const;
const RUNNING = [...PUBLIC, 'latest', 'analytics', 'demo', 'canary'] as const;
/** The processes that check the URLs of customers, which must not lead to ours. */
const CHECKING = ['api', 'stream', 'webhooks', 'destinations'] as const;

const LISTEN = '`yes` confirms that other machines may reach';

const listening = (processes: readonly ProcessName[]) => [...new Set([...processes, ...CHECKING])];

/** Where processes listen, and where customers find them. */
export const ADDRESSES = {
  ...usedBy(RUNNING, {
    LOG_LEVEL: choice(
      'Least level of the lines of the log',
      ['trace', 'debug', 'info', 'warn', 'error'],
      'info',
    ),
    METRICS_HOST: text('Address of /metrics, /health and /ready', { fallback: '127.0.0.1' }),
    METRICS_PORT: port('Port of /metrics, /health and /ready', 0),
    METRICS_PUBLIC: yesNo(`${LISTEN} METRICS_HOST, which speaks no TLS`),
  }),
  ...usedBy(listening(['ingest']), {
    INGEST_HOST: text('Address on which ingest listens', { fallback: '127.0.0.1' }),
  }),
  ...usedBy(['ingest'], { INGEST_PUBLIC: yesNo(`${LISTEN} INGEST_HOST, which speaks no TLS`) }),
  ...usedBy(listening(['api']), {
    API_HOST: text('Address on which the API listens', { fallback: '127.0.0.1' }),
  }),
  ...usedBy(['api'], { API_PUBLIC: yesNo(`${LISTEN} API_HOST, which speaks no TLS`) }),
  ...usedBy(listening(['stream']), {
    STREAM_HOST: text('Address on which the stream listens', { fallback: '127.0.0.1' }),
  }),
  ...usedBy(['stream'], { STREAM_PUBLIC: yesNo(`${LISTEN} STREAM_HOST, which speaks no TLS`) }),
  ...usedBy(listening(['dedicated']), {
    DEDICATED_HOST: text('Address on which dedicated sockets listen', { fallback: '127.0.0.1' }),
  }),
  ...usedBy(['dedicated'], {
    DEDICATED_PUBLIC: yesNo(`${LISTEN} DEDICATED_HOST, which speaks no TLS`),
  }),
  ...usedBy(PUBLIC, {
    INGEST_PORT: port('Port of ingest', 8081),
    API_PORT: port('Port of the API', 8080),
    STREAM_PORT: port('Port of the stream', 8082),
    DEDICATED_URL: text(
      'Address of dedicated sockets for customers, with {port} or {name}; their own port by default',
    ),
    TRUSTED_PROXIES: text(
      'Addresses or networks of proxies that are believed when they name the client, at most 256',
      { fallback: '' },
    ),
  }),
  ...usedBy([...PUBLIC, 'canary'], {
    PUBLIC_URL: text('Address of the API for customers; its own port by default', {
      requiredBy: ['canary'],
    }),
    STREAM_URL: text('Address of the stream for customers; its own port by default', {
      requiredBy: ['canary'],
    }),
  }),
  ...usedBy([...PUBLIC, 'canary', 'demo'], {
    INGEST_URL: text('Address of ingest for generators; its own port by default', {
      requiredBy: ['canary', 'demo'],
    }),
  }),
  ...usedBy(['api', 'stream'], {
    STREAM_ORIGINS: text(
      'Origins of web pages that may open sockets and read the API, at most 100',
      { fallback: '' },
    ),
  }),
};
