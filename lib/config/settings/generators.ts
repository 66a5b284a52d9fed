import { choice, port, text, usedBy, whole, yesNo } from '../setting.ts';

/** The demo market and the canary. */
export const GENERATORS = {
  ...usedBy(['demo'], {
    DEMO_WAY: choice(
      '`http`: pills go through ingest; `direct`: as Avro to the log',
      ['http', 'direct'],
      'http',
    ),
    INGEST_CREDENTIAL: text('Token of a generator, if ingest asks for one', { isSecret: true }),
    DEMO_PILLS_PER_S: whole('Mean rate of the demo market', 10, { min: 1, max: 5_000 }, 'pills/s'),
    DEMO_SEED: whole('Seed of the demo market; each seed gives another market', 1, {
      min: 0,
      max: 4_294_967_295,
    }),
  }),
  ...usedBy(['canary'], {
    CANARY_KEY_FILE: text('File with an API key of an Institutional account', {
      requiredBy: ['canary'],
    }),
    CANARY_CREDENTIAL_FILE: text("File with a generator's token, if ingest asks for one"),
    CANARY_SYMBOL: text('Symbol of the pills of the canary', {
      fallback: 'TEST:CANARY',
      form: [/^TEST:/, 'a symbol that begins with TEST:'],
    }),
    CANARY_EVERY_MS: whole('Time between two pills', 1_000, { min: 200, max: 60_000 }, 'ms'),
    CANARY_WEBHOOK: yesNo('Whether webhooks are measured too'),
    CANARY_WEBHOOK_HOST: text('Address on which the receiver of webhooks listens', {
      fallback: '127.0.0.1',
    }),
    CANARY_WEBHOOK_PORT: port('Port of the receiver of webhooks', 0),
    CANARY_WEBHOOK_URL: text(
      'The https address that leads to the receiver of webhooks; its own by default',
    ),
  }),
};
