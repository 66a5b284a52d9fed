import { execFile } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { packageRoot } from '../../lib/files/package-root.ts';
import { writeFileAtomically } from '../../lib/files/write-file.ts';
import { fillOnce } from '../tools/fill-once.ts';
import { archiveArguments, ensureArchive } from './class-archive.ts';
import type { EmbeddedEngine, EngineDeps } from './embedded-engine.ts';
import { checkJars } from './jars.ts';
import { findJava } from './java.ts';
import { kafkaAnswers } from './kafka-ready.ts';
import { runMaven } from './maven.ts';

const KAFKA_VERSION = '4.3.1';
const HERE = path.join(packageRoot, 'deploy', 'local');
const READY_TIMEOUT_MS = 60_000;
const STOP_TIMEOUT_MS = 5_000;

type Settings = Readonly<Record<string, string | number | boolean>>;

/** A node of a KRaft cluster: broker and controller in one JVM. */
export interface KafkaNode {
  readonly id: number;
  readonly port: number;
  readonly controllerPort: number;
}

/** Prepares the embedded Kafka broker, a cluster of one node. */
export async function embeddedKafka(deps: EngineDeps): Promise<EmbeddedEngine> {
  const { preferredPorts } = deps;
  const port = await deps.ports.allocate('kafka', preferredPorts.kafka);
  const controllerPort = await deps.ports.allocate('kafka-controller', preferredPorts.controller);
  const node = { id: 1, port, controllerPort };
  const of = { node, nodes: [node], clusterId: newClusterId() };
  const classes = classesOf(await downloadJars(deps));
  // The engine's own ports, which are still free.
  await ensureArchive('kafka', classes, deps, (data, args) =>
    embeddedNode({ ...deps, layout: { ...deps.layout, data: () => data } }, of, args),
  );
  return embeddedNode(deps, of);
}

export const newClusterId = (): string => randomBytes(16).toString('base64url').replace(/^-/, 'A');

/**
 * Prepares one node of a cluster, with the jars from Maven.
 * @param of all `nodes`, and the cluster's id, which counts if the node has no log yet
 * @param args of the JVM, in place of those that use the archive of classes
 */
export async function embeddedNode(
  deps: Pick<EngineDeps, 'layout' | 'javaHome' | 'report' | 'signal'>,
  of: {
    readonly node: KafkaNode;
    readonly nodes: readonly KafkaNode[];
    readonly clusterId: string;
    /** Settings in place of those below, and users of SCRAM; by default everyone may connect. */
    readonly security?: { readonly settings: Settings; readonly scram: readonly string[] };
  },
  args?: readonly string[],
): Promise<EmbeddedEngine> {
  const java = findJava(deps.javaHome);
  const jars = await downloadJars(deps);
  const jvm = jvmArguments(jars);
  const folder = deps.layout.data('kafka');
  mkdirSync(folder, { recursive: true });
  const logDir = path.join(folder, 'log');
  const { settings = {}, scram = [] } = of.security ?? {};
  const propertiesOf = (logs: string) => serverProperties(of.node, of.nodes, logs, settings);
  if (!existsSync(logDir)) {
    // A folder that is formatted and then renamed: a killed start leaves no partial log.
    const temporary = path.join(folder, 'log.part');
    rmSync(temporary, { recursive: true, force: true });
    const config = path.join(folder, 'format.properties');
    writeFileAtomically(config, propertiesOf(temporary));
    const format = [
      ...['kafka.tools.StorageTool', 'format', '-t', of.clusterId, '-c', config],
      ...scram.flatMap((user) => ['--add-scram', user]),
    ];
    const archived = archiveArguments(classesOf(jars));
    await promisify(execFile)(java, [...archived, ...jvm, ...format], { signal: deps.signal });
    renameSync(temporary, logDir);
  }
  const config = path.join(folder, 'server.properties');
  writeFileAtomically(config, propertiesOf(logDir));
  const address = `127.0.0.1:${of.node.port}`;
  return {
    address,
    child: () => ({
      command: java,
      args: [...(args ?? archiveArguments(classesOf(jars))), ...jvm, 'kafka.Kafka', config],
      stopTimeoutMs: STOP_TIMEOUT_MS,
    }),
    isReady: () => kafkaAnswers(address),
    readyTimeoutMs: READY_TIMEOUT_MS,
  };
}

