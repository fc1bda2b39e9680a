SELECT wal_records, wal_fpi, wal_bytes::bigint, wal_buffers_full, wal_write, wal_sync,
       CASE WHEN current_setting('track_wal_io_timing')::boolean THEN wal_write_time END AS wal_write_time_ms,
       CASE WHEN current_setting('track_wal_io_timing')::boolean THEN wal_sync_time END AS wal_sync_time_ms
FROM pg_stat_wal
