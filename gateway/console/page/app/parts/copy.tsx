import { useRef, useState } from 'preact/hooks';

/** Copies a short text that is shown elsewhere. @param props.what its name */
export function CopyButton({ what, text }: { readonly what: string; readonly text: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = () =>
    navigator.clipboard.writeText(text).then(
      () => setCopied(true),
      // Without permission the browser says so itself; the text can be selected.
      () => undefined,
    );
  return (
    <button type="button" onClick={copy}>
      {isCopied ? `Copied ${what}` : `Copy ${what}`}
    </button>
  );
}

/** A text with a button that copies it. */
export function Copyable({ label, text }: { readonly label: string; readonly text: string }) {
  const [isCopied, setCopied] = useState(false);
  const action = isCopied ? 'Copied' : 'Copy';
  const code = useRef<HTMLElement>(null);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setCopied(true);
    } catch {
      // Without permission the text is selected, so that the keyboard can copy it.
      getSelection()?.selectAllChildren(code.current!);
    }
  };
  return (
    <div class="copyable">
      <div>
        <span>{label}</span>
        <button type="button" aria-label={`${action} ${label}`} onClick={copy}>
          {action}
        </button>
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a wide text is scrolled by keyboard */}
      <pre tabIndex={0}>
        <code ref={code}>{text}</code>
      </pre>
    </div>
  );
}
