--
-- PostgreSQL database cluster dump
--

\restrict IVpNk709P0NvknX4CaZT02v5qXlXdL09e1jTfZhb3ICyLEL92DSsLDYqkRcS0Dd

SET default_transaction_read_only = off;

SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;

--
-- Drop databases (except postgres and template1)
--

DROP DATABASE other;
DROP DATABASE shop;
DROP DATABASE stock;




--
-- Drop roles
--

DROP ROLE app;
DROP ROLE postgres;
DROP ROLE reader;


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






\unrestrict IVpNk709P0NvknX4CaZT02v5qXlXdL09e1jTfZhb3ICyLEL92DSsLDYqkRcS0Dd

--
-- Databases
--

--
-- Database "template1" dump
--

--
-- PostgreSQL database dump
--

\restrict IkVc4GTewWxouTE7EHe5K4sZTb75bhEEIYpLBrafEd4SOXkMuk4KVMTHavO5qzt

-- Dumped from database version 15.18 (Debian 15.18-0+deb12u1)
-- Dumped by pg_dump version 18.6

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET transaction_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

UPDATE pg_catalog.pg_database SET datistemplate = false WHERE datname = 'template1';
DROP DATABASE template1;
--
-- Name: template1; Type: DATABASE; Schema: -; Owner: postgres
--

CREATE DATABASE template1 WITH TEMPLATE = template0 ENCODING = 'UTF8' LOCALE_PROVIDER = libc LOCALE = 'C.UTF-8';


ALTER DATABASE template1 OWNER TO postgres;

\unrestrict IkVc4GTewWxouTE7EHe5K4sZTb75bhEEIYpLBrafEd4SOXkMuk4KVMTHavO5qzt
\connect template1
\restrict IkVc4GTewWxouTE7EHe5K4sZTb75bhEEIYpLBrafEd4SOXkMuk4KVMTHavO5qzt

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET transaction_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: DATABASE template1; Type: COMMENT; Schema: -; Owner: postgres
--

COMMENT ON DATABASE template1 IS 'default template for new databases';


--
-- Name: template1; Type: DATABASE PROPERTIES; Schema: -; Owner: postgres
--

ALTER DATABASE template1 IS_TEMPLATE = true;


\unrestrict IkVc4GTewWxouTE7EHe5K4sZTb75bhEEIYpLBrafEd4SOXkMuk4KVMTHavO5qzt
\connect template1
\restrict IkVc4GTewWxouTE7EHe5K4sZTb75bhEEIYpLBrafEd4SOXkMuk4KVMTHavO5qzt

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET transaction_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: DATABASE template1; Type: ACL; Schema: -; Owner: postgres
--

REVOKE CONNECT,TEMPORARY ON DATABASE template1 FROM PUBLIC;
GRANT CONNECT ON DATABASE template1 TO PUBLIC;


--
-- PostgreSQL database dump complete
--

\unrestrict IkVc4GTewWxouTE7EHe5K4sZTb75bhEEIYpLBrafEd4SOXkMuk4KVMTHavO5qzt

--
-- Database "other" dump
--

--
-- PostgreSQL database dump
--

\restrict nHbeBkbOqnD8bZQOizyXzIu9FdzlQ8y8PQBer6bJpnyJlolMXZLHn6JedDz84Rx

-- Dumped from database version 15.18 (Debian 15.18-0+deb12u1)
-- Dumped by pg_dump version 18.6

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET transaction_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: other; Type: DATABASE; Schema: -; Owner: postgres
--

CREATE DATABASE other WITH TEMPLATE = template0 ENCODING = 'UTF8' LOCALE_PROVIDER = libc LOCALE = 'C.UTF-8';


ALTER DATABASE other OWNER TO postgres;

\unrestrict nHbeBkbOqnD8bZQOizyXzIu9FdzlQ8y8PQBer6bJpnyJlolMXZLHn6JedDz84Rx
\connect other
\restrict nHbeBkbOqnD8bZQOizyXzIu9FdzlQ8y8PQBer6bJpnyJlolMXZLHn6JedDz84Rx

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET transaction_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: o; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.o (
    x integer
);


ALTER TABLE public.o OWNER TO postgres;

--
-- Data for Name: o; Type: TABLE DATA; Schema: public; Owner: postgres
--

COPY public.o (x) FROM stdin;
7
\.


--
-- PostgreSQL database dump complete
--

\unrestrict nHbeBkbOqnD8bZQOizyXzIu9FdzlQ8y8PQBer6bJpnyJlolMXZLHn6JedDz84Rx

--
-- Database "postgres" dump
--

--
-- PostgreSQL database dump
--

\restrict QUW4u89dw1wjrP0SIz53gq9K7WbM9YLWBrWQxfYmhcj5uEY2yt4JmxULAxf3MlH

-- Dumped from database version 15.18 (Debian 15.18-0+deb12u1)
-- Dumped by pg_dump version 18.6

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET transaction_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

DROP DATABASE postgres;
--
-- Name: postgres; Type: DATABASE; Schema: -; Owner: postgres
--

