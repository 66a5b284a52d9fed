import type { ComponentChildren } from 'preact';

/** A state in a word, then what it means and what to do. */
export function Notice(props: {
  readonly kind?: 'bad' | 'good';
  readonly title: string;
  readonly children: ComponentChildren;
}) {
  const { kind = '', title, children } = props;
  return (
    <p class={`notice ${kind}`} role="status">
      <strong>{title}.</strong> {children}
    </p>
  );
}
