// Keeps documents and code consistent: invariants name tests that exist, links lead to files,
// commands to scripts, the bounds are those of the code, and no file holds a download address.

import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { boundsFaults } from './bounds.mjs';
import { packageFaults } from './package-settings.mjs';
import { settingsFaults } from './settings.mjs';

const README_CHARS_MAX = 6_000;
const README_COLUMNS_MAX = 100;
const GLOSSARY = [
  ...['effect', 'late', 'backfill', 'repeat', 'epoch'],
  ...['cursor', 'position', 'prev', 'quiet', 'grant'],
];

const root = path.resolve(import.meta.dirname, '..');
const read = (file) => readFileSync(path.join(root, file), 'utf8');
const exists = (file) => existsSync(path.join(root, file));
const pages = [
  ...['README.md', 'ARCHITECTURE.md'],
  ...readdirSync(path.join(root, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
  ...readdirSync(path.join(root, 'deploy/runbooks')).map((name) => `deploy/runbooks/${name}`),
];
const faults = [
  ...invariantFaults(read('ARCHITECTURE.md')),
  ...readmeFaults(read('README.md')),
  ...glossaryFaults(),
  ...pages.flatMap((page) => [...linkFaults(page), ...scriptFaults(page)]),
  ...boundsFaults(),
  ...packageFaults(),
  ...(await settingsFaults()),
  ...downloadFaults(),
];
if (faults.length > 0) {
  process.stderr.write(`${faults.join('\n')}\n`);
  process.exit(1);
}

/** A row of an invariant or attack: | 1 | text | `file.test.ts` "name of the test" |, A1 for an attack */
function invariantFaults(architecture) {
  const rows = architecture.split('\n').filter((line) => /^\| A?\d+ \|/.test(line));
  if (rows.length < 7) return ['ARCHITECTURE.md: fewer than seven numbered invariants.'];
  return rows.flatMap((row) => {
    const number = row.split('|')[1].trim();
    const named = [...row.matchAll(/`([^`]+\.test\.ts)`(?: "([^"]+)")?/g)];
    if (named.length === 0) return [`Invariant ${number} names no test.`];
    return named.flatMap(([, file, title]) => {
      if (!exists(file)) return [`Invariant ${number}: no file ${file}.`];
      const isThere = title === undefined || read(file).includes(title);
      return isThere ? [] : [`Invariant ${number}: ${file} has no test "${title}".`];
    });
  });
}

function readmeFaults(text) {
  const long = text.split('\n').flatMap((line, index) => {
    const columns = [...line].length;
    return columns > README_COLUMNS_MAX ? [`README.md:${index + 1}: ${columns} columns.`] : [];
  });
  const chars = [...text].length;
  const tooMany = chars > README_CHARS_MAX ? [`README.md has ${chars} characters.`] : [];
  return [...long, ...tooMany, ...testCommandFaults(text)];
}

/** CI runs the command of the README's section on tests. */
function testCommandFaults(text) {
  const [, command] = /^## Test\n\n```sh\n(.+)\n```$/m.exec(text) ?? [];
  if (command === undefined) return ['README.md has no command in its section "Test".'];
  const run = read('.ci/run').split('\n');
  return command
    .split(' && ')
    .filter((part) => !run.includes(part) && !run.includes(`CI=true ${part}`))
    .map((part) => `.ci/run does not call "${part}", which is README.md's test command.`);
}

function glossaryFaults() {
  const text = read('docs/glossary.md');
  return [
    ...GLOSSARY.filter((word) => !text.includes(`| **${word}** | `)).map(
      (word) => `docs/glossary.md does not define "${word}".`,
    ),
    ...['README.md', 'ARCHITECTURE.md']
      .filter((page) => !read(page).includes('](docs/glossary.md)'))
      .map((page) => `${page} does not link docs/glossary.md.`),
  ];
}

function linkFaults(page) {
  return [...read(page).matchAll(/\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)/g)].flatMap(
    ([, link, anchor]) => {
      const target = link === '' ? page : path.join(path.dirname(page), link);
      if (!exists(target)) return [`${page}: ${link} does not exist.`];
      if (anchor === undefined || anchorsOf(target).has(anchor)) return [];
      return [`${page}: ${target} has no heading #${anchor}.`];
    },
  );
}

/** Anchors of a page's headings, as GitHub makes them. */
function anchorsOf(page) {
  const headings = [...read(page).matchAll(/^#+ (.+)$/gm)].map(([, heading]) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
  return new Set(headings);
}

function scriptFaults(page) {
  const { scripts } = JSON.parse(read('package.json'));
  return [...read(page).matchAll(/npm run ([a-z:-]+)/g)].flatMap(([, script]) =>
    scripts[script] === undefined ? [`${page}: there is no npm run ${script}.`] : [],
  );
}

function downloadFaults() {
  return execFileSync('git', ['ls-files'], { cwd: root, encoding: 'utf8' })
    .trim()
    .split('\n')
    .filter((name) => /\.(ts|mjs|cjs|json|md|sh)$/.test(name) && exists(name))
    .filter((name) => /"resolved": *"https?:/.test(read(name)))
    .map((name) => `${name} holds a download address.`);
}
