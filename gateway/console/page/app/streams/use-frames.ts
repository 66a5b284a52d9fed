import { useEffect, useRef, useState } from 'preact/hooks';
import type { Client } from '../session/client.ts';
import { useSession } from '../session/session-context.tsx';
import { FrameLog } from './frame-log.ts';

export interface FrameSocket {
  readonly state: 'none' | 'opening' | 'open' | 'closed';
  readonly log: FrameLog;
  /** Closes an earlier socket. @param first is sent as soon as the socket is open */
  open(first: object): Promise<void>;
  /** Does nothing unless the socket is open. */
  send(text: string): void;
  close(): void;
}

/** A socket of the account whose frames are kept; drawn at most once per frame of the screen. */
export function useFrames(): FrameSocket {
  const { client } = useSession();
  const socket = useRef<WebSocket | undefined>(undefined);
  const log = useRef(new FrameLog());
  const [state, setState] = useState<FrameSocket['state']>('none');
  const redraw = useRedraw();
  useEffect(() => () => socket.current?.close(), []);
  const add = (...frame: Parameters<FrameLog['add']>) => {
    log.current.add(...frame);
    redraw();
  };
  return {
    state,
    log: log.current,
    async open(first) {
      socket.current?.close();
      setState('opening');
      log.current = new FrameLog();
      try {
        const opened = new WebSocket(await readUrl(client));
        socket.current = opened;
        const isCurrent = () => socket.current === opened;
        opened.onopen = () => {
          if (!isCurrent()) return;
          setState('open');
          const text = JSON.stringify(first);
          opened.send(text);
          add('out', text);
        };
        opened.onmessage = ({ data }) => isCurrent() && add('in', String(data));
        opened.onclose = ({ code, reason }) => {
          if (!isCurrent()) return;
          setState('closed');
          add('event', `Closed with ${code}${reason === '' ? '' : `: ${reason}`}.`, 'close');
        };
      } catch (error) {
        setState('none');
        throw error;
      }
    },
    send(text) {
      if (socket.current?.readyState !== WebSocket.OPEN) return;
      socket.current.send(text);
      add('out', text);
    },
    close: () => socket.current?.close(),
  };
}

async function readUrl(client: Client): Promise<string> {
  const { url } = await client.send<{ readonly url: string }>('POST', '/api/stream/tickets');
  return url;
}

function useRedraw(): () => void {
  const [, setTick] = useState(0);
  const asked = useRef(0);
  useEffect(() => () => cancelAnimationFrame(asked.current), []);
  return () => {
    asked.current ||= requestAnimationFrame(() => {
      asked.current = 0;
      setTick((tick) => tick + 1);
    });
  };
}
