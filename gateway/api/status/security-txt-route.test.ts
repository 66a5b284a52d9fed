import Fastify from 'fastify';
import { expect, test } from 'vitest';
import { ConfigError, readConfig } from '../../../lib/config/config.ts';
import { securityTxtRoutes } from './security-txt-route.ts';

const contactOf = (SECURITY_CONTACT: string | undefined) =>
  readConfig(SECURITY_CONTACT === undefined ? {} : { SECURITY_CONTACT }, (reader) =>
    reader.get('SECURITY_CONTACT'),
  );

test('security.txt names the contact, an end within a year, and its address', async () => {
  const app = Fastify();
  const contact = contactOf('mailto:security@example.com');
  for (const route of securityTxtRoutes(contact, 'https://api.example.com')) app.route(route);
  const { statusCode, headers, payload } = await app.inject('/.well-known/security.txt');
  await app.close();
  expect([statusCode, headers['content-type']]).toEqual([200, 'text/plain; charset=utf-8']);
  const [first, expires, canonical] = payload.split('\n');
  expect(first).toBe('Contact: mailto:security@example.com');
  expect(canonical).toBe('Canonical: https://api.example.com/.well-known/security.txt');
  const left = Date.parse(expires!.replace('Expires: ', '')) - Date.now();
  expect(left).toBeGreaterThan(0);
  expect(left).toBeLessThan(365 * 86_400_000);
});

test('without a contact there is no page', () => {
  expect(securityTxtRoutes(contactOf(undefined), 'https://api.example.com')).toEqual([]);
});

test.each(['security@example.com', 'http://example.com', 'mailto:', 'mailto:a\nExpires: x'])(
  'refused as a contact: %j',
  (text) => {
    expect(() => contactOf(text)).toThrow(ConfigError);
  },
);
