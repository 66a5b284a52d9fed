import type { VNode } from 'preact';
import { useRef } from 'preact/hooks';

/** How long a drawing that may wait is kept: a little less than the second between two redraws. */
const KEPT_MS = 900;

/**
 * The last drawing again, if it will do; an equal object costs the page nothing.
 * @param inputs another one is drawn at once
 * @param figure another one is drawn at once, or within a second if `mayWait`; undefined: it is
 * always another
 */
export function useKept(
  {
    mayWait,
    inputs,
    figure,
  }: {
    readonly mayWait: boolean;
    readonly inputs: readonly unknown[];
    readonly figure?: number;
  },
  draw: () => VNode<object>,
): VNode<object> {
  const kept = useRef<Kept>(null);
  const was = kept.current;
  const nowMs = performance.now();
  if (was !== null && inputs.every((input, at) => input === was.inputs[at])) {
    const isSame = figure !== undefined && figure === was.figure;
    if (isSame || (mayWait && nowMs - was.atMs < KEPT_MS)) return was.drawn;
  }
  const drawn = draw();
  kept.current = { drawn, atMs: nowMs, inputs, figure };
  return drawn;
}

interface Kept {
  readonly drawn: VNode<object>;
  readonly atMs: number;
  readonly inputs: readonly unknown[];
  readonly figure: number | undefined;
}
