CREATE TABLE IF NOT EXISTS repeats
(
    epoch LowCardinality(String) COMMENT 'Epoch of the pills topic.',
    partition UInt16 COMMENT 'Partition of the pills topic.',
    offset UInt64 COMMENT 'Offset of the repeat.',
    source LowCardinality(String) COMMENT 'The generator; empty if it is not known.',
    received_at DateTime64(6, 'UTC') COMMENT 'When the repeat was received.'
)
ENGINE = ReplacingMergeTree
PARTITION BY toDate(received_at)
ORDER BY (received_at, epoch, partition, offset)
TTL toDateTime(received_at) + INTERVAL 30 DAY
SETTINGS ttl_only_drop_parts = 1
COMMENT 'Repeats in the log, for 30 days. Those with other content are in rejected too, as id_conflict. Read with FINAL.'
