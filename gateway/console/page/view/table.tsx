import { useRef } from 'preact/hooks';
import type { Row } from '../market/market.ts';
import { type Order, SORTS, type Sort } from '../market/order.ts';
import { RowLine } from './row.tsx';
import { useVisible } from './window.ts';

export interface TableProps {
  readonly rows: readonly Row[];
  readonly order: Order;
  readonly onSort: (by: Sort) => void;
  readonly nowMs: number | undefined;
  /** What it shows is what is so now. */
  readonly isCurrent: boolean;
  readonly isCalm: boolean;
}

/** The market, a symbol a line. Only lines that can be seen are in the document. */
export function Table({ rows, order, onSort, nowMs, isCurrent, isCalm }: TableProps) {
  const body = useRef<HTMLTableSectionElement>(null);
  const { first, end, rowPx } = useVisible(body, rows.length);
  return (
    <table
      class={`market by-${order.by}${isCurrent ? '' : ' past'}`}
      aria-rowcount={rows.length + 1}
    >
      <caption class="unseen">Symbols with their last pill</caption>
      <thead>
        <tr aria-rowindex={1}>
          {COLUMNS.map((column) => (
            <Heading key={column.name} {...column} {...{ order, onSort }} />
          ))}
        </tr>
      </thead>
      <tbody ref={body}>
        <Space lines={first} rowPx={rowPx} />
        {rows.slice(first, end).map((row, index) => (
          <RowLine key={row.symbol} {...{ row, nowMs, isCalm, index: first + index + 2 }} />
        ))}
        <Space lines={rows.length - end} rowPx={rowPx} />
      </tbody>
    </table>
  );
}

/** On narrow screens, where the columns have no headings. */
export function SortChoice({ order, onSort }: Pick<TableProps, 'order' | 'onSort'>) {
  return (
    <div class="sort-choice">
      <label>
        <span class="unseen">Sort by</span>
        <select
          value={order.by}
          onChange={({ currentTarget }) => onSort(currentTarget.value as Sort)}
        >
          {SORTS.map((sort) => (
            <option key={sort} value={sort}>
              {TITLES.get(sort)}
            </option>
          ))}
        </select>
      </label>
      <button
        type="button"
        class="plain"
        aria-label={order.isDescending ? 'Descending' : 'Ascending'}
        onClick={() => onSort(order.by)}
      >
        {order.isDescending ? '↓' : '↑'}
      </button>
    </div>
  );
}

interface Column {
  readonly name: string;
  readonly title: string;
  readonly sort?: Sort;
}

const COLUMNS: readonly Column[] = [
  { name: 'symbol', title: 'Symbol', sort: 'symbol' },
  { name: 'spread', title: 'Spread %', sort: 'spread' },
  { name: 'change', title: 'Change', sort: 'change' },
  { name: 'trend', title: 'Last 60 spreads' },
  { name: 'confidence', title: 'Confidence', sort: 'confidence' },
  { name: 'state', title: 'Market', sort: 'state' },
  { name: 'age', title: 'Age', sort: 'age' },
];

const TITLES = new Map(COLUMNS.map(({ sort, title }) => [sort, title]));

type HeadingProps = Column & Pick<TableProps, 'order' | 'onSort'>;

function Heading({ name, title, sort, order, onSort }: HeadingProps) {
  if (sort === undefined) {
    return (
      <th scope="col" class={name}>
        {title}
      </th>
    );
  }
  const way = order.isDescending ? 'descending' : 'ascending';
  const isSorted = order.by === sort;
  return (
    <th scope="col" class={name} aria-sort={isSorted ? way : 'none'}>
      <button type="button" onClick={() => onSort(sort)}>
        <span>{title}</span>
        <span class="mark" aria-hidden="true">
          {isSorted && (order.isDescending ? '↓' : '↑')}
        </span>
      </button>
    </th>
  );
}

/** In place of lines that cannot be seen. */
function Space({ lines, rowPx }: { readonly lines: number; readonly rowPx: number }) {
  if (lines === 0) return null;
  return (
    // biome-ignore lint/a11y/noAriaHiddenOnFocusable: nothing in it can be focused
    <tr class="space" aria-hidden="true">
      <td colSpan={COLUMNS.length} style={{ height: `${lines * rowPx}px` }} />
    </tr>
  );
}
