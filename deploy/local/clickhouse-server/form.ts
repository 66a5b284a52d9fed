import type { IncomingMessage } from 'node:http';
import { readUpTo } from './body.ts';
import { refusal } from './clickhouse-error.ts';
import { STATEMENT_BYTES_MAX } from './limits.ts';

const FORM_BYTES_MAX = 2 * STATEMENT_BYTES_MAX;

/**
 * The text fields of a multipart request: drivers send `query` and `param_*` this way. An empty map
 * for any other kind of body (which stays unread).
 */
export async function readForm(
  request: IncomingMessage,
  chunks: AsyncIterable<Buffer>,
): Promise<Map<string, string>> {
  const type = request.headers['content-type'] ?? '';
  if (!/^multipart\/form-data\b/i.test(type)) return new Map();
  const body = await readUpTo(chunks[Symbol.asyncIterator](), FORM_BYTES_MAX + 1);
  if (body.length > FORM_BYTES_MAX) {
    throw refusal('QUERY_IS_TOO_LARGE', `A form has at most ${FORM_BYTES_MAX} bytes`);
  }
  const fields = new Map<string, string>();
  try {
    const form = await new Response(new Uint8Array(body), {
      headers: { 'content-type': type },
    }).formData();
    for (const [name, value] of form) {
      fields.set(name, typeof value === 'string' ? value : await value.text());
    }
  } catch (error) {
    throw refusal('BAD_ARGUMENTS', `Cannot read the form: ${(error as Error).message}`);
  }
  return fields;
}
