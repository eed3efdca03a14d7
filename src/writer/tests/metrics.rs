//! Metrics against what the rows themselves say, and against what Spark recorded.

use std::cmp::Ordering;

use arrow::array::{Array, AsArray, RecordBatch, StructArray};

use super::*;
use crate::spec::properties::MetricsMode;
use crate::spec::{Literal, StructType};
use crate::writer::metrics::{lower_bound, upper_bound};
use crate::writer::transform::literal_at;
use crate::writer::{DataFileWriter, DataWriterOptions};

fn literal_text(text: &str) -> Literal {
    Literal::String(text.into())
}

#[test]
fn text_bounds_cut_at_code_points() {
    let upper = |text: &str, n| upper_bound(literal_text(text), Some(n));
    assert_eq!(upper("abc", 3), Some(literal_text("abc")));
    assert_eq!(upper("abcd", 3), Some(literal_text("abd")));
    assert_eq!(upper("ab\u{D7FF}x", 3), Some(literal_text("ab\u{E000}")));
    assert_eq!(upper("ab\u{7F}x", 3), Some(literal_text("ab\u{80}")));
    assert_eq!(upper("ab\u{FFFF}x", 3), Some(literal_text("ab\u{10000}")));
    assert_eq!(upper("ab\u{10FFFF}x", 3), Some(literal_text("ac")));
    assert_eq!(upper("\u{10FFFF}\u{10FFFF}x", 2), None);
    assert_eq!(upper("\u{10FFFF}\u{10FFFF}", 2), Some(literal_text("\u{10FFFF}\u{10FFFF}")));
    assert_eq!(lower_bound(literal_text("🎉✓é"), Some(2)), literal_text("🎉✓"));
    assert_eq!(lower_bound(literal_text("🎉"), Some(2)), literal_text("🎉"));
    assert_eq!(upper_bound(literal_text(&"x".repeat(99)), None), Some(literal_text(&"x".repeat(99))));

    let bytes = |v: &[u8]| Literal::Binary(v.to_vec());
    assert_eq!(upper_bound(bytes(&[1, 0xFF, 0xFF, 0]), Some(3)), Some(bytes(&[2])));
    assert_eq!(upper_bound(bytes(&[0xFF, 0xFF]), Some(1)), None);
    assert_eq!(upper_bound(bytes(&[0xFF, 0xFF]), Some(2)), Some(bytes(&[0xFF, 0xFF])));
    assert_eq!(lower_bound(bytes(&[1, 2, 3]), Some(2)), bytes(&[1, 2]));
    assert_eq!(upper_bound(Literal::Fixed(vec![0xFE, 0xFF, 1]), Some(2)), Some(Literal::Fixed(vec![0xFF])));
}

/// Counts and bounds of a column by looking at every value.
struct Brute {
    nulls: u64,
    nans: u64,
    bounds: Option<(Literal, Literal)>,
}

fn brute(array: &ArrayRef, primitive: &PrimitiveType) -> Brute {
    let mut found = Brute { nulls: 0, nans: 0, bounds: None };
    for row in 0..array.len() {
        let Some(value) = literal_at(array, row, primitive).unwrap() else {
            found.nulls += 1;
            continue;
        };
        if value.is_nan() {
            found.nans += 1;
            continue;
        }
        found.bounds = Some(match found.bounds.take() {
            None => (value.clone(), value),
            Some((min, max)) => (
                if value.compare(&min) == Some(Ordering::Less) { value.clone() } else { min },
                if value.compare(&max) == Some(Ordering::Greater) { value } else { max },
            ),
        });
    }
    found
}

fn check_column(file: &DataFile, id: i32, primitive: &PrimitiveType, array: &ArrayRef, length: Option<usize>) {
    let brute = brute(array, primitive);
    assert_eq!(file.value_counts.get(id), Some(&(array.len() as u64)), "{primitive}");
    assert_eq!(file.null_value_counts.get(id), Some(&brute.nulls), "{primitive}");
    let float = matches!(primitive, PrimitiveType::Float | PrimitiveType::Double);
    assert_eq!(file.nan_value_counts.get(id), float.then_some(&brute.nans), "{primitive}");
    assert!(file.column_sizes.get(id).is_some_and(|s| *s > 0));
    let read = |b: Option<&Box<[u8]>>| b.map(|b| Literal::from_bytes(primitive, b).unwrap());
    let (lower, upper) = (read(file.lower_bounds.get(id)), read(file.upper_bounds.get(id)));
    let Some((min, max)) = brute.bounds else {
        assert_eq!((lower, upper), (None, None), "{primitive}");
        return;
    };
    // Zeros compare equal, and are recorded outward: -0.0 below, +0.0 above.
    let zero = |l: &Literal| matches!(l, Literal::Float(0.0) | Literal::Double(0.0));
    let negative = |l: &Option<Literal>| match l {
        Some(Literal::Float(v)) => v.is_sign_negative(),
        Some(Literal::Double(v)) => v.is_sign_negative(),
        _ => false,
    };
    if zero(&min) {
        assert!(negative(&lower), "{primitive}");
    }
    if zero(&max) {
        assert!(!negative(&upper), "{primitive}");
    }
    let same = |a: &Option<Literal>, b: &Option<Literal>| match (a, b) {
        (Some(a), Some(b)) => a.compare(b) == Some(Ordering::Equal),
        (a, b) => a.is_none() && b.is_none(),
    };
    assert!(same(&lower, &Some(lower_bound(min.clone(), length))), "{primitive}: {lower:?} for {min:?}");
    assert!(same(&upper, &upper_bound(max.clone(), length)), "{primitive}: {upper:?} for {max:?}");
}

