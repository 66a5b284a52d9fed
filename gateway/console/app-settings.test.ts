import { TOTP } from 'otpauth';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { answerTicket } from '../../domain/support/tickets.ts';
import { openTestDatabase } from '../../testing/accounts.ts';
import { waitFor } from '../../testing/wait.ts';
import { type AccountApi, openAccountApi } from '../api/testing/account-api.ts';
import { PASSWORD } from '../api/testing/customer.ts';
import { hasHeading, openAppPages, press } from './testing/app-pages.ts';
import { checkPage } from './testing/axe.ts';

/** Security, billing and the account, in a real browser. */
let api: AccountApi;
let pages: Awaited<ReturnType<typeof openAppPages>>;

beforeAll(async () => {
  pages = await openAppPages(() => api.base, PASSWORD);
  api = await openAccountApi();
});

afterEach(() => pages.closePages());

afterAll(async () => {
  await pages?.close();
  await api?.close();
});

test('a second factor is set up, asked for at sign-in, and removed', async () => {
  const customer = await api.customer('careful');
  const { page } = await pages.open('/app/settings/security');
  await pages.signIn(page, customer.email, 'Security');
  await page.getByRole('button', { name: 'Set up second factor' }).click();
  await page.getByLabel('Password').fill(PASSWORD);
  await press(page, 'Continue', hasHeading(page, 'Add to your authenticator'));
  const secret = await page.locator('.copyable code').innerText();
  const code = () => new TOTP({ secret }).generate();
  await page.getByLabel('Code', { exact: true }).fill(code());
  await press(page, 'Confirm', hasHeading(page, 'Recovery codes'));
  const codes = (await page.locator('.copyable code').innerText()).split('\n');
  expect(codes.length).toBeGreaterThan(5);
  await page.getByRole('button', { name: 'I have kept them' }).click();
  await page.getByText(`${codes.length} recovery codes are left`).waitFor();

  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByLabel('E-mail').fill(customer.email);
  await page.getByLabel('Password').fill(PASSWORD);
  const asksForCode = async () => (await page.getByLabel('Code or recovery code').count()) > 0;
  await press(page, 'Sign in', asksForCode);
  // A code of the authenticator is accepted once in its 30 s, and this one was used.
  await page.getByLabel('Code or recovery code').fill(codes[0]!);
  await press(page, 'Sign in', hasHeading(page, 'Overview'));

  await page.getByRole('link', { name: 'Security' }).click();
  await page.getByText(`${codes.length - 1} recovery codes are left`).waitFor();
  await page.getByRole('button', { name: 'Remove second factor' }).click();
  await page.getByLabel('Password').fill(PASSWORD);
  const isRemoved = async () => (await page.getByText('Not set up').count()) > 0;
  await press(page, 'Remove', isRemoved);
});

test('another sign-in is listed and ended; a new password ends all', async () => {
  const customer = await api.customer('two-places');
  const elsewhere = await pages.open('/app/sign-in');
  await pages.signIn(elsewhere.page, customer.email);
  const { page } = await pages.open('/app/settings/security');
  await pages.signIn(page, customer.email, 'Security');
  await page.getByText('This one').waitFor();
  // The sign-up of the test signed in too.
  await press(page, 'End all others', async () => {
    return (await page.getByRole('button', { name: 'End all others' }).count()) === 0;
  });
  await elsewhere.page.reload();
  await elsewhere.page.getByRole('heading', { name: 'Sign in' }).waitFor();

  await page.getByRole('button', { name: 'Change password' }).click();
  await page.getByLabel('Present password').fill('not the password');
  await page.getByLabel('New password').fill('another battery horse');
  await page.getByRole('button', { name: 'Change', exact: true }).click();
  await page.getByRole('alert').waitFor();
  await page.getByLabel('Present password').fill(PASSWORD);
  await press(page, 'Change', hasHeading(page, 'Sign in'));
  await page.getByText('The password is changed.').waitFor();
  await page.getByLabel('E-mail').fill(customer.email);
  await page.getByLabel('Password').fill('another battery horse');
  await press(page, 'Sign in', hasHeading(page, 'Overview'));
});

