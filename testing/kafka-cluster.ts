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
 * Starts a cluster of three brokers; a topic has three replicas, of which two must hold a record
 * before its acknowledgement.
 */
export async function startKafkaCluster() {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'pillole-brokers-'));
  const nodes = await Promise.all(
    [1, 2, 3].map(async (id) => ({ id, port: await getPort(), controllerPort: await getPort() })),
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
      { node, nodes, clusterId },
    );
    engines.push(engine);
    const { command, args } = engine.child();
    const env = { ...process.env, JAVA_TOOL_OPTIONS: QUICK_JAVA };
    children.set(node.id, spawn(command, args ?? [], { env, stdio: 'ignore' }));
  }
  try {
    for (const engine of engines) await waitFor('a broker', engine.isReady, READY_MS);
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    brokers: nodes.map(({ port }) => `127.0.0.1:${port}`),
    /** Sends a signal to the process of a node. */
    signal(id: number, signal: NodeJS.Signals): void {
      children.get(id)?.kill(signal);
    },
    stop,
  };
}
