import { readFileSync, statSync } from 'node:fs';
import { type SettingName, settingOf } from './settings/catalogue.ts';

export const SECRET_FILE_BYTES_MAX = 65_536;

/** The text of a setting, and where it comes from. A fault never repeats a secret. */
export interface Given {
  readonly text: string | undefined;
  readonly source: 'environment' | `file ${string}` | 'default';
  readonly fault?: string;
}

/** Finds the text of a setting in the environment, or in the file that `<NAME>_FILE` names. */
export function findText(env: NodeJS.ProcessEnv, name: SettingName): Given {
  const inEnv = (one: string) => (env[one] === '' ? undefined : env[one]);
  const text = inEnv(name);
  const file = settingOf(name).isSecret === true ? inEnv(`${name}_FILE`) : undefined;
  if (file === undefined) return { text, source: text === undefined ? 'default' : 'environment' };
  const source = `file ${file}` as const;
  if (text !== undefined) {
    const fault = `${name} and ${name}_FILE are both set; set one of them`;
    return { text: '', source, fault };
  }
  const secret = readSecret(file);
  if (secret.ok) return { text: secret.value, source };
  return { text: '', source, fault: `${name}_FILE: ${secret.reason}` };
}

/** The value of a setting's text. @throws never: the fault says what the text must be */
export function parseText(
  name: SettingName,
  text: string,
): { readonly value: unknown; readonly fault?: string } {
  const { bounds, choices, form, isSecret, fallback } = settingOf(name);
  const shown = isSecret === true ? '' : `, not "${text}"`;
  if (bounds !== undefined) {
    const { min, max } = bounds;
    const value = Number(text);
    if (Number.isInteger(value) && value >= min && value <= max) return { value };
    const fault = `${name} must be a whole number from ${min} to ${max}${shown}`;
    return { value: fallback ?? min, fault };
  }
  if (choices?.includes(text) === false) {
    const fault = `${name} must be one of ${choices.join(', ')}${shown}`;
    return { value: fallback ?? choices[0], fault };
  }
  if (form?.[0].test(text) === false) {
    return { value: fallback ?? '', fault: `${name} must be ${form[1]}${shown}` };
  }
  return { value: text };
}

/** The only line of a file; the reason never repeats the content. */
function readSecret(
  file: string,
): { readonly ok: true; readonly value: string } | { readonly ok: false; readonly reason: string } {
  try {
    if (statSync(file).size > SECRET_FILE_BYTES_MAX) {
      return { ok: false, reason: `${file} is larger than ${SECRET_FILE_BYTES_MAX} bytes` };
    }
    const value = readFileSync(file, 'utf8').replace(/\r?\n$/, '');
    if (value === '') return { ok: false, reason: `${file} is empty` };
    if (/[\r\n]/.test(value)) return { ok: false, reason: `${file} has more than one line` };
    return { ok: true, value };
  } catch (error) {
    return {
      ok: false,
      reason: `${file} cannot be read (${(error as NodeJS.ErrnoException).code})`,
    };
  }
}
