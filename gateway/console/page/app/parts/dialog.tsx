import type { ComponentChildren } from 'preact';
import { useId, useLayoutEffect, useRef } from 'preact/hooks';

/** A modal dialog; the browser keeps the focus inside, and Escape closes it. */
export function Dialog(props: {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}) {
  const { title, onClose, children } = props;
  const element = useRef<HTMLDialogElement>(null);
  const id = useId();
  // Before the next key: an effect after the drawing would lose what a fast hand types.
  useLayoutEffect(() => element.current!.showModal(), []);
  return (
    <dialog
      ref={element}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
    >
      <header>
        <h2 id={id}>{title}</h2>
        <button type="button" class="plain" aria-label="Close" onClick={onClose}>
          ×
        </button>
      </header>
      {children}
    </dialog>
  );
}
