-- The last orders of a customer, with what is in them.
\set customer random(1, 20000)
SELECT o.id, o.state, o.placed_at, l.product_id, l.quantity, p.title
FROM orders o JOIN order_lines l ON l.order_id = o.id JOIN products p ON p.id = l.product_id
WHERE o.customer_id = :customer ORDER BY o.placed_at DESC LIMIT 20;
