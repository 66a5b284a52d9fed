import { readTokens } from './tokens.ts';

const OPEN = '('.charCodeAt(0);
const CLOSE = ')'.charCodeAt(0);

/**
 * The parts of an insert with rows. This module reads only enough of a statement to route it; the
 * engine's own parser decides whether the statement is allowed (see engine.ts).
 */
export interface Insert {
  /** The text up to the place of `FROM INFILE …`. */
  readonly head: string;
  /** `SETTINGS …` between head and format, or empty. */
  readonly settings: string;
  readonly format: string;
  /** Index in the text where the rows begin. */
  readonly dataAt: number;
}

/** The first word in capitals, without comments; empty if there is none. */
export function firstWord(text: string): string {
  const token = readTokens(text);
  while (token.next()) {
    if (!token.is(OPEN)) return token.kind === 'word' ? token.text().toUpperCase() : '';
  }
  return '';
}

/** Splits an INSERT with rows; undefined for other statements, also for INSERT … SELECT. */
export function insertWithRows(text: string): Insert | undefined {
  const token = readTokens(text);
  let depth = 0;
  let settingsAt: number | undefined;
  let words = 0;
  while (token.next()) {
    if (token.is(OPEN)) depth += 1;
    if (token.is(CLOSE)) depth -= 1;
    if (depth > 0 || token.kind !== 'word') continue;
    const word = token.text().toUpperCase();
    if (words++ === 0 && word !== 'INSERT') return undefined;
    // FROM: FROM INFILE, which reads the rows from the server's disk.
    if (words > 2 && (word === 'SELECT' || word === 'WITH' || word === 'FROM')) return undefined;
    if (words > 2 && word === 'SETTINGS') settingsAt ??= token.at;
    if (words > 2 && (word === 'FORMAT' || word === 'VALUES')) {
      const { at, end } = token;
      if (word === 'FORMAT' && !(token.next() && token.kind === 'word')) return undefined;
      return {
        head: text.slice(0, settingsAt ?? at),
        settings: settingsAt === undefined ? '' : text.slice(settingsAt, at),
        format: word === 'VALUES' ? 'Values' : token.text(),
        dataAt: word === 'VALUES' ? end : afterLineBreak(text, token.end),
      };
    }
  }
  return undefined;
}

/** The FORMAT clause at the end of a query (settings may follow it). */
export function trailingFormat(text: string): string | undefined {
  const token = readTokens(text);
  let found: string | undefined;
  let depth = 0;
  let isAfterFormat = false;
  while (token.next()) {
    if (token.is(OPEN)) depth += 1;
    if (token.is(CLOSE)) depth -= 1;
    const isWord = token.kind === 'word';
    if (depth === 0 && isAfterFormat && isWord) found = token.text();
    isAfterFormat = isWord && token.end - token.at === 6 && token.text().toUpperCase() === 'FORMAT';
  }
  return found;
}

/** All bare and quoted names of a statement, without string literals and comments. */
export function namesIn(text: string): string[] {
  const token = readTokens(text);
  const names: string[] = [];
  while (token.next()) {
    if (token.kind === 'word') names.push(token.text());
    else if (/^["`]/.test(token.text())) names.push(token.text().slice(1, -1));
  }
  return names;
}

/** The rows begin after the spaces and the one line break that follow the format's name. */
function afterLineBreak(text: string, at: number): number {
  const gap = /^[ \t\f]*(?:\r?\n)?/.exec(text.slice(at, at + 1024));
  return at + (gap?.[0].length ?? 0);
}
