CREATE TABLE IF NOT EXISTS pills_progress
(
    epoch LowCardinality(String) COMMENT 'Epoch of the pills topic.',
    partition UInt16 COMMENT 'Partition of the pills topic.',
    offset UInt64 COMMENT 'Every pill with effect up to and including this offset is in pills.',
    received_at Nullable(DateTime64(6, 'UTC')) COMMENT 'Receive time of the newest of these pills.'
)
ENGINE = ReplacingMergeTree(offset)
ORDER BY (epoch, partition)
COMMENT 'How far the table pills covers the log, records without effect included. Use max(offset) by partition. A rebuild keeps this table; after dropping or restoring pills by hand, do the same with this table.'
