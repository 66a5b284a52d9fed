import { refusal } from './clickhouse-error.ts';

/** The part of a string that `readTokens` uses. */
export type Text = Pick<string, 'length' | 'charCodeAt' | 'indexOf' | 'slice'>;

const code = (char: string) => char.charCodeAt(0);
const [LF, DOLLAR, HASH, BANG, SPACE] = ['\n', '$', '#', '!', ' '].map(code);
const [DASH, SLASH, STAR, BACKSLASH] = ['-', '/', '*', '\\'].map(code);
const [SINGLE, DOUBLE, BACKTICK, LOW_LINE] = ["'", '"', '`', '_'].map(code);

const WIDE_SPACES = new Set(['\u00a0', '\u2028', '\u2029', '\u3000', '\ufeff'].map(code));

/** Each costs a search through the statement, also in the engine. No statement needs one. */
const UNCLOSED_TAGS_MAX = 16;

/**
 * Reads the tokens of a statement, without spaces and comments, as ClickHouse's lexer does. A quoted
 * text, a heredoc or a comment is one token; a quoted text or a comment that is not closed extends to
 * the end. The work is proportional to the length, whatever the text.
 */
export function readTokens(text: Text) {
  let unclosedTags = 0;

  /** The index after the heredoc `$tag$ … $tag$` at `at`; 0 if none begins there. */
  function endOfHeredoc(at: number): number {
    const tagEnd = text.indexOf('$', at + 1);
    if (tagEnd < 0) return 0;
    const tag = text.slice(at, tagEnd + 1);
    const close = text.indexOf(tag, tagEnd + 1);
    if (close >= 0) return close + tag.length;
    unclosedTags += 1;
    if (unclosedTags > UNCLOSED_TAGS_MAX) {
      throw refusal('SYNTAX_ERROR', `Over ${UNCLOSED_TAGS_MAX} heredocs are not closed`);
    }
    return 0;
  }

  const token = {
    kind: 'other' as 'word' | 'punctuation' | 'other',
    at: 0,
    end: 0,
    text: () => text.slice(token.at, token.end),
    /** Whether the token is this character. */
    is: (char: number) => token.kind === 'punctuation' && text.charCodeAt(token.at) === char,
    /** Moves to the next token. @returns whether there is one */
    next(): boolean {
      const at = skip(text, token.end);
      token.at = at;
      token.end = at;
      if (at >= text.length) return false;
      const first = text.charCodeAt(at);
      token.kind = 'other';
      if (first === SINGLE || first === DOUBLE || first === BACKTICK) {
        token.end = endOfQuoted(text, at, first);
      } else if (first === DOLLAR) token.end = endOfHeredoc(at);
      if (token.end > at) return true;
      token.kind = !isWord(first) ? 'punctuation' : isDigit(first) ? 'other' : 'word';
      token.end = token.kind === 'punctuation' ? at + 1 : endOfWord(text, at);
      return true;
    },
  };
  return token;
}

/** The index of the next character that is no space and in no comment. */
function skip(text: Text, from: number): number {
  let at = from;
  for (;;) {
    const next = at < text.length ? endOfSkipped(text, at, text.charCodeAt(at)) : at;
    if (next === at) return at;
    at = next;
  }
}

/** The index after a space or a comment that begins at `at`; `at` if none does. */
function endOfSkipped(text: Text, at: number, first: number): number {
  if (first <= 32 || (first > 127 && WIDE_SPACES.has(first))) return at + 1;
  const next = text.charCodeAt(at + 1);
  if (first === SLASH && next === STAR) return endOfComment(text, at);
  const isLine =
    (first === DASH && next === DASH) || (first === HASH && (next === SPACE || next === BANG));
  if (!isLine) return at;
  let end = at + 2;
  while (end < text.length && text.charCodeAt(end) !== LF) end += 1;
  return end;
}

/** Comments nest, as in the SQL standard. */
function endOfComment(text: Text, at: number): number {
  let depth = 0;
  for (let i = at; i + 1 < text.length; i += 1) {
    const char = text.charCodeAt(i);
    if (char !== SLASH && char !== STAR) continue;
    const next = text.charCodeAt(i + 1);
    if (char === SLASH && next === STAR) depth += 1;
    else if (char === STAR && next === SLASH) depth -= 1;
    else continue;
    i += 1;
    if (depth === 0) return i + 1;
  }
  return text.length;
}

function endOfQuoted(text: Text, at: number, quote: number): number {
  for (let i = at + 1; i < text.length; i += 1) {
    const char = text.charCodeAt(i);
    if (char === BACKSLASH) i += 1;
    else if (char === quote) {
      if (text.charCodeAt(i + 1) !== quote) return i + 1;
      i += 1;
    }
  }
  return text.length;
}

function endOfWord(text: Text, at: number): number {
  let end = at + 1;
  while (end < text.length && isWord(text.charCodeAt(end))) end += 1;
  return end;
}

/** Letters, digits, `_` and `$`. */
function isWord(char: number): boolean {
  return (
    (char >= 97 && char <= 122) ||
    (char >= 65 && char <= 90) ||
    isDigit(char) ||
    char === LOW_LINE ||
    char === DOLLAR
  );
}

function isDigit(char: number): boolean {
  return char >= 48 && char <= 57;
}
