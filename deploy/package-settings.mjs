// Compares the names, the version and the addresses of the two client packages with the settings in
// sdk/packages.json. `node deploy/package-settings.mjs --write` writes them into the files.

import { readdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import path from 'node:path';

const ROOT = path.resolve(import.meta.dirname, '..');
const SETTINGS = 'sdk/packages.json';

/** File of `npm pack`: the scope of a name becomes a part of it. */
const tarballOf = ({ npm, version }) => `${npm.replace(/^@/, '').replace('/', '-')}-${version}.tgz`;

/** Where the settings are repeated: the groups around a value, and the value. */
function placesOf(root, settings) {
  const { npm, pypi, version, homepage, repository } = settings;
  const places = [
    ['sdk/package.json', /^( {2}"name": ")[^"]*(")/m, npm],
    ['sdk/package.json', /^( {2}"version": ")[^"]*(")/m, version],
    ['sdk/package.json', /^( {2}"homepage": ")[^"]*(")/m, homepage],
    ['sdk/package.json', /^( {4}"url": "git\+)[^"]*(")/m, repository],
    ['sdk/version.ts', /(VERSION = ')[^']*(')/, version],
    ['sdk/python/pyproject.toml', /^(name = ")[^"]*(")/m, pypi],
    ['sdk/python/pyproject.toml', /^(version = ")[^"]*(")/m, version],
    ['sdk/python/pyproject.toml', /^(Homepage = ")[^"]*(")/m, homepage],
    ['sdk/python/pyproject.toml', /^(Repository = ")[^"]*(")/m, repository],
    ['sdk/python/src/pillole/__init__.py', /(__version__ = ")[^"]*(")/, version],
    ['sdk/README.md', /(npm install ~\/)\S+\.tgz()/, tarballOf(settings)],
  ];
  // Other imports are of builtins, which begin with node:, or of files, which begin with a dot.
  const ownImport = /(\} from ')(?!node:|\.)[^']*(')/g;
  const examples = readdirSync(path.join(root, 'sdk/examples'))
    .filter((name) => name.endsWith('.js'))
    .map((name) => `sdk/examples/${name}`)
    .filter((file) => read(root, file).search(ownImport) >= 0);
  for (const file of [...examples, 'sdk/README.md', 'sdk/WEBHOOKS.md'])
    places.push([file, ownImport, npm]);
  return places;
}

const read = (root, file) => readFileSync(path.join(root, file), 'utf8');

/**
 * Places that differ from the settings, as sentences.
 * @param isWritten whether the differences are written into the files
 */
export function packageFaults(root = ROOT, isWritten = false) {
  const settings = JSON.parse(read(root, SETTINGS));
  return placesOf(root, settings).flatMap(([file, pattern, value]) => {
    const text = read(root, file);
    if (text.search(pattern) < 0) return [`${file}: there is no ${pattern} for ${SETTINGS}.`];
    const wanted = text.replace(pattern, (_, before, after) => `${before}${value}${after}`);
    if (wanted === text) return [];
    if (isWritten) writeFileSync(path.join(root, file), wanted);
    const how = 'run "node deploy/package-settings.mjs --write"';
    return isWritten ? [] : [`${file}: ${value} of ${SETTINGS} is not there: ${how}.`];
  });
}

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === import.meta.filename) {
  const flags = process.argv.slice(2);
  const root = flags.find((flag) => !flag.startsWith('--')) ?? ROOT;
  const faults = packageFaults(root, flags.includes('--write'));
  process.stderr.write(faults.map((fault) => `${fault}\n`).join(''));
  if (faults.length > 0) process.exitCode = 1;
}
