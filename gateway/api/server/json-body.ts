import type { FastifyReply, FastifyRequest } from 'fastify';
import { hasDigests } from '../../../domain/authentication/signature-input.ts';
import { parseStrictJson } from '../../../lib/json/strict-json.ts';
import type { FieldCode } from '../../../schemas/fault.ts';
import { isIdentityEncoding, isJsonType } from '../../http/media-type.ts';
import { problemAnswer } from '../../http/problems.ts';
import { sendProblem } from '../../http/raw-answers.ts';
import { refuse } from '../../http/refuse.ts';
import { BODY_BYTES_MAX } from '../limits.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The bytes of the body, which signatures cover. */
    rawBody: Buffer | undefined;
  }
}

/** A fault at one place of a body: an entry of `errors`. */
export interface BodyFault {
  /** JSON pointer as a URI fragment (RFC 6901 section 6), `#` for the whole body. */
  readonly pointer: string;
  readonly code: FieldCode;
  /** One sentence that says how to correct the value. */
  readonly detail: string;
}

/**
 * Makes the fault of a body.
 * @param path of the member, `/email`; names in it may be the client's own, so it is cut
 */
export function bodyFault(path: string, code: FieldCode, detail: string): BodyFault {
  return { pointer: `#${path.slice(0, 128).toWellFormed()}`, code, detail };
}

/** Refuses a body, with its faults. */
export function refuseBody(reply: FastifyReply, errors: readonly BodyFault[]): FastifyReply {
  return refuse(reply, 'body_invalid', { errors });
}

/** Reads a JSON body within its bound, strictly. Sends the answer itself if the body is refused. */
export async function readBody(request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
  const { headers } = request;
  if (!isJsonType(headers['content-type']) || !isIdentityEncoding(headers['content-encoding'])) {
    return refuse(reply, 'media_type_unsupported', {
      detail: 'Send application/json, uncompressed.',
    });
  }
  const { bodyBytesMax = BODY_BYTES_MAX } = request.routeOptions.config;
  const bytes = await collect(request, bodyBytesMax);
  if (bytes === 'gone') {
    // The client has left: no answer can be sent, and there is no error on our side.
    reply.hijack();
    return reply;
  }
  if (bytes === 'too_large') {
    reply.hijack();
    const detail = `The limit is ${bodyBytesMax} bytes.`;
    sendProblem(reply.raw, problemAnswer('body_too_large', { detail }), { close: true });
    return reply;
  }
  if (request.bodyDigests !== undefined && !hasDigests(bytes, request.bodyDigests)) {
    const detail = 'The body does not have the digest in Content-Digest, which was signed.';
    return refuse(reply, 'signature_invalid', { detail, check: 'content_digest' });
  }
  const parsed = parseStrictJson(bytes);
  if (!parsed.ok) return refuseBody(reply, parsed.faults);
  request.rawBody = bytes;
  request.body = parsed.value;
  return undefined;
}

/** @returns `gone` = the client left before the end of the body */
async function collect(
  request: FastifyRequest,
  bytesMax: number,
): Promise<Buffer | 'too_large' | 'gone'> {
  if (Number(request.headers['content-length'] ?? 0) > bytesMax) return 'too_large';
  const chunks: Buffer[] = [];
  let size = 0;
  return new Promise((resolve) => {
    const { raw } = request;
    raw.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size <= bytesMax) chunks.push(chunk);
      else resolve('too_large');
    });
    raw.once('end', () => resolve(Buffer.concat(chunks)));
    raw.once('error', () => resolve('gone'));
    raw.once('close', () => resolve('gone'));
  });
}
