-- A customer places an order of two products, which is paid at once.
\set customer random(1, 20000)
\set one random(1, 5000)
\set other random(1, 5000)
BEGIN;
SELECT place_order(:customer, ARRAY[:one, :other]::bigint[]) AS made \gset
INSERT INTO events (id, at, customer_id, what, detail)
VALUES (nextval('events_id'), now(), :customer, 'paid', jsonb_build_object('order', :made::bigint));
UPDATE orders SET state = 'paid' WHERE id = :made;
END;
