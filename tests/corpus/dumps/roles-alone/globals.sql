--
-- PostgreSQL database cluster dump
--

\restrict 2qXohrfMPy782NeozRGVf5Lhv8lMlXWCFfFeDbIZWugPJbX9jYIzZBfOObegbde

SET default_transaction_read_only = off;

SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;

--
-- Roles
--

CREATE ROLE app;
ALTER ROLE app WITH NOSUPERUSER INHERIT NOCREATEROLE NOCREATEDB LOGIN NOREPLICATION NOBYPASSRLS PASSWORD 'SCRAM-SHA-256$4096:c2FsdA==$c3RvcmVk:c2VydmVy';
CREATE ROLE postgres;
ALTER ROLE postgres WITH SUPERUSER INHERIT CREATEROLE CREATEDB LOGIN REPLICATION BYPASSRLS;
CREATE ROLE reader;
ALTER ROLE reader WITH NOSUPERUSER INHERIT NOCREATEROLE NOCREATEDB NOLOGIN NOREPLICATION NOBYPASSRLS;

--
-- User Configurations
--

--
-- User Config "app"
--

ALTER ROLE app SET work_mem TO '8MB';


--
-- Role memberships
--

GRANT reader TO app;






\unrestrict 2qXohrfMPy782NeozRGVf5Lhv8lMlXWCFfFeDbIZWugPJbX9jYIzZBfOObegbde

--
-- PostgreSQL database cluster dump complete
--

