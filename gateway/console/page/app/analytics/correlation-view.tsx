import { useLocation } from 'preact-iso';
import { Choice, useChoice } from '../parts/choice.tsx';
import { Field, Form } from '../parts/form.tsx';
import { useLoad } from '../parts/use-load.ts';
import { WhenLoaded } from '../parts/when-loaded.tsx';
import type { Correlation } from './bodies.ts';

const INTERVALS = ['1m', '1s', '1h'] as const;

/** Correlation of the changes of spreads, as a table whose cells are coloured. */
export function CorrelationView() {
  const { path, query, route } = useLocation();
  const [interval, choose] = useChoice('interval', INTERVALS);
  const symbols = query.symbols ?? '';
  const read = `/api/analytics/correlation?${new URLSearchParams({ symbols, interval })}`;
  const matrix = useLoad<Correlation>(symbols === '' ? undefined : read);
  return (
    <>
      <Form
        action="Compare"
        onSubmit={async ({ symbols: text = '' }) => {
          const names = text.split(/[\s,]+/).filter((name) => name !== '');
          const next = { ...query, symbols: names.join() };
          route(`${path}?${new URLSearchParams(next)}`);
        }}
      >
        <Field
          name="symbols"
          label="Symbols"
          value={symbols.replaceAll(',', ', ')}
          hint="Two to 20 symbols, separated by commas."
        />
      </Form>
      {symbols !== '' && (
        <>
          <p class="buttons">
            <Choice label="Bars of" options={INTERVALS} value={interval} onChoose={choose} />
          </p>
          <WhenLoaded of={matrix} rows={6}>
            {(body) => <Matrix of={body} />}
          </WhenLoaded>
        </>
      )}
    </>
  );
}

function Matrix({ of: { symbols, r, n } }: { readonly of: Correlation }) {
  return (
    <div class="scroll">
      <table class="matrix">
        <thead>
          <tr>
            <th>
              <span class="unseen">Symbol</span>
            </th>
            {symbols.map((symbol) => (
              <th key={symbol} class="number" scope="col">
                {symbol}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {symbols.map((symbol, row) => (
            <tr key={symbol}>
              <th scope="row">{symbol}</th>
              {symbols.map((other, column) => {
                const value = r[row]?.[column] ?? null;
                return (
                  <td
                    key={other}
                    class="number"
                    data-heat={heatOf(value)}
                    title={`${n[row]?.[column] ?? 0} bars`}
                  >
                    {value === null ? '–' : value.toFixed(2)}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** -2 to 2, for the colour of a cell: the figure in it is what counts. */
function heatOf(value: number | null): number {
  return value === null ? 0 : Math.round(value * 2);
}
