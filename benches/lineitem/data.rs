//! TPC-H lineitem in Iceberg tables, written by calve.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, Date32Builder, Decimal128Builder, Int32Builder, Int64Builder, RecordBatch, StringBuilder,
};
use arrow::datatypes::{DataType, Field, Schema};
use datafusion::datasource::MemTable;
use tpchgen::generators::{LineItem, LineItemGenerator};

use crate::lake::Lake;

/// Data files of each table.
pub const FILES: i32 = 12;
/// The tables that every run needs: the same rows in format version 3 and 2.
pub const TABLES: [&str; 2] = ["lineitem_v3", "lineitem_v2"];

const BATCH_ROWS: usize = 8192;

const COLUMNS: &str = "l_orderkey bigint, l_partkey bigint, l_suppkey bigint, l_linenumber int, \
    l_quantity decimal(15,2), l_extendedprice decimal(15,2), l_discount decimal(15,2), l_tax decimal(15,2), \
    l_returnflag string, l_linestatus string, l_shipdate date, l_commitdate date, l_receiptdate date, \
    l_shipinstruct string, l_shipmode string, l_comment string";

/// `CREATE TABLE` with lineitem's columns.
pub fn create_table(name: &str, version: u8, partitioning: &str) -> String {
    format!("CREATE TABLE {name} ({COLUMNS}) {partitioning} TBLPROPERTIES ('format-version' = '{version}')")
}

/// `CREATE TABLE` without columns, for `AS SELECT`.
pub fn create_like(name: &str, version: u8, partitioning: &str) -> String {
    format!("CREATE TABLE {name} {partitioning} TBLPROPERTIES ('format-version' = '{version}')")
}

/// Writes the tables that are not there yet, one INSERT a file.
pub async fn prepare(folder: &Path, scale: f64) {
    let lake = Lake::open(folder, None).await;
    let missing: Vec<&str> = TABLES.into_iter().filter(|t| !lake.table_dir(t).join("complete").exists()).collect();
    if missing.is_empty() {
        return;
    }
    for table in &missing {
        lake.run(&format!("DROP TABLE IF EXISTS {table} PURGE")).await;
        lake.run(&create_table(table, if table.ends_with("v2") { 2 } else { 3 }, "")).await;
    }
    // One writer, so that an INSERT makes one file.
    lake.run("SET datafusion.execution.target_partitions = 1").await;
    let (mut rows, mut seconds) = (0, 0.0);
    for part in 1..=FILES {
        let batches = lineitem(scale, part);
        let source = MemTable::try_new(batches[0].schema(), vec![batches]).expect("batches of one schema");
        lake.register("part", Arc::new(source));
        for table in &missing {
            let (count, run) = lake.timed(&format!("INSERT INTO {table} SELECT * FROM datafusion.public.part")).await;
            rows += count;
            seconds += run.wall;
        }
    }
    println!("wrote {rows} rows in {seconds:.1} s by one writer at a time");
    for table in &missing {
        std::fs::write(lake.table_dir(table).join("complete"), "").expect("a marker");
    }
}

struct Columns {
    integers: [Int64Builder; 3],
    line_number: Int32Builder,
    decimals: [Decimal128Builder; 4],
    flags: [StringBuilder; 2],
    dates: [Date32Builder; 3],
    texts: [StringBuilder; 3],
}

impl Columns {
    fn new() -> Self {
        let decimal = || Decimal128Builder::new().with_precision_and_scale(15, 2).expect("a decimal type");
        Self {
            integers: std::array::from_fn(|_| Int64Builder::new()),
            line_number: Int32Builder::new(),
            decimals: std::array::from_fn(|_| decimal()),
            flags: std::array::from_fn(|_| StringBuilder::new()),
            dates: std::array::from_fn(|_| Date32Builder::new()),
            texts: std::array::from_fn(|_| StringBuilder::new()),
        }
    }

    fn push(&mut self, line: &LineItem<'_>) {
        let integers = [line.l_orderkey, line.l_partkey, line.l_suppkey];
        self.integers.iter_mut().zip(integers).for_each(|(column, value)| column.append_value(value));
        self.line_number.append_value(line.l_linenumber);
        let decimals = [
            line.l_quantity * 100,
            line.l_extendedprice.into_inner(),
            line.l_discount.into_inner(),
            line.l_tax.into_inner(),
        ];
        self.decimals.iter_mut().zip(decimals).for_each(|(column, value)| column.append_value(i128::from(value)));
        let flags = [line.l_returnflag, line.l_linestatus];
        self.flags.iter_mut().zip(flags).for_each(|(column, value)| column.append_value(value));
        let dates = [&line.l_shipdate, &line.l_commitdate, &line.l_receiptdate];
        self.dates.iter_mut().zip(dates).for_each(|(column, value)| column.append_value(value.to_unix_epoch()));
        let texts = [line.l_shipinstruct, line.l_shipmode, line.l_comment];
        self.texts.iter_mut().zip(texts).for_each(|(column, value)| column.append_value(value));
    }

    fn finish(mut self, schema: &Arc<Schema>) -> RecordBatch {
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(16);
        arrays.extend(self.integers.iter_mut().map(|c| Arc::new(c.finish()) as ArrayRef));
        arrays.push(Arc::new(self.line_number.finish()));
        arrays.extend(self.decimals.iter_mut().map(|c| Arc::new(c.finish()) as ArrayRef));
        arrays.extend(self.flags.iter_mut().map(|c| Arc::new(c.finish()) as ArrayRef));
        arrays.extend(self.dates.iter_mut().map(|c| Arc::new(c.finish()) as ArrayRef));
        arrays.extend(self.texts.iter_mut().map(|c| Arc::new(c.finish()) as ArrayRef));
        RecordBatch::try_new(Arc::clone(schema), arrays).expect("columns of one length")
    }
}

fn schema() -> Arc<Schema> {
    let fields = COLUMNS.split(", ").map(|column| {
        let (name, data_type) = column.trim().split_once(' ').expect("name and type");
        let data_type = match data_type {
            "bigint" => DataType::Int64,
            "int" => DataType::Int32,
            "date" => DataType::Date32,
            "string" => DataType::Utf8,
            _ => DataType::Decimal128(15, 2),
        };
        Field::new(name, data_type, true)
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// One of the [`FILES`] parts of the table.
fn lineitem(scale: f64, part: i32) -> Vec<RecordBatch> {
    let schema = schema();
    let mut batches = Vec::new();
    let (mut columns, mut rows) = (Columns::new(), 0);
    for line in LineItemGenerator::new(scale, part, FILES).iter() {
        columns.push(&line);
        rows += 1;
        if rows == BATCH_ROWS {
            batches.push(std::mem::replace(&mut columns, Columns::new()).finish(&schema));
            rows = 0;
        }
    }
    if rows > 0 {
        batches.push(columns.finish(&schema));
    }
    batches
}
