import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import { ThemeToggle } from '../../view/theme.tsx';

/** A page for people who are not signed in. */
export function EntryPage(props: { readonly title: string; readonly children: ComponentChildren }) {
  const { title, children } = props;
  useEffect(() => {
    document.title = `${title} · pillole`;
  }, [title]);
  return (
    <main class="entry">
      <p class="name">
        <a href="/" target="_self">
          pillole
        </a>
        <ThemeToggle />
      </p>
      <h1>{title}</h1>
      {children}
    </main>
  );
}
