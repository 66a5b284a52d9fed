// RFC 9110 section 8.3.1 allows spaces and tabs around ";" alone. A tab is what tests of proxies
// and parsers disagree on, so only spaces pass.
const JSON_UTF8 = /^application\/json *(?:; *charset=(?:utf-8|"utf-8"))? *$/i;
const NDJSON_UTF8 = /^application\/x-ndjson *(?:; *charset=(?:utf-8|"utf-8"))? *$/i;

/** Whether a Content-Type is JSON in UTF-8; no other parameter passes. */
export function isJsonType(contentType: string | undefined): boolean {
  if (contentType === 'application/json') return true;
  return contentType !== undefined && JSON_UTF8.test(contentType);
}

/** Whether a Content-Type is newline-delimited JSON in UTF-8. */
export function isNdjsonType(contentType: string | undefined): boolean {
  return contentType !== undefined && NDJSON_UTF8.test(contentType);
}

/** Whether a Content-Encoding leaves the body as it is. */
export function isIdentityEncoding(contentEncoding: string | undefined): boolean {
  return contentEncoding === undefined || contentEncoding.trim().toLowerCase() === 'identity';
}
