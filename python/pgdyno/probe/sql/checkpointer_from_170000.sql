-- num_timed counts checkpoints that were skipped because nothing had changed, too.
SELECT num_timed, num_requested, NULL::bigint AS num_done, write_time AS write_time_ms, sync_time AS sync_time_ms,
       buffers_written, buffers_clean, maxwritten_clean, buffers_alloc
FROM pg_stat_checkpointer, pg_stat_bgwriter
