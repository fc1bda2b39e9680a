\set w_id :client_id % :warehouses + 1
\set carrier random(1, 10)
SELECT pgdyno_tpcc.delivery(:w_id, :carrier);
