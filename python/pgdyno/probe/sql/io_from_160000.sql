-- Before 18 every operation is one block, so bytes follow from the count. WAL is not in this view.
SELECT backend_type, object, context,
       reads, reads * op_bytes AS read_bytes,
       CASE WHEN current_setting('track_io_timing')::boolean THEN read_time END AS read_time_ms,
       writes, writes * op_bytes AS write_bytes,
       CASE WHEN current_setting('track_io_timing')::boolean THEN write_time END AS write_time_ms,
       extends, extends * op_bytes AS extend_bytes,
       writebacks, hits, evictions, reuses, fsyncs,
       CASE WHEN current_setting('track_io_timing')::boolean THEN fsync_time END AS fsync_time_ms
FROM pg_stat_io
WHERE coalesce(reads, 0) + coalesce(writes, 0) + coalesce(extends, 0) + coalesce(hits, 0) + coalesce(fsyncs, 0) > 0
