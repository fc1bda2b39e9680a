-- Reads a balance; a few accounts are asked for much more often than the others.
\set aid random_zipfian(1, 100000 * :scale, 1.1)
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
