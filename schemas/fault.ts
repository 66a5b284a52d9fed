/** What is wrong with one place of an input document, told to whoever sent it. */
export interface Fault {
  /** JSON pointer as a URI fragment (RFC 6901 section 6), `#` for the whole document. */
  readonly pointer: string;
  /** Stable code, see `FAULT_CODES`. */
  readonly code: FaultCode;
  /** One sentence that says how to cure it. */
  readonly detail: string;
}

/** Every code a fault may carry, with its meaning. Codes are contract: never renamed. */
export const FAULT_CODES = {
  byte_order_mark: 'The body starts with a byte order mark.',
  invalid_utf8: 'The text is not valid UTF-8, or was damaged on its way (U+FFFD).',
  json_syntax: 'The body is not one JSON document.',
  json_too_deep: 'Arrays or objects are nested too deeply.',
  duplicate_key: 'An object names the same key twice.',
  forbidden_key: 'A key that attacks object prototypes.',
  lone_surrogate: 'A string holds half of a surrogate pair.',
  not_an_object: 'A pill is a JSON object.',
  not_an_array: 'A batch is a JSON array.',
  batch_empty: 'A batch holds at least one pill.',
  batch_too_long: 'A batch holds too many pills.',
  missing_field: 'A required field is not there.',
  unknown_field: 'A field that a pill does not have.',
  not_a_string: 'The field must be a string.',
  not_a_number: 'The field must be a number.',
  not_finite: 'The number is too large for a double.',
  out_of_range: 'The number is outside its range.',
  id_malformed: 'The id is not 1 to 128 printable characters.',
  symbol_malformed: 'The symbol has a form that no symbol has.',
  market_state_malformed: 'The label has characters or a length that labels do not have.',
  timestamp_malformed: 'The timestamp is not ISO 8601.',
  timestamp_no_zone: 'The timestamp names no time zone.',
  timestamp_not_utc: 'The timestamp is not in UTC.',
  timestamp_too_precise: 'The timestamp is finer than a microsecond.',
  timestamp_in_future: 'The timestamp is more than 5 minutes ahead of the clock.',
  timestamp_out_of_range: 'The timestamp is before 1970.',
  id_conflict: 'A pill with this symbol and id, but with other content, was stored before.',
  symbol_limit: 'The system holds as many distinct symbols as it may.',
} as const;

export type FaultCode = keyof typeof FAULT_CODES;
