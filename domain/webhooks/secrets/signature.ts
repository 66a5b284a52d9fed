import { createHmac } from 'node:crypto';

/**
 * Value of the header `webhook-signature` (Standard Webhooks 1.0): for each secret `v1,` and the
 * base64 of HMAC-SHA256 over `id.timestamp.body`, separated by spaces.
 * @param secrets newest first; several during a rotation
 * @param timestampS unix seconds of the attempt, as in `webhook-timestamp`
 * @param body as it is posted, byte for byte
 */
export function signatureOf(
  secrets: readonly Buffer[],
  id: string,
  timestampS: number,
  body: string,
): string {
  const signed = `${id}.${timestampS}.${body}`;
  return secrets
    .map((secret) => `v1,${createHmac('sha256', secret).update(signed, 'utf8').digest('base64')}`)
    .join(' ');
}
