import { findText } from './read-setting.ts';
import { type SettingName, settingOf, settingsOf } from './settings/catalogue.ts';
import { withoutCredentials } from './without-credentials.ts';

/** The settings of a process for `--help`, one after the other. */
export function describeSettings(process: string): string {
  const lines = settingsOf(process).map((name) => {
    const { meaning, requiredBy } = settingOf(name);
    const must = requiredBy?.some((one) => one === process) === true ? ', must be set' : '';
    return `  ${name}\n      ${meaning}. (${[typeOf(name), defaultOf(name)].filter(Boolean).join('; ')}${must})`;
  });
  const files = 'A secret may be in a file instead, which <NAME>_FILE names.';
  return `Settings, from the environment. ${files}\n\n${lines.join('\n')}\n`;
}

/** The values in force and where each comes from, one a line; no secrets. */
export function printSettings(process: string, env: NodeJS.ProcessEnv): string {
  const lines = settingsOf(process).map((name) => {
    const { text, source } = findText(env, name);
    const { fallback, isSecret } = settingOf(name);
    const value = text ?? fallback;
    const shown =
      value === undefined || value === ''
        ? '(not set)'
        : isSecret === true
          ? '(secret)'
          : hideCredentials(String(value));
    return `${name} = ${shown}  # ${source}`;
  });
  return `${lines.join('\n')}\n`;
}

/** An address that is no secret may still have been given with a password. */
function hideCredentials(value: string): string {
  return value.includes('://') ? withoutCredentials(value) : value;
}

/** Type, unit and bounds, e.g. "whole number, 1 to 86,400 s". */
export function typeOf(name: SettingName): string {
  const { bounds, choices, unit, isSecret } = settingOf(name);
  if (choices !== undefined) return choices.join(' or ');
  if (bounds === undefined) return isSecret === true ? 'secret text' : 'text';
  const [min, max] = [bounds.min, bounds.max].map((one) => one.toLocaleString('en-US'));
  return `whole number, ${min} to ${max}${unit === undefined ? '' : ` ${unit}`}`;
}

/** The default, e.g. "default 12"; empty without one. */
export function defaultOf(name: SettingName): string {
  const { fallback } = settingOf(name);
  if (fallback === undefined || fallback === '') return '';
  return `default ${typeof fallback === 'number' ? fallback.toLocaleString('en-US') : fallback}`;
}
