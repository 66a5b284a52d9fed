import { useEffect, useState } from 'preact/hooks';

type Theme = 'dark' | 'light';

const KEY = 'pillole-theme';
const DARK = '(prefers-color-scheme: dark)';

/** Puts on what was chosen before; without a choice the style sheet follows the system. */
export function applyTheme(): void {
  const chosen = read();
  if (chosen !== undefined) document.documentElement.dataset.theme = chosen;
}

/** Changes between light and dark. */
export function ThemeToggle() {
  const [theme, setTheme] = useState<Theme>(() => read() ?? systemTheme());
  useEffect(() => {
    const follow = () => {
      if (document.documentElement.dataset.theme === undefined) setTheme(systemTheme());
    };
    const system = matchMedia(DARK);
    system.addEventListener('change', follow);
    return () => system.removeEventListener('change', follow);
  }, []);
  const other = theme === 'dark' ? 'light' : 'dark';
  const toggle = () => {
    write(other);
    document.documentElement.dataset.theme = other;
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

/** Storage may be refused: then a choice lasts as long as the page. */
function read(): Theme | undefined {
  try {
    const kept = localStorage.getItem(KEY);
    return kept === 'dark' || kept === 'light' ? kept : undefined;
  } catch {
    return undefined;
  }
}

function write(theme: Theme): void {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // As above.
  }
}
