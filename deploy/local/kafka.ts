import { execFile } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { packageRoot } from '../../lib/root.ts';
import { writeFileAtomically } from '../../lib/write-file.ts';
import { type Child, startChild } from './child.ts';
import type { EmbeddedEngine, EngineSetting } from './embedded.ts';
import { findJava } from './java.ts';
import { kafkaAnswers } from './kafka-ready.ts';
import { fillOnce, runMaven } from './maven.ts';
import { waitUntil } from './wait.ts';

const KAFKA_VERSION = '4.3.1';
const HERE = path.join(packageRoot, 'deploy', 'local');
const READY_TIMEOUT_MS = 60_000;
const STOP_TIMEOUT_MS = 5_000;

/**
 * The embedded Kafka broker: KRaft, broker and controller in one JVM, jars from Maven. Fetches,
 * formats and prepares it; `start` may be called again after it died.
 */
export async function embeddedKafka(setting: EngineSetting): Promise<EmbeddedEngine> {
  const java = findJava(setting.javaHome);
  const port = await setting.ports.choose('kafka', setting.wantedPorts.kafka);
  const controllerPort = await setting.ports.choose(
    'kafka-controller',
    setting.wantedPorts.controller,
  );
  const pom = path.join(HERE, 'engines-pom.xml');
  // Another pom, another folder: jars of an earlier one are not mixed with it.
  const pomHash = createHash('sha256').update(readFileSync(pom)).digest('hex').slice(0, 8);
  const jars = path.join(setting.place.engines, `kafka-${KAFKA_VERSION}-${pomHash}`);
  if (!existsSync(jars)) setting.say(`kafka: downloading ${KAFKA_VERSION} (80 MB, once)`);
  await fillOnce(jars, (folder) =>
    runMaven(
      [
        ...['-f', pom, 'dependency:copy-dependencies'],
        ...[`-DoutputDirectory=${folder}`, '-DincludeScope=runtime'],
      ],
      setting.signal,
    ),
  );
  const folder = setting.place.data('kafka');
  mkdirSync(folder, { recursive: true });
  const jvm = jvmArguments(jars);
  const logDir = path.join(folder, 'log');
  if (!existsSync(logDir)) {
    await format(java, jvm, folder, logDir, { port, controllerPort }, setting.signal);
  }
  const config = path.join(folder, 'server.properties');
  writeFileAtomically(config, serverProperties({ port, controllerPort }, logDir));
  const brokers = `127.0.0.1:${port}`;
  return {
    address: brokers,
    start: () =>
      startChild({
        name: 'kafka',
        command: java,
        args: [...jvm, 'kafka.Kafka', config],
        logFolder: setting.place.logs,
        runFolder: setting.place.run,
        stopSignal: 'SIGTERM',
        stopTimeoutMs: STOP_TIMEOUT_MS,
      }),
    ready: (child: Child) =>
      waitUntil('kafka', () => kafkaAnswers(brokers), {
        timeoutMs: READY_TIMEOUT_MS,
        gaveUp: () => (child.exit() === undefined ? undefined : `it ended, see ${child.logFile}`),
      }),
  };
}

interface KafkaPorts {
  readonly port: number;
  readonly controllerPort: number;
}

/** Formats beside and renames: a start that is killed half-way leaves nothing half formatted. */
async function format(
  java: string,
  jvm: string[],
  folder: string,
  logDir: string,
  ports: KafkaPorts,
  signal: AbortSignal | undefined,
): Promise<void> {
  const beside = path.join(folder, 'log.part');
  rmSync(beside, { recursive: true, force: true });
  const config = path.join(folder, 'format.properties');
  writeFileAtomically(config, serverProperties(ports, beside));
  const clusterId = randomBytes(16).toString('base64url').replace(/^-/, 'A');
  const args = [...jvm, 'kafka.tools.StorageTool', 'format', '-t', clusterId, '-c', config];
  await promisify(execFile)(java, args, { signal });
  renameSync(beside, logDir);
}

function jvmArguments(jars: string): string[] {
  const logging = pathToFileURL(path.join(HERE, 'kafka-log4j2.properties')).href;
  return [
    '-Xms256m',
    '-Xmx512m',
    ...['-XX:+UseG1GC', '-XX:MaxGCPauseMillis=20', '-XX:+ExitOnOutOfMemoryError'],
    ...['-XX:-UsePerfData', '-Djava.awt.headless=true', `-Dlog4j2.configurationFile=${logging}`],
    ...['-cp', path.join(jars, '*')],
  ];
}

/** Settings that differ from Kafka's defaults because one small machine holds everything. */
function serverProperties(ports: KafkaPorts, logDir: string): string {
  const settings: Record<string, string | number | boolean> = {
    'process.roles': 'broker,controller',
    'node.id': 1,
    'controller.quorum.voters': `1@127.0.0.1:${ports.controllerPort}`,
    'controller.listener.names': 'CONTROLLER',
    listeners: `BROKER://127.0.0.1:${ports.port},CONTROLLER://127.0.0.1:${ports.controllerPort}`,
    'advertised.listeners': `BROKER://127.0.0.1:${ports.port}`,
    'inter.broker.listener.name': 'BROKER',
    'listener.security.protocol.map': 'BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT',
    'log.dirs': logDir,
    'num.partitions': 1,
    'auto.create.topics.enable': false,
    'log.retention.hours': -1,
    'offsets.topic.replication.factor': 1,
    'offsets.topic.num.partitions': 8,
    'transaction.state.log.replication.factor': 1,
    'transaction.state.log.min.isr': 1,
    'transaction.state.log.num.partitions': 4,
    'share.coordinator.state.topic.replication.factor': 1,
    'share.coordinator.state.topic.min.isr': 1,
    'share.coordinator.state.topic.num.partitions': 4,
    'group.initial.rebalance.delay.ms': 0,
    'group.min.session.timeout.ms': 1_000,
    // After kill -9 the controller refuses the broker until its old session is over (9 s).
    'broker.session.timeout.ms': 3_000,
    'broker.heartbeat.interval.ms': 500,
    'num.network.threads': 2,
    'num.io.threads': 4,
    'log.cleaner.dedupe.buffer.size': 32 * 1024 * 1024,
    // The default writes an empty metadata record twice a second for as long as the stack runs.
    'metadata.max.idle.interval.ms': 5_000,
  };
  // A properties file reads a backslash as an escape.
  const lines = Object.entries(settings).map(
    ([key, value]) => `${key}=${String(value).replaceAll('\\', '\\\\')}`,
  );
  return `${lines.join('\n')}\n`;
}
