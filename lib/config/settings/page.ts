import { defaultOf, typeOf } from '../describe.ts';
import { SECTIONS, type SettingName, settingOf } from './catalogue.ts';

const INTRODUCTION = `# Settings

Made from [lib/config/settings](../lib/config/settings) by \`node deploy/settings.mjs --write\`; \`npm run check\`
compares. Every process reads its settings from the environment, and names every wrong or missing one at
once before it exits 2. A variable that no process knows, but that resembles one of these, is warned of.
\`--help\` of a process prints its settings, \`--print-config\` the values in force and where each comes
from, without secrets. A secret may be in a file of one line instead, which \`<NAME>_FILE\` names. Processes
in bold do not start without the setting; \`start\` is \`npm start\`. The sockets of \`dedicated\` are processes
of \`stream\`, and read the same environment. What belongs together is in [operators.md](operators.md#processes).
`;

/** The text of docs/settings.md. */
export function settingsPage(): string {
  const sections = Object.entries(SECTIONS).map(([title, settings]) => {
    const rows = (Object.keys(settings) as SettingName[]).map(row);
    const head = '| setting | meaning | values | processes |\n|---|---|---|---|';
    return `\n## ${title}\n\n${head}\n${rows.join('\n')}\n`;
  });
  return INTRODUCTION + sections.join('');
}

function row(name: SettingName): string {
  const { meaning, usedBy, requiredBy = [] } = settingOf(name);
  const values = [typeOf(name), defaultOf(name)].filter(Boolean).join('; ');
  const processes = [...usedBy]
    .sort()
    .map((one) => (requiredBy.includes(one) ? `**${one}**` : one));
  return `| \`${name}\` | ${meaning}. | ${values} | ${processes.join(', ')} |`;
}
