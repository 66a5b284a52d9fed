/** The programs that read settings; `start` is `npm start`. */
export type ProcessName =
  | ('ingest' | 'api' | 'stream' | 'dedicated' | 'latest' | 'analytics' | 'webhooks')
  | 'destinations'
  | ('demo' | 'canary' | 'provision' | 'rebuild' | 'admin' | 'start' | 'clickhouse');

/** One setting: a variable of the environment, declared once. */
export interface Setting<T> {
  /** One sentence, without the full stop. */
  readonly meaning: string;
  /** Without it the setting is optional, or its reader derives a value, as `meaning` says. */
  readonly fallback: T;
  /** Of a number; `none` is a count. */
  readonly unit?: string;
  /** Of a number, both inclusive. */
  readonly bounds?: { readonly min: number; readonly max: number };
  /** All allowed values. */
  readonly choices?: readonly string[];
  /** The form of a text, and what a message says of it after "must be". */
  readonly form?: readonly [RegExp, string];
  /** Never printed; a file that `<NAME>_FILE` names may hold the value instead. */
  readonly isSecret?: true;
  /** The processes that do not start without it. */
  readonly requiredBy?: readonly ProcessName[];
}

/** A setting with the processes that read it. */
export type Declared<T> = Setting<T> & { readonly usedBy: readonly ProcessName[] };

type More = Pick<Setting<unknown>, 'form' | 'isSecret' | 'requiredBy'>;

export function text(meaning: string, more: More & { fallback: string }): Setting<string>;
export function text(meaning: string, more?: More): Setting<string | undefined>;
export function text(meaning: string, more: More & { fallback?: string } = {}) {
  return { meaning, fallback: undefined, ...more };
}

/** A whole number. */
export function whole<const F extends number | undefined>(
  meaning: string,
  fallback: F,
  bounds: { min: number; max: number },
  unit?: string,
): Setting<number | F> {
  return { meaning, fallback, bounds, ...(unit === undefined ? {} : { unit }) };
}

export const port = (meaning: string, fallback: number): Setting<number> =>
  whole(`${meaning}; 0 selects a free port`, fallback, { min: 0, max: 65_535 });

export function choice<const C extends string, const F extends C | undefined>(
  meaning: string,
  choices: readonly C[],
  fallback: F,
): Setting<C | F> {
  return { meaning, choices, fallback };
}

export const yesNo = (meaning: string) => choice(meaning, ['yes', 'no'], 'no');

/** Declares settings that the same processes read. */
export function usedBy<const S extends Readonly<Record<string, Setting<unknown>>>>(
  processes: readonly ProcessName[],
  settings: S,
) {
  const declared = Object.entries(settings).map(([name, one]) => [
    name,
    { ...one, usedBy: processes },
  ]);
  return Object.fromEntries(declared) as {
    readonly [N in keyof S]: S[N] & { readonly usedBy: readonly ProcessName[] };
  };
}
