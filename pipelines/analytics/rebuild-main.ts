import path from 'node:path';
import { Command } from 'commander';
import { databaseName, openClickHouse } from '../../lib/clickhouse/clickhouse-client.ts';
import { printConfig } from '../../lib/config/command-line.ts';
import { readLogConfig } from '../../lib/config/common.ts';
import { readConfig } from '../../lib/config/config.ts';
import { describeSettings } from '../../lib/config/describe.ts';
import { readEngineUrl } from '../../lib/config/engine-url.ts';
import { readStackFile } from '../../lib/config/stack-file.ts';
import { createKafkaClient } from '../../lib/kafka/kafka-client.ts';
import { requireTopicSettings } from '../../lib/kafka/topic-settings.ts';
import { createLog } from '../../lib/log/log.ts';
import { createSchemaClient } from '../../schemas/registry.ts';
import { rebuild, UnsettledError } from './rebuild.ts';

const options = new Command('npm run rebuild --')
  .description('Rebuilds the tables of ClickHouse from the log, while ingest continues.')
  .option('--anew', 'drop the table that a killed rebuild has left')
  .option('--data <dir>', 'folder of the running stack, instead of .local')
  .option('--print-config', 'print the settings in force and where each comes from')
  .on('option:print-config', () => printConfig('rebuild', checkRebuildConfig))
  .addHelpText(
    'after',
    '\nKAFKA_BROKERS, SCHEMA_REGISTRY_URL and CLICKHOUSE_URL override the engines of the stack.\n\n' +
      describeSettings('rebuild'),
  )
  .parse()
  .opts<{ anew?: true; data?: string }>();

const stopping = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => stopping.abort(new Error('interrupted')));
}

try {
  const config = readRebuildConfig({ ...addressesOfStack(), ...process.env });
  const { namespace, settleMs } = config;
  const log = createLog('rebuild', 'warn');
  const client = createKafkaClient(config.kafka, 'pillole-rebuild', log);
  const schemas = createSchemaClient(config.registryUrl, namespace);
  const database = databaseName(namespace);
  const clickhouse = openClickHouse({ url: config.clickhouseUrl, database });
  const began = performance.now();
  const { signal } = stopping;
  const settings = await requireTopicSettings(client, schemas, namespace);
  const { records, rows, kept } = await rebuild({
    ...{ client, schemas, clickhouse, settings, namespace, log, signal, settleMs },
    anew: options.anew === true,
    onProgress(read, all) {
      const percent = all === 0 ? 100 : Math.floor((read / all) * 100);
      const perS = Math.round(read / ((performance.now() - began) / 1_000));
      print(`${percent} %: ${read} of ${all} records, ${perS} a second`);
    },
    onExchanged() {
      const seconds = Math.ceil(settleMs / 1_000);
      print(`Readers have the new table; its last rows settle for ${seconds} s.`);
    },
  });
  await clickhouse.close();
  print(
    `Rebuilt: ${rows} rows from ${records} records, ${kept} rows kept that are no longer in the log.`,
  );
  process.exit(0);
} catch (error) {
  print(explain(error as Error));
  process.exit(1);
}

function readRebuildConfig(env: NodeJS.ProcessEnv) {
  return readConfig(env, (reader) => ({
    ...readLogConfig(reader),
    clickhouseUrl: readEngineUrl(reader, 'CLICKHOUSE_URL'),
    settleMs: reader.get('REBUILD_SETTLE_MS'),
  }));
}

/** Without addresses, those of the stack count, which are known to be good. */
function checkRebuildConfig(env: NodeJS.ProcessEnv): void {
  if (env.KAFKA_BROKERS !== undefined) readRebuildConfig(env);
}

function explain(error: Error): string {
  if (error instanceof UnsettledError) {
    return `Readers have the new table, but its last rows may be in pills_next. Run the rebuild again with --anew. ${error.message}`;
  }
  if (/already exists/.test(error.message)) {
    return 'Another rebuild is under way, or was killed. If it was killed: npm run rebuild -- --anew';
  }
  return `The rebuild failed; readers keep the old table: ${error.message}`;
}

function print(text: string): void {
  process.stderr.write(`${text}\n`);
}

function addressesOfStack(): Record<string, string> {
  if (process.env.KAFKA_BROKERS !== undefined) return {};
  const { data } = options;
  const stack = readStackFile(data === undefined ? undefined : path.resolve(data, 'stack.json'));
  return {
    KAFKA_BROKERS: stack.kafka,
    SCHEMA_REGISTRY_URL: stack.registry,
    CLICKHOUSE_URL: stack.clickhouse,
  };
}
