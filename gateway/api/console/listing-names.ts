import type { TradingVenue } from '../../../domain/market/calendars/venue-rules.ts';

/** What the page calls the venues. */
export const VENUE_NAMES: Readonly<Record<TradingVenue, string>> = {
  ALWAYS: 'Always open',
  FX: 'Currencies',
  XASX: 'Sydney',
  XBKK: 'Bangkok',
  XBOM: 'Mumbai (BSE)',
  XHKG: 'Hong Kong',
  XIDX: 'Jakarta',
  XKLS: 'Kuala Lumpur',
  XKRX: 'Seoul',
  XNSE: 'Mumbai (NSE)',
  XNZE: 'Wellington',
  XPHS: 'Manila',
  XSES: 'Singapore',
  XSHE: 'Shenzhen',
  XSHG: 'Shanghai',
  XTAI: 'Taipei',
  XTKS: 'Tokyo',
};

/** Names of the listings in the demo market. */
const LISTINGS: ReadonlyMap<string, string> = new Map([
  ['7203.T', 'Toyota Motor'],
  ['6758.T', 'Sony Group'],
  ['8306.T', 'Mitsubishi UFJ Financial Group'],
  ['9984.T', 'SoftBank Group'],
  ['6861.T', 'Keyence'],
  ['8035.T', 'Tokyo Electron'],
  ['9432.T', 'NTT'],
  ['^N225', 'Nikkei 225'],
  ['0700.HK', 'Tencent Holdings'],
  ['9988.HK', 'Alibaba Group'],
  ['0005.HK', 'HSBC Holdings'],
  ['1299.HK', 'AIA Group'],
  ['3690.HK', 'Meituan'],
  ['2318.HK', 'Ping An Insurance'],
  ['^HSI', 'Hang Seng Index'],
  ['600519.SS', 'Kweichow Moutai'],
  ['601318.SS', 'Ping An Insurance'],
  ['600036.SS', 'China Merchants Bank'],
  ['601899.SS', 'Zijin Mining'],
  ['688981.SS', 'SMIC'],
  ['005930.KS', 'Samsung Electronics'],
  ['000660.KS', 'SK hynix'],
  ['035420.KS', 'NAVER'],
  ['005380.KS', 'Hyundai Motor'],
  ['207940.KS', 'Samsung Biologics'],
  ['D05.SI', 'DBS Group'],
  ['O39.SI', 'OCBC Bank'],
  ['U11.SI', 'United Overseas Bank'],
  ['Z74.SI', 'Singtel'],
  ['C6L.SI', 'Singapore Airlines'],
  ['BHP.AX', 'BHP Group'],
  ['CBA.AX', 'Commonwealth Bank of Australia'],
  ['CSL.AX', 'CSL'],
  ['NAB.AX', 'National Australia Bank'],
  ['FMG.AX', 'Fortescue'],
  ['MQG.AX', 'Macquarie Group'],
  ['RELIANCE.NS', 'Reliance Industries'],
  ['TCS.NS', 'Tata Consultancy Services'],
  ['HDFCBANK.NS', 'HDFC Bank'],
  ['INFY.NS', 'Infosys'],
  ['M&M.NS', 'Mahindra & Mahindra'],
  ['^NSEI', 'NIFTY 50'],
]);

const currencies = new Intl.DisplayNames('en', { type: 'currency' });

/** The company, index or pair of currencies behind a symbol; undefined if it is not known here. */
export function listingName(symbol: string, venue: TradingVenue | undefined): string | undefined {
  const name = LISTINGS.get(symbol);
  if (name !== undefined || venue !== 'FX' || !/^[A-Z]{3}\/[A-Z]{3}$/.test(symbol)) return name;
  return symbol
    .split('/')
    .map((code) => currencies.of(code))
    .join(' / ');
}
