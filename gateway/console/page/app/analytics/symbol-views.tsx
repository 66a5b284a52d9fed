import { useLocation } from 'preact-iso';
import { Field, Form } from '../parts/form.tsx';
import { symbolPage } from '../symbols/bodies.ts';
import { CadenceSection } from '../symbols/cadence-section.tsx';
import { OutlierSection } from '../symbols/outlier-section.tsx';

/** Outliers of the symbol in the address. */
export function OutliersView() {
  return <OfSymbol>{(symbol) => <OutlierSection symbol={symbol} />}</OfSymbol>;
}

/** Cadence of the symbol in the address. */
export function CadenceView() {
  return <OfSymbol>{(symbol) => <CadenceSection symbol={symbol} />}</OfSymbol>;
}

function OfSymbol({ children }: { readonly children: (symbol: string) => preact.JSX.Element }) {
  const { path, query, route } = useLocation();
  const { symbol = '' } = query;
  return (
    <>
      <Form
        key={symbol}
        action="Show"
        onSubmit={async ({ symbol: next = '' }) =>
          route(`${path}?${new URLSearchParams({ ...query, symbol: next.trim() })}`)
        }
      >
        <Field name="symbol" label="Symbol" value={symbol} hint="For example 7203.T." />
      </Form>
      {symbol !== '' && (
        <>
          {children(symbol)}
          <p>
            <a href={symbolPage(symbol)}>All about {symbol}</a>
          </p>
        </>
      )}
    </>
  );
}
