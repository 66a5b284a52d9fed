import { Choice, useChoice } from '../parts/choice.tsx';
import { useLoad } from '../parts/use-load.ts';
import { WhenLoaded } from '../parts/when-loaded.tsx';
import type { Bucket, Confidence, RatedBucket } from './bodies.ts';
import { CalibrationPlot } from './calibration-plot.tsx';

const HORIZONS = ['5m', '1m', '15m', '60m'] as const;

/** How often spreads narrowed, by the confidence that the generator stated. */
export function ConfidenceView() {
  const [horizon, choose] = useChoice('horizon', HORIZONS);
  const record = useLoad<Confidence>(`/api/analytics/confidence?horizon=${horizon}`);
  return (
    <>
      <p class="buttons">
        <Choice label="Horizon" options={HORIZONS} value={horizon} onChoose={choose} />
      </p>
      <WhenLoaded of={record} rows={8}>
        {(body) => <Record of={body} />}
      </WhenLoaded>
    </>
  );
}

function Record({ of: body }: { readonly of: Confidence }) {
  const { buckets, pills, definition, min_n: countMin } = body;
  const rated = buckets.filter(isRated);
  return (
    <>
      <p>
        {pills.settled.toLocaleString('en')} of {pills.all.toLocaleString('en')} pills of all
        symbols have an outcome: {definition}.
      </p>
      {rated.length === 0 ? (
        <p class="empty">No range of confidence has {countMin} pills with an outcome yet.</p>
      ) : (
        <CalibrationPlot buckets={rated} scale={body.scale} />
      )}
      <table class="stacked">
        <thead>
          <tr>
            <th>Confidence</th>
            <th class="number">Pills</th>
            <th class="number">Mean confidence</th>
            <th class="number">Narrowed</th>
            <th class="number">95 % interval</th>
          </tr>
        </thead>
        <tbody>
          {buckets.map(({ from, to, n, rate, ci95, mean_confidence: mean }) => (
            <tr key={from}>
              <td data-title="Confidence">
                {from} to {to}
              </td>
              <td data-title="Pills" class="number">
                {n.toLocaleString('en')}
              </td>
              <td data-title="Mean confidence" class="number">
                {mean === null ? '–' : mean.toFixed(1)}
              </td>
              <td data-title="Narrowed" class="number">
                {rate === null ? '–' : percent(rate)}
              </td>
              <td data-title="95 % interval" class="number">
                {ci95 === null ? '–' : `${percent(ci95[0])} to ${percent(ci95[1])}`}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}

function isRated(bucket: Bucket): bucket is RatedBucket {
  return bucket.rate !== null && bucket.ci95 !== null && bucket.mean_confidence !== null;
}

const percent = (share: number) => `${(share * 100).toFixed(1)} %`;
