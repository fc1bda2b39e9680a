-- TPC-C 5.11, 2.5.
CREATE {ROUTINE} {SCHEMA}.payment(
    IN in_w_id integer, IN in_d_id integer, IN in_c_w_id integer, IN in_c_d_id integer, IN in_c_id integer,
    IN in_by_name integer, IN in_amount numeric, IN in_name text, {RESULT} out_balance numeric
) LANGUAGE plpgsql AS $body$
DECLARE
    the_customer integer := in_c_id;
    the_count bigint;
    the_warehouse text;
    the_district text;
BEGIN
    UPDATE {SCHEMA}.warehouse SET w_ytd = w_ytd + in_amount
    WHERE w_id = in_w_id RETURNING w_name INTO the_warehouse;
    UPDATE {SCHEMA}.district SET d_ytd = d_ytd + in_amount
    WHERE d_w_id = in_w_id AND d_id = in_d_id RETURNING d_name INTO the_district;
    IF in_by_name = 1 THEN
        SELECT count(*) INTO the_count FROM {SCHEMA}.customer
        WHERE c_w_id = in_c_w_id AND c_d_id = in_c_d_id AND c_last = in_name;
        SELECT c_id INTO the_customer FROM {SCHEMA}.customer
        WHERE c_w_id = in_c_w_id AND c_d_id = in_c_d_id AND c_last = in_name
        ORDER BY c_first OFFSET (the_count + 1) / 2 - 1 LIMIT 1;
    END IF;
    UPDATE {SCHEMA}.customer
    SET c_balance = c_balance - in_amount, c_ytd_payment = c_ytd_payment + in_amount, c_payment_cnt = c_payment_cnt + 1
    WHERE c_w_id = in_c_w_id AND c_d_id = in_c_d_id AND c_id = the_customer AND c_credit <> 'BC'
    RETURNING c_balance INTO out_balance;
    IF NOT FOUND THEN
        UPDATE {SCHEMA}.customer
        SET c_balance = c_balance - in_amount, c_ytd_payment = c_ytd_payment + in_amount, c_payment_cnt = c_payment_cnt + 1,
            c_data = left(concat_ws(' ', c_id, c_d_id, c_w_id, in_d_id, in_w_id, in_amount, c_data), 500)
        WHERE c_w_id = in_c_w_id AND c_d_id = in_c_d_id AND c_id = the_customer
        RETURNING c_balance INTO out_balance;
    END IF;
    INSERT INTO {SCHEMA}.history (h_c_d_id, h_c_w_id, h_c_id, h_d_id, h_w_id, h_date, h_amount, h_data)
    VALUES (
        in_c_d_id, in_c_w_id, the_customer, in_d_id, in_w_id, now(), in_amount, concat(the_warehouse, '    ', the_district)
    );
END
$body$
