import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';

/** A certificate with its private key (PKCS #8), as PEM files. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

/** Makes an authority in a folder, by openssl; its files begin with `name`. */
export function makeAuthority(folder: string, name: string) {
  const file = (end: string) => path.join(folder, `${name}-${end}`);
  const openssl = (...args: readonly string[]) =>
    execFileSync('openssl', args, { stdio: ['ignore', 'ignore', 'pipe'] });
  const newKey = (key: string) =>
    ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', key] as const;
  const ca = file('ca.pem');
  const caKey = file('ca.key');
  openssl('req', '-x509', ...newKey(caKey), '-out', ca, '-days', '2', '-subj', `/CN=${name}`);
  return {
    /** PEM file of the authority's certificate. */
    ca,
    /** @param names of the host, e.g. `IP:127.0.0.1,DNS:db.internal` */
    issue(subject: string, names: string): Certificate {
      const [cert, key, request, extensions] = ['pem', 'key', 'csr', 'ext'].map((end) =>
        file(`${subject}.${end}`),
      ) as [string, string, string, string];
      openssl('req', '-new', ...newKey(key), '-out', request, '-subj', `/CN=${subject}`);
      writeFileSync(extensions, `subjectAltName=${names}\n`);
      openssl(
        ...['x509', '-req', '-in', request, '-CA', ca, '-CAkey', caKey, '-days', '2'],
        ...['-set_serial', String(Date.now()), '-out', cert, '-extfile', extensions],
      );
      return { cert, key };
    },
  };
}
