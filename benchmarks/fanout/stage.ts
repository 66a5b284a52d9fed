import { randomBytes } from 'node:crypto';
import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { readLauncherConfig } from '../../deploy/local/config.ts';
import { makeDemoAccounts } from '../../deploy/local/demo-keys.ts';
import { type Engines, startEngines } from '../../deploy/local/engines.ts';
import { ensurePepper } from '../../deploy/local/pepper.ts';
import { type Place, placeAt } from '../../deploy/local/place.ts';
import { openPortBook, type PortBook } from '../../deploy/local/ports.ts';
import { provision } from '../../deploy/provision.ts';
import type { LogPlace } from '../pill-sender.ts';

/** Registers what undoes a step; they run in reverse order, also after an error. */
export type OnStop = (stop: () => Promise<unknown> | unknown) => void;

/** Where servers are started and pills are sent: engines, and a namespace for each server. */
export interface Stage {
  readonly engines: Engines;
  readonly place: Place;
  readonly ports: PortBook;
  /** Key of an institutional account of the stream's namespace: 1,000 connections. */
  readonly key: string;
  /** A topic for each server: what one of them is sent costs the other nothing. */
  readonly logs: Readonly<Record<'stream' | 'loop', LogPlace>>;
}

/** As a local stack has them. */
const PARTITIONS = 4;

/** Makes a folder for a run that is removed at its end. */
export function makeFolder(onStop: OnStop): string {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'pillole-bench-'));
  onStop(() => rm(folder, { recursive: true, force: true, maxRetries: 3 }));
  return folder;
}

/** Starts the engines; those that environment variables name are used as they are. */
export async function buildStage(
  folder: string,
  say: (line: string) => void,
  onStop: OnStop,
): Promise<Stage> {
  const place = placeAt(folder);
  const ports = openPortBook(place.ports);
  onStop(() => ports.release());
  say('starting engines');
  const engines = await startEngines({
    ...{ place, ports, say, config: readLauncherConfig() },
    wantedPorts: { kafka: 0, controller: 0, registry: 0, clickhouse: 0, postgres: 0 },
  });
  onStop(() => engines.stop());
  const logOf = async (name: string) => {
    const namespace = `${name}${randomBytes(3).toString('hex')}`;
    await provision({ ...engines, namespace, settings: { partitions: PARTITIONS } });
    const { kafkaBrokers, registryUrl } = engines;
    return { kafkaBrokers, registryUrl, namespace };
  };
  const logs = { stream: await logOf('fanout'), loop: await logOf('loop') };
  ensurePepper(place.pepper);
  const { keys } = await makeDemoAccounts(place, { ...engines, namespace: logs.stream.namespace });
  return { engines, place, ports, key: keys!.institutional, logs };
}
