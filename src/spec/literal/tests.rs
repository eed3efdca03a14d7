use serde_json::{Value, json};

use super::*;
use crate::ErrorKind;
use crate::spec::PrimitiveType as T;

fn decimal(precision: u8, scale: u8) -> T {
    T::Decimal { precision, scale }
}

fn uuid() -> Uuid {
    Uuid::parse_str("f79c3e09-677c-4bbd-a479-3f349cb785e7").unwrap()
}

#[test]
fn binary_of_the_specification() {
    for (value, ty, bytes) in [
        (Literal::Boolean(false), T::Boolean, vec![0]),
        (Literal::Boolean(true), T::Boolean, vec![1]),
        (Literal::Int(-2), T::Int, vec![0xfe, 0xff, 0xff, 0xff]),
        (Literal::Long(258), T::Long, vec![2, 1, 0, 0, 0, 0, 0, 0]),
        (Literal::Float(-0.0), T::Float, vec![0, 0, 0, 0x80]),
        (Literal::Double(1.0), T::Double, vec![0, 0, 0, 0, 0, 0, 0xf0, 0x3f]),
        (Literal::Date(-1), T::Date, vec![0xff; 4]),
        (Literal::Time(1), T::Time, vec![1, 0, 0, 0, 0, 0, 0, 0]),
        (Literal::Timestamp(-1), T::Timestamp, vec![0xff; 8]),
        (Literal::Timestamptz(1), T::Timestamptz, vec![1, 0, 0, 0, 0, 0, 0, 0]),
        (Literal::TimestampNs(1), T::TimestampNs, vec![1, 0, 0, 0, 0, 0, 0, 0]),
        (Literal::TimestamptzNs(1), T::TimestamptzNs, vec![1, 0, 0, 0, 0, 0, 0, 0]),
        (Literal::Decimal(1420), decimal(9, 2), vec![0x05, 0x8c]),
        (Literal::String("aé".into()), T::String, vec![0x61, 0xc3, 0xa9]),
        (Literal::String(String::new()), T::String, vec![]),
        (Literal::Uuid(uuid()), T::Uuid, uuid().as_bytes().to_vec()),
        (Literal::Fixed(vec![1, 2]), T::Fixed(2), vec![1, 2]),
        (Literal::Binary(vec![9]), T::Binary, vec![9]),
    ] {
        assert_eq!(value.to_bytes(), bytes, "{value:?}");
        assert_eq!(Literal::from_bytes(&ty, &bytes).unwrap(), value);
    }
}

#[test]
fn decimals_are_minimal_at_every_power_of_two() {
    for (value, bytes) in [
        (0, vec![0]),
        (127, vec![0x7f]),
        (128, vec![0, 0x80]),
        (-128, vec![0x80]),
        (-129, vec![0xff, 0x7f]),
        (-1, vec![0xff]),
        (-32_768, vec![0x80, 0]),
        (255, vec![0, 0xff]),
    ] {
        assert_eq!(Literal::Decimal(value).to_bytes(), bytes, "{value}");
    }
    for shift in 0..127 {
        for value in [1i128 << shift, (1i128 << shift) - 1, -(1i128 << shift), -(1i128 << shift) - 1] {
            let mut bytes = Literal::Decimal(value).to_bytes();
            assert_eq!(Literal::from_bytes(&decimal(38, 0), &bytes).unwrap(), Literal::Decimal(value));
            let sign = if value < 0 { 0xff } else { 0 };
            let shortest = bytes.len() == 1 || bytes[0] != sign || bytes[1] & 0x80 != sign & 0x80;
            assert!(shortest, "{value}: {bytes:?}");
            // A writer that pads to the width of a fixed is understood.
            bytes.splice(0..0, std::iter::repeat_n(sign, 20));
            assert_eq!(Literal::from_bytes(&decimal(38, 0), &bytes).unwrap(), Literal::Decimal(value));
        }
    }
    for value in [i128::MIN, i128::MAX] {
        assert_eq!(
            Literal::from_bytes(&decimal(38, 0), &Literal::Decimal(value).to_bytes()).unwrap(),
            Literal::Decimal(value)
        );
    }
    // 2^127 needs a seventeenth byte for its sign: out of range, not negative.
    let mut bytes = vec![0u8; 17];
    bytes[1] = 0x80;
    assert!(Literal::from_bytes(&decimal(38, 0), &bytes).is_err());
    assert!(Literal::from_bytes(&decimal(38, 0), &[]).is_err());
}

