-- The sessions that others wait for and that wait for no lock themselves, by the twenty waits that last longest. What is waited for
-- is that of the longest wait. A row is locked by a transaction; whose row it is shows the lock of the row that the first to wait has.
-- Names of tables are those of this database; of another there are none. Process 0 is a transaction that was prepared.
WITH sessions AS MATERIALIZED (
    SELECT *, wait_event_type = 'Lock' AS waits FROM pg_stat_get_activity(NULL)
), oldest AS MATERIALIZED (
    SELECT pid, query_start, pg_blocking_pids(pid) AS blockers
    FROM (SELECT pid, query_start FROM sessions WHERE waits ORDER BY query_start LIMIT 20) AS first
), root AS (
    SELECT DISTINCT ON (blocker) blocker, oldest.pid AS waiter
    FROM oldest, unnest(blockers) AS blocker
    WHERE blocker NOT IN (SELECT pid FROM sessions WHERE waits)
    ORDER BY blocker, query_start
), locks AS MATERIALIZED (
    SELECT * FROM pg_lock_status() WHERE pid IN (SELECT waiter FROM root) OR pid IN (SELECT blocker FROM root)
)
SELECT blocker::bigint AS pid, session.application_name, pg_get_userbyid(session.usesysid)::text AS usename,
       (SELECT datname FROM pg_database WHERE oid = session.datid)::text AS datname,
       CASE WHEN session.client_addr IS NOT NULL THEN host(session.client_addr) END AS client_addr, session.state,
       (extract(epoch FROM clock_timestamp() - session.xact_start) * 1000)::float8 AS transaction_ms,
       (extract(epoch FROM clock_timestamp() - session.state_change) * 1000)::float8 AS state_ms,
       asked.locktype AS lock_type, held.mode AS lock_mode,
       coalesce(asked.relation, of_row.relation)::regclass::text AS relation,
       (SELECT count(*) FROM sessions WHERE waits) AS waiting,
       (SELECT (max(extract(epoch FROM clock_timestamp() - query_start)) * 1000)::float8 FROM oldest) AS longest_wait_ms
FROM root
LEFT JOIN sessions AS session ON session.pid = blocker
LEFT JOIN LATERAL (SELECT * FROM locks WHERE pid = waiter AND NOT granted LIMIT 1) AS asked ON true
LEFT JOIN LATERAL (SELECT relation FROM locks WHERE pid = waiter AND locktype = 'tuple'
                   AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) LIMIT 1) AS of_row ON true
LEFT JOIN LATERAL (SELECT mode FROM locks
                   WHERE pid = blocker AND granted AND locktype = asked.locktype
                         AND (database, relation, page, tuple, virtualxid, classid, objid, objsubid)
                             IS NOT DISTINCT FROM (asked.database, asked.relation, asked.page, asked.tuple, asked.virtualxid,
                                                   asked.classid, asked.objid, asked.objsubid)
                         AND transactionid IS NOT DISTINCT FROM asked.transactionid
                   ORDER BY mode DESC LIMIT 1) AS held ON true
ORDER BY transaction_ms DESC NULLS LAST, blocker
LIMIT 5