CREATE DATABASE postgres WITH TEMPLATE = template0 ENCODING = 'UTF8' LOCALE_PROVIDER = libc LOCALE = 'C.UTF-8';


ALTER DATABASE postgres OWNER TO postgres;

\unrestrict QUW4u89dw1wjrP0SIz53gq9K7WbM9YLWBrWQxfYmhcj5uEY2yt4JmxULAxf3MlH
\connect postgres
\restrict QUW4u89dw1wjrP0SIz53gq9K7WbM9YLWBrWQxfYmhcj5uEY2yt4JmxULAxf3MlH

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET transaction_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: DATABASE postgres; Type: COMMENT; Schema: -; Owner: postgres
--

COMMENT ON DATABASE postgres IS 'default administrative connection database';


--
-- PostgreSQL database dump complete
--

\unrestrict QUW4u89dw1wjrP0SIz53gq9K7WbM9YLWBrWQxfYmhcj5uEY2yt4JmxULAxf3MlH

--
-- Database "shop" dump
--

--
-- PostgreSQL database dump
--

\restrict IYYGkDXvc0iHNOr5ly1CfifiFdMmX3WFVnKfBzcLVs3bNbc2vp5HbK9c19Kxr3H

-- Dumped from database version 15.18 (Debian 15.18-0+deb12u1)
-- Dumped by pg_dump version 18.6

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET transaction_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: shop; Type: DATABASE; Schema: -; Owner: app
--

CREATE DATABASE shop WITH TEMPLATE = template0 ENCODING = 'UTF8' LOCALE_PROVIDER = libc LOCALE = 'C.UTF-8';


ALTER DATABASE shop OWNER TO app;

\unrestrict IYYGkDXvc0iHNOr5ly1CfifiFdMmX3WFVnKfBzcLVs3bNbc2vp5HbK9c19Kxr3H
\connect shop
\restrict IYYGkDXvc0iHNOr5ly1CfifiFdMmX3WFVnKfBzcLVs3bNbc2vp5HbK9c19Kxr3H

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET transaction_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: DATABASE shop; Type: COMMENT; Schema: -; Owner: app
--

COMMENT ON DATABASE shop IS 'two
lines';


--
-- Name: f(); Type: FUNCTION; Schema: public; Owner: postgres
--

CREATE FUNCTION public.f() RETURNS integer
    LANGUAGE sql
    BEGIN ATOMIC
 SELECT 1;
END;


ALTER FUNCTION public.f() OWNER TO postgres;

SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: child; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.child (
    id integer
);


ALTER TABLE public.child OWNER TO postgres;

--
-- Name: item; Type: TABLE; Schema: public; Owner: postgres
--

CREATE TABLE public.item (
    id integer NOT NULL,
    t text,
    ref integer
);


ALTER TABLE public.item OWNER TO postgres;

--
-- Name: item_id_seq; Type: SEQUENCE; Schema: public; Owner: postgres
--

CREATE SEQUENCE public.item_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;


ALTER SEQUENCE public.item_id_seq OWNER TO postgres;

--
-- Name: item_id_seq; Type: SEQUENCE OWNED BY; Schema: public; Owner: postgres
--

ALTER SEQUENCE public.item_id_seq OWNED BY public.item.id;


--
-- Name: v; Type: VIEW; Schema: public; Owner: postgres
--

CREATE VIEW public.v AS
 SELECT item.id,
    item.t,
    item.ref
   FROM public.item;


ALTER VIEW public.v OWNER TO postgres;

--
-- Name: item id; Type: DEFAULT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.item ALTER COLUMN id SET DEFAULT nextval('public.item_id_seq'::regclass);


--
-- Data for Name: child; Type: TABLE DATA; Schema: public; Owner: postgres
--

COPY public.child (id) FROM stdin;
\.


--
-- Data for Name: item; Type: TABLE DATA; Schema: public; Owner: postgres
--

COPY public.item (id, t, ref) FROM stdin;
1	two\\.	\N
2	a\n\\restrict x\nb	\N
3	\n\\connect x\n\nSET transaction_timeout = 0;\n	\N
\.


--
-- Name: item_id_seq; Type: SEQUENCE SET; Schema: public; Owner: postgres
--

SELECT pg_catalog.setval('public.item_id_seq', 3, true);


--
-- Name: item item_pkey; Type: CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.item
    ADD CONSTRAINT item_pkey PRIMARY KEY (id);


--
-- Name: item_t_idx; Type: INDEX; Schema: public; Owner: postgres
--

CREATE INDEX item_t_idx ON public.item USING btree (t);


--
-- Name: child child_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: postgres
--

ALTER TABLE ONLY public.child
    ADD CONSTRAINT child_id_fkey FOREIGN KEY (id) REFERENCES public.item(id);


--
-- PostgreSQL database dump complete
--

\unrestrict IYYGkDXvc0iHNOr5ly1CfifiFdMmX3WFVnKfBzcLVs3bNbc2vp5HbK9c19Kxr3H

--
-- Database "stock" dump
--

--
-- PostgreSQL database dump
--

\restrict h86UqNUITQoSIOGodslyWvR5j3xVM8h3hVc3m7cK4ws2CbYkecBdVhcho0Qe8va

