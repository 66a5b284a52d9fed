import { useEffect } from 'preact/hooks';
import { TABLE_ADDRESS } from './use-place.ts';

/** A link to the table; Escape leads there too. */
export function WayBack() {
  useEffect(() => {
    const onKey = ({ key }: KeyboardEvent) => {
      if (key === 'Escape') location.hash = TABLE_ADDRESS;
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
  return (
    <p class="back">
      <a href={TABLE_ADDRESS}>← All symbols</a>
    </p>
  );
}
