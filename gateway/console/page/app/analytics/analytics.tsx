import { useLocation } from 'preact-iso';
import { PageOf } from '../parts/page.tsx';
import { ConfidenceView } from './confidence-view.tsx';
import { CorrelationView } from './correlation-view.tsx';
import { MoversView } from './movers-view.tsx';
import { CadenceView, OutliersView } from './symbol-views.tsx';

const VIEWS = [
  ['movers', 'Movers', MoversView],
  ['confidence', 'Confidence', ConfidenceView],
  ['outliers', 'Outliers', OutliersView],
  ['cadence', 'Cadence', CadenceView],
  ['correlation', 'Correlation', CorrelationView],
] as const;

/** Figures over many symbols; the view and its settings are in the address. */
export default function Analytics() {
  const { query } = useLocation();
  const [present, , View] = VIEWS.find(([view]) => view === query.view) ?? VIEWS[0];
  return (
    <PageOf title="Analytics">
      <nav class="tabs" aria-label="Views">
        {VIEWS.map(([view, title]) => (
          <a
            key={view}
            href={`/app/analytics?view=${view}`}
            aria-current={view === present ? 'page' : undefined}
          >
            {title}
          </a>
        ))}
      </nav>
      <View />
      <p class="hint">Each read of this page counts as a call.</p>
    </PageOf>
  );
}
