import path from 'node:path';
import { packageRoot } from '../../lib/files/package-root.ts';
import { assembleTree, IMAGE_BYTES_MAX } from './tree.ts';

/** `npm run image:tree -- [FOLDER]`: assembles the image's files, and prints the bytes by layer. */
const folder = process.argv[2] ?? path.join(packageRoot, '.local', 'image');
const { layers } = await assembleTree(folder);
const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(1).padStart(6)} MB`;
for (const { step, bytes } of layers) {
  process.stdout.write(`${megabytes(bytes)}  ${step.source} → ${step.target}\n`);
}
const sum = layers.reduce((total, { bytes }) => total + bytes, 0);
process.stdout.write(`${megabytes(sum)}  ${folder}, of ${IMAGE_BYTES_MAX / 1e6} MB\n`);
process.exitCode = sum <= IMAGE_BYTES_MAX ? 0 : 1;
