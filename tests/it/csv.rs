//! Record batches as the CSV text of the golden tables' expected files: the rules of `fixtures/README.md`.

use std::cmp::Ordering;
use std::fmt::Write;

use calve::spec::{PrimitiveType, StructType, Type};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::datatypes::*;

/// One header row, then the rows sorted by the columns `key`.
pub fn to_csv(columns: &StructType, batches: &[RecordBatch], key: &[String]) -> String {
    let names: Vec<&str> = columns.fields.iter().map(|f| f.name.as_str()).collect();
    let keys: Vec<usize> = key.iter().map(|k| names.iter().position(|n| n == k).expect("key column")).collect();
    let mut rows: Vec<Vec<Option<String>>> = Vec::new();
    for batch in batches {
        for row in 0..batch.num_rows() {
            let cells = columns.fields.iter().zip(batch.columns());
            rows.push(cells.map(|(field, array)| cell(&field.field_type, array, row)).collect());
        }
    }
    let is_number =
        |i: &usize| matches!(columns.fields[*i].field_type, Type::Primitive(PrimitiveType::Int | PrimitiveType::Long));
    rows.sort_by(|a, b| {
        let by_key = keys.iter().map(|i| match (&a[*i], &b[*i]) {
            (Some(a), Some(b)) if is_number(i) => {
                a.parse::<i64>().expect("number").cmp(&b.parse::<i64>().expect("number"))
            }
            (a, b) => a.cmp(b),
        });
        // Rows with one key: by all columns, nulls last.
        let by_all = a.iter().zip(b).map(|(a, b)| (a.is_none(), a).cmp(&(b.is_none(), b)));
        by_key.chain(by_all).fold(Ordering::Equal, Ordering::then)
    });
    let mut text = names.join(",");
    text.push('\n');
    for row in rows {
        let cells: Vec<String> = row.iter().map(|c| c.as_deref().map_or_else(String::new, quoted)).collect();
        text.push_str(&cells.join(","));
        text.push('\n');
    }
    text
}

fn quoted(cell: &str) -> String {
    let special = cell.is_empty()
        || cell.contains([',', '"', '\n', '\r'])
        || cell.starts_with(char::is_whitespace)
        || cell.ends_with(char::is_whitespace);
    if special { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell.to_owned() }
}

fn cell(ty: &Type, array: &ArrayRef, row: usize) -> Option<String> {
    if array.is_null(row) || array.data_type() == &DataType::Null {
        return None;
    }
    Some(match ty {
        Type::Primitive(primitive) => primitive_text(primitive, array, row),
        nested => json(nested, array, row),
    })
}

/// Compact JSON; everything but null, boolean, int and long is a string, a map is a list of pairs sorted by key.
fn json(ty: &Type, array: &ArrayRef, row: usize) -> String {
    if array.is_null(row) {
        return "null".to_owned();
    }
    match ty {
        Type::Primitive(p @ (PrimitiveType::Boolean | PrimitiveType::Int | PrimitiveType::Long)) => {
            primitive_text(p, array, row)
        }
        Type::Primitive(p) => serde_json::Value::from(primitive_text(p, array, row)).to_string(),
        Type::Struct(s) => {
            let array = array.as_struct();
            let fields = s.fields.iter().zip(array.columns()).map(|(f, column)| {
                format!("{}:{}", serde_json::Value::from(f.name.as_str()), json(&f.field_type, column, row))
            });
            format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
        }
        Type::List(l) => {
            let values = array.as_list::<i32>().value(row);
            let items = (0..values.len()).map(|i| json(&l.element.field_type, &values, i));
            format!("[{}]", items.collect::<Vec<_>>().join(","))
        }
        Type::Map(m) => {
            let entries = array.as_map().value(row);
            let (keys, values) = (entries.column(0), entries.column(1));
            let mut order: Vec<usize> = (0..entries.len()).collect();
            match m.key.field_type {
                Type::Primitive(PrimitiveType::Int) => {
                    order.sort_by_key(|i| keys.as_primitive::<Int32Type>().value(*i));
                }
                _ => order.sort_by_key(|i| cell(&m.key.field_type, keys, *i)),
            }
            let pairs = order
                .into_iter()
                .map(|i| format!("[{},{}]", json(&m.key.field_type, keys, i), json(&m.value.field_type, values, i)));
            format!("[{}]", pairs.collect::<Vec<_>>().join(","))
        }
        Type::Variant => unimplemented!("variant"),
    }
}

