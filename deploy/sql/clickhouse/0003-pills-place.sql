ALTER TABLE pills ADD INDEX IF NOT EXISTS place (partition, offset) TYPE minmax GRANULARITY 1
