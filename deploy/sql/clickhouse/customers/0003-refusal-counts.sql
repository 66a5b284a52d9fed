CREATE TABLE IF NOT EXISTS refusal_counts
(
    since DateTime('UTC') COMMENT 'Start of the five minutes that are counted.',
    source LowCardinality(String) COMMENT 'The generator; empty if it is not known.',
    code LowCardinality(String) COMMENT 'Code of the answer; replayed = a repeat, answered ok.',
    fault LowCardinality(String) COMMENT 'Code of the first fault; empty if there is none.',
    reporter String COMMENT 'The run of the ingest process that counted.',
    count UInt64 COMMENT 'Pills; of a request whose pills were not read, 1. The highest count of a key is the valid one.'
)
ENGINE = ReplacingMergeTree(count)
PARTITION BY toDate(since)
ORDER BY (since, source, code, fault, reporter)
TTL since + INTERVAL 30 DAY
SETTINGS ttl_only_drop_parts = 1
COMMENT 'What ingest answered without writing to the log, for 30 days. Read with FINAL.'
