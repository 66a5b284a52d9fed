import { readFileSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import net from 'node:net';
import path from 'node:path';
import type tls from 'node:tls';

/** A customer's server. */
export interface CustomerServer {
  readonly port: number;
  /** Connections so far. */
  connectionCount(): number;
  /** Requests so far. */
  requestCount(): number;
  close(): Promise<void>;
}

/** The authority, and certificates for `hooks.example.com`: signed by it, and self-signed. */
export function pem(name: 'authority' | 'server' | 'self-signed' | 'server.key'): string {
  return readFileSync(path.join(import.meta.dirname, 'tls', `${name}.pem`), 'utf8');
}

/** @param host default 127.0.0.1; `secure` names the certificate of an https server */
export async function openCustomerServer(
  handle: http.RequestListener,
  options: {
    host?: string;
    port?: number;
    secure?: 'server' | 'self-signed';
    tls?: tls.TlsOptions;
  } = {},
): Promise<CustomerServer> {
  let requests = 0;
  const listener: http.RequestListener = (request, response) => {
    requests += 1;
    handle(request, response);
  };
  const server =
    options.secure === undefined
      ? http.createServer(listener)
      : https.createServer(
          { cert: pem(options.secure), key: pem('server.key'), ...options.tls },
          listener,
        );
  const counted = await listen(server, options.host, options.port);
  return { ...counted, requestCount: () => requests };
}

/** A server that may answer the first bytes it receives with anything. */
export async function openRawServer(speak: (socket: net.Socket) => void): Promise<CustomerServer> {
  let requests = 0;
  const server = net.createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => {
      requests += 1;
      speak(socket);
    });
  });
  return { ...(await listen(server)), requestCount: () => requests };
}

async function listen(server: net.Server, host = '127.0.0.1', port = 0) {
  let accepts = 0;
  const sockets = new Set<net.Socket>();
  server.on('connection', (socket) => {
    accepts += 1;
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  return {
    port: (server.address() as net.AddressInfo).port,
    connectionCount: () => accepts,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}
