import { Time } from '../parts/time.tsx';
import { useLoad } from '../parts/use-load.ts';
import { WhenLoaded } from '../parts/when-loaded.tsx';
import { type Cadence, readOf } from './bodies.ts';
import { formatDuration } from './duration.ts';

const GAPS_SHOWN = 10;

/** How often pills arrive, and why none did. */
export function CadenceSection({ symbol }: { readonly symbol: string }) {
  const cadence = useLoad<Cadence>(readOf('/api/analytics/cadence', symbol));
  return (
    <section class="part">
      <h2>Cadence of the last 24 hours</h2>
      <WhenLoaded of={cadence} rows={4}>
        {(body) => <Gaps of={body} />}
      </WhenLoaded>
    </section>
  );
}

function Gaps({
  of: { interval_ms: interval, gaps, gaps_count: count },
}: {
  readonly of: Cadence;
}) {
  const seconds = (ms: number | null) => (ms === null ? '–' : `${(ms / 1_000).toFixed(2)} s`);
  return (
    <>
      <p>
        A pill every {seconds(interval.p50)} (median), {seconds(interval.p95)} at the 95th
        percentile. {gapsText(count)}
      </p>
      {count > 0 && (
        <table>
          <thead>
            <tr>
              <th>From</th>
              <th class="number">Length</th>
              <th>Because</th>
            </tr>
          </thead>
          <tbody>
            {gaps
              .toReversed()
              .slice(0, GAPS_SHOWN)
              .map(({ from, seconds: length, because }) => (
                <tr key={from}>
                  <td>
                    <Time of={from} />
                  </td>
                  <td class="number">{formatDuration(length)}</td>
                  <td>{because.replaceAll('_', ' ')}</td>
                </tr>
              ))}
          </tbody>
        </table>
      )}
    </>
  );
}

function gapsText(count: number): string {
  if (count === 0) return 'No gaps.';
  return count === 1 ? 'One gap:' : `${count} gaps, the newest first:`;
}
