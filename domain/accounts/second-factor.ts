import { sql, type Transaction } from 'kysely';
import type { Database } from '../../lib/postgres/database.ts';
import { inTurn } from '../../lib/postgres/in-turn.ts';
import type { Tables } from '../../lib/postgres/tables.ts';
import type { Seal } from '../access/sealing.ts';
import { raiseSecurityEvent, type SecurityEvent } from './account-alerts.ts';
import type { Attempts, Limited } from './attempts.ts';
import { type AccountRequest, writeAudit } from './audit.ts';
import { isFactorOn } from './factor-state.ts';
import { countRecoveryCodes, replaceRecoveryCodes, useRecoveryCode } from './recovery-codes.ts';
import { endOtherSessions, lockUser, type Session } from './sessions.ts';
import { newTotpSecret, totpSetup, totpStep } from './totp.ts';

/** A set-up must be confirmed within this time. */
export const SETUP_S = 600;

export type CodeChecked =
  | { readonly kind: 'ok' }
  /** The code is wrong, or was used before. */
  | { readonly kind: 'refused' }
  | Limited;

export type Confirmed =
  | { readonly kind: 'ok'; readonly recoveryCodes: readonly string[] }
  /** No set-up waits for a code. */
  | { readonly kind: 'none' }
  | Exclude<CodeChecked, { kind: 'ok' }>;

/** The owner of a second factor. */
interface Owner {
  readonly userId: string;
  readonly accountId: string;
  readonly address: string | undefined;
  /** By default the user. */
  readonly actor?: string;
}

export type SecondFactors = ReturnType<typeof createSecondFactors>;

interface SecondFactorsDeps {
  readonly db: Database;
  readonly seal: Seal;
  readonly attempts: Attempts;
}

/** Authenticators of users and their recovery codes. Methods throw any database error. */
export function createSecondFactors(deps: SecondFactorsDeps) {
  const { db, seal } = deps;
  return {
    ...createCodeCheck(deps),
    ...createSetup(deps),

    async read(userId: string) {
      const row = await db
        .selectFrom('second_factors')
        .select('confirmed_at')
        .where('user_id', '=', userId)
        .where('confirmed_at', 'is not', null)
        .executeTakeFirst();
      const left = row === undefined ? 0 : await countRecoveryCodes(db, userId);
      return { confirmedAt: row?.confirmed_at ?? undefined, recoveryCodesLeft: left };
    },

    /** Begins or restarts a set-up. @returns undefined if a second factor is in force */
    async begin(session: Session): Promise<ReturnType<typeof totpSetup> | undefined> {
      const secret = newTotpSecret();
      const { numAffectedRows } = await sql`
        INSERT INTO second_factors AS f (user_id, sealed)
        VALUES (${session.userId}, ${seal.seal(secret, session.userId)})
        ON CONFLICT (user_id) DO UPDATE SET sealed = excluded.sealed, created_at = now(), last_step = 0
        WHERE f.confirmed_at IS NULL`.execute(db);
      return numAffectedRows === 0n ? undefined : totpSetup(secret, session.email);
    },
  };
}

function createSetup(deps: SecondFactorsDeps) {
  const { db, attempts } = deps;
  return {
    /**
     * Puts a set-up into force by its first code, and ends all other sessions, which have not proved
     * it. @returns the recovery codes; `none` = no set-up of the last 10 minutes waits for a code
     */
    async confirm(session: Session, code: string, address: string): Promise<Confirmed> {
      const limited = await attempts.take(['codeOfUser', session.userId]);
      if (limited !== undefined) return limited;
      const confirmed = await confirmSetup(deps, session, code, address);
      if (confirmed.kind === 'ok') await attempts.giveBack(['codeOfUser', session.userId]);
      return confirmed;
    },

    /** Replaces the recovery codes; earlier ones are void. */
    renewRecoveryCodes: (session: Session, address: string): Promise<readonly string[]> =>
      inTurn(db, session.accountId, async (tx) => {
        const codes = await replaceRecoveryCodes(tx, session.userId);
        const owner = ownerOf(session, address);
        await report(tx, owner, 'recovery_codes.renewed', { email: session.email });
        return codes;
      }),

    /** @returns false if no second factor is in force */
    remove: (session: Session, address: string): Promise<boolean> =>
      inTurn(db, session.accountId, (tx) =>
        removeSecondFactor(tx, ownerOf(session, address), session.email),
      ),
  };
}

/** Puts a set-up into force, unless its code is wrong. */
function confirmSetup(
  { db, seal }: SecondFactorsDeps,
  session: Session,
  code: string,
  address: string,
): Promise<Confirmed> {
  const { userId } = session;
  return inTurn(db, session.accountId, async (tx): Promise<Confirmed> => {
    // A sign-in that is under way, in any process, comes before this or after it.
    await lockUser(tx, userId);
    const row = await tx
      .selectFrom('second_factors')
      .select('sealed')
      .where('user_id', '=', userId)
      .where('confirmed_at', 'is', null)
      .where('created_at', '>', sql<Date>`now() - make_interval(secs => ${SETUP_S})`)
      .forUpdate()
      .executeTakeFirst();
    if (row === undefined) return { kind: 'none' };
    const step = totpStep(seal.open(row.sealed, userId), code, Date.now());
    if (step === undefined) return { kind: 'refused' };
    await tx
      .updateTable('second_factors')
      .set({ confirmed_at: sql<Date>`now()`, last_step: step })
      .where('user_id', '=', userId)
      .execute();
    const recoveryCodes = await replaceRecoveryCodes(tx, userId);
    await endOtherSessions(tx, session, address);
    await markProved(tx, session);
    await report(tx, ownerOf(session, address), 'second_factor.enabled', {
      email: session.email,
    });
    return { kind: 'ok', recoveryCodes };
  });
}

