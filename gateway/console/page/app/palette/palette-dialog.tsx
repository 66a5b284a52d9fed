import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { useLocation } from 'preact-iso';
import { useSymbols } from '../symbols/use-symbols.ts';
import { type Entry, findEntries } from './entries.ts';

/** Pages, actions and symbols by a few letters; arrows choose, Enter goes. */
export function PaletteDialog({ onClose }: { readonly onClose: () => void }) {
  const { route } = useLocation();
  const [text, setText] = useState('');
  const [place, setPlace] = useState(0);
  const element = useRef<HTMLDialogElement>(null);
  const id = useId();
  // Before the next key: an effect after the drawing would lose what a fast hand types.
  useLayoutEffect(() => element.current!.showModal(), []);
  // Symbols cost a call, so they are read only for someone who types.
  const symbols = useSymbols(text !== '');
  const names = symbols.data?.symbols.map(({ symbol }) => symbol) ?? [];
  const found = findEntries(text, names);
  const go = (entry: Entry | undefined) => {
    if (entry === undefined) return;
    onClose();
    if (entry.href.startsWith('/app')) route(entry.href);
    else location.assign(entry.href);
  };
  const press = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      setPlace(Math.min(found.length - 1, Math.max(0, place + step)));
    } else if (event.key === 'Enter') go(found[place]);
  };
  return (
    <dialog
      class="palette"
      ref={element}
      aria-label="Go to"
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
    >
      <input
        role="combobox"
        aria-label="Page, action or symbol"
        aria-expanded="true"
        aria-controls={`${id}-list`}
        aria-activedescendant={found.length === 0 ? undefined : `${id}-${place}`}
        autocomplete="off"
        placeholder="Page, action or symbol"
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setPlace(0);
        }}
        onKeyDown={press}
      />
      <div role="listbox" id={`${id}-list`} aria-label="Results">
        {found.map((entry, at) => (
          <div
            key={entry.href}
            id={`${id}-${at}`}
            role="option"
            tabIndex={-1}
            aria-selected={at === place}
            onClick={() => go(entry)}
            onKeyDown={press}
          >
            {entry.title} <span>{entry.kind}</span>
          </div>
        ))}
      </div>
      {found.length === 0 && <p class="hint">Nothing has this name.</p>}
    </dialog>
  );
}
