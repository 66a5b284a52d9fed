// Imports go one way: schemas <- lib <- domain <- gateway/*, pipelines/*, generator, deploy
// (ARCHITECTURE.md). One owner for each foreign engine's client.
const only = (name, comment, module, owners) => ({
  name,
  comment,
  severity: 'error',
  from: { pathNot: [...owners, '\\.test\\.ts$'] },
  to: { path: `node_modules/${module}/` },
});

// Inside the stream: protocol <- wire <- log <- replay <- hub <- admission; quiet and chaos use the
// hub. Rooms import limits.ts, and no other file of the folder above them.
const STREAM_ROOMS = ['protocol', 'wire', 'log', 'replay', 'hub', 'admission'];
const HUB = STREAM_ROOMS.slice(0, -1);
const streamRoom = (room, lower) => ({
  name: `stream-${room}-imports-lower-rooms-only`,
  severity: 'error',
  from: { path: `^gateway/stream/${room}/`, pathNot: '\\.test\\.ts$' },
  to: {
    path: '^gateway/stream/',
    pathNot: `^gateway/stream/(limits\\.ts$|(${[...lower, room].join('|')})/)`,
  },
});

module.exports = {
  forbidden: [
    ...STREAM_ROOMS.map((room, at) => streamRoom(room, STREAM_ROOMS.slice(0, at))),
    streamRoom('quiet', HUB),
    streamRoom('chaos', HUB),
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
    { name: 'not-resolvable', severity: 'error', from: {}, to: { couldNotResolve: true } },
    {
      name: 'schemas-import-nothing-of-ours',
      severity: 'error',
      from: { path: '^schemas/', pathNot: '\\.test\\.ts$' },
      to: { path: '^(lib|domain|gateway|pipelines|generator|deploy|benchmarks)/' },
    },
    {
      name: 'lib-imports-schemas-only',
      severity: 'error',
      from: { path: '^lib/', pathNot: '\\.test\\.ts$' },
      to: { path: '^(domain|gateway|pipelines|generator|deploy|benchmarks)/' },
    },
    {
      name: 'domain-imports-lib-and-schemas-only',
      severity: 'error',
      from: { path: '^domain/', pathNot: '/testing/|\\.test\\.ts$' },
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
      name: 'the-api-server-imports-no-routes',
      comment: 'Every family of routes builds on gateway/api/server, which imports none of them.',
      severity: 'error',
      from: { path: '^gateway/api/server/', pathNot: '\\.test\\.ts$' },
      to: { path: '^gateway/api/', pathNot: '^gateway/api/(server/|limits\\.ts$)' },
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
      comment: 'The SDK is published as a package of its own.',
      severity: 'error',
      from: { path: '^sdk/', pathNot: '\\.test\\.ts$' },
      to: { path: '^(schemas|lib|domain|gateway|pipelines|generator|deploy|benchmarks)/' },
    },
    {
      name: 'nobody-imports-the-sdk',
      comment:
        'Only customers and the page import the SDK; the platform does not depend on its client.',
      severity: 'error',
      from: { pathNot: '^sdk/|^gateway/console/page/|/testing/|\\.test\\.ts$' },
      to: { path: '^sdk/' },
    },
    {
      name: 'the-page-imports-the-sdk-only',
      comment: 'The page runs in browsers, and uses only the interfaces that customers have.',
      severity: 'error',
      from: { path: '^gateway/console/page/' },
      to: {
        path: '^(schemas|lib|domain|gateway|pipelines|generator|deploy|benchmarks)/',
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
      comment: 'Benchmarks start the same browser and the same Python as tests.',
      severity: 'error',
      from: { pathNot: '(^|/)testing/|\\.test\\.ts$|^benchmarks/(bulk|console|clients)/' },
      to: { path: '(^|/)testing/' },
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
      '^lib/clickhouse/clickhouse-client\\.ts$',
    ]),
    only('postgres', 'The PostgreSQL driver stays in one module.', 'pg', [
      '^lib/postgres/',
      '^deploy/local/postgres\\.ts$',
    ]),
    only('s3', 'The S3 client stays in the folder of its destination.', '@aws-sdk', [
      '^domain/destinations/s3/',
    ]),
    only('mail', 'Mail leaves through one module.', 'nodemailer', ['^lib/mail/']),
    only('uws', 'uWebSockets.js stays in one module.', 'uWebSockets\\.js', [
      '^gateway/stream/wire/websocket-server\\.ts$',
      '^benchmarks/fanout/publish-loop-main\\.ts$', // what the stream is measured against
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
