/**
 * The parts of an insert that carries rows. Just enough of a statement is read here to route it;
 * whether it is allowed the engine's own parser says (see engine.ts).
 */
export interface Insert {
  /** Up to where `FROM INFILE …` belongs. */
  readonly head: string;
  /** `SETTINGS …` between head and format, or empty. */
  readonly settings: string;
  readonly format: string;
  /** Index in the text where the rows begin. */
  readonly dataAt: number;
}

interface Token {
  readonly kind: 'word' | 'punctuation' | 'other';
  readonly text: string;
  readonly at: number;
  readonly end: number;
}

/** First word in capitals, comments skipped; empty when there is none. */
export function firstWord(text: string): string {
  for (const token of tokens(text)) {
    if (token.text === '(') continue;
    return token.kind === 'word' ? token.text.toUpperCase() : '';
  }
  return '';
}

/** Takes apart an INSERT that carries rows; undefined for any other (INSERT … SELECT too). */
export function insertWithRows(text: string): Insert | undefined {
  let depth = 0;
  let settingsAt: number | undefined;
  let words = 0;
  const all = tokens(text);
  for (let next = all.next(); next.done !== true; next = all.next()) {
    const token = next.value;
    if (token.text === '(') depth += 1;
    if (token.text === ')') depth -= 1;
    if (depth > 0 || token.kind !== 'word') continue;
    const word = token.text.toUpperCase();
    if (words++ === 0 && word !== 'INSERT') return undefined;
    // FROM: of INFILE, whose rows the server would read from its own disk.
    if (words > 2 && (word === 'SELECT' || word === 'WITH' || word === 'FROM')) return undefined;
    if (words > 2 && word === 'SETTINGS') settingsAt ??= token.at;
    if (words > 2 && (word === 'FORMAT' || word === 'VALUES')) {
      const name = word === 'FORMAT' ? all.next().value : token;
      if (name?.kind !== 'word') return undefined;
      return {
        head: text.slice(0, settingsAt ?? token.at),
        settings: settingsAt === undefined ? '' : text.slice(settingsAt, token.at),
        format: word === 'VALUES' ? 'Values' : name.text,
        dataAt: word === 'VALUES' ? token.end : afterLineBreak(text, name.end),
      };
    }
  }
  return undefined;
}

/** The FORMAT clause at the end of a query (settings may follow it). */
export function trailingFormat(text: string): string | undefined {
  let found: string | undefined;
  let depth = 0;
  let previous = '';
  for (const token of tokens(text)) {
    if (token.text === '(') depth += 1;
    if (token.text === ')') depth -= 1;
    if (depth === 0 && previous === 'FORMAT' && token.kind === 'word') found = token.text;
    previous = token.kind === 'word' ? token.text.toUpperCase() : '';
  }
  return found;
}

/** Every bare or quoted name of a statement; texts and comments hold none. */
export function namesIn(text: string): string[] {
  const names: string[] = [];
  for (const token of tokens(text)) {
    if (token.kind === 'word') names.push(token.text);
    else if (/^["`]/.test(token.text)) names.push(token.text.slice(1, -1));
  }
  return names;
}

/** The rows begin after the spaces and the one line break behind the format's name. */
function afterLineBreak(text: string, at: number): number {
  const gap = /^[ \t\f]*(?:\r?\n)?/.exec(text.slice(at, at + 1024));
  return at + (gap?.[0].length ?? 0);
}

const PATTERNS: readonly { readonly kind: Token['kind'] | 'skip'; readonly pattern: RegExp }[] = [
  { kind: 'skip', pattern: /\s+/y },
  { kind: 'skip', pattern: /--[^\n]*|#[ !][^\n]*|\/\*[\s\S]*?(?:\*\/|$)/y },
  { kind: 'other', pattern: /'(?:[^'\\]|\\[\s\S]|'')*'/y },
  { kind: 'other', pattern: /"(?:[^"\\]|\\[\s\S]|"")*"|`(?:[^`\\]|\\[\s\S]|``)*`/y },
  { kind: 'other', pattern: /\$(\w*)\$[\s\S]*?\$\1\$/y },
  { kind: 'word', pattern: /[A-Za-z_]\w*/y },
  { kind: 'other', pattern: /\d[\w.]*/y },
  { kind: 'punctuation', pattern: /[\s\S]/y },
];

function* tokens(text: string): Generator<Token, undefined> {
  let at = 0;
  while (at < text.length) {
    for (const { kind, pattern } of PATTERNS) {
      pattern.lastIndex = at;
      const match = pattern.exec(text)?.[0];
      if (match === undefined || match === '') continue;
      const end = at + match.length;
      if (kind !== 'skip') yield { kind, text: match, at, end };
      at = end;
      break;
    }
  }
}
