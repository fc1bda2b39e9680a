-- TPC-C 5.11, 2.4. An item that does not exist rolls all of it back; the total is then NULL.
CREATE {ROUTINE} {SCHEMA}.neword(
    IN in_w_id integer, IN in_d_id integer, IN in_c_id integer, IN in_items integer[], IN in_supplies integer[],
    IN in_quantities integer[], {RESULT} out_total numeric
) LANGUAGE plpgsql AS $body$
DECLARE
    the_order integer;
    the_discount numeric;
    the_w_tax numeric;
    the_d_tax numeric;
    the_price numeric;
    the_place text;
    the_local smallint := (SELECT min((supply = in_w_id)::integer) FROM unnest(in_supplies) AS supply);
BEGIN
    SELECT c.c_discount, w.w_tax INTO the_discount, the_w_tax
    FROM {SCHEMA}.customer AS c, {SCHEMA}.warehouse AS w
    WHERE w.w_id = in_w_id AND c.c_w_id = in_w_id AND c.c_d_id = in_d_id AND c.c_id = in_c_id;
    UPDATE {SCHEMA}.district SET d_next_o_id = d_next_o_id + 1
    WHERE d_w_id = in_w_id AND d_id = in_d_id
    RETURNING d_next_o_id - 1, d_tax INTO the_order, the_d_tax;
    INSERT INTO {SCHEMA}.orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local)
    VALUES (the_order, in_d_id, in_w_id, in_c_id, now(), cardinality(in_items), the_local);
    INSERT INTO {SCHEMA}.new_order (no_o_id, no_d_id, no_w_id) VALUES (the_order, in_d_id, in_w_id);
    out_total := 0;
    FOR the_line IN 1 .. cardinality(in_items) LOOP
        SELECT i_price INTO the_price FROM {SCHEMA}.item WHERE i_id = in_items[the_line];
        IF NOT FOUND THEN
            RAISE no_data_found;
        END IF;
        UPDATE {SCHEMA}.stock
        SET s_quantity = CASE
                WHEN s_quantity >= in_quantities[the_line] + 10 THEN s_quantity - in_quantities[the_line]
                ELSE s_quantity - in_quantities[the_line] + 91
            END,
            s_ytd = s_ytd + in_quantities[the_line],
            s_order_cnt = s_order_cnt + 1,
            s_remote_cnt = s_remote_cnt + (in_supplies[the_line] <> in_w_id)::integer
        WHERE s_w_id = in_supplies[the_line] AND s_i_id = in_items[the_line]
        RETURNING (ARRAY[s_dist_01, s_dist_02, s_dist_03, s_dist_04, s_dist_05, s_dist_06, s_dist_07, s_dist_08,
            s_dist_09, s_dist_10])[in_d_id] INTO the_place;
        INSERT INTO {SCHEMA}.order_line (
            ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_dist_info
        ) VALUES (
            the_order, in_d_id, in_w_id, the_line, in_items[the_line], in_supplies[the_line], in_quantities[the_line],
            in_quantities[the_line] * the_price, the_place
        );
        out_total := out_total + in_quantities[the_line] * the_price;
    END LOOP;
    out_total := out_total * (1 + the_w_tax + the_d_tax) * (1 - the_discount);
EXCEPTION
    WHEN no_data_found THEN
        out_total := NULL;
END
$body$
