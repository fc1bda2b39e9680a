-- The oldest order of each district is delivered: one statement for each table. Two deliveries at the same time may take the same
-- orders, of which one then finds none.
CREATE {ROUTINE} {SCHEMA}.delivery(
    IN in_w_id integer, IN in_carrier integer, {RESULT} out_delivered integer
) LANGUAGE plpgsql AS $body$
DECLARE
    the_districts integer[] := '{}';
    the_orders integer[] := '{}';
    the_customers integer[];
    the_of integer[];
    the_paying integer[];
    the_amounts numeric[];
    the_order integer;
BEGIN
    FOR the_district IN 1 .. 10 LOOP
        SELECT min(no_o_id) INTO the_order FROM {SCHEMA}.new_order WHERE no_w_id = in_w_id AND no_d_id = the_district;
        IF the_order IS NOT NULL THEN
            the_districts := the_districts || the_district;
            the_orders := the_orders || the_order;
        END IF;
    END LOOP;
    DELETE FROM {SCHEMA}.new_order AS n USING unnest(the_districts, the_orders) AS due (d_id, o_id)
    WHERE n.no_w_id = in_w_id AND n.no_d_id = due.d_id AND n.no_o_id = due.o_id;
    GET DIAGNOSTICS out_delivered = ROW_COUNT;
    WITH carried AS (
        UPDATE {SCHEMA}.orders AS o SET o_carrier_id = in_carrier
        FROM unnest(the_districts, the_orders) AS due (d_id, o_id)
        WHERE o.o_w_id = in_w_id AND o.o_d_id = due.d_id AND o.o_id = due.o_id
        RETURNING o.o_d_id AS d_id, o.o_c_id AS c_id
    )
    SELECT array_agg(d_id), array_agg(c_id) INTO the_of, the_customers FROM carried;
    WITH delivered AS (
        UPDATE {SCHEMA}.order_line AS l SET ol_delivery_d = now()
        FROM unnest(the_districts, the_orders) AS due (d_id, o_id)
        WHERE l.ol_w_id = in_w_id AND l.ol_d_id = due.d_id AND l.ol_o_id = due.o_id
        RETURNING l.ol_d_id AS d_id, l.ol_amount AS amount
    ), summed AS (
        SELECT d_id, sum(amount) AS amount FROM delivered GROUP BY d_id
    )
    SELECT array_agg(d_id), array_agg(amount) INTO the_paying, the_amounts FROM summed;
    UPDATE {SCHEMA}.customer AS c SET c_balance = c.c_balance + coalesce(paying.amount, 0)
    FROM unnest(the_of, the_customers) AS customer (d_id, c_id)
        JOIN unnest(the_paying, the_amounts) AS paying (d_id, amount) ON paying.d_id = customer.d_id
    WHERE c.c_w_id = in_w_id AND c.c_d_id = customer.d_id AND c.c_id = customer.c_id;
EXCEPTION
    WHEN serialization_failure OR deadlock_detected OR no_data_found THEN
        RAISE;
END
$body$
