"""What HammerDB 6.0 builds in the schema ``public``, as far as it is driven: tables with their columns, and the routines' arguments."""

from __future__ import annotations

from typing import Final

from pgdyno.workload.tables import TpccRoutines

BY: Final = "HammerDB 6.0"
_PLACES = "{0}street_1 {0}street_2 {0}city {0}state {0}zip"
_DISTRICTS = " ".join(f"s_dist_{number:02}" for number in range(1, 11))
TPCC_COLUMNS: Final[dict[str, tuple[str, ...]]] = {
    table: tuple(columns.split())
    for table, columns in {
        "warehouse": f"w_id w_name {_PLACES.format('w_')} w_tax w_ytd",
        "district": f"d_w_id d_next_o_id d_id d_ytd d_tax d_name {_PLACES.format('d_')}",
        "customer": f"c_since c_id c_w_id c_d_id c_payment_cnt c_delivery_cnt c_first c_middle c_last {_PLACES.format('c_')}"
        " c_phone c_credit c_credit_lim c_discount c_balance c_ytd_payment c_data",
        "history": "h_date h_c_id h_c_w_id h_w_id h_c_d_id h_d_id h_amount h_data",
        "item": "i_id i_im_id i_name i_price i_data",
        "stock": f"s_i_id s_w_id s_ytd s_quantity s_order_cnt s_remote_cnt {_DISTRICTS} s_data",
        "new_order": "no_w_id no_o_id no_d_id",
        "orders": "o_entry_d o_id o_w_id o_c_id o_d_id o_carrier_id o_ol_cnt o_all_local",
        "order_line": "ol_delivery_d ol_o_id ol_w_id ol_i_id ol_supply_w_id ol_d_id ol_number ol_quantity ol_amount ol_dist_info",
    }.items()
}
"""Also in crates/dataset/src/tpcc/definitions.rs, with types."""
_ARGUMENTS: Final[dict[TpccRoutines, dict[str, int]]] = {
    "functions": {"neword": 6, "payment": 10, "delivery": 2, "slev": 3, "ostat": 5},
    "procedures": {"neword": 12, "payment": 33, "delivery": 3, "slev": 4, "ostat": 12},
}


def routine_arguments(routines: TpccRoutines) -> dict[str, int]:
    """Arguments of each routine; crates/workload/src/kind/tpcc/built.rs calls them."""
    return _ARGUMENTS[routines]
