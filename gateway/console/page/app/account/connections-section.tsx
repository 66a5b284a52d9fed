import { Facts } from '../parts/facts.tsx';
import { useLoad } from '../parts/use-load.ts';
import { WhenAllLoaded } from '../parts/when-loaded.tsx';

const EVERY_MS = 10_000;

interface Sockets {
  readonly count: number;
  readonly data: readonly { readonly queue_ms: number }[];
}
interface Days {
  readonly data: readonly {
    readonly stream: { readonly p50_ms: number; readonly p99_ms: number } | null;
  }[];
}

/** The open sockets, how far they are behind, and how fast sockets were served today. */
export function ConnectionsSection({ limit }: { readonly limit: number }) {
  const sockets = useLoad<Sockets>('/api/stream/sessions', EVERY_MS);
  const days = useLoad<Days>('/api/status/days');
  return (
    <section class="part">
      <div class="head">
        <h2>Connections</h2>
        <a href="/app/streams">All sockets</a>
      </div>
      <WhenAllLoaded of={[sockets, days]} rows={2}>
        {([{ count, data }, { data: byDay }]) => {
          const stream = byDay[0]?.stream ?? null;
          const behind = Math.max(0, ...data.map(({ queue_ms: ms }) => ms));
          return (
            <Facts
              of={[
                ['Open sockets', `${count.toLocaleString('en')} of ${limit.toLocaleString('en')}`],
                ['Slowest is behind by', count === 0 ? '–' : `${behind.toLocaleString('en')} ms`],
                ['Received to sent today, median', stream ? ms(stream.p50_ms) : '–'],
                ['99th percentile', stream ? ms(stream.p99_ms) : '–'],
              ]}
            />
          );
        }}
      </WhenAllLoaded>
    </section>
  );
}

const ms = (value: number) => `${value.toFixed(1)} ms`;