/** Removes the second factor of a user with its recovery codes. @returns false if there is none */
async function removeSecondFactor(
  tx: Transaction<Tables>,
  owner: Owner,
  email: string,
): Promise<boolean> {
  const gone = await tx
    .deleteFrom('second_factors')
    .where('user_id', '=', owner.userId)
    .where('confirmed_at', 'is not', null)
    .executeTakeFirst();
  if (gone.numDeletedRows === 0n) return false;
  await report(tx, owner, 'second_factor.removed', { email });
  return true;
}

/** The operator removes the second factors of an account's users. @returns how many */
export function removeSecondFactors(
  db: Database,
  { accountId, actor, address }: AccountRequest,
): Promise<number> {
  return inTurn(db, accountId, async (tx) => {
    const users = await tx
      .selectFrom('users')
      .select(['id', 'email'])
      .where('account_id', '=', accountId)
      .execute();
    let removed = 0;
    for (const { id: userId, email } of users) {
      if (await removeSecondFactor(tx, { userId, accountId, address, actor }, email)) removed += 1;
    }
    return removed;
  });
}

function createCodeCheck({ db, seal, attempts }: SecondFactorsDeps) {
  /** Whether a code of the authenticator is right; each works once, in whichever process. */
  const useTotp = async ({ userId }: Owner, code: string): Promise<boolean> => {
    const row = await db
      .selectFrom('second_factors')
      .select('sealed')
      .where('user_id', '=', userId)
      .where('confirmed_at', 'is not', null)
      .executeTakeFirst();
    if (row === undefined) return false;
    const step = totpStep(seal.open(row.sealed, userId), code, Date.now());
    if (step === undefined) return false;
    const used = await db
      .updateTable('second_factors')
      .set({ last_step: step })
      .where('user_id', '=', userId)
      .where('last_step', '<', String(step))
      .executeTakeFirst();
    return used.numUpdatedRows > 0n;
  };
  const useRecovery = (owner: Owner, code: string): Promise<boolean> =>
    inTurn(db, owner.accountId, async (tx) => {
      const left = await useRecoveryCode(tx, owner.userId, code);
      if (left === undefined) return false;
      await report(tx, owner, 'recovery_code.used', { left });
      return true;
    });
  const check = async (owner: Owner, code: string): Promise<CodeChecked> => {
    const { userId } = owner;
    const isTotp = /^\d{6}$/.test(code);
    const limits = isTotp
      ? ([
          ['codeOfUser', userId],
          ['codeOfUserInADay', userId],
        ] as const)
      : ([['recoveryCodeOfUser', userId]] as const);
    const limited = await attempts.take(...limits);
    if (limited !== undefined) {
      await raiseAttempts(db, owner);
      return limited;
    }
    const isRight = await (isTotp ? useTotp : useRecovery)(owner, code);
    if (!isRight) return { kind: 'refused' };
    await attempts.giveBack(...limits);
    return { kind: 'ok' };
  };
  return {
    check,
    /** Whether a second factor of the user is in force. */
    isOn: (userId: string): Promise<boolean> => isFactorOn(db, userId),
    /** Proves the second factor for the next 10 minutes of a session. */
    async prove(session: Session, code: string, address: string): Promise<CodeChecked> {
      const checked = await check(ownerOf(session, address), code);
      if (checked.kind === 'ok') await markProved(db, session);
      return checked;
    },
  };
}

async function markProved(on: Database | Transaction<Tables>, { hash }: Session): Promise<void> {
  await on
    .updateTable('sessions')
    .set({ second_factor_at: sql<Date>`clock_timestamp()` })
    .where('hash', '=', hash)
    .execute();
}

/** Audits a change and mails it. */
async function report(
  tx: Transaction<Tables>,
  { userId, accountId, address, actor = `user:${userId}` }: Owner,
  type: SecurityEvent,
  data: object,
): Promise<void> {
  const request: AccountRequest = { accountId, actor, address };
  await writeAudit(tx, { ...request, action: type, target: userId, detail: data });
  const at = new Date().toISOString();
  await raiseSecurityEvent(tx, accountId, {
    type,
    occurrence: `${userId}/${at}`,
    data: { ...data, by: actor, address, at },
  });
}

/** Someone with the password or a session tries codes: mailed once a day. */
function raiseAttempts(db: Database, { userId, accountId, address }: Owner): Promise<void> {
  const at = new Date().toISOString();
  return raiseSecurityEvent(db, accountId, {
    type: 'second_factor.attempts',
    occurrence: `${userId}/${at.slice(0, 10)}`,
    data: { address, at },
  });
}

function ownerOf({ userId, accountId }: Session, address: string): Owner {
  return { userId, accountId, address };
}
