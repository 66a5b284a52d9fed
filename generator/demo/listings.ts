import type { VenueOf } from '../../domain/market/calendars/venue-rules.ts';
import type { Listing } from './market.ts';

type Named = Omit<Listing, 'venue'>;

const listing = (symbol: string, meanSpread: number, weight = 1): Named => {
  return { symbol, meanSpread, weight };
};

/** Well-known symbols with plausible spreads; the spreads and weights are invented. */
const NAMED: readonly Named[] = [
  // Tokyo
  listing('7203.T', 0.035, 2),
  listing('6758.T', 0.04, 2),
  listing('8306.T', 0.06),
  listing('9984.T', 0.045, 1.5),
  listing('6861.T', 0.03),
  listing('8035.T', 0.05, 1.5),
  listing('9432.T', 0.07),
  listing('^N225', 0.008, 1.5),
  // Hong Kong
  listing('0700.HK', 0.05, 2),
  listing('9988.HK', 0.06, 2),
  listing('0005.HK', 0.07),
  listing('1299.HK', 0.08),
  listing('3690.HK', 0.06, 1.5),
  listing('2318.HK', 0.1),
  listing('^HSI', 0.01, 1.5),
  // Shanghai
  listing('600519.SS', 0.03, 1.5),
  listing('601318.SS', 0.03),
  listing('600036.SS', 0.03),
  listing('601899.SS', 0.06),
  listing('688981.SS', 0.05),
  // Seoul
  listing('005930.KS', 0.14, 2),
  listing('000660.KS', 0.09, 2),
  listing('035420.KS', 0.13),
  listing('005380.KS', 0.12),
  listing('207940.KS', 0.11, 0.5),
  // Singapore
  listing('D05.SI', 0.03),
  listing('O39.SI', 0.06),
  listing('U11.SI', 0.04),
  listing('Z74.SI', 0.3, 0.5),
  listing('C6L.SI', 0.15, 0.5),
  // Sydney
  listing('BHP.AX', 0.025, 1.5),
  listing('CBA.AX', 0.02, 1.5),
  listing('CSL.AX', 0.03),
  listing('NAB.AX', 0.03),
  listing('FMG.AX', 0.05),
  listing('MQG.AX', 0.04, 0.5),
  // Mumbai
  listing('RELIANCE.NS', 0.04, 2),
  listing('TCS.NS', 0.03),
  listing('HDFCBANK.NS', 0.03, 1.5),
  listing('INFY.NS', 0.04),
  listing('M&M.NS', 0.05, 0.5),
  listing('^NSEI', 0.008),
  // Currencies
  listing('USD/JPY', 0.009, 2),
  listing('AUD/USD', 0.013, 1.5),
  listing('NZD/USD', 0.02),
  listing('USD/CNY', 0.012),
  listing('USD/SGD', 0.015),
  listing('USD/KRW', 0.02, 0.5),
  listing('USD/INR', 0.02, 0.5),
  listing('USD/HKD', 0.008, 0.5),
];

/** The symbols of the demo market, with their venues. */
export function placedListings(venueOf: VenueOf): Listing[] {
  return NAMED.map((named) => ({ ...named, venue: venueOf(named.symbol) ?? 'ALWAYS' }));
}