#[test]
fn binary_is_read_by_its_width() {
    let four = 7i32.to_le_bytes();
    assert_eq!(Literal::from_bytes(&T::Long, &four).unwrap(), Literal::Long(7));
    assert_eq!(Literal::from_bytes(&T::Long, &(-7i32).to_le_bytes()).unwrap(), Literal::Long(-7));
    assert_eq!(Literal::from_bytes(&T::Double, &0.5f32.to_le_bytes()).unwrap(), Literal::Double(0.5));
    assert_eq!(Literal::from_bytes(&T::Timestamp, &four).unwrap(), Literal::Timestamp(7 * 86_400_000_000));
    assert_eq!(Literal::from_bytes(&T::TimestampNs, &four).unwrap(), Literal::TimestampNs(7 * 86_400_000_000_000));
    for (ty, bytes) in [
        (T::TimestampNs, i32::MAX.to_le_bytes().to_vec()),
        (T::Timestamptz, four.to_vec()),
        (T::Int, vec![0; 8]),
        (T::Float, vec![0; 8]),
        (T::Boolean, vec![]),
        (T::String, vec![0xff]),
        (T::Uuid, vec![0; 15]),
        (T::Fixed(2), vec![0; 3]),
        (T::Unknown, vec![]),
    ] {
        assert_eq!(Literal::from_bytes(&ty, &bytes).unwrap_err().kind(), ErrorKind::DataInvalid, "{ty:?}");
    }
}

#[test]
fn json_of_the_specification() {
    for (ty, json) in [
        (T::Boolean, json!(true)),
        (T::Int, json!(34)),
        (T::Long, json!(34)),
        (T::Long, json!(i64::MIN)),
        (T::Float, json!(1.0)),
        (T::Float, json!(0.1)),
        (T::Double, json!(1e300)),
        (T::Double, json!("NaN")),
        (T::Float, json!("-Infinity")),
        (decimal(9, 2), json!("14.20")),
        (decimal(9, 2), json!("-0.05")),
        (decimal(38, 38), json!(format!("0.{}", "9".repeat(38)))),
        (T::Date, json!("2017-11-16")),
        (T::Date, json!("0001-01-01")),
        (T::Date, json!("-0044-03-15")),
        (T::Date, json!("+10000-01-01")),
        (T::Time, json!("22:31:08.123456")),
        (T::Timestamp, json!("2017-11-16T22:31:08.123456")),
        (T::Timestamp, json!("1969-12-31T23:59:59.999999")),
        (T::Timestamptz, json!("2017-11-16T22:31:08.123456+00:00")),
        (T::TimestampNs, json!("2017-11-16T22:31:08.123456789")),
        (T::TimestamptzNs, json!("1969-12-31T23:59:59.999999999+00:00")),
        (T::String, json!("iceberg")),
        (T::Uuid, json!("f79c3e09-677c-4bbd-a479-3f349cb785e7")),
        (T::Fixed(4), json!("000102ff")),
        (T::Binary, json!("000102ff")),
        (T::Binary, json!("")),
    ] {
        let value = Literal::from_json(&ty, &json).unwrap();
        assert_eq!(value.to_json(&ty), json, "{ty:?}");
        assert_eq!(Literal::from_json(&ty, &value.to_json(&ty)).unwrap(), value);
    }
    assert_eq!(Literal::from_json(&T::Float, &json!(0.1)).unwrap(), Literal::Float(0.1));
    assert_eq!(
        Literal::from_json(&T::Timestamp, &json!("1969-12-31T23:59:59.999999")).unwrap(),
        Literal::Timestamp(-1)
    );
}

#[test]
fn json_of_other_writers() {
    for (ty, json, value) in [
        (T::Timestamp, json!("2017-11-16T22:31"), Literal::Timestamp(1_510_871_460_000_000)),
        (T::Timestamptz, json!("1970-01-01T00:00:00.5Z"), Literal::Timestamptz(500_000)),
        (T::Time, json!("00:00"), Literal::Time(0)),
        (decimal(9, 2), json!("1E+3"), Literal::Decimal(100_000)),
        (decimal(9, 2), json!(14.2), Literal::Decimal(1420)),
        (decimal(9, 7), json!("1E-7"), Literal::Decimal(1)),
        (T::Double, json!(1), Literal::Double(1.0)),
    ] {
        assert_eq!(Literal::from_json(&ty, &json).unwrap(), value, "{json}");
    }
    for (ty, json) in [
        (T::Int, json!(2_147_483_648_i64)),
        (T::Int, json!("1")),
        (T::Int, Value::Null),
        (decimal(4, 2), json!("100.00")),
        (decimal(9, 2), json!("1.001")),
        (decimal(9, 2), json!("")),
        (decimal(9, 2), json!("1E999999999")),
        (decimal(9, 2), json!("--1")),
        (T::Date, json!("2017-02-29")),
        (T::Date, json!("2017-13-01")),
        (T::Date, json!("9999999-01-01")),
        (T::Time, json!("24:00:00")),
        (T::Time, json!("00:00:00.0000001")),
        (T::Timestamptz, json!("2017-11-16T22:31:08-08:00")),
        (T::Timestamptz, json!("2017-11-16T22:31:08")),
        (T::TimestampNs, json!("9999-01-01T00:00:00")),
        (T::Uuid, json!("x")),
        (T::Fixed(2), json!("00")),
        (T::Binary, json!("0")),
        (T::Binary, json!("+1")),
        (T::Float, json!(1e300)),
        (T::Unknown, json!("x")),
    ] {
        assert_eq!(Literal::from_json(&ty, &json).unwrap_err().kind(), ErrorKind::DataInvalid, "{ty:?} {json}");
    }
}

