import { execFileSync } from 'node:child_process';
import path from 'node:path';
import type { Static, TObject } from 'typebox';
import { expect, expectTypeOf, test } from 'vitest';
import type { Pill as EventPill } from '../domain/webhooks/events/event-fields.ts';
import type * as account from '../gateway/api/account/account-schemas.ts';
import type { HISTORY_ANSWER } from '../gateway/api/history/schemas.ts';
import type { AnswerSchema } from '../gateway/api/verify/schemas.ts';
import type { PILL, SNAPSHOT_PILL } from '../gateway/stream/protocol/frame-parts.ts';
import type {
  Account,
  HistoryPage,
  MissingVerdict,
  Pill,
  PublishedPill,
  PublishedVerdict,
  SnapshotPill,
  Usage,
  Verdict,
  VerdictList,
  Verdicts,
} from '../sdk/exports.ts';
import { streamFrameTypes, webhookEventTypes } from './sdk-types.ts';

const root = path.join(import.meta.dirname, '..');

/** Formats as `npm run format` does: the generated files are checked like all others. */
function formatted(source: string, file: string): string {
  const biome = path.join(root, 'node_modules/.bin/biome');
  const args = ['format', `--stdin-file-path=${file}`];
  return execFileSync(biome, args, { cwd: root, input: source, encoding: 'utf8' });
}

// `vitest -u` writes the files.
test.each([
  ['sdk/stream/stream-frames.ts', streamFrameTypes],
  ['sdk/webhooks/webhook-events.ts', webhookEventTypes],
])('%s is generated from the schemas', async (file, generate) => {
  const target = path.join(root, file);
  await expect(formatted(generate(), target)).toMatchFileSnapshot(target);
});

test('the written types of pills have the members of the schemas', () => {
  expectTypeOf<Static<TObject<typeof PILL>>>().toExtend<Pill>();
  expectTypeOf<keyof Pill>().toEqualTypeOf<keyof typeof PILL | 'sent_at'>();
  expectTypeOf<Static<TObject<typeof SNAPSHOT_PILL>>>().toExtend<SnapshotPill>();
  expectTypeOf<keyof SnapshotPill>().toEqualTypeOf<keyof Pill | 'last_cursor'>();
  expectTypeOf<Static<typeof EventPill>>().toExtend<PublishedPill>();
  expectTypeOf<keyof PublishedPill>().toEqualTypeOf<keyof Static<typeof EventPill>>();
});

test('the written types of REST answers accept every answer that the API allows', () => {
  type Answers = (typeof AnswerSchema)['anyOf'];
  expectTypeOf<Static<Answers[0]>>().toExtend<Verdict>();
  expectTypeOf<Static<Answers[1]>>().toExtend<PublishedVerdict>();
  expectTypeOf<Static<Answers[2]>>().toExtend<PublishedVerdict>();
  expectTypeOf<Static<Answers[3]>>().toExtend<MissingVerdict>();
  expectTypeOf<Static<Answers[4]>>().toExtend<Verdicts>();
  expectTypeOf<Static<Answers[5]>>().toExtend<VerdictList>();
  expectTypeOf<Static<typeof account.Account>>().toExtend<Account>();
  expectTypeOf<Static<typeof account.Usage>>().toExtend<Usage>();
  expectTypeOf<Static<(typeof HISTORY_ANSWER)['schema']>>().toExtend<HistoryPage>();
});
