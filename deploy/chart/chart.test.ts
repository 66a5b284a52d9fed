import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import type { ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { readDedicatedConfig } from '../../gateway/dedicated/config.ts';
import { readStreamConfig } from '../../gateway/stream/config.ts';
import { packageRoot, packageVersion } from '../../lib/files/package-root.ts';
import { readPipelineConfig } from '../../pipelines/config.ts';
import { readDestinationsConfig } from '../../pipelines/destinations/config.ts';
import { readWebhooksConfig } from '../../pipelines/webhooks/config.ts';
import { readRecipe } from '../image/dockerfile.ts';
import { readProvisionConfig } from '../provision-config.ts';
import { fetchHelm } from '../tools/helm.ts';
import { fetchWheel, KUBERNETES_SCHEMAS } from '../tools/python-package.ts';

/** A rendered object; `any`-free access by path is `at`. */
type Manifest = Readonly<Record<string, unknown>> & {
  readonly kind: string;
  readonly apiVersion: string;
  readonly metadata: { readonly name: string };
};

const CHART = path.join(packageRoot, 'deploy/chart');
const VALUES = ['single', 'autoscaled', 'external'] as const;
const PROCESSES = [
  'ingest',
  'api',
  'stream',
  'latest',
  'analytics',
  'webhooks',
  'destinations',
] as const;
/** The oldest version with the schemas' final form of every field that the chart uses. */
const KUBERNETES = 'v1.34.0-local-strict';
/** Not every process has them. */
const ADDRESSES = { CLICKHOUSE_URL: 'http://secret', DATABASE_URL: 'postgres://secret' };
const run = promisify(execFile);

let helm: string;
let schemas: string;
const rendered = new Map<string, readonly Manifest[]>();

const ajv = new Ajv2020({ strict: false, validateFormats: false, logger: false });
const validators = new Map<string, ValidateFunction>();
const load = (name: string) => JSON.parse(readFileSync(path.join(schemas, name), 'utf8'));

/** The validator of a kind, e.g. of deployment-apps-v1.json. */
function validatorOf({ kind, apiVersion }: Manifest): ValidateFunction {
  const group = apiVersion.replace(/\.[^/]*/, '').replace('/', '-');
  const name = `${kind.toLowerCase()}-${group}.json`;
  const made = validators.get(name) ?? ajv.compile(load(name));
  validators.set(name, made);
  return made;
}

async function template(values: string, ...args: readonly string[]): Promise<Manifest[]> {
  const file = path.join(CHART, 'ci', `${values}.yaml`);
  const { stdout } = await run(helm, ['template', 'p', CHART, '--values', file, ...args]);
  return parseAllDocuments(stdout)
    .map((one) => one.toJS() as Manifest | null)
    .filter((one) => one !== null);
}

const folder = mkdtempSync(path.join(os.tmpdir(), 'pillole-chart-'));
writeFileSync(path.join(folder, 'pepper'), 'ab'.repeat(32));
writeFileSync(path.join(folder, 'ca.pem'), '-----BEGIN CERTIFICATE-----\n');
afterAll(() => rmSync(folder, { recursive: true }));

beforeAll(async () => {
  helm = await fetchHelm();
  schemas = await fetchWheel(
    KUBERNETES_SCHEMAS,
    `kubernetes_validate/kubernetes-json-schema/${KUBERNETES}`,
  );
  ajv.addSchema(load('_definitions.json'), '/api/_definitions.json');
  for (const values of VALUES) rendered.set(values, await template(values));
});

/** The value below an object at a path of keys and indexes. */
function at(object: unknown, ...keys: readonly (string | number)[]): unknown {
  return keys.reduce<unknown>(
    (value, key) => (value as Record<string | number, unknown> | undefined)?.[key],
    object,
  );
}

function find(values: string, kind: string, name: string): Manifest | undefined {
  return rendered.get(values)!.find((one) => one.kind === kind && one.metadata.name === name);
}

const workload = (values: string, name: string) =>
  find(values, name === 'dedicated' ? 'StatefulSet' : 'Deployment', `p-${name}`)!;
const podOf = (one: Manifest) => at(one, 'spec', 'template', 'spec');
const containerOf = (one: Manifest) => at(podOf(one), 'containers', 0);

/** The environment; an address stands for each secret, and files of ours for those that are mounted. */
function environmentOf(one: Manifest): Record<string, string> {
  const list = at(containerOf(one), 'env') as { name: string; value?: string }[];
  const secretOf = (name: string) =>
    name === 'DATABASE_URL' ? 'postgres://secret' : 'http://secret';
  const env = list.map(({ name, value }) => [name, value ?? secretOf(name)]);
  const mounted = /^\/run\/secrets\/pillole\/(?=pepper$|ca\.pem$)/;
  return Object.fromEntries(
    env.map(([name, value]) => [name, value!.replace(mounted, `${folder}/`)]),
  );
}

describe.each(VALUES)('the chart with the values %s', (values) => {
  test('passes helm lint and the strict schemas of Kubernetes', async () => {
    const file = path.join(CHART, 'ci', `${values}.yaml`);
    await run(helm, ['lint', '--strict', CHART, '--values', file]);
    for (const one of rendered.get(values)!) {
      const validate = validatorOf(one);
      expect([one.metadata.name, validate(one), validate.errors]).toEqual([
        one.metadata.name,
        true,
        null,
      ]);
      expect(validate({ ...one, spec: { ...(one.spec as object), unknwon: 1 } })).toBe(false);
    }
  });

  test.each([...PROCESSES, 'dedicated'])('%s: probes, spread, restrictions, drain', (name) => {
    const one = workload(values, name);
    const container = containerOf(one);
    for (const probe of ['startupProbe', 'readinessProbe', 'livenessProbe']) {
      const url = probe === 'readinessProbe' ? '/ready' : '/health';
      expect(at(container, probe, 'httpGet')).toEqual({ path: url, port: 'metrics' });
    }
    expect(at(container, 'securityContext')).toEqual({
      readOnlyRootFilesystem: true,
      allowPrivilegeEscalation: false,
      capabilities: { drop: ['ALL'] },
    });
    expect(at(podOf(one), 'securityContext', 'runAsUser')).toBe(
      Number(readRecipe().user.split(':')[0]),
    );
    // Or a service named ingest would set INGEST_PORT to an address.
    expect(at(podOf(one), 'enableServiceLinks')).toBe(false);
    const slept = Number(at(container, 'lifecycle', 'preStop', 'sleep', 'seconds'));
    expect(slept).toBeGreaterThan(2 * 3); // readiness ends after two periods of 3 s
    expect(Number(at(podOf(one), 'terminationGracePeriodSeconds'))).toBeGreaterThan(slept + 5.5);
    const spread = at(podOf(one), 'topologySpreadConstraints') as unknown[] | undefined;
    expect(spread?.length ?? 0).toBe(name === 'dedicated' ? 0 : 2);
    // A budget in absolute pods that may be missing never wedges a single pod.
    const budget = find(values, 'PodDisruptionBudget', `p-${name}`);
    expect(at(budget, 'spec', 'maxUnavailable')).toBe(1);
    expect(at(budget, 'spec', 'minAvailable')).toBeUndefined();
    expect(find(values, 'NetworkPolicy', `p-${name}`)).toBeDefined();
  });

  test('its settings are accepted by the processes, and no value of a secret is in it', () => {
    const env = (name: string) => environmentOf(workload(values, name));
    readStreamConfig(env('stream'));
    readDedicatedConfig(env('dedicated'));
    readPipelineConfig(env('latest'), false);
    readPipelineConfig(env('analytics'), true);
    readWebhooksConfig(env('webhooks'));
    readDestinationsConfig(env('destinations'));
    const job = rendered.get(values)!.find(({ kind }) => kind === 'Job')!;
    readProvisionConfig(environmentOf(job));
    expect(rendered.get(values)!.map(({ kind }) => kind)).not.toContain('Secret');
    for (const name of ['DATABASE_URL', 'CLICKHOUSE_URL']) {
      const all = rendered.get(values)!.flatMap((one) => at(containerOf(one), 'env') ?? []);
      const found = (all as { name: string; value?: string; valueFrom?: unknown }[]).filter(
        (one) => one.name === name,
      );
      expect(found.length).toBeGreaterThan(2);
      for (const one of found)
        expect([one.value, at(one, 'valueFrom', 'secretKeyRef', 'name')]).toEqual([
          undefined,
          expect.any(String),
        ]);
    }
  });

  test('the pods of the API, and no others, have the folder of exports', () => {
    const one = workload(values, 'api');
    const folder = environmentOf(one).EXPORTS_FOLDER;
    expect(at(containerOf(one), 'volumeMounts')).toContainEqual({
      name: 'exports',
      mountPath: folder,
    });
    const volume =
      values === 'single'
        ? { emptyDir: { sizeLimit: '60Gi' } }
        : { persistentVolumeClaim: { claimName: 'pillole-exports' } };
    expect(at(podOf(one), 'volumes')).toContainEqual({ name: 'exports', ...volume });
    expect(JSON.stringify(workload(values, 'stream'))).not.toContain('exports');
  });

  test('the migrations are a job of the version, before the pods', () => {
    const job = rendered.get(values)!.find(({ kind }) => kind === 'Job')!;
    const tag = values === 'external' ? '0-1-0-rc-1' : packageVersion.replaceAll('.', '-');
    expect(job.metadata.name).toBe(`p-provision-${tag}`);
    expect(at(job, 'metadata', 'annotations', 'helm.sh/hook')).toBe('pre-install,pre-upgrade');
  });
});

test('without an autoscaler a deployment has replicas; with one it has none', () => {
  for (const name of PROCESSES) {
    const [fixed, scaled] = [workload('single', name), workload('autoscaled', name)];
    expect(at(fixed, 'spec', 'replicas')).toBe(1);
    expect(find('single', 'HorizontalPodAutoscaler', `p-${name}`)).toBeUndefined();
    expect(fixed.spec).toHaveProperty('replicas');
    expect(scaled.spec).not.toHaveProperty('replicas');
    const scaler = find('autoscaled', 'HorizontalPodAutoscaler', `p-${name}`);
    const [metric] = at(scaler, 'spec', 'metrics') as { type: string }[];
    const byCpu = ['ingest', 'api', 'destinations'].includes(name);
    const expected = name === 'stream' ? 'Pods' : byCpu ? 'Resource' : 'External';
    expect(metric?.type).toBe(expected);
    // Consumers beyond the 8 partitions would read none.
    if (metric?.type === 'External') expect(at(scaler, 'spec', 'maxReplicas')).toBe(8);
    const down = at(scaler, 'spec', 'behavior', 'scaleDown');
    expect(down).toEqual({
      stabilizationWindowSeconds: 600,
      policies: [{ type: 'Pods', value: 1, periodSeconds: 300 }],
    });
  }
});

test('every pod gets the settings and the files that secure Kafka', () => {
  const job = rendered.get('external')!.find(({ kind }) => kind === 'Job')!;
  for (const one of [...[...PROCESSES, 'dedicated'].map((n) => workload('external', n)), job]) {
    const { kafka } = readProvisionConfig({ ...ADDRESSES, ...environmentOf(one) });
    expect(kafka).toMatchObject({ tls: { ca: expect.any(String) }, sasl: { username: 'pillole' } });
    expect(JSON.stringify(at(podOf(one), 'volumes'))).toContain('"name":"pillole-engines"');
  }
  expect(environmentOf(workload('single', 'latest'))).not.toHaveProperty('KAFKA_TLS');
  expect(JSON.stringify(workload('single', 'latest'))).not.toContain('pillole-engines');
});

test('autoscalers ask for metrics that the processes have', () => {
  const code = ['lib/kafka/progress-watch.ts', 'gateway/stream/metrics.ts'];
  const text = code.map((file) => readFileSync(path.join(packageRoot, file), 'utf8')).join();
  const { metrics } = parse(readFileSync(path.join(CHART, 'values.yaml'), 'utf8'));
  for (const name of Object.values(metrics)) expect(text).toContain(`'${name}'`);
});

test('processes that reach systems of customers, or read the keys of token issuers, may reach the internet, no others', () => {
  const egressOf = (name: string) =>
    JSON.stringify(at(find('single', 'NetworkPolicy', `p-${name}`), 'spec', 'egress'));
  for (const name of ['api', 'stream', 'dedicated', 'webhooks', 'destinations']) {
    expect([name, egressOf(name)]).toEqual([name, expect.stringContaining('"0.0.0.0/0"')]);
  }
  for (const name of ['ingest', 'latest', 'analytics', 'provision']) {
    expect([name, egressOf(name)]).toEqual([name, expect.not.stringContaining('"0.0.0.0/0"')]);
  }
});

test('sockets pass the ingress with long time-outs', () => {
  const { annotations } = find('autoscaled', 'Ingress', 'p-stream')!.metadata as unknown as {
    annotations: Record<string, string>;
  };
  expect(annotations['nginx.ingress.kubernetes.io/proxy-read-timeout']).toBe('3600');
  expect(at(find('autoscaled', 'Ingress', 'p-stream'), 'spec', 'rules', 0, 'host')).toBe(
    'stream.example.com',
  );
});

test.each([
  ['drain.graceS=22', 'drain: sleepS + closesS + endS is 22 s, so graceS must be more than 22'],
  ['drain.sleepS=25', 'graceS must be more than 37, not 30'],
  ['processes.api.replicas=2', 'exports.claim is required while the API may have several pods'],
  ['addresses.stream=', 'addresses.stream is required'],
  ['engines.kafkaBrokers=', 'engines.kafkaBrokers is required'],
  ['engines.networks=null', 'engines.networks is required'],
  [
    'exports.claim=x,processes.api.autoscaling.enabled=true,processes.api.autoscaling.max=1',
    'max is below min',
  ],
])('%s fails the rendering with a sentence', async (setting, sentence) => {
  await expect(template('single', '--set', setting)).rejects.toThrow(sentence);
});
