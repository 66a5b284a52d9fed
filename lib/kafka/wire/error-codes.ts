/** Errors of brokers that this code tells apart: kafka.apache.org/protocol#protocol_error_codes */
export const ERROR_CODES = {
  OFFSET_OUT_OF_RANGE: 1,
  UNKNOWN_TOPIC_OR_PARTITION: 3,
  LEADER_NOT_AVAILABLE: 5,
  NOT_LEADER_OR_FOLLOWER: 6,
  REPLICA_NOT_AVAILABLE: 9,
  MESSAGE_TOO_LARGE: 10,
  KAFKA_STORAGE_ERROR: 56,
  FETCH_SESSION_ID_NOT_FOUND: 70,
  INVALID_FETCH_SESSION_EPOCH: 71,
  FENCED_LEADER_EPOCH: 74,
  UNKNOWN_LEADER_EPOCH: 75,
} as const;

const NAMES = new Map(Object.entries(ERROR_CODES).map(([name, code]) => [code as number, name]));

/** A broker refused a request, or its part for one partition. */
export class BrokerError extends Error {
  override readonly name = 'BrokerError';
  readonly code: number;
  constructor(code: number, what: string) {
    super(`${what}: ${NAMES.get(code) ?? `error ${code} of the broker`}.`);
    this.code = code;
  }
}
