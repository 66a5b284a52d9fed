import { useEffect, useState } from 'preact/hooks';
import '../../style/data.css';
import '../../style/key-form.css';
import { GeneratorView } from '../../view/generator-view.tsx';
import { PageOf } from '../parts/page.tsx';
import { Skeleton } from '../parts/states.tsx';

/** The text says how old the figures are. */
const DRAW_EVERY_MS = 1_000;

/** What became of a generator's pills: for its owner, and for the operator where ingest is open. */
export default function Generator() {
  // In memory alone.
  const [token, setToken] = useState<string>();
  const [nowMs, setNowMs] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNowMs(Date.now()), DRAW_EVERY_MS);
    return () => clearInterval(timer);
  }, []);
  return (
    <PageOf title="Generator">
      <div class="generator-view">
        <GeneratorView
          {...{ token, nowMs }}
          placeholder={<Skeleton rows={12} />}
          onToken={setToken}
        />
      </div>
    </PageOf>
  );
}
