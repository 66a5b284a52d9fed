import { useEffect, useState } from 'preact/hooks';
import { createClient, type PilloleError } from '../../../../../sdk/browser.ts';
import type { Pill } from '../../../../../sdk/exports.ts';
import { readSettings, readTicket } from '../../feed/settings.ts';
import { useSession } from '../session/session-context.tsx';
import { LiveEdge } from './live-edge.ts';

/** Shortest time between two drawings: eyes follow no more, and a chart costs milliseconds. */
const DRAW_MS = 250;
const SETTINGS_MAX_MS = 5_000;

export interface Live {
  readonly state: 'off' | 'connecting' | 'live' | 'ended';
  /** Why the socket waits or ended. */
  readonly reason: string | undefined;
  /** The newest pill of the socket. */
  readonly pill: Pill | undefined;
  readonly edge: LiveEdge;
}

/**
 * Follows a symbol by a socket of the account while `isOn`, with the client that customers use.
 * @param stepS length of the bars of the edge
 */
export function useLiveEdge(symbol: string, stepS: number, isOn: boolean): Live {
  const { client } = useSession();
  const off: Live = { state: 'off', reason: undefined, pill: undefined, edge: new LiveEdge(stepS) };
  const [live, setLive] = useState<Live>(off);
  useEffect(() => {
    if (!isOn) return setLive(off);
    const edge = new LiveEdge(stepS);
    let next: Live = { ...off, state: 'connecting', edge };
    let timer: ReturnType<typeof setTimeout> | undefined;
    const change = (part: Partial<Live>) => {
      next = { ...next, ...part };
      timer ??= setTimeout(() => {
        timer = undefined;
        setLive(next);
      }, DRAW_MS);
    };
    setLive(next);
    const opening = openStream(symbol, () => client.session()?.csrf_token ?? '');
    let isLeft = false;
    opening.then(
      (stream) => {
        if (isLeft) return stream.close();
        stream.on('open', () => change({ state: 'live', reason: undefined }));
        stream.on('snapshot', ({ pills }) => change({ pill: pills.at(-1) ?? next.pill }));
        stream.on('pill', (pill) => {
          if (pill.late === true || pill.backfill === true) return;
          edge.add(pill);
          change({ pill });
        });
        stream.on('reconnecting', ({ error }) =>
          change({ state: 'connecting', reason: error.message }),
        );
        stream.on('closed', ({ error }) => {
          if (error !== undefined) change({ state: 'ended', reason: error.message });
        });
      },
      (error: PilloleError) => change({ state: 'ended', reason: error.message }),
    );
    return () => {
      isLeft = true;
      clearTimeout(timer);
      opening.then(
        (stream) => stream.close(),
        () => undefined,
      );
    };
  }, [client, symbol, stepS, isOn]);
  return live;
}

async function openStream(symbol: string, csrfToken: () => string) {
  const { stream_url: streamUrl } = await readSettings(AbortSignal.timeout(SETTINGS_MAX_MS));
  const ticket = () => readTicket({ kind: 'session', csrfToken: csrfToken() });
  return createClient({ streamUrl, ticket }).stream({ symbols: [symbol] });
}
