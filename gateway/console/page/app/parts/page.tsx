import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';

/** A page of the account with its title. */
export function PageOf(props: {
  readonly title: string;
  readonly action?: ComponentChildren;
  readonly children: ComponentChildren;
}) {
  const { title, action, children } = props;
  useEffect(() => {
    document.title = `${title} · pillole`;
  }, [title]);
  return (
    <section>
      <div class="head">
        <h1>{title}</h1>
        {action}
      </div>
      {children}
    </section>
  );
}
