-- Under the names that these columns have since 17. No count of checkpoints that were skipped: num_done is unknown.
SELECT checkpoints_timed AS num_timed, checkpoints_req AS num_requested, NULL::bigint AS num_done,
       checkpoint_write_time AS write_time_ms, checkpoint_sync_time AS sync_time_ms,
       buffers_checkpoint AS buffers_written, buffers_clean, maxwritten_clean, buffers_backend, buffers_alloc
FROM pg_stat_bgwriter
