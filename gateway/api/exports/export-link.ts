import { createHmac } from 'node:crypto';
import { isSigned, type Pepper } from '../../../domain/access/pepper.ts';
import { EXPORT_LIMITS } from './limits.ts';

/** What a link is bound to. */
interface LinkedExport {
  readonly id: string;
  /** Id of the key, scheme or session that asked for the link, which ends with it. */
  readonly by: string;
  /** Unix seconds. */
  readonly expiresAtS: number;
}

/** The path of a file of an export, valid for 10 min for everybody who has it. */
export function signLink(id: string, by: string, nowS: number, pepper: Pepper) {
  const expiresAtS = nowS + EXPORT_LIMITS.linkS;
  const signature = macOf({ id, by, expiresAtS }, pepper.current().bytes).toString('base64url');
  const query = new URLSearchParams({ by, expires: String(expiresAtS), signature });
  return { path: `/api/exports/${id}/file?${query}`, expiresAtS };
}

/** @param nowS Unix seconds */
export function checkLink(
  linked: LinkedExport,
  signature: string,
  nowS: number,
  pepper: Pepper,
): 'valid' | 'expired' | 'refused' {
  const given = Buffer.from(signature, 'base64url');
  if (!isSigned(pepper, given, (bytes) => macOf(linked, bytes))) return 'refused';
  return linked.expiresAtS <= nowS ? 'expired' : 'valid';
}

function macOf({ id, by, expiresAtS }: LinkedExport, pepper: Buffer): Buffer {
  const text = JSON.stringify(['export', id, by, expiresAtS]);
  return createHmac('sha256', pepper).update(text).digest();
}
