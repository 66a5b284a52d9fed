import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { embeddedNode, newClusterId } from '../deploy/local/kafka.ts';
import { stackLayout } from '../deploy/local/stack-layout.ts';
import { getPort } from './ports.ts';
import { exitOf } from './process.ts';
import { QUICK_JAVA } from './quick-java.ts';
import { waitFor } from './wait.ts';

export type KafkaCluster = Awaited<ReturnType<typeof startKafkaCluster>>;

/** The election of a controller among three nodes that start at once takes longest. */
const READY_MS = 240_000;

/**
 * Starts a cluster of three brokers, or of `count`; a topic has three replicas, of which two must hold
 * a record before its acknowledgement.
 * @param secured what secures the brokers, and a probe in place of the one that connects in clear
 */
export async function startKafkaCluster({
  count = 3,
  secured,
}: {
  readonly count?: number;
  readonly secured?: NonNullable<Parameters<typeof embeddedNode>[1]['security']> & {
    readonly isReady: (brokers: readonly string[]) => Promise<boolean>;
  };
} = {}) {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'pillole-brokers-'));
  const nodes = await Promise.all(
    Array.from({ length: count }, (_, at) => at + 1).map(async (id) => ({
      id,
      port: await getPort(),
      controllerPort: await getPort(),
    })),
  );
  const clusterId = newClusterId();
  const children = new Map<number, ChildProcess>();
  const stop = async () => {
    const ends = [...children.values()].map((child) => {
      child.kill('SIGKILL');
      return child.exitCode === null && child.signalCode === null ? exitOf(child) : undefined;
    });
    await Promise.all(ends);
    await rm(folder, { recursive: true, force: true, maxRetries: 3 });
  };
  const engines = [];
  for (const node of nodes) {
    const engine = await embeddedNode(
      {
        layout: { ...stackLayout(path.join(folder, String(node.id))) },
        javaHome: process.env.JAVA_HOME,
        report: () => undefined,
      },
      { node, nodes, clusterId, ...(secured === undefined ? {} : { security: secured }) },
    );
    engines.push(engine);
    const { command, args } = engine.child();
    const env = { ...process.env, JAVA_TOOL_OPTIONS: QUICK_JAVA };
    children.set(node.id, spawn(command, args ?? [], { env, stdio: 'ignore' }));
  }
  const brokers = nodes.map(({ port }) => `127.0.0.1:${port}`);
  try {
    for (const engine of engines) {
      const isReady = secured === undefined ? engine.isReady : () => secured.isReady(brokers);
      await waitFor('a broker', isReady, READY_MS);
    }
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    brokers,
    /** Sends a signal to the process of a node. */
    signal(id: number, signal: NodeJS.Signals): void {
      children.get(id)?.kill(signal);
    },
    stop,
  };
}
