import { type ComponentChildren, type ComponentType, createContext } from 'preact';
import { useContext, useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { type Client, createClient, type Proof, type Session } from './client.ts';
import { asFailure, type RequestFailed } from './problem.ts';

export type SessionState =
  | { readonly kind: 'loading' }
  | { readonly kind: 'failed'; readonly failure: RequestFailed }
  | { readonly kind: 'none' }
  | { readonly kind: 'signed-in'; readonly session: Session };

export interface ProofProps {
  readonly client: Client;
  readonly proof: Proof;
  readonly onSettled: (isProved: boolean) => void;
}

interface Signed {
  readonly client: Client;
  readonly state: SessionState;
  reload(): void;
}

const Context = createContext<Signed | undefined>(undefined);

/** The client and who is signed in. */
export function useSession(): Signed {
  return useContext(Context)!;
}

/** Reads the session once, and asks in place for a proof that a request turns out to need. */
export function SessionProvider(props: {
  readonly Proof: ComponentType<ProofProps>;
  readonly children: ComponentChildren;
}) {
  const { Proof: ProofDialog, children } = props;
  const [state, setState] = useState<SessionState>({ kind: 'loading' });
  const [proof, setProof] = useState<Proof>();
  const waiting = useRef<((isProved: boolean) => void)[]>([]);
  const client = useMemo(
    () =>
      createClient(
        (wanted) =>
          new Promise((resolve) => {
            waiting.current.push(resolve);
            setProof(wanted);
          }),
        (session) =>
          setState(session === undefined ? { kind: 'none' } : { kind: 'signed-in', session }),
      ),
    [],
  );
  const reload = () => {
    setState({ kind: 'loading' });
    client.readSession().catch((error) => setState({ kind: 'failed', failure: asFailure(error) }));
  };
  useEffect(reload, []);
  const settle = (isProved: boolean) => {
    setProof(undefined);
    for (const resolve of waiting.current.splice(0)) resolve(isProved);
  };
  return (
    <Context.Provider value={{ client, state, reload }}>
      {children}
      {proof !== undefined && <ProofDialog {...{ client, proof }} onSettled={settle} />}
    </Context.Provider>
  );
}
