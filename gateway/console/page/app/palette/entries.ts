import { ACTIONS, DOCUMENTS, GROUPS, TOOLS } from '../pages.ts';
import { symbolPage } from '../symbols/bodies.ts';

/** What the palette leads to. */
export interface Entry {
  readonly href: string;
  readonly title: string;
  readonly kind: 'page' | 'action' | 'symbol';
}

const FOUND_MAX = 12;
const PAGES = [...GROUPS.flatMap(([, links]) => links), ...TOOLS, ...DOCUMENTS];
const FIXED: readonly Entry[] = [
  ...PAGES.map(([href, title]) => ({ href, title, kind: 'page' as const })),
  ...ACTIONS.map(([href, title]) => ({ href, title, kind: 'action' as const })),
];

/** Entries that contain a text, at most 12; those that begin with it are first. */
export function findEntries(text: string, symbols: readonly string[]): readonly Entry[] {
  const wanted = text.trim().toLowerCase();
  const all = [
    ...FIXED,
    ...symbols.map((symbol) => ({
      ...{ href: symbolPage(symbol), title: symbol, kind: 'symbol' as const },
    })),
  ];
  const found = all.filter(({ title }) => title.toLowerCase().includes(wanted));
  const begins = ({ title }: Entry) => title.toLowerCase().startsWith(wanted);
  return [...found.filter(begins), ...found.filter((one) => !begins(one))].slice(0, FOUND_MAX);
}
