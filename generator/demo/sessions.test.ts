import { expect, it } from 'vitest';
import { marketStateAt, type VenueName } from './sessions.ts';

it.each<[VenueName, string, string]>([
  // Saturday and Sunday first.
  ['tokyo', '2026-11-21T01:00:00Z', 'closed'],
  ['mumbai', '2026-11-22T05:00:00Z', 'closed'],
  ['currencies', '2026-11-21T12:00:00Z', 'closed'],
  ['currencies', '2026-11-22T21:59:00Z', 'closed'],
  ['currencies', '2026-11-22T22:00:00Z', 'open'],
  ['currencies', '2026-11-20T22:00:00Z', 'closed'],
  ['tokyo', '2026-11-19T23:59:00Z', 'closed'],
  ['tokyo', '2026-11-20T00:00:00Z', 'open'],
  ['tokyo', '2026-11-20T02:30:00Z', 'lunch_break'],
  ['tokyo', '2026-11-20T03:30:00Z', 'open'],
  ['tokyo', '2026-11-20T06:30:00Z', 'closed'],
  ['hongKong', '2026-11-20T04:30:00Z', 'lunch_break'],
  ['seoul', '2026-11-20T03:00:00Z', 'open'],
  // Sydney's clock goes forward in October.
  ['sydney', '2026-07-20T00:00:00Z', 'open'],
  ['sydney', '2026-11-19T23:00:00Z', 'open'],
  ['sydney', '2026-07-19T23:00:00Z', 'closed'],
  ['mumbai', '2026-11-20T03:44:00Z', 'closed'],
  ['mumbai', '2026-11-20T03:45:00Z', 'open'],
])('%s at %s is %s', (venue, time, state) => {
  expect(marketStateAt(venue, Date.parse(time))).toBe(state);
});
