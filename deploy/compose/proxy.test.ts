import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { appendFileSync, copyFileSync, mkdtempSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { Agent, request } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type ClientOptions, WebSocket, WebSocketServer } from 'ws';
import { packageRoot } from '../../lib/files/package-root.ts';
import { getPort } from '../../testing/ports.ts';
import { exitOf } from '../../testing/process.ts';
import { waitFor } from '../../testing/wait.ts';
import { fetchCaddy } from '../tools/python-package.ts';

const run = promisify(execFile);
const folder = mkdtempSync(path.join(os.tmpdir(), 'pillole-proxy-'));
const config = path.join(folder, 'Caddyfile');
const SERVICES = ['api', 'ingest', 'stream', 'dedicated'] as const;

let caddy: string;
let proxy: ChildProcess | undefined;
let httpsPort: number;
let env: NodeJS.ProcessEnv;
const upstreams = new Map<string, { readonly server: Server; readonly port: number }>();
/** A server that says its name, the path and the client, and returns what a socket sends. */
async function openUpstream(name: string): Promise<void> {
  const server = createServer((req, res) => {
    res.end(`${name} ${req.url} ${req.headers['x-forwarded-for']}`);
  });
  new WebSocketServer({ server }).on('connection', (socket, req) => {
    socket.on('message', (bytes) => socket.send(`${name} ${req.url} ${bytes}`));
  });
  // Dedicated sockets have the ports that the path may name.
  const candidates =
    name === 'dedicated' ? Array.from({ length: 100 }, (_, at) => 8301 + at) : [await getPort()];
  for (const port of candidates) {
    const isOpen = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false));
      server.listen(port, '127.0.0.1', () => resolve(true));
    });
    if (isOpen) {
      upstreams.set(name, { server, port });
      return;
    }
  }
  throw new Error(`No port is free for ${name}.`);
}

beforeAll(async () => {
  caddy = await fetchCaddy();
  copyFileSync(path.join(packageRoot, 'deploy/compose/Caddyfile'), config);
  for (const name of SERVICES) await openUpstream(name);
  httpsPort = await getPort();
  const of = (name: string) => `127.0.0.1:${upstreams.get(name)!.port}`;
  env = {
    PATH: process.env.PATH,
    HOME: folder,
    XDG_DATA_HOME: folder,
    XDG_CONFIG_HOME: folder,
    HTTPS_PORT: String(httpsPort),
    HTTP_PORT: String(await getPort()),
    CADDY_ADMIN: `localhost:${await getPort()}`,
    API_UPSTREAM: of('api'),
    INGEST_UPSTREAM: of('ingest'),
    STREAM_UPSTREAM: of('stream'),
    DEDICATED_UPSTREAM: '127.0.0.1',
  };
  proxy = spawn(caddy, ['run', '--config', config], {
    env,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  await waitFor('the proxy', async () => (await get('api', '/')).startsWith('api '));
});

afterAll(async () => {
  if (proxy?.exitCode === null) {
    proxy.kill('SIGKILL');
    await exitOf(proxy);
  }
  for (const { server } of upstreams.values()) {
    server.closeAllConnections();
    server.close();
  }
  await rm(folder, { recursive: true, force: true });
});

/** The name goes into the handshake and into Host; the address is this machine's. */
function tlsOf(service: string) {
  const servername = `${service}.pillole.localhost`;
  return {
    tls: { rejectUnauthorized: false, servername },
    host: `${servername}:${httpsPort}`,
  };
}

async function get(service: string, url: string): Promise<string> {
  const { tls, host } = tlsOf(service);
  const dispatcher = new Agent({ connect: { ...tls, timeout: 2_000 } });
  try {
    const { body } = await request(`https://127.0.0.1:${httpsPort}${url}`, {
      dispatcher,
      headers: { host, 'x-forwarded-for': '203.0.113.9' },
      headersTimeout: 5_000,
    });
    return await body.text();
  } finally {
    await dispatcher.destroy();
  }
}

async function openSocket(service: string, url: string) {
  const { tls, host } = tlsOf(service);
  // The types of `ws` lack the options of TLS, which it passes on.
  const options: ClientOptions & { servername: string } = { ...tls, headers: { host } };
  const socket = new WebSocket(`wss://127.0.0.1:${httpsPort}${url}`, options);
  const received: string[] = [];
  socket.on('message', (bytes) => received.push(String(bytes)));
  await new Promise((resolve, reject) => {
    socket.once('open', resolve);
    socket.once('error', reject);
  });
  return {
    socket,
    async ask(text: string): Promise<string> {
      const before = received.length;
      socket.send(text);
      await waitFor('an answer', () => received.length > before);
      return received.at(-1)!;
    },
  };
}

test('each public address leads to its service, and the client cannot forge its address', async () => {
  expect(await get('api', '/api/status')).toBe('api /api/status 127.0.0.1');
  expect(await get('ingest', '/api/pillole')).toBe('ingest /api/pillole 127.0.0.1');
  const shared = await openSocket('stream', '/api/stream');
  expect(await shared.ask('hello')).toBe('stream /api/stream hello');
  const { port } = upstreams.get('dedicated')!;
  const own = await openSocket('dedicated', `/${port}/api/stream/dedicated/tokyo?ticket=x`);
  expect(await own.ask('hello')).toBe('dedicated /api/stream/dedicated/tokyo?ticket=x hello');
  // A port that no dedicated socket may have leads nowhere.
  await expect(openSocket('dedicated', '/22/api/stream')).rejects.toThrow('404');
  shared.socket.terminate();
  own.socket.terminate();
});

test('open sockets outlive a reload of the proxy', async () => {
  const { port } = upstreams.get('dedicated')!;
  const sockets = [
    await openSocket('stream', '/api/stream'),
    await openSocket('dedicated', `/${port}/api/stream/dedicated/tokyo`),
  ];
  appendFileSync(config, '\nextra.pillole.localhost {\n\trespond reloaded\n}\n');
  const admin = ['--address', env.CADDY_ADMIN!];
  await run(caddy, ['reload', '--config', config, ...admin], { env });
  await waitFor('the new settings', async () => (await get('extra', '/')) === 'reloaded');
  for (const { ask, socket } of sockets) {
    expect(await ask('still here')).toContain('still here');
    socket.terminate();
  }
  expect(readFileSync(config, 'utf8')).toContain('stream_close_delay');
});
