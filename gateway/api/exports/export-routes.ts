import type { FastifyReply, FastifyRequest, RouteOptions } from 'fastify';
import { Type } from 'typebox';
import { tierOf } from '../../../domain/access/entitlement.ts';
import type { Pepper } from '../../../domain/access/pepper.ts';
import { sessionIdOf } from '../../../domain/accounts/sessions.ts';
import type { ExportCreated, ExportJobs, ExportRow } from '../../../domain/exports/export-jobs.ts';
import type { Turns } from '../../../lib/rate/turns.ts';
import { answerOf } from '../../http/answer-body.ts';
import { refuse } from '../../http/refuse.ts';
import { QueryError, queryProblem } from '../clickhouse/query-error.ts';
import type { Select } from '../clickhouse/select.ts';
import { type AccountRule, ownAccount } from '../server/access-rule.ts';
import { accountRoute } from '../server/account-route.ts';
import { callerOf, requesterOf } from '../server/caller.ts';
import { bodyFault, refuseBody } from '../server/json-body.ts';
import { queryOf } from '../server/parameters.ts';
import { idOf, optionalText, STRICT, strict } from '../server/schemas.ts';
import { lengthFaults } from '../server/time-range.ts';
import {
  EstimateAnswer,
  EXPORT_EXAMPLE,
  ExportRequestSchema,
  ExportSchema,
  exportBody,
  readExportBody,
} from './export-body.ts';
import { formatSpec } from './export-formats.ts';
import { signLink } from './export-link.ts';
import { countRows, type StoredRequest, selectRange } from './export-query.ts';
import { EXPORT_LIMITS } from './limits.ts';

export interface ExportDeps {
  readonly jobs: ExportJobs;
  readonly select: Select;
  /** Bounds the estimates. */
  readonly turns: Turns;
  readonly epoch: string;
  /** Up to where the table holds the log. @throws QueryError */
  readonly position: () => Promise<string>;
  readonly pepper: Pepper;
}

const DAY_S = 86_400;
const isDryRun = (request: FastifyRequest) => queryOf(request).get('dry_run') === 'true';

/** Creating is a change, so `read` is not enough. An estimate is free. */
const CREATES: AccountRule = {
  ...ownAccount('exports', 'exports:change', 'history'),
  isMetered: true,
  waive: (request) => (isDryRun(request) ? 'free' : undefined),
};
const READS = { tag: 'exports', access: ownAccount('exports', 'exports:read', 'history') } as const;
/** Needs no capability: after a downgrade, exports can still be removed. */
const REMOVES = { tag: 'exports', access: ownAccount('exports', 'exports:change') } as const;
const params = Type.Object({ id: idOf('exp') }, STRICT);

/** Exports: files with many pills, made in the background. */
export function exportRoutes(deps: ExportDeps): RouteOptions[] {
  const shown = (request: FastifyRequest, row: ExportRow) => {
    const { key, session } = callerOf(request);
    const by = key?.id ?? sessionIdOf(session!);
    const link =
      row.state === 'done'
        ? signLink(row.id, by, Math.floor(Date.now() / 1000), deps.pepper)
        : undefined;
    return exportBody(row, link);
  };
  const owned = (request: FastifyRequest & { params: { id: string } }) =>
    deps.jobs.get(callerOf(request).account.id, request.params.id);
  return [
    createRoute(deps, shown),
    accountRoute({
      method: 'GET',
      url: '/api/exports',
      ...READS,
      summary: 'List the exports of the last 24 h',
      answers: {
        200: answerOf('Newest first.', Type.Object({ data: Type.Array(ExportSchema) })),
      },
      handle: async (request) => ({
        data: (await deps.jobs.list(callerOf(request).account.id)).map((row) =>
          shown(request, row),
        ),
      }),
    }),
    accountRoute({
      method: 'GET',
      url: '/api/exports/:id',
      ...READS,
      summary: 'Read an export, its progress, and a link to its file',
      params,
      answers: { 200: answerOf('The export.', ExportSchema) },
      problems: ['object_not_found'],
      handle: async (request, reply) => {
        const row = await owned(request);
        return row === undefined ? refuse(reply, 'object_not_found') : shown(request, row);
      },
    }),
    accountRoute({
      method: 'DELETE',
      url: '/api/exports/:id',
      ...REMOVES,
      summary: 'Cancel an export, or remove a finished one with its file',
      params,
      answers: { 204: { description: 'Done; links to the file no longer work.' } },
      problems: ['object_not_found'],
      handle: async (request, reply) => {
        const row = await deps.jobs.remove(requesterOf(request), request.params.id);
        return row === undefined ? refuse(reply, 'object_not_found') : reply.code(204).send();
      },
    }),
  ];
}

