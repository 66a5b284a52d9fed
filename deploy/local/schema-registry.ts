import { existsSync, mkdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { extract } from 'tar';
import { fillOnce } from '../tools/fill-once.ts';
import { archiveArguments, ensureArchive } from './class-archive.ts';
import type { EmbeddedEngine, EngineDeps } from './embedded-engine.ts';
import { checkJars } from './jars.ts';
import { findJava } from './java.ts';
import { runMaven } from './maven.ts';
import { answers200 } from './wait-until.ts';

/** Version 3.3 requires Java 21. */
const VERSION = '3.0.9';
const ARTIFACT = `io.apicurio:apicurio-registry-app:${VERSION}:tar.gz:all`;
const READY_TIMEOUT_MS = 90_000;

/**
 * Prepares the embedded Schema Registry: Apicurio, which speaks Confluent's API, on an H2 file.
 * Downloads it once.
 */
export async function embeddedRegistry(deps: EngineDeps): Promise<EmbeddedEngine> {
  const { layout, ports, preferredPorts, report, signal } = deps;
  const java = findJava(deps.javaHome);
  const port = await ports.allocate('registry', preferredPorts.registry);
  const app = path.join(layout.engines, `apicurio-registry-${VERSION}`);
  if (!existsSync(app)) report(`registry: downloading Apicurio ${VERSION} (110 MB, once)`);
  await fillOnce(app, async (folder) => {
    await runMaven(
      ['dependency:copy', `-Dartifact=${ARTIFACT}`, `-DoutputDirectory=${folder}`],
      signal,
    );
    checkJars('registry', folder);
    const archive = path.join(folder, `apicurio-registry-app-${VERSION}-all.tar.gz`);
    await extract({ file: archive, cwd: folder });
    rmSync(archive);
  });
  const classes = `${app}-classes`;
  const open = (folder: string, args: readonly string[]) =>
    registryIn({ java, app, folder, port, args });
  await ensureArchive('registry', classes, deps, async (data, args) => open(data, args));
  return open(layout.data('registry'), archiveArguments(classes));
}

function registryIn(of: {
  readonly java: string;
  readonly app: string;
  readonly folder: string;
  readonly port: number;
  readonly args: readonly string[];
}): EmbeddedEngine {
  const { java, app, folder, port, args } = of;
  const jar = path.join(app, `apicurio-registry-app-${VERSION}-runner.jar`);
  mkdirSync(folder, { recursive: true });
  const address = `http://127.0.0.1:${port}/apis/ccompat/v7`;
  return {
    address,
    child: () => ({
      command: java,
      args: [...args, ...jvmArguments(folder, port), '-jar', jar],
      cwd: folder,
    }),
    isReady: () => answers200(`${address}/subjects`),
    readyTimeoutMs: READY_TIMEOUT_MS,
  };
}

function jvmArguments(folder: string, port: number): string[] {
  const settings: Record<string, string | number | boolean> = {
    'quarkus.http.host': '127.0.0.1',
    'quarkus.http.port': port,
    'quarkus.http.access-log.enabled': false,
    'quarkus.log.category."io.apicurio".level': 'WARN',
    'apicurio.storage.kind': 'sql',
    'apicurio.storage.sql.kind': 'h2',
    // WRITE_DELAY=0: by default H2 delays commits by 0.5 s, and a kill -9 would lose them.
    'apicurio.datasource.url': `jdbc:h2:file:${path.join(folder, 'registry')};WRITE_DELAY=0`,
    'apicurio.datasource.jdbc.initial-size': 1,
    'apicurio.datasource.jdbc.min-size': 1,
    'apicurio.datasource.jdbc.max-size': 10,
    // By default the registry silently cuts the list of subjects at 1,000.
    'apicurio.ccompat.max-subjects': 100_000,
    'apicurio.rest.deletion.artifact.enabled': true,
    'apicurio.rest.deletion.artifact-version.enabled': true,
    'apicurio.import.work-dir': folder,
    'apicurio.storage.snapshot.location': folder,
  };
  return [
    '-Xmx256m',
    ...['-XX:+UseSerialGC', '-XX:+ExitOnOutOfMemoryError', '-XX:-UsePerfData'],
    // The registry serves a few requests a minute: the first compiler suffices and starts faster.
    '-XX:TieredStopAtLevel=1',
    '-Djava.util.logging.manager=org.jboss.logmanager.LogManager',
    ...Object.entries(settings).map(([key, value]) => `-D${key}=${value}`),
  ];
}
