// Checks the licenses of all packages in a lock file against those that this project may use.
// `node deploy/license-check.mjs [LOCK_FILE]`
import { readFileSync } from 'node:fs';
import path from 'node:path';

/** SPDX identifiers and expressions, as packages state them. */
const ALLOWED = new Set([
  ...['Apache-2.0', 'MIT', 'MIT-0', 'ISC', 'BSD-2-Clause', 'BSD-3-Clause', '0BSD'],
  ...['BlueOak-1.0.0', 'Python-2.0', '(MIT AND Zlib)', 'MIT OR Apache-2.0'],
]);
/** Of tools only, which no process and no image contains. */
const ALLOWED_OF_TOOLS = new Set(['MPL-2.0', 'Unlicense']);
/** Packages that state no identifier; their license files were read. */
const READ = new Map([
  ['@kafkajs/confluent-schema-registry', 'MIT'],
  ['buildcheck', 'MIT'],
  ['cpu-features', 'MIT'],
  ['json-bignum', 'MIT'],
  ['ssh2', 'MIT'],
]);

const byDefault = path.resolve(import.meta.dirname, '..', 'package-lock.json');
const { packages } = JSON.parse(readFileSync(process.argv[2] ?? byDefault, 'utf8'));
const faults = [];
for (const [place, { license, version, dev = false }] of Object.entries(packages)) {
  if (place === '') continue; // this project
  const name = place.slice(place.lastIndexOf('node_modules/') + 'node_modules/'.length);
  const stated = license ?? READ.get(name);
  if (ALLOWED.has(stated) || (dev && ALLOWED_OF_TOOLS.has(stated))) continue;
  const fault = stated === undefined ? 'states no license' : `has the license ${stated}`;
  faults.push(
    `${name} ${version} ${fault}: use another package, or allow the license in ${import.meta.filename}.`,
  );
}
if (faults.length > 0) {
  process.stderr.write(`${faults.join('\n')}\n`);
  process.exit(1);
}
