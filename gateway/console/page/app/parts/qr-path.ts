import { encode } from 'uqr';

/** Light modules around the code, by the standard. */
const BORDER = 4;

/**
 * Draws a text as a QR code.
 * @returns the path of its dark modules, each a square of 1, and the size of the whole square
 */
export function qrPath(text: string): { readonly path: string; readonly size: number } {
  const { data, size } = encode(text, { ecc: 'M', border: BORDER });
  const path = data
    .flatMap((row, y) => row.map((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : '')))
    .join('');
  return { path, size };
}
