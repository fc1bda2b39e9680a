-- An order. Its items are drawn here. The amounts follow the order in which stock was changed, and an item that is not there
-- leaves a line without an amount.
CREATE {ROUTINE} {SCHEMA}.neword(
    IN in_w_id integer, IN in_warehouses integer, IN in_d_id integer, IN in_c_id integer, IN in_lines integer,
    IN in_seed integer, {RESULT} out_total numeric
) LANGUAGE plpgsql AS $body$
DECLARE
    the_items integer[] := '{}';
    the_supplies integer[] := '{}';
    the_quantities integer[] := '{}';
    the_prices numeric[];
    the_amounts numeric[];
    the_places text[];
    the_item integer;
    the_supply integer;
    the_local smallint := 1;
    the_order integer;
    the_factor numeric;
    the_discount numeric;
    the_tax numeric;
BEGIN
    PERFORM pg_catalog.setseed(in_seed / 2147483647.0);
    SELECT c.c_discount, w.w_tax INTO the_discount, the_factor
    FROM {SCHEMA}.customer AS c, {SCHEMA}.warehouse AS w
    WHERE w.w_id = in_w_id AND c.c_w_id = in_w_id AND c.c_d_id = in_d_id AND c.c_id = in_c_id;
    FOR the_line IN 1 .. in_lines LOOP
        the_item := 1 + floor(random() * 100000);
        IF the_line = in_lines AND floor(random() * 100) = 0 THEN
            the_item := 100001;
        END IF;
        the_supply := in_w_id;
        IF floor(random() * 100) = 0 THEN
            the_supply := 1 + (in_w_id + floor(random() * in_warehouses)::integer) % in_warehouses;
            IF the_supply <> in_w_id THEN
                the_local := 0;
            END IF;
        END IF;
        the_items := the_items || the_item;
        the_supplies := the_supplies || the_supply;
        the_quantities := the_quantities || (1 + floor(random() * 10))::integer;
    END LOOP;
    UPDATE {SCHEMA}.district SET d_next_o_id = d_next_o_id + 1
    WHERE d_w_id = in_w_id AND d_id = in_d_id
    RETURNING d_next_o_id - 1, d_tax INTO the_order, the_tax;
    the_factor := (1 + the_factor + the_tax) * (1 - the_discount);
    INSERT INTO {SCHEMA}.orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local)
    VALUES (the_order, in_d_id, in_w_id, in_c_id, now(), in_lines, the_local);
    INSERT INTO {SCHEMA}.new_order (no_o_id, no_d_id, no_w_id) VALUES (the_order, in_d_id, in_w_id);
    SELECT array_agg(i.i_price) INTO the_prices
    FROM unnest(the_items) AS line (item) JOIN {SCHEMA}.item AS i ON i.i_id = line.item;
    WITH changed AS (
        UPDATE {SCHEMA}.stock AS s
        SET s_quantity = CASE
            WHEN s.s_quantity >= line.quantity + 10 THEN s.s_quantity - line.quantity
            ELSE s.s_quantity - line.quantity + 91
        END
        FROM unnest(the_items, the_supplies, the_quantities, the_prices) AS line (item, supply, quantity, price)
        WHERE s.s_i_id = line.item AND s.s_w_id = line.supply
        RETURNING
            (ARRAY[s.s_dist_01, s.s_dist_02, s.s_dist_03, s.s_dist_04, s.s_dist_05, s.s_dist_06, s.s_dist_07,
                s.s_dist_08, s.s_dist_09, s.s_dist_10])[in_d_id] AS place,
            line.quantity * line.price * the_factor AS amount
    )
    SELECT array_agg(place), array_agg(amount), sum(amount) INTO the_places, the_amounts, out_total FROM changed;
    INSERT INTO {SCHEMA}.order_line (
        ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_dist_info
    )
    SELECT the_order, in_d_id, in_w_id, line.number, line.item, line.supply, line.quantity, line.amount, line.place
    FROM unnest(the_items, the_supplies, the_quantities, the_amounts, the_places)
        WITH ORDINALITY AS line (item, supply, quantity, amount, place, number);
EXCEPTION
    WHEN serialization_failure OR deadlock_detected OR no_data_found THEN
        RAISE;
END
$body$
