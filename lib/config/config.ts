import { findText, parseText } from './read-setting.ts';
import { type SettingName, settingOf, type ValueOf } from './settings/catalogue.ts';

/** Reads the settings of one process, and collects every fault. */
export interface ConfigReader {
  /** The value, or the default of the declaration (lib/config/settings). */
  get<N extends SettingName>(name: N): ValueOf<N>;
  /** A text without which the process cannot start. */
  need(name: SettingName): string;
  /** Adds a fault of settings that do not fit together. */
  fault(text: string): void;
  /** The result of `read`; a ConfigError of it is added to the faults, and `otherwise` returned. */
  attempt<T>(read: () => T, otherwise: T): T;
}

/** Names all wrong or missing settings of a process in one message. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/**
 * Runs `read` over the environment and returns its result.
 * @throws ConfigError naming every faulty variable and its allowed values.
 */
export function readConfig<T>(env: NodeJS.ProcessEnv, read: (reader: ConfigReader) => T): T {
  const faults = new Set<string>();
  const note = (fault: string | undefined) => void (fault === undefined || faults.add(fault));
  const get = (name: SettingName): unknown => {
    const { text, fault: unreadable } = findText(env, name);
    note(unreadable);
    if (text === undefined || unreadable !== undefined) return settingOf(name).fallback;
    const { value, fault } = parseText(name, text);
    note(fault);
    return value;
  };
  const reader: ConfigReader = {
    get: get as ConfigReader['get'],
    need(name) {
      if (findText(env, name).text === undefined) {
        note(`${name} is not set (${settingOf(name).meaning})`);
      }
      return String(get(name) ?? '');
    },
    fault: note,
    attempt(run, otherwise) {
      try {
        return run();
      } catch (error) {
        if (!(error instanceof ConfigError)) throw error;
        note(error.message.replace(/\.$/, ''));
        return otherwise;
      }
    },
  };
  const config = read(reader);
  if (faults.size > 0) throw new ConfigError(`${[...faults].join('; ')}.`);
  return config;
}
