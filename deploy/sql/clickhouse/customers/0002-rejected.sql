CREATE TABLE IF NOT EXISTS rejected
(
    at DateTime64(6, 'UTC') COMMENT 'When the pill was received, or appended to the log.',
    origin String COMMENT 'Where it was refused: <epoch>:<partition>-<offset> in the log, or http:<run of the process>-<number> at ingest.',
    channel LowCardinality(String) COMMENT 'log: a consumer rejected the record; http: ingest refused the request or row.',
    source LowCardinality(String) COMMENT 'The generator that sent it; empty if it is not known.',
    code LowCardinality(String) COMMENT 'Why: a code of the catalogue of problems, or of rejected records.',
    fault LowCardinality(String) COMMENT 'Code of the first fault of the pill; empty if there is none.',
    reason String COMMENT 'Why, in words.' CODEC(ZSTD(3)),
    body String COMMENT 'Body or raw record, cut at 2 KiB.' CODEC(ZSTD(3)),
    body_bytes UInt32 COMMENT 'Length before the cut.'
)
ENGINE = ReplacingMergeTree
PARTITION BY toDate(at)
ORDER BY (at, origin)
TTL toDateTime(at) + INTERVAL 30 DAY
SETTINGS ttl_only_drop_parts = 1
COMMENT 'Pills that were refused, for 30 days: each record of the log that has no effect, and a sample of what ingest refused. Read with FINAL.'
