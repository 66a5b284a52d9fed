import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { asFailure, type RequestFailed } from '../session/problem.ts';
import { Failure } from './states.tsx';

/** A button for a change that needs no confirmation; a refusal is shown below it. */
export function ActionButton(props: {
  readonly onClick: () => Promise<void>;
  readonly label?: string;
  readonly class?: string;
  readonly children: ComponentChildren;
}) {
  const { onClick, label, class: look, children } = props;
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState<RequestFailed>();
  const act = async () => {
    if (isBusy) return;
    setBusy(true);
    setFailure(undefined);
    try {
      await onClick();
    } catch (error) {
      setFailure(asFailure(error));
    } finally {
      setBusy(false);
    }
  };
  const named = label === undefined ? {} : { 'aria-label': label };
  return (
    <>
      <button type="button" class={look} aria-disabled={isBusy} onClick={act} {...named}>
        {children}
      </button>
      {failure !== undefined && <Failure failure={failure} />}
    </>
  );
}
