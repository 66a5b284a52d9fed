import { problemOf, RequestFailed, unreachable } from './problem.ts';
import { createReach, type Reach } from './reach.ts';

const ANSWER_MAX_MS = 15_000;

export interface Session {
  readonly user: { readonly id: string; readonly email: string; readonly email_verified: boolean };
  readonly account: string;
  readonly csrf_token: string;
  readonly second_factor: { readonly enabled: boolean; readonly fresh: boolean };
}

/** What a person must prove before a request can be repeated. */
export type Proof = 'sign-in' | 'second-factor';

/** The API as the signed-in user calls it. The session is a cookie that scripts cannot read. */
export interface Client {
  /** @throws RequestFailed */
  send<T>(method: string, path: string, body?: unknown): Promise<T>;
  /** Reads a document that is no JSON. @throws RequestFailed */
  download(path: string): Promise<Blob>;
  session(): Session | undefined;
  readonly reach: Reach;
  /** Reads the session of the cookie. @returns undefined if nobody is signed in */
  readSession(): Promise<Session | undefined>;
  useSession(session: Session | undefined): void;
}

/**
 * @param prove asks for what is missing, in place, so that the form behind it keeps its content;
 * false if the person declines
 * @param onSession called with each new session
 */
export function createClient(
  prove: (proof: Proof) => Promise<boolean>,
  onSession: (session: Session | undefined) => void,
): Client {
  let session: Session | undefined;
  const reach = createReach();
  const useSession = (next: Session | undefined) => {
    session = next;
    onSession(next);
  };
  const attempt = async (method: string, path: string, body?: unknown) => {
    const headers = {
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(session === undefined ? {} : { 'x-csrf-token': session.csrf_token }),
    };
    const answer = await fetch(path, {
      method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(ANSWER_MAX_MS),
    }).catch(() => {
      reach.set(false);
      throw unreachable();
    });
    reach.set(true);
    if (!answer.ok) throw await problemOf(answer);
    return answer;
  };
  const answerTo = async (method: string, path: string, body?: unknown) => {
    try {
      return await attempt(method, path, body);
    } catch (error) {
      const proof = session === undefined ? undefined : proofFor(error);
      if (proof === undefined || !(await prove(proof))) throw error;
      return attempt(method, path, body);
    }
  };
  return {
    async send(method, path, body) {
      const answer = await answerTo(method, path, body);
      return answer.status === 204 ? undefined : await answer.json();
    },
    download: async (path) => (await answerTo('GET', path)).blob(),
    session: () => session,
    reach,
    useSession,
    async readSession() {
      try {
        const answer = await attempt('GET', '/api/session');
        useSession(await answer.json());
      } catch (error) {
        if (!(error instanceof RequestFailed) || error.status !== 401) throw error;
        useSession(undefined);
      }
      return session;
    },
  };
}

function proofFor(error: unknown): Proof | undefined {
  if (!(error instanceof RequestFailed)) return undefined;
  // Another tab may have signed in again, so the token of this one is void as well.
  if (['session_required', 'key_missing', 'csrf_token_invalid'].includes(error.code))
    return 'sign-in';
  return error.code === 'second_factor_stale' ? 'second-factor' : undefined;
}
