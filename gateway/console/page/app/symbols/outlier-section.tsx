import { formatSpread } from '../../view/format.ts';
import { Time } from '../parts/time.tsx';
import { useLoad } from '../parts/use-load.ts';
import { WhenLoaded } from '../parts/when-loaded.tsx';
import { type Outliers, readOf } from './bodies.ts';

const OUTLIERS_SHOWN = 10;

/** Spreads far from those before them. */
export function OutlierSection({ symbol }: { readonly symbol: string }) {
  const outliers = useLoad<Outliers>(readOf('/api/analytics/outliers', symbol));
  return (
    <section class="part">
      <h2>Outliers of the last hour</h2>
      <WhenLoaded of={outliers} rows={4}>
        {(body) => <OutlierTable of={body} />}
      </WhenLoaded>
    </section>
  );
}

function OutlierTable({ of: { data, count, threshold } }: { readonly of: Outliers }) {
  if (count === 0) {
    return <p>No pill is more than {threshold} robust deviations from the 1,000 before it.</p>;
  }
  return (
    <table>
      <thead>
        <tr>
          <th>Time</th>
          <th class="number">Spread</th>
          <th class="number">Median before</th>
          <th class="number">Robust z</th>
        </tr>
      </thead>
      <tbody>
        {data.slice(0, OUTLIERS_SHOWN).map((one) => (
          <tr key={one.cursor}>
            <td>
              <Time of={one.timestamp} />
            </td>
            <td class="number">{formatSpread(one.gross_spread_percent)}</td>
            <td class="number">{formatSpread(one.median)}</td>
            <td class="number">{one.z === null ? 'infinite' : one.z.toFixed(1)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
