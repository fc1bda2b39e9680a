\set w_id :client_id % :warehouses + 1
\set d_id random(1, 10)
\set remote random(1, 100) > 85
\set other random(1, :warehouses - 1)
\set c_w_id CASE WHEN NOT :remote THEN :w_id WHEN :other >= :w_id THEN :other + 1 ELSE :other END
\set c_d_id CASE WHEN :remote THEN random(1, 10) ELSE :d_id END
\set c_id random(1, 3000)
\set by_name CASE WHEN random(1, 100) <= 60 THEN 1 ELSE 0 END
\set amount random(1, 5000)
SELECT pgdyno_tpcc.payment(:w_id, :d_id, :c_w_id, :c_d_id, :c_id, :by_name, :amount, '$8');
