import { useEffect, useState } from 'preact/hooks';

type Theme = 'dark' | 'light';

const KEY = 'pillole-theme';
const DARK = '(prefers-color-scheme: dark)';

const { dataset } = document.documentElement;

/** Applies the stored choice; without one the style sheet follows the system. */
export function applyTheme(): void {
  const chosen = read();
  if (chosen !== undefined) dataset.theme = chosen;
}

/** Switches between light and dark. */
export function ThemeToggle() {
  const [theme, setTheme] = useState<Theme>(() => read() ?? systemTheme());
  useEffect(() => {
    const follow = () => {
      if (dataset.theme === undefined) setTheme(systemTheme());
    };
    const system = matchMedia(DARK);
    system.addEventListener('change', follow);
    return () => system.removeEventListener('change', follow);
  }, []);
  const other = theme === 'dark' ? 'light' : 'dark';
  const toggle = () => {
    try {
      localStorage.setItem(KEY, other);
    } catch {
      // The browser refuses storage: the choice lasts until the page is closed.
    }
    dataset.theme = other;
    setTheme(other);
  };
  return (
    <button type="button" class="plain" aria-label={`Switch to ${other}`} onClick={toggle}>
      <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false">
        <circle cx="8" cy="8" r="6.25" fill="none" stroke="currentColor" stroke-width="1.5" />
        <path d="M8 1.75a6.25 6.25 0 0 1 0 12.5z" fill="currentColor" />
      </svg>
    </button>
  );
}

function systemTheme(): Theme {
  return matchMedia(DARK).matches ? 'dark' : 'light';
}

/** The stored choice; undefined also if the browser refuses storage. */
function read(): Theme | undefined {
  try {
    const kept = localStorage.getItem(KEY);
    return kept === 'dark' || kept === 'light' ? kept : undefined;
  } catch {
    return undefined;
  }
}