#[test]
fn extreme_timestamps_round_trip() {
    for v in [i64::MIN, i64::MIN + 1, -1, 0, i64::MAX] {
        for (value, ty) in [
            (Literal::Timestamp(v), T::Timestamp),
            (Literal::Timestamptz(v), T::Timestamptz),
            (Literal::TimestampNs(v), T::TimestampNs),
            (Literal::TimestamptzNs(v), T::TimestamptzNs),
        ] {
            assert_eq!(Literal::from_json(&ty, &value.to_json(&ty)).unwrap(), value);
        }
    }
    for v in [i32::MIN, i32::MAX] {
        assert_eq!(Literal::from_json(&T::Date, &Literal::Date(v).to_json(&T::Date)).unwrap(), Literal::Date(v));
    }
}

#[test]
fn human_text() {
    for (value, ty, text) in [
        (Literal::Double(1.0), T::Double, "1.0"),
        (Literal::Double(1e7), T::Double, "1.0E7"),
        (Literal::Double(-1.25e-5), T::Double, "-1.25E-5"),
        (Literal::Double(-0.0), T::Double, "-0.0"),
        (Literal::Float(0.1), T::Float, "0.1"),
        (Literal::Float(f32::NAN), T::Float, "NaN"),
        (Literal::Float(f32::NEG_INFINITY), T::Float, "-Infinity"),
        (Literal::Decimal(0), decimal(9, 2), "0.00"),
        (Literal::Decimal(-5), decimal(9, 2), "-0.05"),
        (Literal::Decimal(-5), decimal(9, 0), "-5"),
        (Literal::Decimal(i128::MIN), decimal(38, 0), "-170141183460469231731687303715884105728"),
        (Literal::Date(-1), T::Date, "1969-12-31"),
        (Literal::Time(36_775_038_194), T::Time, "10:12:55.038194"),
        (Literal::Timestamp(0), T::Timestamp, "1970-01-01T00:00"),
        (Literal::Timestamp(1_000_000), T::Timestamp, "1970-01-01T00:00:01"),
        (Literal::Timestamptz(-1), T::Timestamptz, "1969-12-31T23:59:59.999999Z"),
        (Literal::TimestampNs(1_500_000), T::TimestampNs, "1970-01-01T00:00:00.001500"),
        (Literal::TimestamptzNs(-1), T::TimestamptzNs, "1969-12-31T23:59:59.999999999Z"),
        (Literal::Binary(b"M".to_vec()), T::Binary, "TQ=="),
        (Literal::Binary(b"Ma".to_vec()), T::Binary, "TWE="),
        (Literal::Fixed(b"Man\xff".to_vec()), T::Fixed(4), "TWFu/w=="),
        (Literal::Boolean(true), T::Boolean, "true"),
        (Literal::String("a b".into()), T::String, "a b"),
    ] {
        assert_eq!(value.to_human(&ty), text);
    }
}

#[test]
fn promotions() {
    assert_eq!(Literal::Int(-3).promote_to(&T::Long), Some(Literal::Long(-3)));
    assert_eq!(Literal::Float(0.5).promote_to(&T::Double), Some(Literal::Double(0.5)));
    assert_eq!(Literal::Decimal(5).promote_to(&decimal(38, 2)), Some(Literal::Decimal(5)));
    assert_eq!(Literal::Date(-1).promote_to(&T::Timestamp), Some(Literal::Timestamp(-86_400_000_000)));
    assert_eq!(Literal::Date(i32::MAX).promote_to(&T::TimestampNs), None);
    assert_eq!(Literal::Date(1).promote_to(&T::Timestamptz), None);
    assert_eq!(Literal::Int(1).promote_to(&T::Date), Some(Literal::Date(1)));
    assert_eq!(Literal::Long(1).promote_to(&T::Int), None);
    assert_eq!(Literal::Int(1).promote_to(&T::Double), None);
    assert_eq!(Literal::Binary(vec![1]).promote_to(&T::Fixed(2)), None);
    assert_eq!(Literal::Int(1).promote_to(&T::Int), Some(Literal::Int(1)));
}
