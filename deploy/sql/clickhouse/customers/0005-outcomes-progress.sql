CREATE TABLE IF NOT EXISTS outcomes_progress
(
    topic LowCardinality(String) COMMENT 'Topic without the prefix of the namespace.',
    partition UInt16 COMMENT 'Its partition.',
    offset UInt64 COMMENT 'Every record up to and including this offset is in the tables.'
)
ENGINE = ReplacingMergeTree(offset)
ORDER BY (topic, partition)
COMMENT 'How far rejected and refusal_counts cover their topics. Use max(offset).'
