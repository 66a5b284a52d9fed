import { styleText } from 'node:util';
import type { Figures } from './figures.ts';

const rate = (perS: number) => (perS >= 100 ? perS.toFixed(0) : perS.toFixed(1));
const ms = (value: number) => `${value < 10 ? value.toFixed(1) : value.toFixed(0)} ms`;

function latency({ receiveToSendMs }: Figures): string {
  if (receiveToSendMs === undefined) return 'no pill sent';
  return `p50 ${ms(receiveToSendMs.p50)}, p99 ${ms(receiveToSendMs.p99)}`;
}

function lag(figures: Figures): string {
  const entries = Object.entries(figures.lag).sort(([one], [other]) => one.localeCompare(other));
  return entries.length === 0 ? 'unknown' : entries.map(([n, v]) => `${n} ${v}`).join(', ');
}

function warnings({ unreachable }: Figures): string[] {
  return unreachable.length === 0 ? [] : [`no answer from ${unreachable.join(', ')}`];
}

/** One line, for a log. */
export function statusLine(figures: Figures): string {
  return [
    `pills ${rate(figures.receivedPerS)}/s in, ${rate(figures.acknowledgedPerS)}/s acknowledged`,
    `lag ${lag(figures)}`,
    `sockets ${figures.sockets} (${rate(figures.deliveriesPerS)} pills/s)`,
    `receive to socket ${latency(figures)}`,
    ...warnings(figures),
  ].join('; ');
}

/** Lines that a terminal repaints. @param events the last events, oldest first */
export function statusPanel(
  figures: Figures,
  events: readonly string[],
  paint: (style: 'dim' | 'bold' | 'yellow', text: string) => string = styleText,
): string {
  const row = (label: string, value: string) => `  ${paint('dim', label.padEnd(18))}${value}`;
  return [
    row(
      'pills',
      `${paint('bold', `${rate(figures.receivedPerS)}/s`)} in, ` +
        `${paint('bold', `${rate(figures.acknowledgedPerS)}/s`)} acknowledged`,
    ),
    row('waiting records', lag(figures)),
    row('sockets', `${figures.sockets}, ${rate(figures.deliveriesPerS)} pills/s sent`),
    row('receive to socket', latency(figures)),
    ...warnings(figures).map((text) => row('', paint('yellow', text))),
    ...events.map((event, n) => row(n === 0 ? 'last events' : '', event)),
  ].join('\n');
}
