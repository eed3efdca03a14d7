use super::schema::{CreateNamespace, DropTable};
use super::*;
use crate::ErrorKind;
use crate::session::statement::split_statements;
use crate::spec::{PrimitiveType, Transform, Type};

fn with_cursor<T>(sql: &str, parse: impl FnOnce(&mut Cursor<'_>) -> Result<T>) -> Result<T> {
    let statements = split_statements(sql)?;
    assert_eq!(statements.len(), 1, "{sql}");
    parse(&mut Cursor::new(statements[0].tokens(), true))
}

fn table(sql: &str) -> CreateTable {
    with_cursor(sql, parse_create_table).unwrap_or_else(|e| panic!("{sql}: {e}"))
}

fn error(sql: &str) -> String {
    let e = with_cursor(sql, parse_create_table).expect_err(sql);
    assert!(matches!(e.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported), "{e}");
    e.message().to_owned()
}

fn type_of(spelling: &str) -> Type {
    let t = table(&format!("CREATE TABLE t (c {spelling})"));
    t.columns[0].column_type.clone()
}

fn primitive(spelling: &str) -> PrimitiveType {
    type_of(spelling).as_primitive().cloned().unwrap_or_else(|| panic!("{spelling}"))
}

#[test]
fn every_clause_in_one_statement() {
    let t = table(
        "create table if not exists Lake.\"Sales 1\".T$x (
           id BIGINT NOT NULL COMMENT 'the key', -- a comment
           \"Mixed Case\" string,
           s STRUCT<a INT NOT NULL, b: ARRAY<STRING> COMMENT 'it''s'> NULL
         ) USING iceberg
         PARTITIONED BY (bucket(16, id), months(s.a) AS m, \"Mixed Case\")
         LOCATION 's3://b/t' COMMENT 'a table'
         TBLPROPERTIES ('format-version' = '3', write.delete.mode = 'merge-on-read', commit.retry.num-retries = 7, gc.enabled=FALSE)",
    );
    assert!(t.if_not_exists && !t.or_replace);
    assert_eq!(t.name, Name(vec!["lake".into(), "Sales 1".into(), "t$x".into()]));
    assert_eq!(t.columns.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(), ["id", "Mixed Case", "s"]);
    assert!(t.columns[0].required && !t.columns[1].required && !t.columns[2].required);
    assert_eq!(t.columns[0].comment.as_deref(), Some("the key"));
    let Type::Struct(s) = &t.columns[2].column_type else { panic!("not a struct") };
    assert!(s.fields[0].required);
    assert_eq!(s.fields[1].doc.as_deref(), Some("it's"));
    assert!(matches!(s.fields[1].field_type, Type::List(_)));
    assert_eq!(
        t.partitioning,
        [
            PartitionTerm { transform: Transform::Bucket(16), column: Name(vec!["id".into()]), name: None },
            PartitionTerm {
                transform: Transform::Month,
                column: Name(vec!["s".into(), "a".into()]),
                name: Some("m".into())
            },
            PartitionTerm { transform: Transform::Identity, column: Name(vec!["Mixed Case".into()]), name: None },
        ]
    );
    assert_eq!(t.location.as_deref(), Some("s3://b/t"));
    assert_eq!(t.comment.as_deref(), Some("a table"));
    assert_eq!(
        t.properties.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect::<Vec<_>>(),
        [
            ("commit.retry.num-retries", "7"),
            ("format-version", "3"),
            ("gc.enabled", "false"),
            ("write.delete.mode", "merge-on-read"),
        ]
    );
    assert!(t.query.is_none());
}

#[test]
fn primitive_types_in_all_spellings() {
    use PrimitiveType::*;
    let spellings: &[(PrimitiveType, &[&str])] = &[
        (Boolean, &["boolean", "BOOL"]),
        (Int, &["int", "INTEGER", "int4", "smallint", "tinyint", "int(11)"]),
        (Long, &["bigint", "long", "int8"]),
        (Float, &["float", "real", "float4", "float(24)"]),
        (Double, &["double", "double precision", "float8", "float(53)"]),
        (Decimal { precision: 38, scale: 10 }, &["decimal", "numeric"]),
        (Decimal { precision: 9, scale: 0 }, &["decimal(9)", "dec(9,0)"]),
        (Decimal { precision: 38, scale: 38 }, &["numeric(38, 38)"]),
        (Date, &["date"]),
        (Time, &["time", "time(6)", "time without time zone"]),
        (Timestamp, &["timestamp", "timestamp(6)", "timestamp without time zone", "timestamp_ntz", "datetime"]),
        (Timestamptz, &["timestamptz", "timestamp with time zone", "timestamp(3) with time zone", "timestamp_ltz"]),
        (TimestampNs, &["timestamp_ns", "timestamp(9)"]),
        (TimestamptzNs, &["timestamptz_ns", "timestamp(9) with time zone"]),
        (String, &["string", "text", "varchar", "varchar(10)", "char(3)", "character varying(5)"]),
        (Uuid, &["uuid"]),
        (Fixed(16), &["fixed(16)", "fixed[16]", "binary(16)"]),
        (Binary, &["binary", "bytea", "varbinary", "varbinary(7)", "blob"]),
        (Unknown, &["unknown", "void"]),
        (Geometry(None), &["geometry"]),
        (Geometry(Some("srid:4326".into())), &["geometry(srid:4326)", "geometry('srid:4326')"]),
        (Geography(Some("OGC:CRS84".into()), Some("karney".into())), &["geography(OGC:CRS84, karney)"]),
    ];
    for (expected, spellings) in spellings {
        for spelling in *spellings {
            assert_eq!(&primitive(spelling), expected, "{spelling}");
        }
    }
    assert_eq!(type_of("variant"), Type::Variant);
}

#[test]
fn nested_types_in_all_spellings() {
    let list = type_of("array<int>");
    for same in ["list<int>", "int[]", "ARRAY(int)", "array<int null>"] {
        assert_eq!(type_of(same), list, "{same}");
    }
    assert_eq!(type_of("array<array<int>>"), type_of("int[][]"));
    assert_eq!(type_of("struct<a int, b string>"), type_of("row(a int, b: string)"));
    let deep = type_of("map<string, array<struct<x: map<int, array<double>>>>>");
    let Type::Map(map) = deep else { panic!("not a map") };
    assert!(map.key.required && !map.value.required);
    let Type::List(list) = &map.value.field_type else { panic!("not a list") };
    let Type::Struct(fields) = &list.element.field_type else { panic!("not a struct") };
    assert!(matches!(fields.fields[0].field_type, Type::Map(_)));
    let Type::List(list) = type_of("array<int not null>") else { panic!("not a list") };
    assert!(list.element.required);
}

#[test]
fn transforms_in_all_spellings() {
    for (spelling, expected) in [
        ("c", Transform::Identity),
        ("identity(c)", Transform::Identity),
        ("year(c)", Transform::Year),
        ("YEARS(c)", Transform::Year),
        ("month(c)", Transform::Month),
        ("day(c)", Transform::Day),
        ("date(c)", Transform::Day),
        ("hours(c)", Transform::Hour),
        ("date_hour(c)", Transform::Hour),
        ("bucket(8, c)", Transform::Bucket(8)),
        ("bucket(c, 8)", Transform::Bucket(8)),
        ("truncate(3, c)", Transform::Truncate(3)),
        ("void(c)", Transform::Void),
    ] {
        let t = table(&format!("create table t (c date) partitioned by ({spelling})"));
        assert_eq!(t.partitioning[0].transform, expected, "{spelling}");
        assert_eq!(t.partitioning[0].column, Name(vec!["c".into()]), "{spelling}");
    }
    // a column may be called like a transform
    let t = table("create table t (year int, month int) partitioned by (year, month)");
    assert_eq!(t.partitioning[1].column, Name(vec!["month".into()]));
}

#[test]
fn create_as_takes_the_rest_as_query() {
    for sql in [
        "create table t as select 1 as a",
        "create table t partitioned by (month(d)) as with x as (select 1) select * from x",
        "create table t tblproperties ('a' = 'b') select 1",
        "create table t as (select 1)",
        "create table t as values (1, 2)",
    ] {
        let t = table(sql);
        assert!(t.query.is_some_and(|q| q.len() > 1), "{sql}");
        assert!(t.columns.is_empty(), "{sql}");
    }
}

#[test]
fn errors_say_what_was_expected_and_where() {
    for (sql, parts) in [
        ("create table t (a int", &["expected", "found the end of the statement", "line 1, column 22"][..]),
        ("create table t (a int,\n  b nosuch)", &["expected a type, found nosuch", "line 2, column 5"]),
        ("create table t (a int b int)", &["expected NOT NULL, DEFAULT, COMMENT, a comma or ), found b", "column 23"]),
        ("create table t (a int, A string)", &["column a is there twice", "column 24"]),
        ("create table t (a struct<x int, x int>)", &["field x is there twice"]),
        ("create table t (a decimal(39, 2))", &["expected a precision", "39"]),
        ("create table t (a decimal(5, 6))", &["scale at most the precision"]),
        ("create table t (a decimal(0))", &["precision is 1 to 38"]),
        ("create table t (a uint32)", &["no unsigned"]),
        ("create table t (a int unsigned)", &["UNSIGNED", "column 23"]),
        ("create table t (a array<int)", &["expected >"]),
        ("create table t (a map<int>)", &["expected a comma between key and value type"]),
        ("create table t (a fixed)", &["fixed needs a length"]),
        ("create table t (a time with time zone)", &["TIME WITH TIME ZONE"]),
        ("create table t (a int, primary key (a))", &["PRIMARY", "no constraints"]),
        ("create table t (a int) partitioned by (bucket(a))", &["bucket needs a number", "column 40"]),
        ("create table t (a int) partitioned by (bucket(0, a))", &["bucket needs a number of at least 1"]),
        ("create table t (a int) partitioned by (month(3, a))", &["takes a column and no number"]),
        ("create table t (a int) partitioned by (week(a))", &["week is no partition transform"]),
        ("create table t (a int) location here", &["expected a location in quotes, found here"]),
        ("create table t (a int) location 'x' location 'y'", &["LOCATION is given twice", "column 37"]),
        ("create table t (a int) tblproperties ('a' = 'b', 'a' = 'c')", &["property a is given twice"]),
        ("create table t (a int) tblproperties ('a' = b)", &["expected a property value", "found b"]),
        ("create table t (a int) using parquet", &["expected iceberg, found parquet"]),
        (
            "create table t (a int) clustered by (a)",
            &["expected PARTITIONED BY, ORDERED BY, LOCATION", "found clustered"],
        ),
        ("create table t", &["expected a column list or AS query"]),
        ("create table t ()", &["expected a column name, found )"]),
        ("create table t as delete from x", &["expected a query after AS, found delete"]),
        ("create table (a int)", &["expected a table name, found ("]),
        ("create table a. (a int)", &["expected the next part of a table name"]),
        ("create table if exists t (a int)", &["expected NOT, found exists"]),
        ("create table t (a int default)", &["expected a constant", "found )"]),
    ] {
        let message = error(sql);
        for part in parts {
            assert!(message.contains(part), "{sql}\n  gave: {message}\n  lacks: {part}");
        }
    }
}

#[test]
fn depth_is_bounded() {
    let deep = format!("create table t (a {}int{})", "array<".repeat(100_000), ">".repeat(100_000));
    assert!(error(&deep).contains("nest deeper than"));
}

#[test]
fn names_keep_quotes_and_fold_case() {
    let t = table("create table `A b`.\"x\"\"y\".Ü (a int)");
    assert_eq!(t.name.0[0], "A b");
    assert_eq!(t.name.0[2], "ü");
    let statements = split_statements("create table MyT (C int)").unwrap();
    let t = parse_create_table(&mut Cursor::new(statements[0].tokens(), false)).unwrap();
    assert_eq!((t.name.0[0].as_str(), t.columns[0].name.as_str()), ("MyT", "C"));
}

#[test]
fn quoting_reads_back() {
    for name in ["plain", "t$rows", "Mixed", "with space", "a.b", "q\"q", "select", "1a", "", "ünï"] {
        if name.is_empty() {
            continue;
        }
        let t = table(&format!("create table {} (a int)", quote_name(name)));
        assert_eq!(t.name.0, [name], "{name}");
    }
    assert_eq!(quote_name("abc_1"), "abc_1");
}

#[test]
fn schemas_and_drops() {
    let c = with_cursor("create schema if not exists lake.\"A.b\"", parse_create_namespace).unwrap();
    assert_eq!(c, CreateNamespace { name: Name(vec!["lake".into(), "A.b".into()]), if_not_exists: true });
    assert!(!with_cursor("CREATE NAMESPACE x", parse_create_namespace).unwrap().if_not_exists);
    let d = with_cursor("drop schema if exists x cascade", parse_drop_namespace).unwrap();
    assert!(d.if_exists && d.cascade);
    let d = with_cursor("drop table if exists a.t purge", parse_drop_table).unwrap();
    assert_eq!(d, DropTable { name: Name(vec!["a".into(), "t".into()]), if_exists: true, purge: true });
    assert!(!with_cursor("drop table t", parse_drop_table).unwrap().purge);
    let n = with_cursor("show create table \"T\"", parse_show_create_table).unwrap();
    assert_eq!(n, Name(vec!["T".into()]));
    for (sql, part) in [("drop table a, b", "one table only"), ("drop table t cascade", "expected PURGE or the end")] {
        let e = with_cursor(sql, parse_drop_table).unwrap_err();
        assert!(e.message().contains(part), "{e}");
    }
}
