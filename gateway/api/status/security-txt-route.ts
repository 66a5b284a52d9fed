import type { RouteOptions } from 'fastify';
import { ConfigError, type ConfigReader } from '../../../lib/config/config.ts';
import { OPEN } from '../server/access-rule.ts';

/** RFC 9116 section 2.5.5 recommends less than a year. */
const EXPIRES_AFTER_MS = 180 * 86_400_000;
const SECURITY_TXT = '/.well-known/security.txt';

/**
 * Where to report a vulnerability: SECURITY_CONTACT, a mailto:, https: or tel: address.
 * @throws ConfigError
 */
export function readSecurityContact(reader: ConfigReader): string | undefined {
  const contact = reader.optional('SECURITY_CONTACT');
  if (contact === undefined || /^(?:mailto:|https:\/\/|tel:)[\x21-\x7e]+$/.test(contact))
    return contact;
  throw new ConfigError(
    'SECURITY_CONTACT must be a mailto:, https: or tel: address, e.g. mailto:security@example.com.',
  );
}

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
