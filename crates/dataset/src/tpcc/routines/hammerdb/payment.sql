-- A payment. By name it takes the customer at half of those who are called so, rounded down, and the customer who was drawn where
-- that is none: the balance then begins at zero. Nothing is counted but the balance.
CREATE {ROUTINE} {SCHEMA}.payment(
    IN in_w_id integer, IN in_d_id integer, IN in_c_w_id integer, IN in_c_d_id integer, IN in_c_id integer,
    IN in_by_name integer, IN in_amount numeric, IN in_name text, {RESULT} out_balance numeric
) LANGUAGE plpgsql AS $body$
DECLARE
    the_customer integer := in_c_id;
    the_balance numeric := 0;
    the_credit text;
    the_data text;
    the_count bigint;
    the_warehouse text;
    the_district text;
    the_named CURSOR FOR
        SELECT c_id, c_balance, c_credit FROM {SCHEMA}.customer
        WHERE c_w_id = in_c_w_id AND c_d_id = in_c_d_id AND c_last = in_name ORDER BY c_first;
BEGIN
    UPDATE {SCHEMA}.warehouse SET w_ytd = w_ytd + in_amount
    WHERE w_id = in_w_id RETURNING w_name INTO the_warehouse;
    UPDATE {SCHEMA}.district SET d_ytd = d_ytd + in_amount
    WHERE d_w_id = in_w_id AND d_id = in_d_id RETURNING d_name INTO the_district;
    IF in_by_name = 1 THEN
        SELECT count(c_id) INTO the_count FROM {SCHEMA}.customer
        WHERE c_w_id = in_c_w_id AND c_d_id = in_c_d_id AND c_last = in_name;
        OPEN the_named;
        FOR the_place IN 1 .. the_count / 2 LOOP
            FETCH the_named INTO the_customer, the_balance, the_credit;
        END LOOP;
        CLOSE the_named;
    ELSE
        SELECT c_balance, c_credit INTO the_balance, the_credit FROM {SCHEMA}.customer
        WHERE c_w_id = in_c_w_id AND c_d_id = in_c_d_id AND c_id = in_c_id;
    END IF;
    out_balance := the_balance - in_amount;
    IF the_credit = 'BC' THEN
        SELECT c_data INTO the_data FROM {SCHEMA}.customer
        WHERE c_w_id = in_c_w_id AND c_d_id = in_c_d_id AND c_id = the_customer;
        the_data := left(concat_ws(' ', the_customer, in_c_d_id, in_c_w_id, in_d_id, in_w_id, in_amount, the_data), 500);
        UPDATE {SCHEMA}.customer SET c_balance = out_balance, c_data = the_data
        WHERE c_w_id = in_c_w_id AND c_d_id = in_c_d_id AND c_id = the_customer;
    ELSE
        UPDATE {SCHEMA}.customer SET c_balance = out_balance
        WHERE c_w_id = in_c_w_id AND c_d_id = in_c_d_id AND c_id = the_customer;
    END IF;
    INSERT INTO {SCHEMA}.history (h_c_d_id, h_c_w_id, h_c_id, h_d_id, h_w_id, h_date, h_amount, h_data)
    VALUES (
        in_c_d_id, in_c_w_id, the_customer, in_d_id, in_w_id, now(), in_amount, concat(the_warehouse, '    ', the_district)
    );
EXCEPTION
    WHEN serialization_failure OR deadlock_detected OR no_data_found THEN
        RAISE;
END
$body$
