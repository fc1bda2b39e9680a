-- The draws of HammerDB 6.0 (docs/concept/tpcc.md); items are drawn in the server, from this seed.
\set w_id :client_id % :warehouses + 1
\set d_id random(1, 10)
\set c_id random(1, 3000)
\set lines random(5, 15)
\set seed random(0, 2147483647)
SELECT pgdyno_tpcc.neword(:w_id, :warehouses, :d_id, :c_id, :lines, :seed);
