// RFC 9110 section 8.3.1 allows only spaces and tabs around ";". Proxies and parsers disagree on
// tabs, so only spaces pass.
const JSON_UTF8 = /^application\/json(?: *; *charset=(?:utf-8|"utf-8"))? *$/i;
const NDJSON_UTF8 = /^application\/x-ndjson(?: *; *charset=(?:utf-8|"utf-8"))? *$/i;

/** Whether a Content-Type is JSON in UTF-8, without other parameters. */
export function isJsonType(contentType = ''): boolean {
  return contentType === 'application/json' || JSON_UTF8.test(contentType);
}

/** Whether a Content-Type is newline-delimited JSON in UTF-8. */
export function isNdjsonType(contentType = ''): boolean {
  return NDJSON_UTF8.test(contentType);
}

/** Whether a Content-Encoding leaves the body unchanged. */
export function isIdentityEncoding(contentEncoding = 'identity'): boolean {
  return contentEncoding.trim().toLowerCase() === 'identity';
}
