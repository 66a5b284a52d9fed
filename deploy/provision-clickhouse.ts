import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import {
  type ClickHouse,
  clickHouseErrorName,
  customersDatabaseName,
  databaseName,
  openClickHouse,
} from '../lib/clickhouse/clickhouse-client.ts';
import { packageRoot } from '../lib/files/package-root.ts';

const SQL = path.join(packageRoot, 'deploy', 'sql', 'clickhouse');

/**
 * Applies the numbered SQL files of deploy/sql/clickhouse to the database of the market, and those of
 * its folder `customers` to the database of customers' data. Each file holds one idempotent statement.
 */
export async function migrateClickHouse(options: {
  readonly clickhouseUrl: string;
  readonly namespace: string;
}): Promise<void> {
  const market = databaseName(options.namespace);
  const customers = customersDatabaseName(options.namespace);
  const open = (database: string) => openClickHouse({ url: options.clickhouseUrl, database });
  const clients = [open('default'), open(market), open(customers)] as const;
  const [server, ofMarket, ofCustomers] = clients;
  try {
    await server.command({ query: `CREATE DATABASE IF NOT EXISTS ${market}` });
    await server.command({ query: `CREATE DATABASE IF NOT EXISTS ${customers}` });
    await moveTable(server, `${market}.webhook_attempts`, `${customers}.webhook_attempts`);
    await applyFiles(ofMarket, SQL);
    await applyFiles(ofCustomers, path.join(SQL, 'customers'));
  } finally {
    await Promise.all(clients.map((client) => client.close()));
  }
}

async function applyFiles(client: ClickHouse, folder: string): Promise<void> {
  const files = readdirSync(folder).filter((name) => name.endsWith('.sql'));
  for (const file of files.sort()) {
    await client.command({ query: readFileSync(path.join(folder, file), 'utf8') });
  }
}

/** Moves a table with its rows. Earlier versions kept customers' data in the database of the market. */
async function moveTable(server: ClickHouse, from: string, to: string): Promise<void> {
  try {
    await server.command({ query: `RENAME TABLE IF EXISTS ${from} TO ${to}` });
  } catch (error) {
    if (clickHouseErrorName(error) !== 'TABLE_ALREADY_EXISTS') throw error;
    // Both exist if an earlier version ran again after the move.
    await server.command({ query: `INSERT INTO ${to} SELECT * FROM ${from}` });
    await server.command({ query: `DROP TABLE ${from}` });
  }
}
