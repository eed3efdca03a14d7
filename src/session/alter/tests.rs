//! Plans of alterations that SQL tests cannot reach.

use std::collections::BTreeMap;

use super::*;
use crate::ErrorKind;
use crate::session::parser::{Cursor, parse_alter_table};
use crate::session::statement::split_statements;
use crate::spec::{
    FormatVersion, NestedField, NewTable, PartitionField, PartitionSpec, PrimitiveType, SortOrder,
    TableMetadataBuilder, Transform,
};

fn table(version: FormatVersion, properties: &[(&str, &str)]) -> TableMetadata {
    let schema = Schema::new(
        0,
        vec![
            NestedField::new(1, "id", true, PrimitiveType::Int),
            NestedField::new(2, "day", false, PrimitiveType::Date),
            NestedField::new(3, "Text", false, PrimitiveType::String),
        ],
    );
    let field = |source_id, transform: Transform, name: &str| PartitionField {
        source_id,
        field_id: 0,
        name: name.to_string(),
        transform,
    };
    let fields = vec![field(2, Transform::Month, "day_month"), field(1, Transform::Bucket(4), "id_bucket")];
    let new = NewTable {
        uuid: uuid::Uuid::from_u128(7),
        location: "memory:///t".to_string(),
        format_version: version,
        schema,
        spec: PartitionSpec { spec_id: 0, fields },
        sort_order: SortOrder::unsorted(),
        properties: properties.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect::<BTreeMap<_, _>>(),
    };
    TableMetadataBuilder::new_table(new).unwrap().build(1).unwrap()
}

fn plan(metadata: &TableMetadata, sql: &str) -> Result<Vec<TableUpdate>> {
    let statements = split_statements(&format!("ALTER TABLE t {sql}")).unwrap();
    let alter = parse_alter_table(&mut Cursor::new(statements[0].tokens(), true))?;
    plan_change(metadata, &alter.change, &[])
}

fn altered(metadata: &TableMetadata, sql: &str) -> TableMetadata {
    let updates = plan(metadata, sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
    let builder = TableMetadataBuilder::from(metadata.clone(), None);
    builder.apply_all(updates).and_then(|b| b.build(2)).unwrap_or_else(|e| panic!("{sql}: {e}"))
}

#[test]
fn dropped_partition_fields_become_void_in_version_1_and_go_later() {
    let names = |metadata: &TableMetadata| {
        let spec = metadata.default_spec().unwrap();
        spec.fields.iter().map(|f| format!("{} {} {}", f.field_id, f.name, f.transform)).collect::<Vec<_>>()
    };
    let v1 = altered(&table(FormatVersion::V1, &[]), "DROP PARTITION FIELD day_month");
    assert_eq!(names(&v1), ["1000 day_month void", "1001 id_bucket bucket[4]"]);
    let again = altered(&v1, "ADD PARTITION FIELD month(day)");
    assert_eq!(names(&again), ["1000 day_month_1000 void", "1001 id_bucket bucket[4]", "1002 day_month month"]);
    let v2 = altered(&table(FormatVersion::V2, &[]), "DROP PARTITION FIELD month(day)");
    assert_eq!(names(&v2), ["1001 id_bucket bucket[4]"]);
    // the field that was there before gets its id back
    assert_eq!(
        names(&altered(&v2, "ADD PARTITION FIELD month(day)")),
        ["1001 id_bucket bucket[4]", "1000 day_month month"]
    );
    let other = altered(&v2, "REPLACE PARTITION FIELD bucket(4, id) WITH truncate(3, \"Text\")");
    assert_eq!(names(&other), ["1002 Text_trunc_3 truncate[3]"]);
}

#[test]
fn a_date_is_not_promoted_where_its_partitions_would_change() {
    let v3 = table(FormatVersion::V3, &[]);
    plan(&v3, "ALTER COLUMN day TYPE TIMESTAMP").unwrap();
    let by_day = altered(&v3, "ADD PARTITION FIELD day");
    let error = plan(&by_day, "ALTER COLUMN day TYPE TIMESTAMP").unwrap_err();
    assert!(error.message().contains("partition field day would get other values"), "{error}");
    // an older spec has files too
    let dropped = altered(&by_day, "DROP PARTITION FIELD day");
    assert_eq!(plan(&dropped, "ALTER COLUMN day TYPE TIMESTAMP").unwrap_err().kind(), ErrorKind::InvalidInput);
    plan(&by_day, "ALTER COLUMN id TYPE BIGINT").unwrap();
}

#[test]
fn properties_follow_the_column_they_name() {
    let properties = [
        ("write.metadata.metrics.column.Text", "none"),
        ("write.parquet.bloom-filter-enabled.column.Text", "true"),
        ("write.metadata.metrics.column.Textile", "full"),
    ];
    let renamed = altered(&table(FormatVersion::V2, &properties), "RENAME COLUMN text TO words");
    let names = |metadata: &TableMetadata| metadata.properties.keys().cloned().collect::<Vec<_>>();
    assert_eq!(
        names(&renamed),
        [
            "write.metadata.metrics.column.Textile",
            "write.metadata.metrics.column.words",
            "write.parquet.bloom-filter-enabled.column.words"
        ]
    );
    assert_eq!(names(&altered(&renamed, "DROP COLUMN words")), ["write.metadata.metrics.column.Textile"]);
}

#[test]
fn what_is_so_already_changes_nothing() {
    let v2 = table(FormatVersion::V2, &[("a", "b")]);
    for sql in [
        "ALTER COLUMN id TYPE INT",
        "ALTER COLUMN id FIRST",
        "RENAME COLUMN day TO day",
        "SET TBLPROPERTIES ('a' = 'b', 'format-version' = '2')",
        "UNSET TBLPROPERTIES IF EXISTS ('c')",
        "SET LOCATION 'memory:///t/'",
        "ALTER COLUMN id SET NOT NULL",
    ] {
        assert_eq!(plan(&v2, sql).unwrap(), [], "{sql}");
    }
}

#[test]
fn nested_fields_of_an_added_column_get_ids_behind_its_own() {
    let metadata = altered(&table(FormatVersion::V2, &[]), "ADD COLUMN s STRUCT<a INT, l ARRAY<STRUCT<b INT>>>");
    let schema = metadata.current_schema().unwrap();
    let ids: Vec<i32> = ["s", "s.a", "s.l", "s.l.element", "s.l.element.b"]
        .iter()
        .map(|n| schema.field_by_name(n).unwrap().id)
        .collect();
    assert_eq!(ids, [4, 5, 6, 7, 8]);
    assert_eq!(metadata.last_column_id, 8);
    let again = altered(&altered(&metadata, "DROP COLUMN s"), "ADD COLUMN s INT");
    assert_eq!(again.current_schema().unwrap().field_by_name("s").unwrap().id, 9, "no id is given out twice");
}

#[test]
fn orders_and_distributions_are_those_of_spark() {
    let v2 = table(FormatVersion::V2, &[]);
    for (sql, fields, mode) in [
        ("WRITE ORDERED BY id, day DESC", 2, Some("range")),
        ("WRITE LOCALLY ORDERED BY id NULLS LAST", 1, None),
        ("WRITE DISTRIBUTED BY PARTITION", 0, Some("hash")),
        ("WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY bucket(4, id)", 1, Some("hash")),
        ("WRITE UNORDERED", 0, Some("none")),
    ] {
        let metadata = altered(&v2, sql);
        assert_eq!(metadata.default_sort_order().unwrap().fields.len(), fields, "{sql}");
        assert_eq!(metadata.properties.get("write.distribution-mode").map(String::as_str), mode, "{sql}");
    }
}
