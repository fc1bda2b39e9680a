\set w_id :client_id % :warehouses + 1
\set d_id :client_id % 10 + 1
\set threshold random(10, 20)
SELECT pgdyno_tpcc.slev(:w_id, :d_id, :threshold);
