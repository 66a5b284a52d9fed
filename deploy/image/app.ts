import { copyFileSync, mkdirSync, readdirSync, readFileSync, utimesSync } from 'node:fs';
import path from 'node:path';
import { packageRoot } from '../../lib/files/package-root.ts';

/** Files of the repository that the processes read at run time. */
const FILES = [
  'package.json',
  'LICENSE',
  'NOTICE',
  'deploy/sql/clickhouse',
  'deploy/sql/postgres',
  'deploy/sql/postgres-roles',
  'domain/market/calendars/data',
  'gateway/stream/protocol/asyncapi.json',
  'dist',
] as const;

/** Programs that the image does not run. */
const OTHER_PROGRAMS = /^dist\/(benchmarks|deploy\/local|generator\/examples|sdk)\//;

/** What no process reads: types, documents, source maps of packages, tests of SQL. */
const UNREAD = /\.(d\.[cm]?ts|[cm]?ts|map|md|markdown|flow|tsbuildinfo)$|\/(testing|\.github)\//;

/** uWebSockets.js brings one binary for each platform and version of Node. */
const UWS_BINARY = /uWebSockets\.js\/dist\/bin\/uws_/;

/** The platform and the version of Node of an image. */
export interface Target {
  readonly platform: string;
  readonly arch: string;
  /** `process.versions.modules`: 127 is Node 22. */
  readonly modules: string;
}

/**
 * Copies what the image has in /app: the programs, what they read, and the packages that the lock
 * file names for production. Every file has the same date, so that two copies are equal.
 */
export function copyApp(folder: string, target: Target): void {
  const uws = `uws_${target.platform}_${target.arch}_${target.modules}.node`;
  const schemas = filesOf('schemas').filter((file) => /^schemas\/[^/]+\.avsc$/.test(file));
  const files = FILES.flatMap(filesOf).filter((file) => !OTHER_PROGRAMS.test(file));
  const packages = productionPackages()
    .flatMap(filesOfPackage)
    .filter((file) => !UNREAD.test(file))
    .filter((file) => !UWS_BINARY.test(file) || path.basename(file) === uws);
  for (const file of [...files, ...schemas, ...packages]) {
    const copy = path.join(folder, file);
    mkdirSync(path.dirname(copy), { recursive: true });
    copyFileSync(path.join(packageRoot, file), copy);
    utimesSync(copy, 0, 0);
  }
}

/** Folders of the packages that are installed without `--omit=dev` alone, e.g. node_modules/pg. */
export function productionPackages(): string[] {
  const { packages } = JSON.parse(
    readFileSync(path.join(packageRoot, 'package-lock.json'), 'utf8'),
  ) as { packages: Record<string, { dev?: true; devOptional?: true; optional?: true }> };
  return Object.entries(packages)
    .filter(([folder, one]) => folder !== '' && one.dev !== true && one.devOptional !== true)
    .filter(([folder]) => !folder.startsWith('node_modules/@types/'))
    .map(([folder]) => folder);
}

/** Files of a package without the packages below it, which are listed by themselves. */
function filesOfPackage(folder: string): string[] {
  return filesOf(folder).filter((file) => !file.slice(folder.length).includes('/node_modules/'));
}

/** A file, or all files below a folder; none if an optional package is not installed. */
function filesOf(file: string): string[] {
  const absolute = path.join(packageRoot, file);
  try {
    const entries = readdirSync(absolute, { recursive: true, withFileTypes: true });
    return entries
      .filter((entry) => entry.isFile())
      .map((entry) => path.relative(packageRoot, path.join(entry.parentPath, entry.name)))
      .sort();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOTDIR') return [file];
    if (code === 'ENOENT' && file.startsWith('node_modules/')) return [];
    throw error;
  }
}
