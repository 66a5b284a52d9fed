import { formatCursor } from '../../../schemas/position.ts';
import { pillFields } from '../wire/json-codec.ts';
import type { FrameSource } from '../wire/outbox.ts';
import type { Row } from './board.ts';

export interface SnapshotOptions {
  readonly id: string | undefined;
  readonly rows: readonly Row[];
  /** For those who asked for backfill `prev` is null: their pills have others in between. */
  readonly backfill: boolean;
  readonly position: string;
  readonly frameBytesMax: number;
  readonly heldRowBytes: number;
}

/** A snapshot as frames below a size, made when there is room; the last one says `last:true`. */
export function createSnapshot(options: SnapshotOptions): FrameSource {
  const { id, rows, position, frameBytesMax } = options;
  const head = `{"type":"snapshot",${id === undefined ? '' : `"id":${JSON.stringify(id)},`}"pills":[`;
  const tail = (last: boolean) => `],"last":${last},"position":"${position}"}`;
  let at = 0;
  let ended = false;
  return {
    heldBytes: rows.length * options.heldRowBytes,
    next() {
      if (ended) return undefined;
      const bodies: string[] = [];
      // Labels of other scripts take three bytes a character; the size is checked in bytes.
      let bytes = head.length + tail(false).length;
      while (at < rows.length) {
        const body = bodyOf(rows[at]!, options.backfill);
        bytes += Buffer.byteLength(body) + 1;
        if (bytes > frameBytesMax && bodies.length > 0) break;
        bodies.push(body);
        at += 1;
      }
      ended = at === rows.length;
      return Buffer.from(`${head}${bodies.join(',')}${tail(ended)}`);
    },
  };
}

function bodyOf(row: Row, backfill: boolean): string {
  const { partition, offset, lastOffset, prevOffset, pill, receivedAt } = row;
  const cursor = (at: number | null) => (at === null ? 'null' : `"${formatCursor(partition, at)}"`);
  const flags = row.backfill ? ',"backfill":true' : '';
  return (
    `{"cursor":${cursor(offset)},"last_cursor":${cursor(lastOffset)},` +
    `"prev":${cursor(backfill ? null : prevOffset)},${pillFields(pill, receivedAt)}${flags}}`
  );
}
