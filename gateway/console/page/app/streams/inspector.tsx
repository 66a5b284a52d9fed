import { useState } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import { Field, Form } from '../parts/form.tsx';
import { PageOf } from '../parts/page.tsx';
import type { Frame } from './frame-log.ts';
import { type FrameSocket, useFrames } from './use-frames.ts';

/** Frames that are shown, newest first. */
const SHOWN_MAX = 100;

/** A socket by the real protocol, frame by frame. */
export default function Inspector() {
  const { query, route } = useLocation();
  const socket = useFrames();
  const symbols = query.symbols ?? 'TEST:CHAOS';
  return (
    <PageOf title="Frame inspector">
      <p>
        <a href="/app/streams">All sockets</a>
      </p>
      <p class="hint">
        The socket is one of your plan’s connections while it is open. <code>TEST:CHAOS</code> is a
        feed that everyone may subscribe to.
      </p>
      <Form
        action={socket.state === 'open' ? 'Connect again' : 'Connect'}
        onSubmit={async (values) => {
          const { symbols: text = '', mode = 'all' } = values;
          route(`/app/streams/frames?${new URLSearchParams({ symbols: text })}`, true);
          const names = text.split(/[\s,]+/).filter((name) => name !== '');
          await socket.open({ op: 'subscribe', id: '1', symbols: names, mode, snapshot: true });
        }}
      >
        <Field name="symbols" label="Symbols, separated by commas; * for all" value={symbols} />
        <div class="field">
          <label for="mode">Mode</label>
          <select id="mode" name="mode">
            <option value="all">all: every pill</option>
            <option value="latest">latest: the newest pill of each symbol</option>
          </select>
        </div>
      </Form>
      {socket.state !== 'none' && <Frames socket={socket} />}
    </PageOf>
  );
}

const STATES = {
  none: '',
  opening: 'Connecting.',
  open: 'Connected.',
  closed: 'The socket is closed.',
} as const;

function Frames({ socket }: { readonly socket: FrameSocket }) {
  const { state, log } = socket;
  // What was there when the reader paused; the socket goes on.
  const [paused, setPaused] = useState<readonly Frame[]>();
  const [name, setName] = useState('');
  const all = paused ?? log.frames;
  const names = [...new Set(all.map((frame) => frame.name))].sort();
  const shown = all
    .filter((frame) => name === '' || frame.name === name)
    .slice(-SHOWN_MAX)
    .reverse();
  const missed = paused === undefined ? 0 : log.count - (paused.at(-1)?.number ?? 0);
  return (
    <section class="part">
      <h2>Frames</h2>
      <p role="status">
        {STATES[state]} {paused !== undefined && 'Paused.'}
      </p>
      <div class="buttons">
        <button
          type="button"
          onClick={() => setPaused(paused === undefined ? [...log.frames] : undefined)}
        >
          {paused === undefined ? 'Pause' : 'Go on'}
        </button>
        {state === 'open' && (
          <button type="button" onClick={() => socket.close()}>
            Close
          </button>
        )}
        <select
          aria-label="Show only"
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
        >
          <option value="">All frames</option>
          {names.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
      </div>
      {state === 'open' && (
        <Form action="Send" onSubmit={async ({ frame = '' }) => socket.send(frame)}>
          <Field name="frame" label="Send a frame" value='{"op":"ping","id":"2","t":1}' />
        </Form>
      )}
      <p class="hint">
        {log.count.toLocaleString('en')} frames
        {missed > 0 && `, ${missed.toLocaleString('en')} since the pause`}; the newest {SHOWN_MAX}{' '}
        are listed.
      </p>
      <FrameTable frames={shown} />
    </section>
  );
}

const WAYS = { in: '←', out: '→', event: '·' } as const;
const WORDS = { in: 'received', out: 'sent', event: 'event' } as const;

function FrameTable({ frames }: { readonly frames: readonly Frame[] }) {
  return (
    <table class="frames">
      <thead>
        <tr>
          <th>Time</th>
          <th>
            <span class="unseen">Way</span>
          </th>
          <th>Type</th>
          <th>Frame</th>
        </tr>
      </thead>
      <tbody>
        {frames.map(({ number, at, way, name, text, chars }) => (
          <tr key={number}>
            <td>
              <time dateTime={at.toISOString()}>{clockText(at)}</time>
            </td>
            <td>
              <span aria-hidden="true">{WAYS[way]}</span>
              <span class="unseen">{WORDS[way]}</span>
            </td>
            <td>{name}</td>
            <td class="wide">
              <code>{text}</code>
              {chars > text.length && (
                <span class="hint"> … {chars.toLocaleString('en')} characters</span>
              )}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** `13:05:09.123`, in the time zone of the browser. */
function clockText(at: Date): string {
  const ms = String(at.getMilliseconds()).padStart(3, '0');
  return `${at.toLocaleTimeString('en', { hourCycle: 'h23' })}.${ms}`;
}
