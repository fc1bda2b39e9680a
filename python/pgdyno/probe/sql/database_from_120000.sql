-- Times are NULL, not 0, while track_io_timing is off: nobody measured them.
SELECT numbackends::bigint, xact_commit, xact_rollback, blks_read, blks_hit,
       tup_returned, tup_fetched, tup_inserted, tup_updated, tup_deleted,
       temp_files, temp_bytes, deadlocks,
       CASE WHEN current_setting('track_io_timing')::boolean THEN blk_read_time END AS blk_read_time_ms,
       CASE WHEN current_setting('track_io_timing')::boolean THEN blk_write_time END AS blk_write_time_ms,
       -- Of all databases: what HammerDB counts as transactions.
       (SELECT sum(xact_commit + xact_rollback)::bigint FROM pg_stat_database) AS xact_of_server
FROM pg_stat_database
WHERE datname = current_database()
