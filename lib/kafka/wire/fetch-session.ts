import { ERROR_CODES } from './error-codes.ts';
import type { FetchAnswer } from './fetch-request.ts';

const EPOCH_MAX = 2 ** 31 - 1;

/**
 * An incremental fetch session with one broker (KIP-227): the broker keeps the partitions, so a
 * request names only those whose offset has changed. A broker that has no room for a session, or
 * has dropped it, gets full requests.
 */
export function createFetchSession() {
  let id = 0;
  let epoch = 0;
  let known = new Map<number, number>();
  const reset = () => {
    id = 0;
    epoch = 0;
    known = new Map();
  };
  return {
    /** What a request names: the session, and the offsets that the broker does not know yet. */
    next(wanted: ReadonlyMap<number, number>) {
      const offsets = new Map<number, number>();
      for (const [partition, offset] of wanted) {
        if (known.get(partition) === offset) continue;
        offsets.set(partition, offset);
        known.set(partition, offset);
      }
      return { session: { id, epoch }, offsets };
    },
    /** @returns whether the request counts; otherwise it is repeated, in a new session */
    accept({ errorCode, sessionId }: FetchAnswer): boolean {
      if (
        errorCode === ERROR_CODES.FETCH_SESSION_ID_NOT_FOUND ||
        errorCode === ERROR_CODES.INVALID_FETCH_SESSION_EPOCH
      ) {
        reset();
        return false;
      }
      if (sessionId === 0) reset();
      else {
        id = sessionId;
        epoch = epoch === EPOCH_MAX ? 1 : epoch + 1;
      }
      return true;
    },
  };
}
