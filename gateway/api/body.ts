import type { FastifyReply, FastifyRequest } from 'fastify';
import { parseStrictJson } from '../../lib/strict-json.ts';
import { isIdentityEncoding, isJsonType } from '../http/media-type.ts';
import { problemAnswer } from '../http/problems.ts';
import { sendProblem } from '../http/raw-answers.ts';
import { refuse } from '../http/refuse.ts';
import { BODY_BYTES_MAX } from './limits.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The body as it came: what signatures are over. */
    rawBody: Buffer | undefined;
  }
}

/** Reads a JSON body within its bound, strictly. Answers itself where there is none to go on with. */
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
    // Nobody is there to be answered, and nothing went wrong here.
    reply.hijack();
    return reply;
  }
  if (bytes === 'too_large') {
    reply.hijack();
    const detail = `Limit ${bodyBytesMax} bytes.`;
    sendProblem(reply.raw, problemAnswer('body_too_large', { detail }), { close: true });
    return reply;
  }
  const parsed = parseStrictJson(bytes);
  if (!parsed.ok) return refuse(reply, 'body_invalid', { errors: parsed.faults });
  request.rawBody = bytes;
  request.body = parsed.value;
  return undefined;
}

/** @returns `gone` = the client left before its end */
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
