import { createHash } from 'node:crypto';
import { mkdirSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { Command, InvalidArgumentError } from 'commander';
import { openSpool } from './body.ts';
import { openEngine } from './engine.ts';
import { createHttpServer } from './http-server.ts';
import { createQueue } from './queue.ts';

const HOST = '127.0.0.1';
/** What runs at SIGTERM is let finish for this long. */
const FINISH_MS_MAX = 3_000;

const options = new Command('clickhouse-server')
  .requiredOption('--data <dir>', 'data folder, of one process at a time')
  .requiredOption('--port <port>', 'port on 127.0.0.1, 0 for any', port)
  .parse()
  .opts<{ readonly data: string; readonly port: number }>();

await serve(path.resolve(options.data), options.port);

/**
 * The local ClickHouse: chdb behind ClickHouse's HTTP interface, for this machine alone. Prints one
 * line when it serves.
 */
async function serve(folder: string, wantedPort: number): Promise<void> {
  mkdirSync(folder, { recursive: true });
  const working = workingFolder(folder);
  process.chdir(working);
  const engine = await openEngine(folder).catch((error: Error) => {
    process.stderr.write(
      `clickhouse cannot open ${folder}: ${error.message.replaceAll('\n', ' ')}; ` +
        'one process at a time may use a data folder, is another one running?\n',
    );
    process.exit(1);
  });
  const queue = createQueue();
  const spool = await openSpool('insert-spool');
  const server = createHttpServer({ engine, queue, spool });
  let stopping = false;
  const stop = async () => {
    if (stopping) return;
    stopping = true;
    setTimeout(() => process.exit(1), FINISH_MS_MAX).unref();
    server.close();
    server.closeIdleConnections();
    await queue.close();
    engine.close();
    if (working !== folder) rmSync(working, { recursive: true, force: true });
    process.exit(0);
  };
  process.on('SIGTERM', () => void stop());
  process.on('SIGINT', () => void stop());
  server.once('error', (error) => {
    process.stderr.write(`clickhouse cannot listen: ${error.message}\n`);
    process.exit(1);
  });
  server.listen(wantedPort, HOST, () => {
    const { port } = server.address() as AddressInfo;
    process.stdout.write(`clickhouse ${engine.version} serves http://${HOST}:${port}\n`);
  });
}

/**
 * Rows are spooled under a name relative to the working folder, and chdb looks there for files
 * named like tables. Both read * ? { } as patterns (a folder `{x}` broke every CREATE TABLE).
 */
function workingFolder(data: string): string {
  if (!/[*?{}[\]]/.test(data)) return data;
  const hash = createHash('sha256').update(data).digest('hex').slice(0, 16);
  const folder = path.join(os.tmpdir(), `pillole-clickhouse-${hash}`);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  return folder;
}

function port(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 0 || value > 65_535) {
    throw new InvalidArgumentError('not a port');
  }
  return value;
}
