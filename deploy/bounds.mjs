// Compares the table of bounds in ARCHITECTURE.md with the code: bounds.md has the text of the rows,
// the constants in the code have the numbers. `node deploy/bounds.mjs --write` rewrites the table.

import { existsSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import ts from 'typescript';

const root = path.resolve(import.meta.dirname, '..');
const DOCUMENT = path.join(root, 'ARCHITECTURE.md');
const TEMPLATE = path.join(import.meta.dirname, 'bounds.md');
const TABLE = /(<!-- bounds: [^\n]*-->\n\n).*?(\n<!-- end of bounds -->)/s;

/** Files of the constants, by their name in the rows. */
const FILES = {
  alerts: 'gateway/api/generator/alerts.ts',
  analytics: 'gateway/api/analytics/limits.ts',
  answerLog: 'gateway/http/answer-log.ts',
  answers: 'domain/webhooks/send/receiver-answer.ts',
  api: 'gateway/api/limits.ts',
  attempts: 'domain/accounts/attempts.ts',
  cadence: 'domain/market/cadence/cadence.ts',
  canary: 'generator/canary/sightings.ts',
  capacity: 'domain/dedicated/capacity.ts',
  checkouts: 'domain/accounts/checkouts.ts',
  counter: 'domain/access/quota-counter.ts',
  database: 'lib/postgres/database.ts',
  dedicated: 'gateway/dedicated/limits.ts',
  desks: 'domain/desks/desks.ts',
  deliveries: 'domain/webhooks/deliveries/stored-messages.ts',
  destinations: 'domain/destinations/limits.ts',
  destinationRuns: 'pipelines/destinations/limits.ts',
  endpoints: 'domain/webhooks/endpoints/endpoint-operations.ts',
  exports: 'gateway/api/exports/limits.ts',
  flights: 'domain/access/single-flight.ts',
  gaps: 'sdk/stream/gap-pages.ts',
  generators: 'gateway/api/generator/routes.ts',
  history: 'gateway/api/history/limits.ts',
  ingest: 'gateway/ingest/limits.ts',
  invoices: 'domain/accounts/invoices.ts',
  issuers: 'domain/authentication/jwks-cache.ts',
  jwks: 'domain/authentication/jwks.ts',
  keyring: 'domain/access/keyring.ts',
  keys: 'domain/accounts/keys.ts',
  latest: 'pipelines/latest/processor.ts',
  launcher: 'deploy/local/main.ts',
  mails: 'lib/mail/mail-queue.ts',
  members: 'domain/members/member-rows.ts',
  messages: 'domain/webhooks/events/webhook-message.ts',
  networks: 'domain/accounts/sign-in-networks.ts',
  nonces: 'domain/access/nonces.ts',
  operatorAlerts: 'domain/accounts/operator-alerts.ts',
  passwords: 'domain/accounts/passwords.ts',
  pending: 'domain/access/pending-counts.ts',
  pepperHolders: 'domain/access/pepper-holders.ts',
  peppers: 'domain/access/pepper.ts',
  producer: 'lib/kafka/producer.ts',
  metricList: 'deploy/observability/metric-list.ts',
  progress: 'lib/kafka/progress-watch.ts',
  config: 'lib/config/read-setting.ts',
  engineUrls: 'lib/config/engine-url.ts',
  proxies: 'gateway/http/client-address.ts',
  provision: 'deploy/provision.ts',
  rehash: 'domain/access/key-rehash.ts',
  schemeLookups: 'domain/access/scheme-lookups.ts',
  schemes: 'domain/authentication/schemes.ts',
  signatures: 'domain/authentication/signature-input.ts',
  rebuild: 'pipelines/analytics/rebuild.ts',
  recovery: 'domain/accounts/recovery-codes.ts',
  refusalReports: 'gateway/ingest/refusal-reports.ts',
  refusals: 'gateway/ingest/refusals.ts',
  rejected: 'pipelines/latest/rejected.ts',
  s3: 'domain/destinations/s3/s3-publisher.ts',
  s3Answers: 'domain/destinations/s3/vetted-handler.ts',
  replay: 'gateway/api/webhooks/replay-part.ts',
  retries: 'domain/webhooks/deliveries/retry-schedule.ts',
  run: 'lib/run/run-process.ts',
  securityEvents: 'domain/access/security-events.ts',
  secondFactor: 'domain/accounts/second-factor.ts',
  sender: 'domain/webhooks/send/webhook-sender.ts',
  serviceDays: 'domain/service/service-days.ts',
  availability: 'domain/service/availability-log.ts',
  sessions: 'domain/accounts/sessions.ts',
  sink: 'pipelines/analytics/pill-sink.ts',
  sockets: 'domain/dedicated/streams.ts',
  sessionsList: 'domain/stream-sessions/stream-sessions.ts',
  stream: 'gateway/stream/limits.ts',
  support: 'domain/support/tickets.ts',
  frames: 'gateway/console/page/app/streams/frame-log.ts',
  tickets: 'domain/access/stream-tickets.ts',
  tiers: 'domain/access/tiers.ts',
  tokens: 'domain/authentication/token.ts',
  turns: 'lib/postgres/in-turn.ts',
  usage: 'domain/access/usage-writer.ts',
  verify: 'gateway/api/verify/limits.ts',
  visitor: 'domain/accounts/visitor.ts',
  waiting: 'pipelines/webhooks/retry/waiting-messages.ts',
  webhooks: 'pipelines/webhooks/limits.ts',
};

/** @returns what is wrong: a missing constant, a missing marker, or a table that is not current */
export function boundsFaults() {
  const { text, faults } = fill(readFileSync(TEMPLATE, 'utf8'));
  const document = readFileSync(DOCUMENT, 'utf8');
  if (!TABLE.test(document)) faults.push('ARCHITECTURE.md has no markers of the table of bounds.');
  else if (withTable(document, text) !== document) {
    faults.push('ARCHITECTURE.md: the bounds differ from the code: node deploy/bounds.mjs --write');
  }
  return faults;
}

function withTable(document, text) {
  return document.replace(TABLE, (_, begin, end) => `${begin}${text}${end}`);
}

/** Replaces each `{file.CONSTANT.member}` by its value, with the unit that its name ends with. */
function fill(template) {
  const faults = [];
  const used = new Set();
  const text = template.replace(/\{(\w+)\.([\w.]+)\}/g, (whole, file, members) => {
    used.add(file);
    try {
      const names = members.split('.');
      const value = constantOf(path.join(root, FILES[file]), names);
      return format(value, names.at(-1));
    } catch (error) {
      faults.push(`deploy/bounds.md: ${whole}: ${error.message}`);
      return whole;
    }
  });
  const unused = Object.keys(FILES).filter((file) => !used.has(file));
  if (unused.length > 0) faults.push(`deploy/bounds.mjs: no row uses ${unused.join(', ')}.`);
  return { text, faults };
}

const sources = new Map();

/** The value of a constant at the top level of a file, or of a member of it. */
function constantOf(file, [name, ...members]) {
  const source = sourceOf(file);
  const initializer = source.constants.get(name);
  if (initializer === undefined) {
    const from = source.imports.get(name);
    if (from === undefined) throw new Error(`no constant ${name} in ${path.relative(root, file)}`);
    return constantOf(from, [name, ...members]);
  }
  let value = evaluate(file, initializer);
  for (const member of members) value = value?.[member];
  if (value === undefined) throw new Error(`${name} has no ${members.join('.')}`);
  return value;
}

function sourceOf(file) {
  const known = sources.get(file);
  if (known !== undefined) return known;
  if (!existsSync(file)) throw new Error(`no file ${path.relative(root, file)}`);
  const parsed = ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest);
  const source = { constants: new Map(), imports: new Map() };
  sources.set(file, source);
  for (const statement of parsed.statements) {
    if (ts.isVariableStatement(statement)) {
      for (const { name, initializer } of statement.declarationList.declarations) {
        if (ts.isIdentifier(name)) source.constants.set(name.text, initializer);
      }
    } else if (ts.isImportDeclaration(statement) && statement.moduleSpecifier.text[0] === '.') {
      const from = path.join(path.dirname(file), statement.moduleSpecifier.text);
      const named = statement.importClause?.namedBindings;
      for (const { name } of named?.elements ?? []) source.imports.set(name.text, from);
    }
  }
  return source;
}