fn primitive_text(ty: &PrimitiveType, array: &ArrayRef, row: usize) -> String {
    match ty {
        PrimitiveType::Boolean => array.as_boolean().value(row).to_string(),
        PrimitiveType::Int => array.as_primitive::<Int32Type>().value(row).to_string(),
        PrimitiveType::Long => array.as_primitive::<Int64Type>().value(row).to_string(),
        PrimitiveType::Float => {
            let v = array.as_primitive::<Float32Type>().value(row);
            float(&format!("{v:e}"), v.is_nan(), v.is_infinite(), v.is_sign_negative())
        }
        PrimitiveType::Double => {
            let v = array.as_primitive::<Float64Type>().value(row);
            float(&format!("{v:e}"), v.is_nan(), v.is_infinite(), v.is_sign_negative())
        }
        PrimitiveType::Decimal { scale, .. } => decimal(array.as_primitive::<Decimal128Type>().value(row), *scale),
        PrimitiveType::Date => date(i64::from(array.as_primitive::<Date32Type>().value(row))),
        PrimitiveType::Time => time(i128::from(array.as_primitive::<Time64MicrosecondType>().value(row)), 6),
        PrimitiveType::Timestamp => timestamp(array.as_primitive::<TimestampMicrosecondType>().value(row), 6),
        PrimitiveType::Timestamptz => timestamp(array.as_primitive::<TimestampMicrosecondType>().value(row), 6) + "Z",
        PrimitiveType::TimestampNs => timestamp(array.as_primitive::<TimestampNanosecondType>().value(row), 9),
        PrimitiveType::TimestamptzNs => timestamp(array.as_primitive::<TimestampNanosecondType>().value(row), 9) + "Z",
        PrimitiveType::String => array.as_string::<i32>().value(row).to_owned(),
        PrimitiveType::Uuid => {
            uuid::Uuid::from_slice(array.as_fixed_size_binary().value(row)).expect("16 bytes").to_string()
        }
        PrimitiveType::Fixed(_) => hex(array.as_fixed_size_binary().value(row)),
        PrimitiveType::Binary | PrimitiveType::Geometry(_) | PrimitiveType::Geography(..) => {
            hex(array.as_binary::<i32>().value(row))
        }
        PrimitiveType::Unknown => String::new(),
    }
}

/// The shortest digits that read back, in Python's notation: an exponent below -4 and from 16 on.
fn float(scientific: &str, nan: bool, infinite: bool, negative: bool) -> String {
    if nan {
        return "NaN".to_owned();
    }
    let sign = if negative { "-" } else { "" };
    if infinite {
        return format!("{sign}Infinity");
    }
    let (mantissa, exponent) = scientific.trim_start_matches('-').split_once('e').expect("an exponent");
    let exponent: i32 = exponent.parse().expect("a number");
    let digits = mantissa.replace('.', "");
    if !(-4..16).contains(&exponent) {
        let fraction = if digits.len() > 1 { format!(".{}", &digits[1..]) } else { String::new() };
        let exponent_sign = if exponent < 0 { '-' } else { '+' };
        return format!("{sign}{}{fraction}e{exponent_sign}{:02}", &digits[..1], exponent.abs());
    }
    if exponent < 0 {
        return format!("{sign}0.{}{digits}", "0".repeat(exponent.unsigned_abs() as usize - 1));
    }
    let whole = exponent as usize + 1;
    let padded = format!("{digits:0<whole$}");
    let (whole, fraction) = padded.split_at(whole);
    format!("{sign}{whole}.{}", if fraction.is_empty() { "0" } else { fraction })
}

fn decimal(unscaled: i128, scale: u8) -> String {
    let scale = usize::from(scale);
    let sign = if unscaled < 0 { "-" } else { "" };
    let digits = format!("{:0>width$}", unscaled.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    if scale == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

fn date(days: i64) -> String {
    let day = chrono::DateTime::from_timestamp(days * 86_400, 0).expect("a date in range");
    day.format("%Y-%m-%d").to_string()
}

fn time(fraction: i128, digits: u32) -> String {
    let unit = 10i128.pow(digits);
    let seconds = fraction / unit;
    format!(
        "{:02}:{:02}:{:02}.{:0width$}",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60,
        fraction % unit,
        width = digits as usize
    )
}

fn timestamp(value: i64, digits: u32) -> String {
    let per_day = 86_400 * 10i64.pow(digits);
    let days = value.div_euclid(per_day);
    format!("{}T{}", date(days), time(i128::from(value.rem_euclid(per_day)), digits))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, b| {
        let _ = write!(text, "{b:02x}");
        text
    })
}

#[test]
fn floats_are_written_as_python_writes_them() {
    let text = |v: f64| float(&format!("{v:e}"), v.is_nan(), v.is_infinite(), v.is_sign_negative());
    for (value, expected) in [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.5, "1.5"),
        (-1e300, "-1e+300"),
        (f64::MAX, "1.7976931348623157e+308"),
        (123456.789, "123456.789"),
        (1e16, "1e+16"),
        (1e15, "1000000000000000.0"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (f64::NEG_INFINITY, "-Infinity"),
    ] {
        assert_eq!(text(value), expected);
    }
    assert_eq!(decimal(-5, 2), "-0.05");
    assert_eq!(timestamp(-1, 6), "1969-12-31T23:59:59.999999");
}
