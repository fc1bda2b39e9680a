-- TPC-C 5.11, 2.6.
CREATE {ROUTINE} {SCHEMA}.ostat(
    IN in_w_id integer, IN in_d_id integer, IN in_c_id integer, IN in_by_name integer, IN in_name text,
    {RESULT} out_order integer, {RESULT} out_carrier smallint, {RESULT} out_lines bigint, {RESULT} out_total numeric
) LANGUAGE plpgsql AS $body$
DECLARE
    the_customer integer := in_c_id;
    the_count bigint;
BEGIN
    IF in_by_name = 1 THEN
        SELECT count(*) INTO the_count FROM {SCHEMA}.customer
        WHERE c_w_id = in_w_id AND c_d_id = in_d_id AND c_last = in_name;
        SELECT c_id INTO the_customer FROM {SCHEMA}.customer
        WHERE c_w_id = in_w_id AND c_d_id = in_d_id AND c_last = in_name
        ORDER BY c_first OFFSET (the_count + 1) / 2 - 1 LIMIT 1;
    ELSE
        SELECT c_id INTO the_customer FROM {SCHEMA}.customer
        WHERE c_w_id = in_w_id AND c_d_id = in_d_id AND c_id = in_c_id;
    END IF;
    SELECT o_id, o_carrier_id INTO out_order, out_carrier FROM {SCHEMA}.orders
    WHERE o_w_id = in_w_id AND o_d_id = in_d_id AND o_c_id = the_customer ORDER BY o_id DESC LIMIT 1;
    SELECT count(*), sum(ol_amount) INTO out_lines, out_total FROM {SCHEMA}.order_line
    WHERE ol_w_id = in_w_id AND ol_d_id = in_d_id AND ol_o_id = out_order;
END
$body$