-- Dumped from database version 15.18 (Debian 15.18-0+deb12u1)
-- Dumped by pg_dump version 18.6

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET transaction_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: stock; Type: DATABASE; Schema: -; Owner: app
--

CREATE DATABASE stock WITH TEMPLATE = template0 ENCODING = 'UTF8' LOCALE_PROVIDER = libc LOCALE = 'C.UTF-8';


ALTER DATABASE stock OWNER TO app;

\unrestrict h86UqNUITQoSIOGodslyWvR5j3xVM8h3hVc3m7cK4ws2CbYkecBdVhcho0Qe8va
\connect stock
\restrict h86UqNUITQoSIOGodslyWvR5j3xVM8h3hVc3m7cK4ws2CbYkecBdVhcho0Qe8va

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET transaction_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: label(text); Type: FUNCTION; Schema: public; Owner: app
--

CREATE FUNCTION public.label(text) RETURNS text
    LANGUAGE plpgsql
    AS $_$ begin
-- it's a comment
SET LOCAL work_mem = '1MB';
return 'x' || $1; end $_$;


ALTER FUNCTION public.label(text) OWNER TO app;

SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: sale; Type: TABLE; Schema: public; Owner: app
--

CREATE TABLE public.sale (
    item bigint,
    n integer NOT NULL,
    CONSTRAINT sale_n_check CHECK ((n > 0))
);


ALTER TABLE public.sale OWNER TO app;

--
-- Name: total(bigint); Type: FUNCTION; Schema: public; Owner: app
--

CREATE FUNCTION public.total(bigint) RETURNS bigint
    LANGUAGE sql STABLE
    BEGIN ATOMIC
 SELECT sum(sale.n) AS sum
    FROM public.sale
   WHERE (sale.item = $1);
END;


ALTER FUNCTION public.total(bigint) OWNER TO app;

--
-- Name: item; Type: TABLE; Schema: public; Owner: app
--

CREATE TABLE public.item (
    id bigint NOT NULL,
    name text NOT NULL,
    price numeric(8,2),
    at timestamp with time zone DEFAULT '2026-01-02 03:04:05+00'::timestamp with time zone
);


ALTER TABLE public.item OWNER TO app;

--
-- Name: TABLE item; Type: COMMENT; Schema: public; Owner: app
--

COMMENT ON TABLE public.item IS 'what
is sold';


--
-- Name: item_id_seq; Type: SEQUENCE; Schema: public; Owner: app
--

ALTER TABLE public.item ALTER COLUMN id ADD GENERATED BY DEFAULT AS IDENTITY (
    SEQUENCE NAME public.item_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);


--
-- Name: sold; Type: VIEW; Schema: public; Owner: app
--

CREATE VIEW public.sold AS
SELECT
    NULL::text AS name,
    NULL::bigint AS n;


ALTER VIEW public.sold OWNER TO app;

--
-- Data for Name: item; Type: TABLE DATA; Schema: public; Owner: app
--

COPY public.item (id, name, price, at) FROM stdin;
1	bolt	0.10	2026-01-02 03:04:05+00
2	two\nlines	12.50	2026-01-02 03:04:05+00
3	it's $$5$$ "net"	\N	2026-01-02 03:04:05+00
4	\\restrict x	1.00	2026-01-02 03:04:05+00
5	tab\there	2.00	2026-01-02 03:04:05+00
\.


--
-- Data for Name: sale; Type: TABLE DATA; Schema: public; Owner: app
--

COPY public.sale (item, n) FROM stdin;
1	3
1	4
2	1
\.


--
-- Name: item_id_seq; Type: SEQUENCE SET; Schema: public; Owner: app
--

SELECT pg_catalog.setval('public.item_id_seq', 5, true);


--
-- Name: item item_pkey; Type: CONSTRAINT; Schema: public; Owner: app
--

ALTER TABLE ONLY public.item
    ADD CONSTRAINT item_pkey PRIMARY KEY (id);


--
-- Name: item_name; Type: INDEX; Schema: public; Owner: app
--

CREATE INDEX item_name ON public.item USING btree (name);


--
-- Name: sold _RETURN; Type: RULE; Schema: public; Owner: app
--

CREATE OR REPLACE VIEW public.sold AS
 SELECT i.name,
    sum(s.n) AS n
   FROM (public.item i
     JOIN public.sale s ON ((s.item = i.id)))
  GROUP BY i.id;


--
-- Name: sale sale_item_fkey; Type: FK CONSTRAINT; Schema: public; Owner: app
--

ALTER TABLE ONLY public.sale
    ADD CONSTRAINT sale_item_fkey FOREIGN KEY (item) REFERENCES public.item(id);


--
-- Name: TABLE item; Type: ACL; Schema: public; Owner: app
--

GRANT SELECT ON TABLE public.item TO reader;


--
-- PostgreSQL database dump complete
--

\unrestrict h86UqNUITQoSIOGodslyWvR5j3xVM8h3hVc3m7cK4ws2CbYkecBdVhcho0Qe8va

--
-- PostgreSQL database cluster dump complete
--

