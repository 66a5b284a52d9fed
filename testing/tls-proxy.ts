import { readFileSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import type { AddressInfo } from 'node:net';
import { pipeline } from 'node:stream';
import type { Certificate } from './certificates.ts';

/**
 * Puts TLS in front of an engine that speaks HTTP in clear.
 * @param credentials `user:password` that it asks for by basic authentication, in place of the engine
 * @returns the address on 127.0.0.1, without credentials
 */
export async function openTlsProxy(
  engineUrl: string,
  certificate: Certificate,
  credentials?: string,
) {
  const { hostname, port } = new URL(engineUrl);
  const expected = credentials && `Basic ${Buffer.from(credentials, 'utf8').toString('base64')}`;
  const tls = { cert: readFileSync(certificate.cert), key: readFileSync(certificate.key) };
  const server = https.createServer(tls, (request, response) => {
    if (expected !== undefined && request.headers.authorization !== expected) {
      request.resume();
      response.writeHead(401, { 'content-type': 'application/json' });
      response.end('{"error_code":401,"message":"Error, status 401: wrong user or password"}');
      return;
    }
    const headers = { ...request.headers };
    if (expected !== undefined) delete headers.authorization;
    const { method, url } = request;
    const forwarded = http.request({ hostname, port, method, path: url, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      pipeline(answer, response, () => {});
    });
    forwarded.on('error', () => response.destroy());
    pipeline(request, forwarded, () => {});
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
