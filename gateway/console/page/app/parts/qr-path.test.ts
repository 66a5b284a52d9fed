import jsQR from 'jsqr';
import { expect, test } from 'vitest';
import { qrPath } from './qr-path.ts';

const SCALE = 4;

test.each([
  'otpauth://totp/pillole:desk%40example.com?secret=JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP&issuer=pillole',
  'x',
])('an independent reader reads %s', (text) => {
  const { path, size } = qrPath(text);
  const side = size * SCALE;
  const pixels = new Uint8ClampedArray(side * side * 4).fill(255);
  for (const [, x, y] of path.matchAll(/M(\d+) (\d+)h1v1h-1z/g)) {
    for (let row = 0; row < SCALE; row += 1) {
      const start = ((Number(y) * SCALE + row) * side + Number(x) * SCALE) * 4;
      for (let at = start; at < start + SCALE * 4; at += 1) if (at % 4 !== 3) pixels[at] = 0;
    }
  }
  // The module is CommonJS: its types name the function `default`, its code exports the function.
  const read = ('default' in jsQR ? jsQR.default : jsQR) as typeof jsQR.default;
  expect(read(pixels, side, side)?.data).toBe(text);
});
