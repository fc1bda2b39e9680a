-- As from 14 on. Before 13 locks inside the server had other names: WALWriteLock, buffer_io.
SELECT coalesce(wait_event_type, 'CPU') AS wait_event_type,
       CASE wait_event_type WHEN 'LWLock' THEN regexp_replace(replace(wait_event, '_', ''), 'Lock$', '')
                            ELSE coalesce(wait_event, 'CPU') END AS wait_event,
       backend_type, count(*) AS count
FROM pg_stat_get_activity(NULL)
WHERE wait_event_type IS DISTINCT FROM 'Activity' AND state IS DISTINCT FROM 'idle' AND backend_type IS NOT NULL
      AND application_name NOT LIKE 'pgdyno probe%'
GROUP BY 1, 2, 3
