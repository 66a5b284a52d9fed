import type { IncomingMessage } from 'node:http';
import { readUpTo } from './body.ts';
import { refusal } from './clickhouse-error.ts';
import { STATEMENT_BYTES_MAX } from './limits.ts';

const FORM_BYTES_MAX = 2 * STATEMENT_BYTES_MAX;

/**
 * Reads the text fields of a multipart request, in which drivers send `query` and `param_*`. Returns
 * an empty map for any other kind of body and leaves it unread.
 */
export async function readForm(
  request: IncomingMessage,
  chunks: AsyncIterable<Buffer>,
): Promise<Map<string, string>> {
  const type = request.headers['content-type'] ?? '';
  if (!/^multipart\/form-data\b/i.test(type)) return new Map();
  const body = await readUpTo(chunks[Symbol.asyncIterator](), FORM_BYTES_MAX + 1);
  if (body.length > FORM_BYTES_MAX) {
    throw refusal('QUERY_IS_TOO_LARGE', `A form may have at most ${FORM_BYTES_MAX} bytes`);
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