/** `POST /api/exports`. */
function createRoute(
  deps: ExportDeps,
  shown: (request: FastifyRequest, row: ExportRow) => object,
): RouteOptions {
  return accountRoute({
    method: 'POST',
    url: '/api/exports',
    tag: 'exports',
    access: CREATES,
    summary: 'Create an export: a file with the pills of a range',
    description: DESCRIPTION,
    query: strict({
      dry_run: optionalText('`true`: only estimates the cost; free', {
        pattern: '^(true|false)$',
      }),
    }),
    body: ExportRequestSchema,
    bodyBytesMax: 65_536,
    bodyExample: { ...EXPORT_EXAMPLE, symbols: [...EXPORT_EXAMPLE.symbols] },
    answers: {
      200: answerOf('With `dry_run=true`: the cost.', EstimateAnswer),
      202: answerOf('The export, which waits for its turn.', ExportSchema),
    },
    problems: [
      'export_limit',
      'export_storage_full',
      'history_unavailable',
      'history_too_heavy',
      'overloaded',
    ],
    handle: async (request, reply) => {
      const row = await create(deps, request, reply);
      return row === undefined ? reply : reply.code(202).send(shown(request, row));
    },
  });
}

/** @returns the export; undefined: the answer was sent */
async function create(
  deps: ExportDeps,
  request: FastifyRequest & { readonly body: unknown },
  reply: FastifyReply,
): Promise<ExportRow | undefined> {
  const asked = request.body as Parameters<typeof readExportBody>[0];
  const { account } = callerOf(request);
  const parsed = readExportBody(asked);
  const faults = parsed.ok ? rangeFaults(parsed.value, tierOf(account, Date.now())) : parsed.faults;
  if (!parsed.ok || faults.length > 0) {
    const found = faults.map((one) => bodyFault(`/${one.parameter}`, one.code, one.detail));
    refuseBody(reply, found);
    return undefined;
  }
  const stored = parsed.value;
  const leave = await deps.turns.begin(account.id);
  if (leave === undefined) return void refuse(reply, 'overloaded', { retry_after_s: 1 });
  try {
    const position = await deps.position();
    const rows = await countRows(deps.select, selectRange(stored.range, position));
    const bytes = rows * formatSpec(stored.format).bytesPerRow;
    if (rows > EXPORT_LIMITS.rowsMax) {
      const detail = `The range has ${rows} pills, limit ${EXPORT_LIMITS.rowsMax}: divide it.`;
      return void refuse(reply, 'history_too_heavy', { detail });
    }
    if (isDryRun(request)) {
      reply.send({ estimate: { rows, bytes, calls: 1 } });
      return undefined;
    }
    const created = await deps.jobs.create(requesterOf(request), {
      request: { ...stored, asked },
      ...{ epoch: deps.epoch, position, rowsEstimated: rows, bytesEstimated: bytes },
    });
    if (created.kind === 'ok') return created.row;
    const [code, members] = refusalOf(created);
    return void refuse(reply, code, members);
  } catch (error) {
    if (!(error instanceof QueryError)) throw error;
    const heavy = ['history_too_heavy', {}] as const;
    return void refuse(
      reply,
      ...queryProblem(error, { heavy, unavailable: 'history_unavailable' }),
    );
  } finally {
    leave();
  }
}

function rangeFaults({ range }: StoredRequest, tier: string | undefined) {
  if (tier === 'institutional') return [];
  const window = { since: range.from, until: range.to };
  return lengthFaults(window, EXPORT_LIMITS.rangeDaysMax * DAY_S);
}

function refusalOf(created: Exclude<ExportCreated, { kind: 'ok' }>) {
  if (created.kind === 'full') {
    if (created.of === 'open') return ['overloaded', { retry_after_s: 60 }] as const;
    return ['export_storage_full', { retry_after_s: 3_600 }] as const;
  }
  const { of, limit } = created;
  const detail =
    of === 'open'
      ? `${limit} exports of the account wait or run. Wait for one, or cancel it.`
      : `The account created ${limit} exports in the last 24 h.`;
  return ['export_limit', { limit, detail, retry_after_s: of === 'open' ? 30 : 3_600 }] as const;
}

const DESCRIPTION =
  `Pro: at most ${EXPORT_LIMITS.rangeDaysMax} days; Institutional: any range. The export holds the ` +
  'pills that were stored when it was requested, by symbol, timestamp and id, each once; late pills ' +
  'and backfill are included. Read it until `state` is `done`, then get `file.url`. It is kept for ' +
  `24 h. At most ${EXPORT_LIMITS.openOfAccountMax} of an account wait or run, one at a time, and ` +
  `${EXPORT_LIMITS.dailyOfAccountMax} begin in 24 h. An export counts as one call.`;
