//! How a line of an order is written, as its `Display` writes it.

use std::sync::LazyLock;

use pgdyno_workload::write_integer;
use tpchgen::dates::{MIN_GENERATE_DATE, TOTAL_DATE_RANGE, TPCHDate};
use tpchgen::decimal::TPCHDecimal;
use tpchgen::generators::LineItem;

use super::file::Ending;

/// Each day that there is, as text.
static DAYS: LazyLock<Vec<[u8; 10]>> = LazyLock::new(|| {
    let text = |day| TPCHDate::new(MIN_GENERATE_DATE + day).to_string();
    (0..TOTAL_DATE_RANGE).map(|day| text(day).into_bytes().try_into().expect("YYYY-MM-DD")).collect()
});

/// Appends it with its end.
pub(super) fn write(row: &LineItem<'_>, ending: Ending, out: &mut Vec<u8>) {
    let separator = if ending == Ending::Copy { b'\t' } else { b'|' };
    for key in [row.l_orderkey, row.l_partkey, row.l_suppkey, row.l_linenumber.into(), row.l_quantity] {
        write_integer(key, out);
        out.push(separator);
    }
    for amount in [row.l_extendedprice, row.l_discount, row.l_tax] {
        decimal(amount, out);
        out.push(separator);
    }
    for flag in [row.l_returnflag, row.l_linestatus] {
        out.extend_from_slice(flag.as_bytes());
        out.push(separator);
    }
    for date in [row.l_shipdate, row.l_commitdate, row.l_receiptdate] {
        out.extend_from_slice(&DAYS[date.into_inner() as usize]);
        out.push(separator);
    }
    for text in [row.l_shipinstruct, row.l_shipmode] {
        out.extend_from_slice(text.as_bytes());
        out.push(separator);
    }
    out.extend_from_slice(row.l_comment.as_bytes());
    if ending == Ending::Separator {
        out.push(separator);
    }
    out.push(b'\n');
}

/// A number of hundredths, none of which is negative here.
fn decimal(amount: TPCHDecimal, out: &mut Vec<u8>) {
    let hundredths = amount.into_inner();
    write_integer(hundredths / 100, out);
    out.extend_from_slice(&[b'.', b'0' + (hundredths / 10 % 10) as u8, b'0' + (hundredths % 10) as u8]);
}

#[cfg(test)]
mod tests {
    use tpchgen::generators::LineItemGenerator;

    use super::super::rows::write_row;
    use super::*;

    #[test]
    fn it_is_what_display_writes() {
        for ending in [Ending::Separator, Ending::Value, Ending::Copy] {
            for row in LineItemGenerator::new(0.01, 1, 20).iter() {
                let (mut mine, mut theirs) = (Vec::new(), Vec::new());
                write(&row, ending, &mut mine);
                write_row(&row, ending, &mut theirs);
                assert_eq!(String::from_utf8(mine), String::from_utf8(theirs));
            }
        }
    }
}
