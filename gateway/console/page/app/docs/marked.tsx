/** A text of the reference, in which backticks enclose code. */
export function Marked({ text }: { readonly text: string }) {
  return (
    <>
      {text
        .split('`')
        .map((part, index) => (index % 2 === 0 ? part : <code key={index}>{part}</code>))}
    </>
  );
}