test('a subscription is cancelled, kept, lowered; the account is closed', async () => {
  const customer = await api.customer('buyer', 'pro');
  const { page } = await pages.open('/app/settings/billing');
  await pages.signIn(page, customer.email, 'Billing');
  await page.getByText('Test billing: no money moves.').waitFor();
  await page.getByRole('button', { name: 'Cancel subscription' }).click();
  await page.getByRole('dialog').waitFor();
  const says = (text: string) => async () => (await page.getByText(text).count()) > 0;
  await press(page, 'Cancel subscription', says('Cancelled: keys work until the period ends.'));
  expect((await customer.send('GET', '/api/subscription')).body.cancel_at_period_end).toBe(true);
  await press(page, 'Keep Pro API', says('Change the plan'));

  await page.getByRole('link', { name: 'Change the plan' }).click();
  await page.getByRole('button', { name: 'Choose Basic API' }).click();
  await page.getByText('Pro API stays until the period ends').waitFor();
  await press(page, 'Change to Basic API', async () => {
    return (await customer.send('GET', '/api/subscription')).body.next_tier === 'basic';
  });
  await page.getByRole('link', { name: 'Billing' }).click();
  await page.getByText('Basic API from the next period on.').waitFor();

  await page.getByRole('link', { name: 'Account', exact: true }).click();
  await page.getByRole('cell', { name: 'subscription.tier_changed' }).first().waitFor();
  await page.getByRole('link', { name: 'Profile', exact: true }).click();
  await page.getByRole('button', { name: 'Change name' }).click();
  await page.getByLabel('Name of the account').fill('東京 desk');
  await press(page, 'Save', async () => (await page.getByRole('dialog').count()) === 0);
  await page.getByText('東京 desk', { exact: true }).waitFor();
  expect((await customer.send('GET', '/api/account')).body.name).toBe('東京 desk');
  await page.getByRole('link', { name: 'Account', exact: true }).click();
  await page.getByRole('button', { name: 'Close account' }).click();
  await page.getByLabel('Password').fill(PASSWORD);
  await press(page, 'Close for good', says('The account is closed.'));
  const after = await waitFor('the session to end', async () => {
    const { status } = await customer.send('GET', '/api/account');
    return status !== 200 && status;
  });
  expect([401, 403]).toContain(after);
});

test('name, scopes and networks of a key are changed', async () => {
  const customer = await api.customer('editor', 'pro');
  await customer.send('POST', '/api/keys', { name: 'desk', scopes: ['read', 'stream'] });
  const { page } = await pages.open('/app/settings/api-keys');
  await pages.signIn(page, customer.email, 'API keys');
  await page.getByRole('button', { name: 'Edit desk' }).click();
  await page.getByLabel('Name').fill('desk 7');
  await page.getByLabel(/^stream /).uncheck();
  await page.getByLabel('Networks (optional)').fill('203.0.113.0/24');
  const isChanged = async () => (await page.getByText('203.0.113.0/24').count()) > 0;
  await press(page, 'Save', async () => (await page.getByRole('dialog').count()) === 0);
  await waitFor('the changed key', isChanged);
  const [key] = (await customer.send('GET', '/api/keys')).body.data;
  expect(key).toMatchObject({
    ...{ name: 'desk 7', scopes: ['read'], allow_cidrs: ['203.0.113.0/24'] },
  });
});

