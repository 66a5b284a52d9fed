import { createHash } from 'node:crypto';
import { mkdirSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { Command, InvalidArgumentError } from 'commander';
import { requirePrivateFolder } from '../../../lib/child-process/private-folder.ts';
import { printConfig } from '../../../lib/config/command-line.ts';
import { describeSettings } from '../../../lib/config/describe.ts';
import { writeAccessConfig } from './access-config.ts';
import { openSpool } from './body.ts';
import { readClickhouseConfig } from './config.ts';
import { openEngine } from './engine.ts';
import { createHttpServer } from './http-server.ts';
import { createStatementQueues } from './statement-queues.ts';

const HOST = '127.0.0.1';
/** Time to finish running statements after SIGTERM. */
const FINISH_MS_MAX = 3_000;

const options = new Command('clickhouse-server')
  .requiredOption('--data <dir>', 'data folder, used by one process at a time')
  .requiredOption('--port <port>', 'port on 127.0.0.1; 0 = any free port', port)
  .option('--database <name>', 'database from which analysts may read', 'pillole')
  .option('--print-config', 'print the settings in force and where each comes from')
  .on('option:print-config', () => printConfig('clickhouse', readClickhouseConfig))
  .addHelpText('after', `\n${describeSettings('clickhouse')}`)
  .parse()
  .opts<{ readonly data: string; readonly port: number; readonly database: string }>();

await serve(path.resolve(options.data), options);

/**
 * Runs the local ClickHouse: chdb behind ClickHouse's HTTP interface, for this machine only. Prints
 * one line when it serves.
 */
async function serve(
  folder: string,
  { port: requestedPort, database }: typeof options,
): Promise<void> {
  const { passwords } = configOrExit();
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const working = workingFolder(folder);
  process.chdir(working);
  const engine = await openEngine(folder, writeAccessConfig(folder, database)).catch(
    (error: Error) => {
      process.stderr.write(
        `clickhouse cannot open ${folder}: ${error.message.replaceAll('\n', ' ')}; ` +
          'one process at a time may use a data folder; is another server running?\n',
      );
      process.exit(1);
    },
  );
  const queues = createStatementQueues();
  const spool = await openSpool('insert-spool');
  const server = createHttpServer({ engine, queues, spool, passwords });
  let stopping = false;
  const stop = async () => {
    if (stopping) return;
    stopping = true;
    setTimeout(() => process.exit(1), FINISH_MS_MAX).unref();
    server.close();
    server.closeIdleConnections();
    await queues.close();
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
  server.listen(requestedPort, HOST, () => {
    const { port } = server.address() as AddressInfo;
    process.stdout.write(`clickhouse ${engine.version} serves http://${HOST}:${port}\n`);
  });
}

/**
 * Spooled rows are named relative to the working folder, where chdb also looks for files named like
 * tables. chdb reads * ? { } in a path as a pattern (a folder `{x}` broke every CREATE TABLE), so a
 * data folder with such characters gets another working folder.
 */
function workingFolder(data: string): string {
  if (!/[*?{}[\]]/.test(data)) return data;
  const hash = createHash('sha256').update(data).digest('hex').slice(0, 16);
  const folder = path.join(os.tmpdir(), `pillole-clickhouse-${hash}`);
  // Another user could put files there, which chdb would read as tables.
  requirePrivateFolder(folder, 'Or name a data folder without such characters.');
  return folder;
}

function configOrExit() {
  try {
    return readClickhouseConfig();
  } catch (error) {
    process.stderr.write(`clickhouse cannot start: ${(error as Error).message}\n`);
    process.exit(2);
  }
}

function port(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 0 || value > 65_535) {
    throw new InvalidArgumentError('It must be a port from 0 to 65535.');
  }
  return value;
}
