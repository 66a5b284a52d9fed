import { problemTypes } from './problem-type.ts';

/** Problems of sending pills. */
export const INGEST_PROBLEMS = problemTypes({
  pill_invalid: {
    status: 400,
    title: 'The pill was refused',
    meaning: 'The body is not a valid pill. `errors` lists every fault with its JSON pointer.',
    remedy: 'Correct each fault as its `detail` says, then send the pill again.',
  },
  batch_invalid: {
    status: 400,
    title: 'The batch was refused',
    meaning: 'The body as a whole is not a batch, so no row was processed.',
    remedy: 'Send a JSON array or NDJSON with 1 to 1,000 pills.',
  },
  credential_missing: {
    status: 401,
    title: 'A generator credential is required',
    meaning: 'The request has no Authorization header of the form `Bearer gen_…`.',
    remedy: 'Send the generator token that the operator gave you.',
    challenge: 'Bearer realm="pillole ingest"',
  },
  credential_invalid: {
    status: 403,
    title: 'The generator credential was refused',
    meaning: 'The token is unknown, expired or withdrawn.',
    remedy: 'Ask the operator for a new generator token.',
  },
  generator_credentials_off: {
    status: 503,
    title: 'Generators cannot be told apart here',
    meaning: 'The API has no file of generator credentials, so it cannot know whose pills to show.',
    remedy: 'Ask the operator to set INGEST_CREDENTIALS_FILE for the API as for ingest.',
    retry: 'never',
  },
  id_conflict: {
    status: 409,
    title: 'This id belongs to another pill',
    meaning: 'A pill with this symbol and id but different content is already stored.',
    remedy: 'Send the pill with a new id: a stored pill never changes.',
  },
  log_unavailable: {
    status: 503,
    title: 'Not acknowledged in time',
    meaning: 'The log did not acknowledge within 2 s. `stored` says whether the pill may be in it.',
    remedy:
      'Send the pill again with the same id after `Retry-After`: a repeat has no second effect.',
    retry: 'same_id',
  },
  symbol_limit: {
    status: 503,
    title: 'No room for another symbol',
    meaning:
      'The system holds its maximum number of distinct symbols. Pills of known symbols are still ' +
      'accepted.',
    remedy: 'Ask the operator to raise the limit; sending the pill again does not help until then.',
    retry: 'never',
  },
});
