import path from 'node:path';
import { takeLock } from '../../lib/child-process/lock.ts';
import { endOrphans } from '../../lib/child-process/orphans.ts';
import { requirePrivateFolder } from '../../lib/child-process/private-folder.ts';
import { createKafkaClient } from '../../lib/kafka/kafka-client.ts';
import { openLogEnds } from '../../lib/kafka/log-ends.ts';
import { openDatabase, schemaName } from '../../lib/postgres/database.ts';
import { listen } from '../../lib/postgres/listen.ts';
import { type Lifecycle, runProcess } from '../../lib/run/run-process.ts';
import { topicName } from '../../schemas/topic-catalogue.ts';
import { type DedicatedConfig, readDedicatedConfig } from './config.ts';
import { openSupervisor } from './supervisor.ts';

const CONNECTIONS_MAX = 2;

await runProcess('dedicated', readDedicatedConfig, buildSupervisor);

/** Ends the orphans of an earlier supervisor first, because they hold the ports. */
async function buildSupervisor(config: DedicatedConfig, life: Lifecycle): Promise<void> {
  const { databaseUrl: url, namespace, runFolder } = config;
  const { log } = life;
  if (config.isRunFolderShared) {
    requirePrivateFolder(runFolder, 'Or set DEDICATED_RUN_FOLDER to a folder of your own.');
  }
  const locked = takeLock(path.join(runFolder, 'lock'));
  if (!locked.ok) {
    throw new Error(
      `Another supervisor (pid ${locked.owner.pid}) uses ${runFolder}. ` +
        'Stop it, or set DEDICATED_RUN_FOLDER.',
    );
  }
  life.onStop('lock', locked.lock.release);
  const orphans = await endOrphans(runFolder);
  if (orphans.length > 0) log.warn({ orphans }, 'ended orphans of an earlier supervisor');

  const connectionsMax = CONNECTIONS_MAX;
  const db = openDatabase({ url, namespace, name: 'dedicated', log, connectionsMax });
  life.onStop('database', () => db.destroy());
  const client = createKafkaClient(config.kafka, 'pillole-dedicated', log);
  const ends = openLogEnds(client, topicName(namespace, 'pills'));
  life.onStop('log ends', ends.close);
  const supervisor = openSupervisor({ config, db, ends, log });
  life.onStop('processes', supervisor.close);
  life.readyWhen(supervisor.notReady);
  for (const channel of ['dedicated', 'access'] as const) {
    const listening = listen({
      url,
      namespace,
      log,
      name: `dedicated-${channel}`,
      channel: `${channel}_${schemaName(namespace)}`,
      onNotify: supervisor.follow,
    });
    life.onStop(`notifications of ${channel}`, listening.close);
  }
}