/** Evaluates numbers, their sums and products, objects and lists: the forms that limits have. */
function evaluate(file, node) {
  const value = (child) => evaluate(file, child);
  if (ts.isNumericLiteral(node)) return Number(node.text);
  if (ts.isStringLiteral(node)) return node.text;
  if (ts.isIdentifier(node)) return constantOf(file, [node.text]);
  if (ts.isPropertyAccessExpression(node)) return value(node.expression)?.[node.name.text];
  if (ts.isArrayLiteralExpression(node)) return node.elements.map(value);
  if (ts.isObjectLiteralExpression(node)) {
    const members = {};
    for (const property of node.properties) {
      if (ts.isSpreadAssignment(property)) Object.assign(members, value(property.expression));
      else if (ts.isPropertyAssignment(property)) {
        members[property.name.text] = value(property.initializer);
      }
    }
    return members;
  }
  if (ts.isBinaryExpression(node)) {
    const [left, right] = [value(node.left), value(node.right)];
    if (node.operatorToken.kind === ts.SyntaxKind.AsteriskToken) return left * right;
    if (node.operatorToken.kind === ts.SyntaxKind.PlusToken) return left + right;
  }
  const inner = ts.isAsExpression(node) || ts.isSatisfiesExpression(node);
  return inner || ts.isParenthesizedExpression(node) ? value(node.expression) : undefined;
}

function format(value, name) {
  if (Array.isArray(value)) return value.map((one) => format(one, name)).join(', ');
  if (typeof value === 'string') return value;
  if (typeof value !== 'number' || !Number.isFinite(value)) throw new Error('is not a number');
  if (/bytes/i.test(name)) return bytes(value);
  if (/Ms(Max)?$|_MS(_MAX)?$/.test(name))
    return value < 1_000 ? `${value} ms` : time(value / 1_000);
  return /[a-z]S(Max)?$|_S$/.test(name) ? time(value) : count(value);
}

function bytes(value) {
  const units = ['B', 'KiB', 'MiB', 'GiB'];
  const power = units.findLastIndex((_, i) => value % 1024 ** i === 0);
  if (power > 0) return `${count(value / 1024 ** power)} ${units[power]}`;
  return value % 1_000_000 === 0 ? `${count(value / 1e6)} MB` : `${count(value / 1e3)} kB`;
}

function time(s) {
  const [unit, name] = s > 3_600 && s % 3_600 === 0 ? [3_600, 'h'] : [1, 's'];
  return `${count(s / unit)} ${name}`;
}

function count(value) {
  return value.toLocaleString('en-US');
}

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === import.meta.filename) {
  if (process.argv.includes('--write')) {
    const { text } = fill(readFileSync(TEMPLATE, 'utf8'));
    writeFileSync(DOCUMENT, withTable(readFileSync(DOCUMENT, 'utf8'), text));
  }
  const faults = boundsFaults();
  if (faults.length > 0) {
    process.stderr.write(`${faults.join('\n')}\n`);
    process.exitCode = 1;
  }
}
