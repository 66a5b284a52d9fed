import type { OutputFormat } from '../clickhouse/read-bytes.ts';
import { createArrowParts } from './arrow-parts.ts';
import { createParquetParts } from './parquet-parts.ts';
import type { Parts } from './parts.ts';

interface ExportFormatSpec {
  readonly extension: string;
  readonly mediaType: string;
  /** Of the first slice, and of the others. */
  readonly written: readonly [OutputFormat, OutputFormat];
  readonly encoding?: 'gzip' | 'zstd';
  /** Measured on the demo market, for the estimate. */
  readonly bytesPerRow: number;
  readonly parts: () => Parts;
}

/** Members of gzip and frames of zstd follow one another in a file. */
const plainParts = (): Parts => ({ add: (slice) => slice, end: () => Buffer.alloc(0) });

/** The formats of exports. */
export const EXPORT_FORMATS = {
  parquet: {
    extension: 'parquet',
    mediaType: 'application/vnd.apache.parquet',
    written: ['Parquet', 'Parquet'],
    bytesPerRow: 60,
    parts: createParquetParts,
  },
  arrow: {
    extension: 'arrows',
    mediaType: 'application/vnd.apache.arrow.stream',
    written: ['ArrowStream', 'ArrowStream'],
    bytesPerRow: 120,
    parts: createArrowParts,
  },
  'csv.gz': {
    extension: 'csv.gz',
    mediaType: 'application/gzip',
    written: ['CSVWithNames', 'CSV'],
    encoding: 'gzip',
    bytesPerRow: 70,
    parts: plainParts,
  },
  'ndjson.zst': {
    extension: 'ndjson.zst',
    mediaType: 'application/zstd',
    written: ['JSONEachRow', 'JSONEachRow'],
    encoding: 'zstd',
    bytesPerRow: 70,
    parts: plainParts,
  },
} as const satisfies Readonly<Record<string, ExportFormatSpec>>;

export type ExportFormat = keyof typeof EXPORT_FORMATS;
export const EXPORT_FORMAT_NAMES = Object.keys(EXPORT_FORMATS) as ExportFormat[];

/** The same with its optional members. */
export function formatSpec(format: ExportFormat): ExportFormatSpec {
  return EXPORT_FORMATS[format];
}
