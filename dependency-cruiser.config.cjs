// Imports go one way: schemas <- lib <- gateway/*, pipelines/*, generator (ARCHITECTURE.md). One
// owner for each foreign engine's client.
const only = (name, comment, module, owners) => ({
  name,
  comment,
  severity: 'error',
  from: { pathNot: [...owners, '\\.test\\.ts$'] },
  to: { path: `node_modules/${module}/` },
});

module.exports = {
  forbidden: [
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    { name: 'not-resolvable', severity: 'error', from: {}, to: { couldNotResolve: true } },
    {
      name: 'schemas-import-nothing-of-ours',
      severity: 'error',
      from: { path: '^schemas/', pathNot: '\\.test\\.ts$' },
      to: { path: '^(lib|gateway|pipelines|generator|deploy|benchmarks)/' },
    },
    {
      name: 'lib-imports-schemas-only',
      severity: 'error',
      from: { path: '^lib/', pathNot: '^lib/testing/|\\.test\\.ts$' },
      to: { path: '^(gateway|pipelines|generator|deploy|benchmarks)/' },
    },
    {
      name: 'gateways-import-no-other-room',
      severity: 'error',
      from: { path: '^gateway/([^/]+)/', pathNot: '\\.test\\.ts$' },
      to: {
        path: '^(gateway|pipelines|generator|deploy|benchmarks)/',
        pathNot: '^gateway/($1|http)/',
      },
    },
    {
      name: 'processors-meet-at-topics',
      severity: 'error',
      from: { path: '^pipelines/([^/]+)/', pathNot: '\\.test\\.ts$' },
      to: {
        path: '^(gateway|generator|deploy|benchmarks|pipelines)/',
        pathNot: '^pipelines/($1/|[^/]+$)',
      },
    },
    {
      name: 'generators-import-lib-only',
      severity: 'error',
      from: { path: '^generator/', pathNot: '\\.test\\.ts$' },
      to: { path: '^(gateway|pipelines|deploy|benchmarks)/' },
    },
    {
      name: 'benchmarks-talk-over-the-wire',
      severity: 'error',
      from: { path: '^benchmarks/', pathNot: '\\.test\\.ts$' },
      to: { path: '^(gateway|pipelines)/' },
    },
    {
      name: 'sdk-imports-nothing-of-ours',
      comment: 'It is published as a package of its own.',
      severity: 'error',
      from: { path: '^sdk/', pathNot: '\\.test\\.ts$' },
      to: { path: '^(schemas|lib|gateway|pipelines|generator|deploy|benchmarks)/' },
    },
    {
      name: 'nobody-imports-the-sdk',
      comment:
        'Customers do, and the page as one of them; the platform does not lean on its client.',
      severity: 'error',
      from: { pathNot: '^sdk/|^gateway/console/page/|\\.test\\.ts$' },
      to: { path: '^sdk/' },
    },
    {
      name: 'the-page-imports-the-sdk-only',
      comment: 'It runs in browsers, and has what customers have.',
      severity: 'error',
      from: { path: '^gateway/console/page/' },
      to: {
        path: '^(schemas|lib|gateway|pipelines|generator|deploy|benchmarks)/',
        pathNot: '^gateway/console/page/',
      },
    },
    {
      name: 'nobody-imports-a-main',
      severity: 'error',
      from: {},
      to: { path: '(^|/)main\\.ts$' },
    },
    {
      name: 'testing-is-for-tests',
      severity: 'error',
      from: { pathNot: '/testing/|\\.test\\.ts$|^deploy/local/test-engines\\.ts$' },
      to: { path: '/testing/' },
    },
    only('kafka-client', 'The Kafka client stays in one module.', 'kafkajs', [
      '^lib/kafka/',
      '^deploy/local/kafka-ready\\.ts$',
      '^generator/examples/',
      '^benchmarks/ingest/naive-main\\.ts$', // what ingest is measured against
    ]),
    only('avro', 'Avro stays in one room.', 'avsc', ['^schemas/', '^generator/examples/']),
    only(
      'registry',
      'The registry client stays in one module.',
      '@kafkajs/confluent-schema-registry',
      ['^schemas/registry\\.ts$', '^generator/examples/'],
    ),
    only('clickhouse', 'The ClickHouse client stays in one module.', '@clickhouse/client', [
      '^lib/clickhouse\\.ts$',
    ]),
    only('postgres', 'The PostgreSQL driver stays in one module.', 'pg', [
      '^lib/postgres/',
      '^deploy/local/postgres\\.ts$',
    ]),
    only('mail', 'Mail leaves through one module.', 'nodemailer', ['^lib/mail/']),
    only('uws', 'uWebSockets.js stays in one module.', 'uWebSockets\\.js', [
      '^gateway/stream/wire/server\\.ts$',
      '^benchmarks/fanout/publish-loop\\.ts$', // what the stream is measured against
    ]),
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    // The sdk's examples import the package as customers do; a test of theirs installs it.
    exclude: { path: '^(sdk/)?(dist|\\.local)/|^sdk/examples/[^/]+\\.js$' },
    tsConfig: { fileName: 'tsconfig.json' },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'types', 'node'],
    },
  },
};
