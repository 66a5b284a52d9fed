import { formatChange, formatSpread } from '../../view/format.ts';
import { Choice, useChoice } from '../parts/choice.tsx';
import { useLoad } from '../parts/use-load.ts';
import { WhenLoaded } from '../parts/when-loaded.tsx';
import { symbolPage } from '../symbols/bodies.ts';
import type { Movers } from './bodies.ts';

const WINDOWS = ['1h', '5m', '15m', '4h', '1d'] as const;
const ORDERS = ['abs_change', 'change', 'abs_z'] as const;
const TITLES = {
  abs_change: 'largest change',
  change: 'largest widening',
  abs_z: 'largest deviation',
};

/** The symbols whose spread moved most within a window. */
export function MoversView() {
  const [window, chooseWindow] = useChoice('window', WINDOWS);
  const [by, chooseOrder] = useChoice('by', ORDERS);
  const movers = useLoad<Movers>(`/api/analytics/movers?window=${window}&by=${by}&limit=50`);
  return (
    <>
      <p class="buttons">
        <Choice label="Window" options={WINDOWS} value={window} onChoose={chooseWindow} />
        <Choice label="By" options={ORDERS} value={by} onChoose={chooseOrder} titles={TITLES} />
      </p>
      <WhenLoaded of={movers} rows={8}>
        {(body) => <MoverTable of={body} />}
      </WhenLoaded>
    </>
  );
}

function MoverTable({ of: { data, window, min_count: countMin } }: { readonly of: Movers }) {
  if (data.length === 0) {
    return (
      <p class="empty">
        No symbol has {countMin} pills within the last {window}.
      </p>
    );
  }
  return (
    <table class="stacked">
      <thead>
        <tr>
          <th>Symbol</th>
          {['Now', 'Then', 'Change', 'z', 'Pills'].map((name) => (
            <th key={name} class="number">
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {data.map(({ symbol, now, then, change, z, count }) => (
          <tr key={symbol}>
            <td data-title="Symbol">
              <a href={symbolPage(symbol)}>{symbol}</a>
            </td>
            <td data-title="Now" class="number">
              {formatSpread(now)}
            </td>
            <td data-title="Then" class="number">
              {formatSpread(then)}
            </td>
            <td data-title="Change" class={change > 0 ? 'number wider' : 'number tighter'}>
              {formatChange(change)}
            </td>
            <td data-title="z" class="number">
              {z === null ? '–' : z.toFixed(2)}
            </td>
            <td data-title="Pills" class="number">
              {count.toLocaleString('en')}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
