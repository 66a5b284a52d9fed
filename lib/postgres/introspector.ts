import { type Kysely, PostgresIntrospector, sql, type TableMetadata } from 'kysely';

/**
 * Lists the tables of one schema by name, which is all that the migrator needs. kysely's own
 * introspector reads every column of every schema, which takes many seconds in a database with
 * thousands of tables.
 */
export class SchemaIntrospector extends PostgresIntrospector {
  readonly #db: Kysely<unknown>;
  readonly #schema: string;

  constructor(db: Kysely<unknown>, schema: string) {
    super(db);
    this.#db = db;
    this.#schema = schema;
  }

  override async getTables(): Promise<TableMetadata[]> {
    const { rows } = await sql<{ name: string }>`
      SELECT tablename AS name FROM pg_tables WHERE schemaname = ${this.#schema}`.execute(this.#db);
    return rows.map(({ name }) => ({ name, schema: this.#schema, isView: false, columns: [] }));
  }
}
