import { useState } from 'preact/hooks';
import { ActionButton } from '../parts/action-button.tsx';
import { Copyable } from '../parts/copy.tsx';
import { useSession } from '../session/session-context.tsx';

/** A longer answer is cut, so that the page stays quick. */
const SHOWN_CHARS_MAX = 20_000;

/** Makes a call as the signed-in user and shows the answer. */
export function TryIt({ path }: { readonly path: string }) {
  const { client } = useSession();
  const [answer, setAnswer] = useState<{ readonly text: string; readonly ms: number }>();
  const call = async () => {
    setAnswer(undefined);
    const startMs = performance.now();
    const blob = await client.download(path);
    const text = await blob.text();
    setAnswer({ text: shownOf(text), ms: performance.now() - startMs });
  };
  return (
    <section class="part">
      <h2>Try it</h2>
      <p class="hint">
        <code>GET {path}</code> as you; calls count against the quota as those of a key do.
      </p>
      <ActionButton onClick={call}>Send</ActionButton>
      {answer !== undefined && (
        <Copyable label={`Answer, ${answer.ms.toFixed(0)} ms`} text={answer.text} />
      )}
    </section>
  );
}

function shownOf(text: string): string {
  let shown = text;
  try {
    shown = JSON.stringify(JSON.parse(text), undefined, 2);
  } catch {
    // Not JSON: as it is.
  }
  return shown.length <= SHOWN_CHARS_MAX ? shown : `${shown.slice(0, SHOWN_CHARS_MAX)}\n… cut`;
}
