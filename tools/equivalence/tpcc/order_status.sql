\set w_id :client_id % :warehouses + 1
\set d_id random(1, 10)
\set c_id random(1, 3000)
\set by_name CASE WHEN random(1, 100) <= 60 THEN 1 ELSE 0 END
SELECT pgdyno_tpcc.ostat(:w_id, :d_id, :c_id, :by_name, '$5');