/** Downloads the jars once, and checks them. @returns their folder @throws SetupError */
export async function downloadJars({
  layout,
  report,
  signal,
}: Pick<EngineDeps, 'layout' | 'report' | 'signal'>): Promise<string> {
  const pom = path.join(HERE, 'engines-pom.xml');
  // A folder for each pom, so that the jars of different poms do not mix.
  const pomHash = createHash('sha256').update(readFileSync(pom)).digest('hex').slice(0, 8);
  const jars = path.join(layout.engines, `kafka-${KAFKA_VERSION}-${pomHash}`);
  if (!existsSync(jars)) report(`kafka: downloading ${KAFKA_VERSION} (80 MB, once)`);
  const goal = 'dependency:copy-dependencies';
  await fillOnce(jars, async (folder) => {
    await runMaven(
      ['-f', pom, goal, `-DoutputDirectory=${folder}`, '-DincludeScope=runtime'],
      signal,
    );
    checkJars('kafka', folder);
  });
  return jars;
}

const classesOf = (jars: string) => `${jars}-classes`;

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

/** Settings that differ from Kafka's defaults, because one small machine runs everything. */
function serverProperties(
  node: KafkaNode,
  nodes: readonly KafkaNode[],
  logDir: string,
  more: Settings,
): string {
  const voters = nodes.map(({ id, controllerPort }) => `${id}@127.0.0.1:${controllerPort}`);
  // With three nodes, a record is acknowledged once two hold it.
  const replicas = Math.min(3, nodes.length);
  const replicasAtLeast = Math.max(1, replicas - 1);
  const settings: Settings = {
    'process.roles': 'broker,controller',
    'node.id': node.id,
    'controller.quorum.voters': voters.join(','),
    'controller.listener.names': 'CONTROLLER',
    listeners: `BROKER://127.0.0.1:${node.port},CONTROLLER://127.0.0.1:${node.controllerPort}`,
    'advertised.listeners': `BROKER://127.0.0.1:${node.port}`,
    'inter.broker.listener.name': 'BROKER',
    'listener.security.protocol.map': 'BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT',
    'log.dirs': logDir,
    'num.partitions': 1,
    'default.replication.factor': replicas,
    'min.insync.replicas': replicasAtLeast,
    'auto.create.topics.enable': false,
    'log.retention.hours': -1,
    'offsets.topic.replication.factor': replicas,
    'offsets.topic.num.partitions': 8,
    'transaction.state.log.replication.factor': replicas,
    'transaction.state.log.min.isr': replicasAtLeast,
    'transaction.state.log.num.partitions': 4,
    'share.coordinator.state.topic.replication.factor': replicas,
    'share.coordinator.state.topic.min.isr': replicasAtLeast,
    'share.coordinator.state.topic.num.partitions': 4,
    'group.initial.rebalance.delay.ms': 0,
    'group.min.session.timeout.ms': 1_000,
    // After kill -9 the controller rejects the broker until its old session ends (9 s by default).
    'broker.session.timeout.ms': 3_000,
    'broker.heartbeat.interval.ms': 500,
    // With 2 and 4, more threads than cores: at 1,000 pills/s the broker took 12 % more CPU, and the
    // 99th percentile from POST to socket was 26 instead of 17 ms (measured on 2 cores).
    'num.network.threads': 1,
    'num.io.threads': 2,
    'log.cleaner.dedupe.buffer.size': 32 * 1024 * 1024,
    // By default Kafka writes an empty metadata record twice a second.
    'metadata.max.idle.interval.ms': 5_000,
    ...more,
  };
  // A properties file reads a backslash as an escape.
  const lines = Object.entries(settings).map(
    ([key, value]) => `${key}=${String(value).replaceAll('\\', '\\\\')}`,
  );
  return `${lines.join('\n')}\n`;
}
