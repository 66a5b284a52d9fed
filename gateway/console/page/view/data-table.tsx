import type { ComponentChildren } from 'preact';
import { formatForeign, formatTime } from './format.ts';

export interface Column<T> {
  readonly title: string;
  /** Numbers are aligned to the right; words may take several lines. */
  readonly kind?: 'number' | 'words';
  readonly cell: (row: T) => ComponentChildren;
}

/** A table of text; the first column names its rows. On phones each row is a block. */
export function DataTable<T>(props: {
  readonly title: string;
  readonly columns: readonly Column<T>[];
  readonly rows: readonly T[];
  readonly keyOf: (row: T) => string;
}) {
  const { title, columns, rows, keyOf } = props;
  const [first, ...others] = columns;
  return (
    <table class="data">
      <caption class="unseen">{title}</caption>
      <thead>
        <tr>
          {columns.map((column) => (
            <th scope="col" key={column.title} class={column.kind}>
              {column.title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={keyOf(row)}>
            <th scope="row">{first!.cell(row)}</th>
            {others.map((column) => (
              <td key={column.title} class={column.kind} data-title={column.title}>
                {column.cell(row)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Longest text of others in a cell, and in its title. */
const CELL_CHARS_MAX = 300;
const TITLE_CHARS_MAX = 1_000;

/** Text of others, whose direction does not reach beyond it. A dash if there is none. */
export function Foreign({ text }: { readonly text: string | undefined }) {
  if (text === undefined || text === '') return <>–</>;
  return (
    <bdi title={formatForeign(text, TITLE_CHARS_MAX)}>{formatForeign(text, CELL_CHARS_MAX)}</bdi>
  );
}

/** A time of the platform in this machine's time zone; its title has it in UTC. */
export function When({ iso }: { readonly iso: string }) {
  return (
    <time dateTime={iso} title={`${iso.replace('T', ' ').replace('Z', '')} UTC`}>
      {formatTime(Date.parse(iso))}
    </time>
  );
}
