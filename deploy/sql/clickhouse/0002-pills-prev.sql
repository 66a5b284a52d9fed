ALTER TABLE pills
    ADD COLUMN IF NOT EXISTS prev Nullable(UInt64)
    COMMENT 'Offset of the symbol''s live pill before it, as streams tell it; null for the first, for backfill, and in rows older than this column.'
    AFTER confidence
