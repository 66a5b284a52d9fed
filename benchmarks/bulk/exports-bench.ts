import { Agent } from 'undici';
import { makePython } from '../../testing/python.ts';
import { addLiftedAccount } from '../access/lifted-account.ts';
import {
  openPillTable,
  type PillTable,
  SYMBOL_PILLS_A_DAY,
  SYMBOLS,
} from '../analytics/pill-table.ts';
import type { Report } from '../harness/results.ts';
import { flag, type OptionsOf, onStage, type Scenario } from '../harness/scenario.ts';
import type { Stage } from '../harness/stage.ts';
import { downloadExport, REQUIREMENTS, verifyExport } from './download.ts';
import { type FormatCell, reportOf } from './exports-report.ts';
import { watchMemory } from './memory.ts';
import { type ApiAccess, createExport, type Day, readExport, removeExport } from './ways.ts';

const FORMATS = ['parquet', 'arrow', 'csv.gz', 'ndjson.zst'] as const;
const FLAGS = {
  rows: flag.whole('pills of the range', 1_000, 200_000_000, 50_000_000),
  formats: flag.some('formats of exports', FORMATS),
};
type Options = OptionsOf<typeof FLAGS>;

const DAY_MS = 86_400_000;
const POLL_MS = 500;

/** What memory a large export takes of the API, of ClickHouse, and of the client who checks it. */
export const EXPORTS: Scenario<Options> = {
  name: 'exports',
  description: 'Memory of the API and of ClickHouse over an export of 50 million pills.',
  flags: FLAGS,
  measure: onStage(measure),
};

async function measure(stage: Stage, { rows, formats }: Options): Promise<Report> {
  const made = await makePython(REQUIREMENTS);
  if ('reason' in made) throw new Error(`No Python with the client's packages: ${made.reason}`);
  const { api, table, range, pids } = await openPlatform(stage, rows);
  const cells: FormatCell[] = [];
  for (const format of formats) {
    stage.say(`${format}: export`);
    const memory = await watchMemory(table, pids);
    const { done, seconds } = await exportAll(api, range, format, memory.note);
    const exporting = await memory.stop();
    stage.say(`${format}: ${seconds.toFixed(0)} s; download and check`);
    const file = await downloadExport(api, done, stage.folder);
    const verified = await verifyExport(made.python, file.path, format, done);
    await file.remove();
    await removeExport(api, done.id);
    const { count } = done.file!.receipt;
    cells.push({ format, rows: count, seconds, ...exporting, ...file.figures, verified });
  }
  return reportOf({ rows, parts: await table.parts() }, cells);
}

/** @param note is called with the pills that are written */
async function exportAll(api: ApiAccess, range: Day, format: string, note: (rows: number) => void) {
  const startedAt = performance.now();
  let info = await createExport(api, range, format);
  while (info.state === 'waiting' || info.state === 'running') {
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    info = await readExport(api, info.id);
    note(info.progress.rows);
  }
  if (info.file === null) throw new Error(`The export is ${info.state}: ${info.problem}.`);
  return { done: info, seconds: (performance.now() - startedAt) / 1_000 };
}

/** Starts the API, and fills the table with pills of as many days as they take. */
async function openPlatform(stage: Stage, rows: number) {
  const { engines, say } = stage;
  const { namespace } = await stage.addNamespace('exports');
  const table: PillTable = openPillTable(engines.clickhouseUrl, namespace);
  stage.onStop(table.close);
  say(`filling the table with ${rows} pills`);
  // Pills of a former log, as in `bulk`. They are merged as those of the sink are: by the engine.
  await table.fillTo(rows, 'former');
  const to = Date.now();
  const days = Math.ceil(rows / SYMBOLS / SYMBOL_PILLS_A_DAY) + 1;
  const range: Day = {
    from: new Date(to - days * DAY_MS).toISOString(),
    to: new Date(to).toISOString(),
  };
  for (const name of ['latest', 'analytics']) await stage.start(name, namespace);
  const { port, pid } = await stage.start('api', namespace);
  const dispatcher = new Agent({ connections: 4, bodyTimeout: 0 });
  stage.onStop(() => dispatcher.close());
  const db = stage.openDatabase(namespace);
  const { key } = await addLiftedAccount(db, 'institutional', stage.pepper, 'exports');
  const api: ApiAccess = { url: `http://127.0.0.1:${port}`, key, dispatcher };
  return { api, table, range, pids: { api: pid, clickhouse: engines.pids().clickhouse! } };
}
