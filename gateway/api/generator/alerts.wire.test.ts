import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { request } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startIngest, type TestIngest } from '../../../testing/ingest-process.ts';
import { makePill } from '../../../testing/pills.ts';
import { openTestSmtp, type TestSmtp } from '../../../testing/smtp.ts';
import { waitFor } from '../../../testing/wait.ts';
import { openPlatform, type Platform, venueRulesFile } from '../testing/api-platform.ts';

let platform: Platform;
let ingest: TestIngest;
let smtp: TestSmtp;
const posted: { type: string; source: string; text: string }[] = [];
let refusals = 1;
const receiver = createServer(async (message, response) => {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk);
  // The first attempt fails, and is repeated.
  refusals -= 1;
  if (refusals < 0) posted.push(JSON.parse(Buffer.concat(chunks).toString()));
  response.writeHead(refusals < 0 ? 200 : 500).end();
});

beforeAll(async () => {
  smtp = await openTestSmtp();
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  const env = {
    SMTP_URL: smtp.config.smtpUrl!,
    ALERT_ADDRESS: 'operator@example.com',
    ALERT_WEBHOOK_URL: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`,
    ALERT_SILENCE_S: '3',
    VENUE_RULES: await venueRulesFile({ prefix: { 'COIN:': 'ALWAYS' } }),
  };
  platform = await openPlatform({ env });
  // A second process watches as well.
  await platform.startApi(env);
  ingest = await startIngest(platform.namespace);
  await ingest.process.ready();
});

afterAll(async () => {
  await ingest?.process.stop();
  await platform?.close();
  await smtp?.close();
  receiver.close();
});

const mailsAbout = (subject: string) =>
  smtp.mails.filter(({ headers }) => headers.some(([, value]) => value.includes(subject)));
const postsOf = (type: string) => posted.filter((one) => one.type === type);
const runningAlerts = async () => {
  const rows = await platform.db
    .selectFrom('operator_alerts')
    .select(['kind', 'channel', 'ended_at', 'mailed_at'])
    .orderBy('created_at')
    .execute();
  return rows.filter(({ ended_at }) => ended_at === null);
};

test('a silent generator is reported once by each way, and again only after it has sent', async () => {
  const send = () => platform.write([makePill({ symbol: 'COIN:A', source: 'desk-1' })]);
  const sentTo = (count: number) =>
    waitFor(`${count} alerts`, () => {
      const mails = mailsAbout('Generator desk-1 sends no pills').length;
      return mails >= count && postsOf('generator.silent').length >= count;
    });
  await send();
  await sentTo(1);
  expect(postsOf('generator.silent')[0]).toMatchObject({
    source: 'desk-1',
    text: expect.stringMatching(/^Generator desk-1 sends no pills: No pill for \d+ s, although/),
  });
  // The episode goes on over some looks of both processes, without another alert.
  const pills = setInterval(() => void send(), 500);
  await waitFor('the end of the episode', async () => (await runningAlerts()).length === 0);
  clearInterval(pills);
  expect(mailsAbout('Generator desk-1 sends no pills').length).toBe(1);
  expect(postsOf('generator.silent').length).toBe(1);
  await sentTo(2);
  expect(mailsAbout('Generator desk-1 sends no pills').length).toBe(2);
});

test('many refused pills are reported with their share', async () => {
  for (let at = 0; at < 25; at += 1) {
    const headers = { 'content-type': 'application/json' };
    const to = `${ingest.url}/api/pillole`;
    const answer = await request(to, { method: 'POST', headers, body: '{}' });
    await answer.body.dump();
  }
  await waitFor('both alerts', () => {
    const isMailed = mailsAbout('Generator http has many pills refused').length > 0;
    return isMailed && postsOf('generator.refusals').length > 0;
  });
  expect(postsOf('generator.refusals')).toMatchObject([
    {
      source: 'http',
      text: expect.stringMatching(/: Of \d+ pills in the last 10 minutes, \d+ were refused/),
    },
  ]);
  expect(mailsAbout('Generator http has many pills refused').length).toBe(1);
});
