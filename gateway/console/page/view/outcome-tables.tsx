import type { ComponentChildren } from 'preact';
import type { GeneratorReport } from '../feed/generator-reads.ts';
import {
  boundOf,
  byReason,
  bySource,
  type Counts,
  type HourOutcomes,
  reasonKey,
  type SourceReason,
  totalOf,
} from '../outcomes/outcomes.ts';
import { describeSample, type RefusedPill, symbolIn } from '../outcomes/refused-pills.ts';
import { type Column, DataTable, Foreign, When } from './data-table.tsx';

/** Rows that are shown; counts cover all. */
const ROWS_MAX = { sources: 20, reasons: 50, hours: 100 } as const;

/** What became of the pills: by source, by reason, by hour, and the newest refused ones. */
export function OutcomeTables({ hours, refused }: Omit<GeneratorReport, 'tookMs'>) {
  const sources = bySource(hours);
  const reasons = byReason(hours);
  const total = totalOf(sources);
  const shown = {
    sources: sources.slice(0, ROWS_MAX.sources),
    reasons: reasons.slice(0, ROWS_MAX.reasons),
    hours: hours.slice(0, ROWS_MAX.hours),
  };
  if (sources.length === 0 && refused.length === 0) {
    return <p class="soft">No pill was sent in the last 24 hours.</p>;
  }
  const withAll = sources.length > 1 ? [total, ...shown.sources] : shown.sources;
  return (
    <>
      <Section
        title="By source"
        note={boundOf('largest', shown.sources.length, sources.length, 'sources')}
      >
        <DataTable title="By source" columns={BY_SOURCE} rows={withAll} keyOf={sourceKey} />
      </Section>
      <Section
        title="Why pills were refused or rejected"
        note={
          reasons.length === 0
            ? 'No pill was refused or rejected.'
            : boundOf('most frequent', shown.reasons.length, reasons.length, 'reasons')
        }
      >
        {reasons.length > 0 && (
          <DataTable title="Reasons" columns={BY_REASON} rows={shown.reasons} keyOf={reasonKey} />
        )}
      </Section>
      <Section title="By hour" note={boundOf('newest', shown.hours.length, hours.length, 'rows')}>
        <DataTable title="By hour" columns={BY_HOUR} rows={shown.hours} keyOf={hourKey} />
      </Section>
      <Section
        title="Newest refused and rejected pills"
        note={describeSample(refused.length, total.refused + total.rejected)}
      >
        {refused.length > 0 && (
          <DataTable
            title="Newest refused and rejected pills"
            columns={REFUSED}
            rows={refused}
            keyOf={({ origin }) => origin}
          />
        )}
      </Section>
    </>
  );
}

/** Without a source: all of them together. */
interface SourceRow extends Counts {
  readonly source?: string;
}

const sourceKey = ({ source }: SourceRow) => (source === undefined ? 'all' : `of ${source}`);
const hourKey = ({ hour, source }: HourOutcomes) => `${hour} ${source}`;

function Section(props: {
  readonly title: string;
  readonly note: string;
  readonly children: ComponentChildren;
}) {
  const { title, note, children } = props;
  const id = title.toLowerCase().replaceAll(' ', '-');
  return (
    <section class="panel" aria-labelledby={id}>
      <h3 id={id}>{title}</h3>
      {note !== '' && <p class="soft">{note}</p>}
      {children}
    </section>
  );
}

function sourceName(source: string) {
  return source === '' ? 'unknown source' : <Foreign text={source} />;
}

const ofCount = <T extends Counts>(title: string, name: keyof Counts): Column<T> => ({
  title,
  kind: 'number',
  cell: (row) => (
    <span class={row[name] === 0 ? 'none' : undefined}>{row[name].toLocaleString('en')}</span>
  ),
});

const counts = <T extends Counts>(): readonly Column<T>[] => [
  ofCount('Accepted', 'accepted'),
  ofCount('of these late', 'late'),
  ofCount('of these backfilled', 'backfill'),
  ofCount('Repeated', 'repeated'),
  ofCount('Rejected', 'rejected'),
  ofCount('Refused', 'refused'),
];

const BY_SOURCE: readonly Column<SourceRow>[] = [
  {
    title: 'Source',
    cell: ({ source }) => (source === undefined ? 'All sources' : sourceName(source)),
  },
  ...counts<SourceRow>(),
];

const BY_HOUR: readonly Column<HourOutcomes>[] = [
  { title: 'Hour', cell: ({ hour }) => <When iso={hour} /> },
  { title: 'Source', cell: ({ source }) => sourceName(source) },
  ...counts<HourOutcomes>(),
];

const whereOf = (channel: 'http' | 'log') => (channel === 'http' ? 'refused' : 'rejected');

const BY_REASON: readonly Column<SourceReason>[] = [
  { title: 'Reason', cell: ({ code }) => <Foreign text={code} /> },
  { title: 'First fault', cell: ({ fault }) => <Foreign text={fault} /> },
  { title: 'Source', cell: ({ source }) => sourceName(source) },
  { title: 'Outcome', cell: ({ channel }) => whereOf(channel) },
  { title: 'Pills', kind: 'number', cell: ({ count }) => count.toLocaleString('en') },
];

const REFUSED: readonly Column<RefusedPill>[] = [
  { title: 'Time', cell: ({ at }) => <When iso={at} /> },
  { title: 'Source', cell: ({ source }) => sourceName(source) },
  { title: 'Symbol', cell: (row) => <Foreign text={symbolIn(row)} /> },
  { title: 'Outcome', cell: ({ channel }) => whereOf(channel) },
  {
    title: 'Reason',
    kind: 'words',
    cell: ({ code, reason }) => (
      <>
        <b>
          <Foreign text={code} />
        </b>{' '}
        <Foreign text={reason} />
      </>
    ),
  },
];
