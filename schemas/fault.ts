/** One fault of an input document, as reported to its sender. */
export interface Fault {
  /** JSON pointer as a URI fragment (RFC 6901 section 6), `#` for the whole document. */
  readonly pointer: string;
  /** Stable code, see `FAULT_CODES`. */
  readonly code: FaultCode;
  /** One sentence that says how to correct it. */
  readonly detail: string;
}

/** Every fault code with its meaning. Codes are part of the contract and never renamed. */
export const FAULT_CODES = {
  byte_order_mark: 'The body starts with a byte order mark.',
  invalid_utf8: 'The text is not valid UTF-8, or was damaged in transit (U+FFFD).',
  json_syntax: 'The body is not a single JSON document.',
  json_too_deep: 'Arrays or objects are nested too deeply.',
  duplicate_key: 'An object contains the same key twice.',
  forbidden_key: 'The key is used to attack object prototypes.',
  lone_surrogate: 'A string contains half of a surrogate pair.',
  not_an_object: 'A pill must be a JSON object.',
  not_an_array: 'A batch must be a JSON array.',
  batch_empty: 'A batch must contain at least one pill.',
  batch_too_long: 'The batch contains too many pills.',
  missing_field: 'A required field is missing.',
  unknown_field: 'A pill has no such field.',
  not_a_string: 'The field must be a string.',
  not_a_number: 'The field must be a number.',
  not_finite: 'The number is too large for a double.',
  out_of_range: 'The number is outside its range.',
  id_malformed: 'The id must be 1 to 128 printable characters.',
  symbol_malformed: 'The text is not a valid symbol.',
  market_state_malformed: 'The label has invalid characters or an invalid length.',
  timestamp_malformed: 'The timestamp is not a valid ISO 8601 date and time.',
  timestamp_no_zone: 'The timestamp has no time zone.',
  timestamp_not_utc: 'The timestamp is not in UTC.',
  timestamp_too_precise: 'The timestamp is finer than a microsecond.',
  timestamp_in_future: 'The timestamp is more than 5 minutes ahead of the clock.',
  timestamp_out_of_range: 'The timestamp is before 1970.',
  id_conflict: 'A pill with this symbol and id, but with other content, was stored before.',
  symbol_limit: 'The limit of distinct symbols is reached.',
} as const;

export type FaultCode = keyof typeof FAULT_CODES;

/** Further codes of faults in parameters and bodies of the API. */
const REQUEST_FAULT_CODES = {
  missing: 'A required parameter is missing.',
  parameter_unknown: 'This endpoint has no such parameter.',
  parameter_repeated: 'The parameter is given more than once.',
  parameters_exclusive: 'Two parameters, or values of them, exclude each other.',
  nothing_to_change: 'The body names nothing to change.',
  not_an_integer: 'The value must be a whole number.',
  not_a_boolean: 'The value must be true or false.',
  not_a_choice: 'The value is not one of the allowed ones.',
  malformed: 'The value does not have the form that `detail` describes.',
  too_short: 'The text has too few characters.',
  too_long: 'The text has too many characters.',
  too_few: 'The list has too few entries.',
  too_many: 'The list has too many entries.',
  repeated: 'An entry of the list occurs more than once.',
  email_malformed: 'The text is not a valid e-mail address.',
  password_weak: 'The password is too easy to guess.',
  range_backwards: 'The range ends before it begins.',
  range_too_large: 'The range is too large; `detail` names one that would fit.',
  position_malformed: 'The text is not a valid cursor or position.',
  epoch_malformed: 'The text is not a valid epoch.',
  epochs_differ: 'Two parts of the range name different epochs.',
  partitions_differ: 'The ends of the range are in different partitions.',
  partition_wrong: 'The cursor is in another partition than the symbol.',
  page_unknown: 'The page is not of this request.',
  calendar_unknown: 'No calendar with trading sessions is known for the symbol or the time.',
  name_invalid: 'The name of the key was refused.',
  scopes_invalid: 'The scopes of the key were refused.',
  expires_at_invalid: 'The expiry of the key was refused.',
  allow_cidrs_invalid: 'The networks of the key were refused.',
  desk_invalid: 'The account has no desk of this name.',
  overlap_s_invalid: 'The overlap of the keys was refused.',
  headers_required: 'The headers of the endpoint must be sent again with its new URL.',
  header_name_malformed: 'The name of the header is malformed.',
  header_value_malformed: 'The value of the header is malformed.',
  header_reserved: 'The header is reserved.',
  header_repeated: 'The header is given twice.',
  url_invalid: 'The text is not a complete URL.',
  url_characters: 'The URL has characters that must be percent-encoded.',
  url_host_spelling: 'The host of the URL is not in its canonical form.',
  url_too_long: 'The URL has too many characters.',
  url_fragment: 'The URL has a fragment.',
  url_scheme: 'The URL does not use https.',
  url_credentials: 'The URL holds a user name or a password.',
  url_port: 'The port of the URL is not allowed.',
  url_host_name: 'The host of the URL is not allowed.',
  url_address: 'The address of the URL is not on the public internet.',
  dns_failed: 'The addresses of the host of the URL could not be read.',
  dns_no_address: 'The host of the URL has no address.',
  dns_address: 'The host of the URL has an address that is not on the public internet.',
  url_own_host: 'The host of the URL is one of this platform.',
  url_own_port: 'The port of the URL is one of this platform.',
} as const;

/** Every code that an entry of `errors` may have, with its meaning. */
export const FIELD_CODES = { ...FAULT_CODES, ...REQUEST_FAULT_CODES };

export type FieldCode = keyof typeof FIELD_CODES;
