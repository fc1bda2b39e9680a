SELECT num_timed, num_requested, num_done, write_time AS write_time_ms, sync_time AS sync_time_ms,
       buffers_written, slru_written, buffers_clean, maxwritten_clean, buffers_alloc
FROM pg_stat_checkpointer, pg_stat_bgwriter
