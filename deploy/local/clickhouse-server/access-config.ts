import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { packageRoot } from '../../../lib/files/package-root.ts';

const GRANTS = path.join(packageRoot, 'deploy', 'sql', 'clickhouse', 'roles', 'analyst.sql');

/**
 * Writes the engine's configuration of access. chdb has one user, `default`, who has nothing but the
 * two roles: a connection that takes the role `analyst` has the grants of the SQL file that real
 * servers get, and no others.
 * @param database whose tables and views the analyst may read
 * @returns the file, for `--config-file`
 */
export function writeAccessConfig(folder: string, database: string): string {
  const file = path.join(folder, 'access.xml');
  const grants = (queries: readonly string[]) =>
    `<grants>${queries.map((query) => `<query>${xml(query)}</query>`).join('')}</grants>`;
  const text = `<clickhouse>
<users_config>${xml(file)}</users_config>
<profiles><default/></profiles>
<quotas><default/></quotas>
<roles>
<owner>${grants(['GRANT ALL ON *.*'])}</owner>
<analyst>${grants(analystGrants(database))}</analyst>
</roles>
<users><default>
<no_password/><networks><ip>::/0</ip></networks><profile>default</profile><quota>default</quota>
${grants(['GRANT owner', 'GRANT analyst'])}
</default></users>
</clickhouse>
`;
  writeFileSync(file, text, { mode: 0o600 });
  chmodSync(file, 0o600);
  return file;
}

/** The grants that real servers get, on another database. */
function analystGrants(database: string): string[] {
  const lines = readFileSync(GRANTS, 'utf8').matchAll(/^(GRANT \w+ ON )pillole(\.\w+) TO \w+;$/gm);
  return Array.from(lines, ([, what, table]) => `${what}\`${database}\`${table}`);
}

function xml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
