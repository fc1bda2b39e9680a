-- How many items of the last 20 orders of a district are scarce.
CREATE {ROUTINE} {SCHEMA}.slev(
    IN in_w_id integer, IN in_d_id integer, IN in_threshold integer, {RESULT} out_scarce bigint
) LANGUAGE plpgsql AS $body$
DECLARE
    the_next integer;
BEGIN
    SELECT d_next_o_id INTO the_next FROM {SCHEMA}.district WHERE d_w_id = in_w_id AND d_id = in_d_id;
    SELECT count(DISTINCT s.s_i_id) INTO out_scarce
    FROM {SCHEMA}.order_line AS l JOIN {SCHEMA}.stock AS s ON s.s_w_id = in_w_id AND s.s_i_id = l.ol_i_id
    WHERE l.ol_w_id = in_w_id AND l.ol_d_id = in_d_id AND l.ol_o_id < the_next AND l.ol_o_id >= the_next - 20
        AND s.s_quantity < in_threshold;
EXCEPTION
    WHEN serialization_failure OR deadlock_detected OR no_data_found THEN
        RAISE;
END
$body$
