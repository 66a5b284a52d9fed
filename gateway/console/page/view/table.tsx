import { useRef } from 'preact/hooks';
import { type Order, SORTS, type Sort } from '../market/order.ts';
import type { Row, Venue } from '../market/symbol-rows.ts';
import { RowLine } from './row.tsx';
import type { SymbolLinks } from './symbol-links.ts';
import { useVisibleRows } from './use-visible-rows.ts';

export interface TableProps {
  readonly rows: readonly Row[];
  readonly venues: ReadonlyMap<string, Venue>;
  readonly order: Order;
  readonly onSort: (by: Sort) => void;
  readonly nowMs: number | undefined;
  /** Whether the rows show the present market. */
  readonly isCurrent: boolean;
  readonly isCalm: boolean;
  readonly links: SymbolLinks;
}

/** The market, one symbol per row. Only visible rows are in the document. */
export function Table(props: TableProps) {
  const { rows, venues, order, onSort, nowMs, isCurrent, isCalm, links } = props;
  const body = useRef<HTMLTableSectionElement>(null);
  const { first, end, rowPx, isSeen } = useVisibleRows(body, rows.length);
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
          <RowLine
            key={row.symbol}
            {...{ row, nowMs, isCalm, links, index: first + index + 2 }}
            isSeen={isSeen(first + index)}
            venue={venues.get(row.venue ?? '')}
          />
        ))}
        <Space lines={rows.length - end} rowPx={rowPx} />
      </tbody>
    </table>
  );
}

/** For narrow screens, where columns have no headings. */
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
  /** A second line of the heading. */
  readonly more?: string;
}

const COLUMNS: readonly Column[] = [
  { name: 'symbol', title: 'Symbol', sort: 'symbol' },
  { name: 'spread', title: 'Spread %', sort: 'spread' },
  { name: 'change', title: 'Change', sort: 'change', more: 'since the previous pill' },
  { name: 'trend', title: 'Last 60 spreads' },
  { name: 'confidence', title: 'Confidence', sort: 'confidence' },
  { name: 'state', title: 'Market', sort: 'state' },
  { name: 'age', title: 'Age', sort: 'age' },
];

const TITLES = new Map(COLUMNS.map(({ sort, title }) => [sort, title]));

type HeadingProps = Column & Pick<TableProps, 'order' | 'onSort'>;

function Heading({ name, title, more, sort, order, onSort }: HeadingProps) {
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
        <span>
          {title}
          {more !== undefined && <small> {more}</small>}
        </span>
        <span class="mark" aria-hidden="true">
          {isSorted && (order.isDescending ? '↓' : '↑')}
        </span>
      </button>
    </th>
  );
}

/** Fills the height of rows that are not visible. */
function Space({ lines, rowPx }: { readonly lines: number; readonly rowPx: number }) {
  if (lines === 0) return null;
  return (
    // biome-ignore lint/a11y/noAriaHiddenOnFocusable: nothing in it can be focused
    <tr class="space" aria-hidden="true">
      <td colSpan={COLUMNS.length} style={{ height: `${lines * rowPx}px` }} />
    </tr>
  );
}
