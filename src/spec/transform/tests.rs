use super::*;
use crate::ErrorKind;

fn json(ty: PrimitiveType, text: &str) -> Literal {
    Literal::from_json(&ty, &serde_json::Value::String(text.into())).unwrap()
}

fn int_of(transform: &Transform, value: &Literal) -> i32 {
    match transform.apply(value).unwrap() {
        Some(Literal::Int(v) | Literal::Date(v)) => v,
        other => panic!("{transform} of {value:?} gave {other:?}"),
    }
}

/// Every vector of "Appendix B" for a type that can be bucketed.
#[test]
fn hashes_of_the_specification() {
    use PrimitiveType as T;
    let dec = T::Decimal { precision: 9, scale: 2 };
    for (value, hash) in [
        (Literal::Int(34), 2_017_239_379),
        (Literal::Long(34), 2_017_239_379),
        (json(dec, "14.20"), -500_754_589),
        (json(T::Date, "2017-11-16"), -653_330_422),
        (json(T::Time, "22:31:08"), -662_762_989),
        (json(T::Timestamp, "2017-11-16T22:31:08"), -2_047_944_441),
        (json(T::Timestamp, "2017-11-16T22:31:08.000001"), -1_207_196_810),
        (json(T::Timestamptz, "2017-11-16T22:31:08Z"), -2_047_944_441),
        (json(T::Timestamptz, "2017-11-16T22:31:08.000001Z"), -1_207_196_810),
        (json(T::TimestampNs, "2017-11-16T22:31:08"), -2_047_944_441),
        (json(T::TimestampNs, "2017-11-16T22:31:08.000001001"), -1_207_196_810),
        (json(T::TimestamptzNs, "2017-11-16T22:31:08Z"), -2_047_944_441),
        (json(T::TimestamptzNs, "2017-11-16T22:31:08.000001001Z"), -1_207_196_810),
        (Literal::String("iceberg".into()), 1_210_000_089),
        (json(T::Uuid, "f79c3e09-677c-4bbd-a479-3f349cb785e7"), 1_488_055_340),
        (Literal::Fixed(vec![0, 1, 2, 3]), -188_683_207),
        (Literal::Binary(vec![0, 1, 2, 3]), -188_683_207),
    ] {
        assert_eq!(bucket_hash(&value), Some(hash), "{value:?}");
    }
    assert_eq!(bucket_hash(&Literal::Double(1.0)), None);
}

/// Values of the reference implementation of MurmurHash3_x86_32 for every tail length.
#[test]
fn murmur3_tails() {
    for (text, hash) in [
        ("", 0u32),
        ("a", 0x3c25_69b2),
        ("ab", 0x9bbf_d75f),
        ("abc", 0xb3dd_93fa),
        ("abcd", 0x43ed_676a),
        ("Hello, world!", 0xc036_3e43),
    ] {
        assert_eq!(murmur3::hash(text.as_bytes()).cast_unsigned(), hash, "{text}");
    }
}

#[test]
fn buckets_drop_the_sign_bit() {
    assert_eq!(int_of(&Transform::Bucket(16), &Literal::Int(34)), 2_017_239_379 % 16);
    assert_eq!(int_of(&Transform::Bucket(100), &Literal::Date(17_486)), (-653_330_422 & i32::MAX) % 100,);
    assert_eq!(bucket_of(i32::MIN, 7), 0);
    // Nanoseconds floor to microseconds, before 1970 too.
    assert_eq!(bucket_hash(&Literal::TimestampNs(-1)), bucket_hash(&Literal::Timestamp(-1)));
}

#[test]
fn spelling_round_trips() {
    for text in ["identity", "bucket[16]", "truncate[4]", "year", "month", "day", "hour", "void", "zorder[2]", "bucket"]
    {
        assert_eq!(Transform::parse(text).unwrap().to_string(), text);
    }
    assert_eq!(Transform::parse("Bucket[5]").unwrap(), Transform::Bucket(5));
    assert_eq!(Transform::parse("zorder[2]").unwrap(), Transform::Unknown("zorder[2]".into()));
    for text in ["bucket[0]", "bucket[-1]", "truncate[]", "truncate[4294967297]", "bucket[x]"] {
        assert_eq!(Transform::parse(text).unwrap_err().kind(), ErrorKind::DataInvalid, "{text}");
    }
}

#[test]
fn time_transforms_floor() {
    let ts = |text: &str| json(PrimitiveType::Timestamp, text);
    for (text, year, month, day, hour) in [
        ("1970-01-01T00:00:00", 0, 0, 0, 0),
        ("1969-12-31T23:59:59.999999", -1, -1, -1, -1),
        ("1969-12-31T00:00:00", -1, -1, -1, -24),
        ("1969-01-01T00:00:00", -1, -12, -365, -8760),
        ("1968-12-31T23:59:59.999999", -2, -13, -366, -8761),
        ("2017-12-01T10:30:00", 47, 575, 17_501, 420_034),
        ("0001-01-01T00:00:00", -1969, -23_628, -719_162, -17_259_888),
        ("9999-12-31T23:59:59.999999", 8029, 96_359, 2_932_896, 70_389_527),
    ] {
        let value = ts(text);
        assert_eq!(int_of(&Transform::Year, &value), year, "{text}");
        assert_eq!(int_of(&Transform::Month, &value), month, "{text}");
        assert_eq!(int_of(&Transform::Day, &value), day, "{text}");
        assert_eq!(int_of(&Transform::Hour, &value), hour, "{text}");
        let date = Literal::Date(day);
        assert_eq!(int_of(&Transform::Year, &date), year);
        assert_eq!(int_of(&Transform::Month, &date), month);
        assert_eq!(int_of(&Transform::Day, &date), day);
    }
    for value in [Literal::Timestamptz(-1), Literal::TimestampNs(-1), Literal::TimestamptzNs(-1)] {
        for transform in [Transform::Year, Transform::Month, Transform::Day, Transform::Hour] {
            assert_eq!(int_of(&transform, &value), -1, "{transform} {value:?}");
        }
    }
    assert!(Transform::Hour.apply(&Literal::Date(0)).is_err());
}

