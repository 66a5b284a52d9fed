import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import path from 'node:path';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { entitlementOf, isMemberActive } from '../../../domain/access/entitlement.ts';
import type { Keyring } from '../../../domain/access/keyring.ts';
import { mayDo } from '../../../domain/access/roles.ts';
import type { ExportRow } from '../../../domain/exports/export-jobs.ts';
import type { Turns } from '../../../lib/rate/turns.ts';
import { refuse } from '../../http/refuse.ts';
import { OPEN_LIMITED } from '../server/access-rule.ts';
import { accountRoute } from '../server/account-route.ts';
import { idOf, STRICT, strict } from '../server/schemas.ts';
import { readRange } from './byte-range.ts';
import { type ExportFormat, formatSpec } from './export-formats.ts';
import { checkLink } from './export-link.ts';
import type { ExportDeps } from './export-routes.ts';

interface FileDeps extends Pick<ExportDeps, 'jobs' | 'pepper'> {
  readonly keyring: Pick<Keyring, 'account'>;
  readonly folder: string;
  readonly downloads: Turns;
}

/** `GET /api/exports/:id/file`: the file behind a signed link, also in parts. */
export function exportFileRoute(deps: FileDeps) {
  return accountRoute({
    method: 'GET',
    url: '/api/exports/:id/file',
    tag: 'exports',
    access: OPEN_LIMITED,
    summary: 'Download the file of an export by its link',
    description:
      'Whoever has the link has access until it expires, the key or sign-in that asked for it ends, ' +
      'or the account loses the right to history. One range of bytes (RFC 9110), with `If-Range`, resumes a ' +
      'download; the strong `ETag` is the SHA-256.',
    params: Type.Object({ id: idOf('exp') }, STRICT),
    query: strict({
      by: Type.String({ maxLength: 64 }),
      expires: Type.String({ pattern: '^[0-9]{1,12}$' }),
      signature: Type.String({ pattern: '^[A-Za-z0-9_-]{43}$' }),
    }),
    answers: {
      200: { description: 'The file, with `Content-Length` and `Repr-Digest`.' },
      206: { description: 'The requested range of bytes.' },
      304: { description: 'The file still matches If-None-Match.' },
    },
    problems: ['object_not_found', 'link_invalid', 'range_not_satisfiable', 'overloaded'],
    handle: async (request, reply) => {
      const { id } = request.params;
      const { by, expires, signature } = request.query;
      const linked = { id, by, expiresAtS: Number(expires) };
      const verdict = checkLink(linked, signature, Math.floor(Date.now() / 1000), deps.pepper);
      if (verdict !== 'valid') {
        const detail = verdict === 'expired' ? 'The link has expired.' : 'The link was changed.';
        return refuse(reply, 'link_invalid', { detail });
      }
      const row = await deps.jobs.find(id);
      if (row === undefined || row.state !== 'done') return refuse(reply, 'object_not_found');
      if (!(await mayDownload(deps, row, by))) {
        return refuse(reply, 'link_invalid', {
          detail: 'Its key, sign-in or subscription has ended.',
        });
      }
      return sendFile(deps, row, request, reply);
    },
  });
}

async function mayDownload({ keyring, jobs }: FileDeps, row: ExportRow, by: string) {
  const account = await keyring.account(row.account_id);
  if (account === undefined || account === 'unavailable') return false;
  if (entitlementOf(account, 'history', Date.now()).kind !== 'granted') return false;
  if (!by.startsWith('ses_')) return jobs.isCredentialLive(by);
  const role = await jobs.roleOfSession(row.account_id, by);
  return (
    role !== undefined && mayDo(role, 'exports:read') && isMemberActive(account, role, Date.now())
  );
}

async function sendFile(
  { folder, downloads }: FileDeps,
  row: ExportRow,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const length = Number(row.bytes);
  const file = path.join(folder, row.file!);
  // For example, it was in a folder that ended with its container.
  if ((await stat(file).catch(() => undefined))?.size !== length) {
    const detail = 'The file is no longer there: make the export again.';
    return refuse(reply, 'object_not_found', { detail });
  }
  const etag = `"${row.sha256}"`;
  const { extension, mediaType } = formatSpec((row.request as { format?: ExportFormat }).format!);
  reply
    .header('accept-ranges', 'bytes')
    .header('etag', etag)
    .header('repr-digest', `sha-256=:${Buffer.from(row.sha256!, 'hex').toString('base64')}:`)
    .header('pill-position', row.position)
    .header('cache-control', 'private, no-store')
    .header('content-disposition', `attachment; filename="${row.id}.${extension}"`);
  if (request.headers['if-none-match'] === etag) return reply.code(304).send();
  const { 'if-range': ifRange, range: header } = request.headers;
  // If-Range compares strongly (RFC 9110 section 13.1.5); anything else gets the whole file.
  const range = ifRange === undefined || ifRange === etag ? readRange(header, length) : undefined;
  if (range === 'unsatisfiable') {
    reply.header('content-range', `bytes */${length}`);
    return refuse(reply, 'range_not_satisfiable');
  }
  const leave = await downloads.begin(row.account_id);
  if (leave === undefined) return refuse(reply, 'overloaded', { retry_after_s: 5 });
  reply.raw.once('close', leave);
  // A client that has left while its turn was awaited closes nothing any more.
  if (reply.raw.closed) leave();
  const { start, end } = range ?? { start: 0, end: length - 1 };
  if (range !== undefined)
    reply.code(206).header('content-range', `bytes ${start}-${end}/${length}`);
  reply.type(mediaType).header('content-length', end - start + 1);
  if (request.method === 'HEAD') return reply.send();
  // A file that ends early is shorter than announced, which every client notices.
  return reply.send(createReadStream(file, { start, end }));
}
