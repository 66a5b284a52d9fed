import { formatConfidence, formatSpread } from '../../view/format.ts';
import { ActionButton } from '../parts/action-button.tsx';
import { saveFile } from '../parts/save-file.ts';
import { useLoad } from '../parts/use-load.ts';
import { WhenLoaded } from '../parts/when-loaded.tsx';
import { useSession } from '../session/session-context.tsx';
import { type Pill, readOf } from './bodies.ts';

const ROWS = 25;
const FILE_ROWS = 5_000;

/** The newest pills from the log, and more of them as a file. */
export function HistorySection({ symbol }: { readonly symbol: string }) {
  const { client } = useSession();
  const newest = (limit: number, more = {}) =>
    readOf('/api/pills', symbol, { order: 'desc', limit: String(limit), ...more });
  const pills = useLoad<{ readonly data: readonly Pill[] }>(newest(ROWS));
  const download = async () => {
    const file = await client.download(newest(FILE_ROWS, { format: 'csv' }));
    saveFile(file, `${symbol.replaceAll('/', '-')}.csv`);
  };
  return (
    <section class="part">
      <div class="head">
        <h2>History</h2>
        <span class="buttons">
          <button type="button" onClick={pills.reload}>
            Read again
          </button>
          <ActionButton onClick={download}>Download CSV</ActionButton>
        </span>
      </div>
      <WhenLoaded of={pills} rows={8}>
        {({ data }) => (
          <table class="stacked">
            <thead>
              <tr>
                <th>Time of the pill (UTC)</th>
                <th>Id</th>
                <th class="number">Spread</th>
                <th class="number">Confidence</th>
                <th>Market</th>
              </tr>
            </thead>
            <tbody>
              {data.map((pill) => (
                <tr key={pill.cursor}>
                  <td data-title="Time">{pill.timestamp}</td>
                  <td data-title="Id" class="wide">
                    {pill.id}
                  </td>
                  <td data-title="Spread" class="number">
                    {formatSpread(pill.gross_spread_percent)}
                  </td>
                  <td data-title="Confidence" class="number">
                    {formatConfidence(pill.confidence)}
                  </td>
                  <td data-title="Market">{pill.market_state.replaceAll('_', ' ')}</td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </WhenLoaded>
    </section>
  );
}
