import type { Declared, Setting } from '../setting.ts';
import { ADDRESSES } from './addresses.ts';
import { ENGINES } from './engines.ts';
import { GENERATORS } from './generators.ts';
import { PLATFORM } from './platform.ts';
import { WEBHOOKS } from './webhooks.ts';

/** Every setting of every process, in the order of docs/settings.md. */
export const SECTIONS = {
  Engines: ENGINES,
  Addresses: ADDRESSES,
  Platform: PLATFORM,
  Webhooks: WEBHOOKS,
  Generators: GENERATORS,
} as const;

const SETTINGS = { ...ENGINES, ...ADDRESSES, ...PLATFORM, ...WEBHOOKS, ...GENERATORS };

export type SettingName = keyof typeof SETTINGS;
/** The type of a setting's value. */
export type ValueOf<N extends SettingName> =
  (typeof SETTINGS)[N] extends Setting<infer T> ? T : never;

export const SETTING_NAMES = Object.keys(SETTINGS) as readonly SettingName[];

export function settingOf(name: SettingName): Declared<unknown> {
  return SETTINGS[name];
}

/** Names of the settings that a process reads, in the order of the catalogue. */
export function settingsOf(process: string): readonly SettingName[] {
  return SETTING_NAMES.filter((name) => settingOf(name).usedBy.some((one) => one === process));
}
