// Downloads the engines' jars and writes deploy/local/jars.json, by whose checksums every later
// download is checked. Run it after a change of deploy/local/engines-pom.xml or of the registry's
// version, and read the difference: `node deploy/pin-jars.mjs`
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';

const here = path.join(import.meta.dirname, 'local');
const pom = path.join(here, 'engines-pom.xml');
const registry = readFileSync(path.join(here, 'schema-registry.ts'), 'utf8');
const version = /^const VERSION = '([^']+)'/m.exec(registry)[1];
const folder = mkdtempSync(path.join(os.tmpdir(), 'pillole-jars-'));

try {
  const pinned = { kafka: kafkaJars(), registry: registryArchive() };
  writeFileSync(path.join(here, 'jars.json'), `${JSON.stringify(pinned, null, 2)}\n`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function kafkaJars() {
  const list = path.join(folder, 'list.txt');
  const into = path.join(folder, 'kafka');
  mvn('-f', pom, 'dependency:list', '-DincludeScope=runtime', `-DoutputFile=${list}`);
  mvn(
    '-f',
    pom,
    'dependency:copy-dependencies',
    '-DincludeScope=runtime',
    `-DoutputDirectory=${into}`,
  );
  const coordinates = readFileSync(list, 'utf8').matchAll(/^ +([^:]+):([^:]+):jar:([^:\s]+):/gm);
  const purls = new Map(
    [...coordinates].map(([, group, artifact, of]) => [
      `${artifact}-${of}.jar`,
      `pkg:maven/${group}/${artifact}@${of}`,
    ]),
  );
  return readdirSync(into)
    .sort()
    .map((file) => pin(into, file, purls.get(file)));
}

function registryArchive() {
  const artifact = `io.apicurio:apicurio-registry-app:${version}:tar.gz:all`;
  const into = path.join(folder, 'registry');
  mvn('dependency:copy', `-Dartifact=${artifact}`, `-DoutputDirectory=${into}`);
  const purl = `pkg:maven/io.apicurio/apicurio-registry-app@${version}?classifier=all&type=tar.gz`;
  return readdirSync(into).map((file) => pin(into, file, purl));
}

function pin(into, file, purl) {
  if (purl === undefined) throw new Error(`${file} is in no list of Maven.`);
  const sha256 = createHash('sha256')
    .update(readFileSync(path.join(into, file)))
    .digest('hex');
  return { file, purl, sha256 };
}

function mvn(...args) {
  execFileSync('mvn', ['-B', '-ntp', '-q', ...args], { stdio: ['ignore', 'inherit', 'inherit'] });
}
