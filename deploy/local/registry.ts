import { existsSync, mkdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { extract } from 'tar';
import { type Child, startChild } from './child.ts';
import type { EmbeddedEngine, EngineSetting } from './embedded.ts';
import { findJava } from './java.ts';
import { fillOnce, runMaven } from './maven.ts';
import { answers200, waitUntil } from './wait.ts';

/** 3.3 wants Java 21. */
const VERSION = '3.0.9';
const ARTIFACT = `io.apicurio:apicurio-registry-app:${VERSION}:tar.gz:all`;
const READY_TIMEOUT_MS = 90_000;
const STOP_TIMEOUT_MS = 4_000;

/**
 * The embedded Schema Registry: Apicurio, which speaks Confluent's API, on an H2 file. Fetches and
 * prepares it; `start` may be called again after it died.
 */
export async function embeddedRegistry(setting: EngineSetting): Promise<EmbeddedEngine> {
  const java = findJava(setting.javaHome);
  const port = await setting.ports.choose('registry', setting.wantedPorts.registry);
  const app = path.join(setting.place.engines, `apicurio-registry-${VERSION}`);
  if (!existsSync(app)) setting.say(`registry: downloading Apicurio ${VERSION} (110 MB, once)`);
  await fillOnce(app, async (folder) => {
    await runMaven(
      ['dependency:copy', `-Dartifact=${ARTIFACT}`, `-DoutputDirectory=${folder}`],
      setting.signal,
    );
    const archive = path.join(folder, `apicurio-registry-app-${VERSION}-all.tar.gz`);
    await extract({ file: archive, cwd: folder });
    rmSync(archive);
  });
  const folder = setting.place.data('registry');
  mkdirSync(folder, { recursive: true });
  const address = `http://127.0.0.1:${port}/apis/ccompat/v7`;
  return {
    address,
    start: () =>
      startChild({
        name: 'registry',
        command: java,
        args: [
          ...jvmArguments(folder, port),
          '-jar',
          path.join(app, `apicurio-registry-app-${VERSION}-runner.jar`),
        ],
        cwd: folder,
        logFolder: setting.place.logs,
        runFolder: setting.place.run,
        stopSignal: 'SIGTERM',
        stopTimeoutMs: STOP_TIMEOUT_MS,
      }),
    ready: (child: Child) =>
      waitUntil('registry', () => answers200(`${address}/subjects`), {
        timeoutMs: READY_TIMEOUT_MS,
        gaveUp: () => (child.exit() === undefined ? undefined : `it ended, see ${child.logFile}`),
      }),
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
    // WRITE_DELAY=0: H2 holds commits back for 0.5 s by default, which a kill -9 would lose.
    'apicurio.datasource.url': `jdbc:h2:file:${path.join(folder, 'registry')};WRITE_DELAY=0`,
    'apicurio.datasource.jdbc.initial-size': 1,
    'apicurio.datasource.jdbc.min-size': 1,
    'apicurio.datasource.jdbc.max-size': 10,
    // The list of subjects is cut at 1,000 by default, without a word.
    'apicurio.ccompat.max-subjects': 100_000,
    'apicurio.rest.deletion.artifact.enabled': true,
    'apicurio.rest.deletion.artifact-version.enabled': true,
    'apicurio.import.work-dir': folder,
    'apicurio.storage.snapshot.location': folder,
  };
  return [
    '-Xmx256m',
    ...['-XX:+UseSerialGC', '-XX:+ExitOnOutOfMemoryError', '-XX:-UsePerfData'],
    // Its work is a few requests a minute: the first compiler is enough and starts it sooner.
    '-XX:TieredStopAtLevel=1',
    '-Djava.util.logging.manager=org.jboss.logmanager.LogManager',
    ...Object.entries(settings).map(([key, value]) => `-D${key}=${value}`),
  ];
}
