/** What to correct, by the text of the error of a connection to an engine. */
const HINTS: readonly (readonly [RegExp, string])[] = [
  [
    /SASL .*(?:authentication failed|not supported)/i,
    'Kafka refuses the process: correct KAFKA_SASL_MECHANISM, KAFKA_USERNAME or KAFKA_PASSWORD.',
  ],
  [
    /altnames/i,
    "The engine's certificate names another host: use a name or an address that is in it.",
  ],
  [
    /self-signed certificate|unable to (?:verify|get)/i,
    "The authority of the engine's certificate is unknown: correct KAFKA_CA_FILE or sslrootcert.",
  ],
  [/certificate required|alert bad certificate/i, 'Kafka asks for KAFKA_CERTIFICATE_FILE.'],
  [
    /registry.*\b401\b/i,
    'The schema registry refuses the process: correct user and password of SCHEMA_REGISTRY_URL.',
  ],
  [
    /password authentication failed/i,
    'PostgreSQL refuses the process: correct user and password of DATABASE_URL.',
  ],
  [
    /Authentication failed: password is incorrect/i,
    'ClickHouse refuses the process: correct user and password of CLICKHOUSE_URL.',
  ],
];

/** A sentence that says what to correct, if a connection failed for its settings. */
export function connectionHint({ message }: Error): string | undefined {
  return HINTS.find(([form]) => form.test(message))?.[1];
}
