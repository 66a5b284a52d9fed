import { useLayoutEffect, useState } from 'preact/hooks';
import { PaletteDialog } from './palette-dialog.tsx';

/** The button of the palette, and its keys: Ctrl+K, or Command+K. */
export function Palette() {
  const [isOpen, setOpen] = useState(false);
  useLayoutEffect(() => {
    const open = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      setOpen(true);
    };
    addEventListener('keydown', open);
    return () => removeEventListener('keydown', open);
  }, []);
  return (
    <>
      <button type="button" class="search" onClick={() => setOpen(true)}>
        Go to … <kbd>{navigator.platform.startsWith('Mac') ? '⌘' : 'Ctrl '}K</kbd>
      </button>
      {isOpen && <PaletteDialog onClose={() => setOpen(false)} />}
    </>
  );
}
