// Prints a bill of materials (CycloneDX): all npm packages, and the jars of the engines.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';

const root = path.resolve(import.meta.dirname, '..');
const npm = execFileSync('npm', ['sbom', '--sbom-format', 'cyclonedx', '--package-lock-only'], {
  ...{ cwd: root, maxBuffer: 64 * 1024 * 1024 },
});
const bom = JSON.parse(npm);
const jars = JSON.parse(readFileSync(path.join(root, 'deploy', 'local', 'jars.json'), 'utf8'));
for (const { purl, sha256 } of Object.values(jars).flat()) {
  const [, group, name, version] = /^pkg:maven\/([^/]+)\/([^@]+)@([^?]+)/.exec(purl);
  const hashes = [{ alg: 'SHA-256', content: sha256 }];
  bom.components.push({ 'bom-ref': purl, type: 'library', group, name, version, purl, hashes });
}
process.stdout.write(`${JSON.stringify(bom, null, 2)}\n`);
