-- The last order of a customer. By name it reads one customer past the middle.
CREATE {ROUTINE} {SCHEMA}.ostat(
    IN in_w_id integer, IN in_d_id integer, IN in_c_id integer, IN in_by_name integer, IN in_name text,
    {RESULT} out_order integer, {RESULT} out_carrier smallint, {RESULT} out_lines bigint, {RESULT} out_total numeric
) LANGUAGE plpgsql AS $body$
DECLARE
    the_customer integer := in_c_id;
    the_count bigint;
    the_named CURSOR FOR
        SELECT c_id FROM {SCHEMA}.customer
        WHERE c_w_id = in_w_id AND c_d_id = in_d_id AND c_last = in_name ORDER BY c_first;
BEGIN
    IF in_by_name = 1 THEN
        SELECT count(c_id) INTO the_count FROM {SCHEMA}.customer
        WHERE c_w_id = in_w_id AND c_d_id = in_d_id AND c_last = in_name;
        OPEN the_named;
        FOR the_place IN 0 .. (the_count + 1) / 2 LOOP
            FETCH the_named INTO the_customer;
        END LOOP;
        CLOSE the_named;
    ELSE
        SELECT c_id INTO the_customer FROM {SCHEMA}.customer
        WHERE c_w_id = in_w_id AND c_d_id = in_d_id AND c_id = in_c_id;
    END IF;
    SELECT o_id, o_carrier_id INTO out_order, out_carrier FROM {SCHEMA}.orders
    WHERE o_w_id = in_w_id AND o_d_id = in_d_id AND o_c_id = the_customer ORDER BY o_id DESC LIMIT 1;
    SELECT count(*), sum(ol_amount) INTO out_lines, out_total FROM {SCHEMA}.order_line
    WHERE ol_w_id = in_w_id AND ol_d_id = in_d_id AND ol_o_id = out_order;
EXCEPTION
    WHEN serialization_failure OR deadlock_detected OR no_data_found THEN
        RAISE;
END
$body$