#[test]
fn far_timestamps() {
    for micros in [i64::MIN, i64::MAX] {
        let value = Literal::Timestamp(micros);
        assert_eq!(Transform::Hour.apply(&value).unwrap_err().kind(), ErrorKind::InvalidInput);
        for transform in [Transform::Year, Transform::Month, Transform::Day] {
            assert!(transform.apply(&value).is_ok());
        }
        assert!(Transform::Hour.apply(&Literal::TimestampNs(micros)).is_ok());
    }
    for days in [i32::MIN, i32::MAX] {
        assert_eq!(int_of(&Transform::Day, &Literal::Date(days)), days);
        assert!(Transform::Year.apply(&Literal::Date(days)).is_ok());
    }
}

#[test]
fn truncates() {
    let truncated = |value: Literal, width| Transform::Truncate(width).apply(&value).unwrap().unwrap();
    for (value, want) in
        [(1, 0), (-1, -10), (0, 0), (9, 0), (10, 10), (-10, -10), (-11, -20), (i32::MAX, 2_147_483_640)]
    {
        assert_eq!(truncated(Literal::Int(value), 10), Literal::Int(want));
        assert_eq!(truncated(Literal::Long(value.into()), 10), Literal::Long(want.into()));
    }
    assert_eq!(truncated(Literal::Decimal(1065), 50), Literal::Decimal(1050));
    assert_eq!(truncated(Literal::Decimal(-5), 50), Literal::Decimal(-50));
    assert_eq!(truncated(Literal::Int(-7), 2_147_483_647), Literal::Int(-2_147_483_647));
    for value in [Literal::Int(i32::MIN), Literal::Long(i64::MIN), Literal::Decimal(i128::MIN)] {
        assert_eq!(Transform::Truncate(10).apply(&value).unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(Transform::Truncate(8).apply(&value).unwrap(), Some(value));
    }
    let text = |s: &str| Literal::String(s.into());
    assert_eq!(truncated(text("iceberg"), 3), text("ice"));
    assert_eq!(truncated(text("a\u{1F600}b\u{1F600}"), 2), text("a\u{1F600}"));
    assert_eq!(truncated(text("ab"), 2), text("ab"));
    assert_eq!(truncated(text(""), 2), text(""));
    assert_eq!(truncated(Literal::Binary(vec![1, 2, 3]), 2), Literal::Binary(vec![1, 2]));
    assert!(Transform::Truncate(2).apply(&Literal::Fixed(vec![1])).is_err());
}

#[test]
fn void_and_unknown() {
    assert_eq!(Transform::Void.apply(&Literal::Int(1)).unwrap(), None);
    let unknown = Transform::Unknown("zorder".into());
    assert_eq!(unknown.apply(&Literal::Int(1)).unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(unknown.result_type(&PrimitiveType::Int), None);
    assert_eq!(Transform::Day.result_type(&PrimitiveType::Timestamp), Some(PrimitiveType::Date));
    assert_eq!(Transform::Bucket(2).result_type(&PrimitiveType::Double), None);
    assert_eq!(Transform::Hour.result_type(&PrimitiveType::Date), None);
}

#[test]
fn partition_text() {
    use PrimitiveType as T;
    let int = |v| Some(Literal::Int(v));
    for (transform, value, ty, text) in [
        (Transform::Year, int(47), T::Int, "2017"),
        (Transform::Year, int(-1969), T::Int, "0001"),
        (Transform::Month, int(575), T::Int, "2017-12"),
        (Transform::Month, int(-1), T::Int, "1969-12"),
        (Transform::Day, Some(Literal::Date(17_501)), T::Date, "2017-12-01"),
        (Transform::Day, int(-1), T::Int, "1969-12-31"),
        (Transform::Hour, int(420_034), T::Int, "2017-12-01-10"),
        (Transform::Hour, int(-1), T::Int, "1969-12-31-23"),
        (Transform::Bucket(4), int(3), T::Int, "3"),
        (Transform::Identity, Some(Literal::Decimal(-685)), T::Decimal { precision: 9, scale: 2 }, "-6.85"),
        (Transform::Truncate(5), Some(Literal::String("a/b c".into())), T::String, "a/b c"),
        (
            Transform::Identity,
            Some(Literal::Timestamptz(1_512_151_975_038_194)),
            T::Timestamptz,
            "2017-12-01T18:12:55.038194Z",
        ),
        (Transform::Void, None, T::Int, "null"),
    ] {
        assert_eq!(transform.to_human(value.as_ref(), &ty), text);
    }
}