test('what is copied is in the clipboard, or selected if the browser refuses', async () => {
  const customer = await api.customer('copier', 'pro');
  const { page } = await pages.open('/app/settings/profile');
  await pages.signIn(page, customer.email, 'Profile');
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  const clipboard = () => page.evaluate('navigator.clipboard.readText()');
  await page.getByRole('button', { name: 'Copy account id' }).click();
  await page.getByRole('button', { name: 'Copied account id' }).waitFor();
  expect(await clipboard()).toBe((await customer.send('GET', '/api/account')).body.id);
  await page.getByRole('link', { name: 'API keys', exact: true }).click();
  await page.getByRole('button', { name: 'Create key' }).click();
  await page.getByLabel('Name').fill('copied');
  await press(page, 'Create', hasHeading(page, 'Your new key'));
  const [key, curl] = await page.locator('.copyable code').allInnerTexts();
  await page.getByRole('button', { name: /^Copy curl/ }).click();
  await page.getByRole('button', { name: /^Copied curl/ }).waitFor();
  expect(await clipboard()).toBe(curl);
  await page.evaluate('navigator.clipboard.writeText = () => Promise.reject(new Error("denied"))');
  await page.getByRole('button', { name: 'Copy Key', exact: true }).click();
  await waitFor('the selection', async () => {
    return (await page.evaluate('getSelection().toString()')) === key;
  });
  expect(await page.getByRole('button', { name: 'Copied Key' }).count()).toBe(0);
});

test('a time has the zone of the browser; on hover, how long ago it was, and the same in UTC', async () => {
  const customer = await api.customer('punctual', 'pro');
  const { page } = await pages.open('/app/settings/security');
  await pages.signIn(page, customer.email, 'Security');
  const time = page.locator('time').first();
  const utc = (await time.getAttribute('datetime'))!.slice(0, 19).replace('T', ' ');
  expect(await time.getAttribute('title')).toBe(`${utc} UTC`);
  await time.hover();
  expect(await time.getAttribute('title')).toMatch(
    new RegExp(`^\\d+ (second|minute)s? ago · ${utc} UTC$`),
  );
  await page.getByText(/^Times: /).waitFor();
});

test('a dedicated socket is created and removed', async () => {
  const customer = await api.customer('institution', 'institutional');
  const { page } = await pages.open('/app/streams');
  await pages.signIn(page, customer.email, 'Streams');
  await page.getByRole('button', { name: 'Create dedicated socket' }).click();
  await page.getByLabel('Label').fill('Tokyo desk');
  const isListed = async () =>
    (await page.getByRole('button', { name: 'Remove Tokyo desk' }).count()) > 0;
  await press(page, 'Create', isListed);
  await page.getByText(/\/api\/stream\/dedicated\/ded_/).waitFor();
  await page.getByRole('button', { name: 'Remove Tokyo desk' }).click();
  await press(page, 'Remove', async () => !(await isListed()));
  expect((await customer.send('GET', '/api/manager/streams')).body.data).toEqual([]);
});

test('a question to support is listed, answered, continued and closed', async () => {
  const customer = await api.customer('asker');
  const { page } = await pages.open('/app/support');
  await pages.signIn(page, customer.email, 'Support');
  await page.getByText('No tickets.').waitFor();
  await page.getByRole('button', { name: 'Write to support' }).click();
  await page.getByLabel('Subject').fill('A socket ends');
  await page.getByLabel('Message').fill('Why?\n<b>Please.</b>');
  await press(page, 'Send', hasHeading(page, 'A socket ends'));
  await page.getByText('Waits for our answer').waitFor();
  await page.getByText('<b>Please.</b>').waitFor();
  const ticketId = new URL(page.url()).pathname.split('/').at(-1)!;
  const db = openTestDatabase(api.namespace);
  await answerTicket(db, { actor: 'operator:test', ticketId, message: 'Its key had expired.' });
  await db.destroy();
  await page.reload();
  await page.getByText('Its key had expired.').waitFor();
  await page.getByLabel('Message').fill('I see.');
  const isSaid = async () => (await page.getByText('I see.', { exact: true }).count()) > 0;
  await press(page, 'Send', isSaid);
  expect(await page.getByLabel('Message').inputValue()).toBe('');
  const isClosed = async () => (await page.getByText('A message opens the ticket').count()) > 0;
  await checkPage(page, 'A socket ends', 'light');
  await press(page, 'Close ticket', isClosed);
  await page.getByRole('link', { name: 'All tickets' }).click();
  await page.getByRole('row', { name: /A socket ends.*Closed/ }).waitFor();
});
