import type { RouteOptions } from 'fastify';
import { OPEN } from '../server/access-rule.ts';

/** RFC 9116 section 2.5.5 recommends less than a year. */
const EXPIRES_AFTER_MS = 180 * 86_400_000;
const SECURITY_TXT = '/.well-known/security.txt';

/** `GET /.well-known/security.txt` (RFC 9116); without a contact there is no such page. */
export function securityTxtRoutes(contact: string | undefined, publicUrl: string): RouteOptions[] {
  if (contact === undefined) return [];
  return [
    {
      method: 'GET',
      url: SECURITY_TXT,
      config: { access: OPEN },
      schema: { hide: true },
      handler: (_request, reply) => {
        const expires = new Date(Date.now() + EXPIRES_AFTER_MS).toISOString();
        const canonical = new URL(SECURITY_TXT, publicUrl).href;
        const lines = [`Contact: ${contact}`, `Expires: ${expires}`, `Canonical: ${canonical}`];
        return reply
          .header('content-type', 'text/plain; charset=utf-8')
          .send(`${lines.join('\n')}\n`);
      },
    },
  ];
}
