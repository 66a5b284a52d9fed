import { readFile } from 'node:fs/promises';
import path from 'node:path';
import type { TSchema } from 'typebox';
import { expect, test } from 'vitest';
import { RETRY_WAITS_S } from '../domain/webhooks/deliveries/retry-schedule.ts';
import {
  EVENT_CATALOGUE,
  EVENT_TYPES,
  type EventEntry,
} from '../domain/webhooks/events/event-catalogue.ts';

const read = (name: string) => readFile(path.join(import.meta.dirname, name), 'utf8');

/** The section of a type. */
function describeEvent({ type, raised, advice, schema, example }: EventEntry): string {
  const { data } = (schema as unknown as { properties: { data: TSchema } }).properties;
  const { properties } = data as unknown as { properties: Record<string, TSchema> };
  const members = Object.entries(properties).flatMap(([name, member]) => {
    const { description } = member as { description?: string };
    return description === undefined ? [] : [`- \`${name}\`: ${description}\n`];
  });
  const list = members.length === 0 ? '' : `\n${members.join('')}`;
  const body = JSON.stringify(example, null, 2);
  return `### ${type}\n\n${raised}\n\n*What to do:* ${advice}\n${list}\n\`\`\`json\n${body}\n\`\`\`\n`;
}

/** The page with its code and events taken from the examples and the catalogue. */
async function regenerate(page: string): Promise<string> {
  let whole = page;
  for (const [, name] of page.matchAll(/^<!-- code: (.+) -->$/gm)) {
    const source = await read(`examples/${name}`);
    const region = /^(?:\/\/|#) region: verify\n([\s\S]*?)\n+(?:\/\/|#) end$/m.exec(source)?.[1];
    if (region === undefined) throw new Error(`${name} has no verify region`);
    const block = new RegExp(`(<!-- code: ${name} -->\n\`\`\`\\w+\n)[\\s\\S]*?(\`\`\`\n)`);
    whole = whole.replace(block, (_, begin, end) => `${begin}${region}\n${end}`);
  }
  const events = Object.values<EventEntry>(EVENT_CATALOGUE).map(describeEvent).join('\n');
  return whole.replace(
    /(<!-- events -->\n)[\s\S]*(<!-- end of events -->)/,
    (_, begin, end) => `${begin}\n${events}\n${end}`,
  );
}

// `vitest -u` writes the page.
test('the page shows the code of the examples and the events of the catalogue', async () => {
  const page = await read('WEBHOOKS.md');
  for (const name of ['receive-webhook.js', 'verify-webhook.js', 'verify-webhook.py']) {
    expect(page).toContain(`<!-- code: ${name} -->`);
  }
  expect(page).toContain('<!-- code: verify-webhook.go -->');
  await expect(await regenerate(page)).toMatchFileSnapshot('WEBHOOKS.md');
});

test('the page has a section for every type of event, and no other', async () => {
  const headings = [...(await read('WEBHOOKS.md')).matchAll(/^### (.+)$/gm)].map(
    ([, type]) => type,
  );
  expect(headings.sort()).toEqual([...EVENT_TYPES, 'pills.published', 'endpoint.test'].sort());
});

test('the page has the retry schedule of the code', async () => {
  const waits = RETRY_WAITS_S.map((s) =>
    s < 60 ? `${s} s` : s < 3_600 ? `${s / 60} min` : `${s / 3_600} h`,
  );
  expect(await read('WEBHOOKS.md')).toContain(`then after ${waits.join(', ')}, each`);
});

test('the page lists every reason of the code', async () => {
  const page = await read('WEBHOOKS.md');
  const sources = await Promise.all(
    ['domain/webhooks/send/attempt-error.ts', 'pipelines/webhooks/attempt.ts'].map((file) =>
      read(`../${file}`),
    ),
  );
  const [, union = ''] = /FailureReason =([\s\S]*?);/.exec(sources[0]!) ?? [];
  const [, judged = ''] = /function reasonOf([\s\S]*?)\n}/.exec(sources[1]!) ?? [];
  const words = (text: string) => [...text.matchAll(/'([a-z_]+)'/g)].map(([, word]) => word!);
  const reasons = [...words(union), ...words(judged), 'challenge_missing', 'too_old'];
  expect(reasons.length).toBeGreaterThan(12);
  for (const reason of reasons) {
    // An attempt that a shutdown stops is neither shown nor counted.
    if (reason !== 'stopped') expect(page).toContain(`\n| \`${reason}\` | `);
  }
});
