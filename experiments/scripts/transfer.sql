-- Moves an amount from one account to another. The lower number is locked first, so that two transfers between the same
-- accounts cannot wait for each other.
\set one random(1, 100000 * :scale)
\set other random(1, 100000 * :scale)
\set first least(:one, :other)
\set second greatest(:one, :other)
\set amount random(1, 1000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance - :amount WHERE aid = :first;
UPDATE pgbench_accounts SET abalance = abalance + :amount WHERE aid = :second;
END;
