-- TPC-C 5.11, 2.7, in one transaction. The oldest order is locked, so that none is delivered twice; a district without one is
-- skipped.
CREATE {ROUTINE} {SCHEMA}.delivery(
    IN in_w_id integer, IN in_carrier integer, {RESULT} out_delivered integer
) LANGUAGE plpgsql AS $body$
DECLARE
    the_order integer;
    the_customer integer;
    the_amount numeric;
BEGIN
    out_delivered := 0;
    FOR the_district IN 1 .. 10 LOOP
        SELECT no_o_id INTO the_order FROM {SCHEMA}.new_order
        WHERE no_w_id = in_w_id AND no_d_id = the_district ORDER BY no_o_id LIMIT 1 FOR UPDATE;
        CONTINUE WHEN NOT FOUND;
        DELETE FROM {SCHEMA}.new_order
        WHERE no_w_id = in_w_id AND no_d_id = the_district AND no_o_id = the_order;
        UPDATE {SCHEMA}.orders SET o_carrier_id = in_carrier
        WHERE o_w_id = in_w_id AND o_d_id = the_district AND o_id = the_order RETURNING o_c_id INTO the_customer;
        WITH delivered AS (
            UPDATE {SCHEMA}.order_line SET ol_delivery_d = now()
            WHERE ol_w_id = in_w_id AND ol_d_id = the_district AND ol_o_id = the_order RETURNING ol_amount
        )
        SELECT sum(ol_amount) INTO the_amount FROM delivered;
        UPDATE {SCHEMA}.customer SET c_balance = c_balance + the_amount, c_delivery_cnt = c_delivery_cnt + 1
        WHERE c_w_id = in_w_id AND c_d_id = the_district AND c_id = the_customer;
        out_delivered := out_delivered + 1;
    END LOOP;
END
$body$
