//! A table that is nothing but metadata: data files which do not exist, with metrics of sixteen columns.

use std::collections::BTreeMap;

use calve::env::Env;
use calve::spec::{
    DataContent, DataFile, FileFormat, FormatVersion, Literal, NestedField, NewTable, PartitionField, PartitionKey,
    PartitionSpec, PartitionTuple, PrimitiveType, Schema, SortOrder, TableMetadata, TableMetadataBuilder, Transform,
};

/// Columns: `region` (1), by which the table is partitioned, and fifteen of type long.
pub const COLUMNS: i32 = 16;
/// Files of one region.
pub const FILES_PER_REGION: usize = 100;

/// The metadata of an empty table at `location`.
pub fn metadata(location: &str, properties: &[(&str, &str)]) -> TableMetadata {
    let mut fields = vec![NestedField::new(1, "region", false, PrimitiveType::Int)];
    fields.extend((2..=COLUMNS).map(|id| NestedField::new(id, format!("c{id}"), false, PrimitiveType::Long)));
    let region =
        PartitionField { source_id: 1, field_id: 0, name: "region".to_string(), transform: Transform::Identity };
    let env = Env::system();
    let table = NewTable {
        uuid: env.uuid(),
        location: location.to_string(),
        format_version: FormatVersion::V3,
        schema: Schema::new(0, fields),
        spec: PartitionSpec { spec_id: 0, fields: vec![region] },
        sort_order: SortOrder::unsorted(),
        properties: properties.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect::<BTreeMap<_, _>>(),
    };
    TableMetadataBuilder::new_table(table).and_then(|builder| builder.build(env.now_ms())).expect("a valid table")
}

/// The file of this number.
pub fn data_file(location: &str, number: usize) -> DataFile {
    let region = i32::try_from(number / FILES_PER_REGION).expect("few files");
    let key = PartitionKey { spec_id: 0, tuple: PartitionTuple([Some(Literal::Int(region))].into()) };
    let path =
        format!("{location}/data/region={region}/00000-{number}-5c1a0a0e-7c5c-4d2b-9f3e-2f6f1d9c7b11-00001.parquet");
    let mut file = DataFile::new(DataContent::Data, path, FileFormat::Parquet, key);
    file.record_count = 1_000_000;
    file.file_size_in_bytes = 128 << 20;
    file.split_offsets = vec![4];
    file.sort_order_id = Some(0);
    for id in 1..=COLUMNS {
        file.column_sizes.insert(id, 8 << 20);
        file.value_counts.insert(id, 1_000_000);
        file.null_value_counts.insert(id, 0);
        let low = if id == 1 { Literal::Int(region) } else { Literal::Long((number as i64) * 1_000 + i64::from(id)) };
        let high = if id == 1 { Literal::Int(region) } else { Literal::Long((number as i64) * 1_000 + 999) };
        file.lower_bounds.insert(id, low.to_bytes().into());
        file.upper_bounds.insert(id, high.to_bytes().into());
    }
    file
}
