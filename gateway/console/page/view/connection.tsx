import { describeConnection } from '../feed/connection-state.ts';
import type { Feed } from '../feed/market-feed.ts';
import { formatLatency, formatRate } from './format.ts';

/** Pills per second, symbols, and the median latency; dashes while the data is not current. */
export function FeedFigures({ feed, nowMs }: { readonly feed: Feed; readonly nowMs: number }) {
  const { pillRate, market, latencyTo, connection } = feed;
  const latency = pillRate.medianMs(nowMs);
  const isLive = describeConnection(connection, nowMs).isCurrent;
  return (
    <dl class="figures">
      <Figure title="pills / s" value={isLive ? formatRate(pillRate.perS(nowMs)) : '–'} />
      <Figure title="symbols" value={market.rows.size.toLocaleString('en')} />
      <Figure
        title={latencyTo === 'browser' ? 'received → here' : 'received → sent'}
        value={isLive && latency !== undefined ? formatLatency(latency) : '–'}
      />
    </dl>
  );
}

function Figure({ title, value }: { readonly title: string; readonly value: string }) {
  return (
    <div>
      <dt>{title}</dt>
      <dd>{value}</dd>
    </div>
  );
}

/** If the wait is longer than this, the page offers to try again at once. */
const LONG_WAIT_S = 3;

/** Only the words are announced: a screen reader should not read a countdown every second. */
export function ConnectionState({ feed, nowMs }: { readonly feed: Feed; readonly nowMs: number }) {
  const { tone, word, detail, inS } = describeConnection(feed.connection, nowMs);
  const { link } = feed.connection;
  // A refused key would be refused again.
  const canRetry = link.kind === 'closed' && !link.isRefused;
  return (
    <div class={`connection ${tone}`}>
      <p role="status" aria-live="polite">
        <span class="lamp" aria-hidden="true" />
        <strong>{word}</strong>
        {detail !== undefined && <span class="detail"> {detail}</span>}
      </p>
      {inS !== undefined && (
        <span class="countdown">{inS === 0 ? 'trying now' : `in ${inS} s`}</span>
      )}
      {(canRetry || (inS ?? 0) > LONG_WAIT_S) && (
        <button type="button" onClick={feed.retry}>
          Try again
        </button>
      )}
    </div>
  );
}