#[tokio::test]
async fn random_rows_have_the_metrics_of_their_values() {
    for seed in 0..30 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mode = [MetricsMode::Truncate(16), MetricsMode::Truncate(2), MetricsMode::Full][seed as usize % 3];
        let mode_text = mode.to_string();
        let properties = [
            ("write.metadata.metrics.default", mode_text.as_str()),
            ("write.parquet.row-group-size-bytes", if seed % 2 == 0 { "20000" } else { "134217728" }),
            ("write.parquet.page-version", if seed % 4 == 0 { "v2" } else { "v1" }),
        ];
        let fields = all_primitives();
        let test = TestTable::new(FormatVersion::V3, fields.clone(), &[], &properties);
        let mut writer = DataFileWriter::new(&test.table, DataWriterOptions::default()).unwrap();
        let batches: Vec<RecordBatch> = (0..rng.usize(1..4))
            .map(|_| {
                let rows = rng.usize(1..400);
                random_rows(&mut rng, &fields, rows)
            })
            .collect();
        for batch in &batches {
            writer.write(batch).await.unwrap();
        }
        let files = writer.finish().await.unwrap();
        let [file] = files.as_slice() else { panic!("seed {seed}: {} files", files.len()) };
        let rows = arrow::compute::concat_batches(batches[0].schema_ref(), &batches).unwrap();
        let length = if let MetricsMode::Truncate(n) = mode { Some(n) } else { None };
        for (field, array) in fields.iter().zip(rows.columns()) {
            check_column(file, field.id, field.field_type.as_primitive().unwrap(), array, length);
        }
        assert_eq!(file.record_count, rows.num_rows() as u64);
        assert_eq!(file.split_offsets[0], 4);
        assert_eq!((file.sort_order_id, file.first_row_id), (Some(0), None));
        // And the values come back.
        let read = read_all(&test.table, file).await;
        for (got, want) in read.columns().iter().zip(rows.columns()) {
            assert_eq!(got.data_type(), want.data_type());
            assert_eq!(got.as_ref(), want.as_ref(), "seed {seed}");
        }
    }
}

#[tokio::test]
async fn nested_columns() {
    let leaf = |id, name: &str, t| Arc::new(NestedField::new(id, name, false, t));
    let inner = StructType { fields: vec![leaf(3, "d", PrimitiveType::Double), leaf(4, "s", PrimitiveType::String)] };
    let list = crate::spec::ListType { element: leaf(6, "element", PrimitiveType::Double) };
    let fields =
        vec![NestedField::new(1, "n", false, inner), NestedField::new(2, "l", false, Type::List(Box::new(list)))];
    // Fresh ids: n 1, l 2, n.d 3, n.s 4, l.element 5.
    let test = TestTable::new(FormatVersion::V2, fields, &[], &[]);
    let mut writer = DataFileWriter::new(&test.table, DataWriterOptions::default()).unwrap();
    let schema = writer.schema().clone();
    let arrow::datatypes::DataType::Struct(fields) = schema.field(0).data_type() else { panic!() };
    let d: ArrayRef = Arc::new(Float64Array::from(vec![Some(1.0), Some(f64::NAN), Some(f64::NAN), None]));
    let s: ArrayRef = Arc::new(StringArray::from(vec!["b", "c", "a", "d"]));
    let nulls = NullBuffer::from(vec![true, true, false, true]);
    let n: ArrayRef = Arc::new(StructArray::new(fields.clone(), vec![d, s], Some(nulls)));
    let l: ArrayRef =
        Arc::new(arrow::array::ListArray::from_iter_primitive::<arrow::datatypes::Float64Type, _, _>(vec![
            Some(vec![Some(f64::NAN), None]),
            None,
            Some(vec![]),
            Some(vec![Some(1.0)]),
        ]));
    let given = arrow::datatypes::Schema::new(vec![
        arrow::datatypes::Field::new("n", n.data_type().clone(), true),
        arrow::datatypes::Field::new("l", l.data_type().clone(), true),
    ]);
    writer.write(&RecordBatch::try_new(Arc::new(given), vec![n, l]).unwrap()).await.unwrap();
    let file = writer.finish().await.unwrap().remove(0);
    assert_eq!(file.null_value_counts.iter().map(|(k, v)| (k, *v)).collect::<Vec<_>>(), [(3, 2), (4, 1)]);
    assert_eq!(file.nan_value_counts.iter().map(|(k, v)| (k, *v)).collect::<Vec<_>>(), [(3, 1)]);
    assert_eq!(file.value_counts.iter().map(|(k, v)| (k, *v)).collect::<Vec<_>>(), [(3, 4), (4, 4)]);
    assert_eq!(
        file.lower_bounds.iter().map(|(k, v)| (k, v.to_vec())).collect::<Vec<_>>(),
        [(3, 1f64.to_le_bytes().to_vec()), (4, b"b".to_vec())]
    );
    assert_eq!(file.upper_bounds.get(4).unwrap().as_ref(), b"d");
    // A list's element has a size, and nothing that reading could go wrong by.
    assert_eq!(file.column_sizes.iter().map(|(k, _)| k).collect::<Vec<_>>(), [3, 4, 5]);
    let read = read_all(&test.table, &file).await;
    assert_eq!(read.schema_ref().fields(), schema.fields());
    assert!(read.column(0).is_null(2) && read.column(1).is_null(1));
    assert_eq!(read.column(1).as_list::<i32>().value_length(0), 2);
}

