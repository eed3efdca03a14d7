//! Catalog, schemas and tables as DataFusion sees them.

use std::sync::Arc;

use calve::provider::{IcebergCatalogProvider, namespace_of, schema_name};
use calve::spec::{
    FormatVersion, NestedField, PartitionField, PartitionSpec, PrimitiveType, StructType, Transform, Type,
};
use datafusion::arrow::array::{Int64Array, StringArray};
use datafusion::catalog::CatalogProvider;

use crate::handmade::{Lake, column, error, query, rows};

async fn lake() -> Lake {
    let lake = Lake::new().await;
    let columns = vec![column(1, "id", PrimitiveType::Long), column(2, "s", PrimitiveType::String)];
    lake.create("t", columns).await;
    let batch = rows(&[
        ("id", PrimitiveType::Long, Arc::new(Int64Array::from(vec![1, 2]))),
        ("s", PrimitiveType::String, Arc::new(StringArray::from(vec!["a", "b"]))),
    ]);
    lake.append("t", &[batch]).await;
    lake
}

#[tokio::test]
async fn lists_schemas_and_tables_inside_a_current_thread_runtime() {
    listing().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn lists_schemas_and_tables_inside_a_multi_threaded_runtime() {
    listing().await;
}

async fn listing() {
    let lake = lake().await;
    lake.catalog.create_namespace(&["a".to_owned()], false).await.unwrap();
    lake.catalog.create_namespace(&["a".to_owned(), "b".to_owned()], false).await.unwrap();
    let ctx = lake.session(|_| {});
    let provider = IcebergCatalogProvider::new(Arc::clone(&lake.catalog), calve::env::Env::system());
    assert_eq!(provider.schema_names(), ["a", "a.b", "db"]);
    assert_eq!(provider.schema("db").unwrap().table_names(), ["t"]);
    assert!(provider.schema("db").unwrap().table_exist("t"));
    assert!(!provider.schema("db").unwrap().table_exist("u"));
    let tables =
        query(&ctx, "SELECT table_schema, table_name FROM information_schema.tables WHERE table_catalog = 'lake'")
            .await;
    assert!(tables.contains(&"db|t".to_owned()), "{tables:?}");
}

#[tokio::test]
async fn nested_namespaces_are_quoted_schemas() {
    let lake = lake().await;
    let namespace = ["a".to_owned(), "b".to_owned()];
    lake.catalog.create_namespace(&namespace[..1], false).await.unwrap();
    lake.catalog.create_namespace(&namespace, false).await.unwrap();
    assert_eq!(schema_name(&namespace).unwrap(), "a.b");
    assert_eq!(namespace_of("a.b").unwrap(), namespace);
    assert_eq!(namespace_of(&schema_name(&["x.y".to_owned()]).unwrap()).unwrap(), ["x.y"]);
    let ctx = lake.session(|_| {});
    let e = error(&ctx, r#"SELECT * FROM "a.b".nope"#).await;
    assert!(e.contains("nope"), "{e}");
}

#[tokio::test]
async fn names_that_do_not_exist() {
    let lake = lake().await;
    let ctx = lake.session(|_| {});
    for (sql, parts) in [
        ("SELECT * FROM nope", &["nope", "not found"][..]),
        ("SELECT * FROM lake.nowhere.t", &["there is no namespace nowhere"]),
        ("SELECT * FROM t$nope", &["lake", "nope"]),
        ("SELECT * FROM nope$rows", &["nope$rows", "not found"]),
        ("SELECT nope FROM t", &["nope"]),
        ("SELECT _pos FROM t", &["_pos"]),
    ] {
        let e = error(&ctx, sql).await;
        for part in parts.iter().filter(|p| **p != "lake") {
            assert!(e.contains(part), "{sql}: {e}");
        }
    }
}

#[tokio::test]
async fn rows_have_their_address() {
    let lake = lake().await;
    let ctx = lake.session(|_| {});
    assert_eq!(query(&ctx, "SELECT * FROM t").await, ["1|a", "2|b"]);
    let all = query(&ctx, "SELECT * FROM t$rows").await;
    assert_eq!(all.len(), 2);
    assert!(all[0].starts_with("1|a|") && all[0].ends_with("|0|0|0|1") && all[1].ends_with("|1|0|1|1"), "{all:?}");
    let described = query(&ctx, "DESCRIBE t$rows").await;
    assert_eq!(described.len(), 7, "{described:?}");
    let file = query(&ctx, "SELECT DISTINCT _file FROM t$rows").await;
    assert!(file.len() == 1 && file[0].ends_with(".parquet"), "{file:?}");
    let same = query(&ctx, &format!("SELECT count(*) FROM t$rows WHERE _file = '{}'", file[0])).await;
    assert_eq!(same, ["2"]);
}

#[tokio::test]
async fn partition_values_are_a_struct_of_all_specs() {
    let lake = Lake::new().await;
    let columns = vec![column(1, "id", PrimitiveType::Long), column(2, "s", PrimitiveType::String)];
    let field = |source_id, field_id, name: &str, transform| PartitionField {
        source_id,
        field_id,
        name: name.to_owned(),
        transform,
    };
    let spec = PartitionSpec {
        spec_id: 0,
        fields: vec![field(2, 1000, "s", Transform::Identity), field(1, 1001, "id_bucket", Transform::Bucket(2))],
    };
    lake.create_with("p", FormatVersion::V2, columns, spec, &[]).await;
    let batch = rows(&[
        ("id", PrimitiveType::Long, Arc::new(Int64Array::from(vec![1, 2, 3]))),
        ("s", PrimitiveType::String, Arc::new(StringArray::from(vec![Some("a"), None, Some("a")]))),
    ]);
    lake.append("p", &[batch]).await;
    let ctx = lake.session(|o| o.execution.target_partitions = 4);
    let got = query(&ctx, "SELECT id, _partition['s'], _partition['id_bucket'] IN (0, 1), _spec_id FROM p$rows").await;
    assert_eq!(got, ["1|a|true|0", "2||true|0", "3|a|true|0"]);
    let got = query(&ctx, "SELECT id FROM p$rows WHERE _partition['s'] = 'a'").await;
    assert_eq!(got, ["1", "3"]);
    let got = query(&ctx, "SELECT _partition['s'] AS s, count(*) FROM p$rows GROUP BY _partition['s']").await;
    assert_eq!(got, ["a|2", "|1"]);
}

#[tokio::test]
async fn a_table_keeps_its_own_column_of_a_hidden_name() {
    let lake = Lake::new().await;
    lake.create("own", vec![column(1, "_pos", PrimitiveType::String), column(2, "id", PrimitiveType::Long)]).await;
    let batch = rows(&[
        ("_pos", PrimitiveType::String, Arc::new(StringArray::from(vec!["mine"]))),
        ("id", PrimitiveType::Long, Arc::new(Int64Array::from(vec![7]))),
    ]);
    lake.append("own", &[batch]).await;
    let ctx = lake.session(|_| {});
    assert_eq!(query(&ctx, "SELECT _pos, id, _spec_id FROM own$rows").await, ["mine|7|0"]);
}

#[tokio::test]
async fn writing_hooks_refuse() {
    let lake = lake().await;
    let ctx = lake.session(|_| {});
    for sql in [
        "DELETE FROM t",
        "DELETE FROM t WHERE id IN (SELECT id FROM t)",
        "UPDATE t SET s = 'x'",
        "TRUNCATE TABLE t",
        "INSERT INTO t VALUES (3, 'c')",
        "MERGE INTO t USING (SELECT 1 AS k) src ON t.id = src.k WHEN MATCHED THEN DELETE",
    ] {
        let e = error(&ctx, sql).await;
        assert!(e.contains("unsupported") && e.contains("install it when the session is built"), "{sql}: {e}");
    }
    assert_eq!(query(&ctx, "SELECT * FROM t").await, ["1|a", "2|b"]);
}

#[tokio::test]
async fn definitions_name_all_that_makes_a_table() {
    let lake = Lake::new().await;
    let nested = Type::Struct(StructType {
        fields: vec![Arc::new(column(3, "x", PrimitiveType::Int)), Arc::new(column(4, "Y z", PrimitiveType::Uuid))],
    });
    let mut id = NestedField::new(1, "id", true, Type::Primitive(PrimitiveType::Long));
    id.doc = Some("it's the key".to_owned());
    let columns = vec![
        id,
        NestedField::new(2, "st", false, nested),
        column(5, "ts", PrimitiveType::Timestamptz),
        column(6, "Amount", PrimitiveType::Decimal { precision: 9, scale: 2 }),
    ];
    let field =
        |source_id, name: &str, transform| PartitionField { source_id, field_id: 0, name: name.to_owned(), transform };
    let spec = PartitionSpec {
        spec_id: 0,
        fields: vec![
            field(5, "ts_day", Transform::Day),
            field(1, "id_bucket", Transform::Bucket(8)),
            field(6, "a", Transform::Truncate(10)),
        ],
    };
    lake.create_with("d", FormatVersion::V2, columns, spec, &[("write.delete.mode", "merge-on-read")]).await;
    let ctx = lake.session(|_| {});
    let got = crate::handmade::batches(&ctx, "SHOW CREATE TABLE d").await;
    let text = datafusion::arrow::util::pretty::pretty_format_batches(&got).unwrap().to_string();
    for part in [
        "CREATE TABLE lake.db.d (",
        "id BIGINT NOT NULL COMMENT 'it''s the key'",
        r#"st STRUCT<x INT, "Y z" UUID>"#,
        "ts TIMESTAMP WITH TIME ZONE",
        r#""Amount" DECIMAL(9, 2)"#,
        r#"PARTITIONED BY (day(ts), bucket(8, id), truncate(10, "Amount"))"#,
        "'format-version' = '2'",
        "'write.delete.mode' = 'merge-on-read'",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}
