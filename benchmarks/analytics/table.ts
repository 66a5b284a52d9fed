import type { AnalyticsResult } from './analytics.ts';

const ms = (micros: number) => (micros / 1_000).toFixed(1);

/** The result as Markdown. */
export function analyticsTable({ sink, queries, verifications, disk }: AnalyticsResult): string {
  const lines = [
    `Sink: ${Math.round(sink.rowsPerS).toLocaleString('en')} rows/s over ${sink.rows} rows` +
      (sink.cpuMicros === null ? '' : `, ${sink.cpuMicros.toFixed(1)} CPU µs a row`),
    '',
    '| query of a day of one symbol | pills | over | a second | p50 ms | p99 ms | max ms | failed |',
    '|---|---|---|---|---|---|---|---|',
    ...queries.map(
      ({ query, pills, over, perS, latency, failed }) =>
        `| ${query} | ${pills.toLocaleString('en')} | ${over} | ${perS} | ${ms(latency.p50)} | ` +
        `${ms(latency.p99)} | ${ms(latency.max)} | ${failed} |`,
    ),
    '',
    '| market verify about | pills | a second | p50 ms | p99 ms | max ms | failed |',
    '|---|---|---|---|---|---|---|',
    ...verifications.map(
      ({ about, pills, perS, latency, failed }) =>
        `| ${about} | ${pills.toLocaleString('en')} | ${perS} | ${ms(latency.p50)} | ` +
        `${ms(latency.p99)} | ${ms(latency.max)} | ${failed} |`,
    ),
    '',
    `Disk: ${disk.bytesPerPill.toFixed(1)} bytes a pill, ${disk.withoutCodecs.toFixed(1)} without codecs ` +
      `(${disk.pills.toLocaleString('en')} pills, merged): ` +
      disk.byColumn
        .filter(({ bytes }) => bytes >= 0.05)
        .map(({ name, bytes }) => `${name} ${bytes.toFixed(1)}`)
        .join(', '),
  ];
  return lines.join('\n');
}