#[tokio::test]
async fn modes_by_column() {
    let names = ["none", "counts", "truncate", "full", "first", "second", "third"];
    let fields: Vec<_> = names
        .iter()
        .enumerate()
        .map(|(i, n)| NestedField::new(i as i32 + 1, *n, false, PrimitiveType::String))
        .collect();
    let properties = [
        ("write.metadata.metrics.column.none", "none"),
        ("write.metadata.metrics.column.counts", "counts"),
        ("write.metadata.metrics.column.truncate", "truncate(1)"),
        ("write.metadata.metrics.column.full", "full"),
        ("write.metadata.metrics.max-inferred-column-defaults", "6"),
        ("write.parquet.stats-enabled.column.second", "false"),
    ];
    let test = TestTable::new(FormatVersion::V2, fields, &[], &properties);
    let mut writer = DataFileWriter::new(&test.table, DataWriterOptions::default()).unwrap();
    let text: ArrayRef = Arc::new(StringArray::from(vec!["a".repeat(100), "b".repeat(100)]));
    writer.write(&RecordBatch::try_new(writer.schema().clone(), vec![text; 7]).unwrap()).await.unwrap();
    let file = writer.finish().await.unwrap().remove(0);
    let upper = |id| file.upper_bounds.get(id).map(|b| std::str::from_utf8(b).unwrap().to_owned());
    assert_eq!(file.column_sizes.iter().map(|(k, _)| k).collect::<Vec<_>>(), [2, 3, 4, 5, 6]);
    assert_eq!(file.null_value_counts.iter().map(|(k, _)| k).collect::<Vec<_>>(), [2, 3, 4, 5]);
    assert_eq!((upper(1), upper(2), upper(6), upper(7)), (None, None, None, None));
    assert_eq!(upper(3), Some("c".into()));
    assert_eq!(upper(4), Some("b".repeat(100)));
    assert_eq!(upper(5), Some(format!("{}c", "b".repeat(15))));
}

#[tokio::test]
async fn sorted_columns_have_bounds() {
    let fields = vec![
        NestedField::new(1, "sorted", false, PrimitiveType::Long),
        NestedField::new(2, "named", false, PrimitiveType::Long),
        NestedField::new(3, "other", false, PrimitiveType::Long),
    ];
    let properties = [("write.metadata.metrics.default", "counts"), ("write.metadata.metrics.column.named", "counts")];
    let mut test = TestTable::new(FormatVersion::V2, fields, &[], &properties);
    let by = |source_id| crate::spec::SortField {
        transform: Transform::Identity,
        source_id,
        direction: crate::spec::SortDirection::Ascending,
        null_order: crate::spec::NullOrder::First,
    };
    let metadata = Arc::make_mut(&mut test.table.metadata);
    metadata.sort_orders.push(Arc::new(SortOrder { order_id: 7, fields: vec![by(1), by(2)] }));
    metadata.default_sort_order_id = 7;
    let options = DataWriterOptions { sort_order_id: 7, ..Default::default() };
    let mut writer = DataFileWriter::new(&test.table, options).unwrap();
    let values: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    writer.write(&RecordBatch::try_new(writer.schema().clone(), vec![values; 3]).unwrap()).await.unwrap();
    let file = writer.finish().await.unwrap().remove(0);
    assert_eq!(file.lower_bounds.iter().map(|(id, _)| id).collect::<Vec<_>>(), [1]);
    assert_eq!((file.value_counts.len(), file.sort_order_id), (3, Some(7)));
}
