//! Rewriting golden tables: the rows that survive are those that other engines read, their lineage too, and files of the
//! same rows have the metrics that other engines recorded.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};

use arrow::array::{AsArray, RecordBatch};

use super::*;
use crate::ErrorKind;
use crate::expr::Predicate;
use crate::scan::{DeleteLoader, FileScanTask, plan_scan};
use crate::spec::deletion_vector::DeletionVector;
use crate::spec::{Literal, TableMetadata};
use crate::writer::transform::literal_at;
use crate::writer::{rewrite_file, rewrite_options, surviving_batches};

/// A golden table, writing its new files into `dir`.
async fn golden(name: &str, metadata_file: &str, dir: &Path) -> (Table, PathBuf) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/golden");
    let io = FileIo::builder().with_location_map("file:/warehouse/golden", root.to_str().unwrap()).unwrap().build();
    let bytes = std::fs::read(root.join(name).join("metadata").join(metadata_file)).unwrap();
    let mut metadata = TableMetadata::parse(&bytes, metadata_file).unwrap();
    metadata.properties.insert("write.data.path".into(), format!("file://{}", dir.display()));
    // What an imported table's writer would not write is no matter here.
    metadata.properties.retain(|name, _| !name.ends_with("format.default"));
    let env = Env::system();
    let warehouse = dir.display().to_string();
    let catalog: Arc<dyn Catalog> = Arc::new(MemoryCatalog::new("c", &warehouse, io, env.clone()).unwrap());
    let loaded = LoadedTable { metadata: Arc::new(metadata), metadata_location: String::new() };
    let ident = TableIdent { namespace: vec!["golden".into()], name: name.into() };
    (Table::new(catalog, ident, loaded, env), root.join(name))
}

async fn tasks(table: &Table) -> Vec<FileScanTask> {
    plan_scan(table, None, &Predicate::AlwaysTrue).await.unwrap().tasks
}

async fn deleted(table: &Table, task: &FileScanTask) -> DeletionVector {
    let loaded = DeleteLoader::new(table).deleted_positions(task).await.unwrap();
    loaded.map(|v| (*v).clone()).unwrap_or_default()
}

fn index() -> Vec<serde_json::Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/golden/index.json");
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// Cells of a CSV file in the fixtures' dialect: `None` is null.
fn csv(path: &Path) -> (Vec<String>, Vec<Vec<Option<String>>>) {
    let text = std::fs::read_to_string(path).unwrap();
    let (mut rows, mut row, mut cell) = (Vec::new(), Vec::new(), None::<String>);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' => {
                let cell = cell.get_or_insert_default();
                while let Some(c) = chars.next() {
                    if c != '"' {
                        cell.push(c);
                    } else if chars.next_if_eq(&'"').is_some() {
                        cell.push('"');
                    } else {
                        break;
                    }
                }
            }
            ',' => row.push(cell.take()),
            '\n' => {
                row.push(cell.take());
                rows.push(std::mem::take(&mut row));
            }
            c => cell.get_or_insert_default().push(c),
        }
    }
    let header = rows.remove(0).into_iter().map(Option::unwrap_or_default).collect();
    (header, rows)
}

fn parse(primitive: &PrimitiveType, text: &str) -> Literal {
    use PrimitiveType as T;
    let text = text.replace("Infinity", "inf");
    let hex = |t: &str| (0..t.len()).step_by(2).map(|i| u8::from_str_radix(&t[i..i + 2], 16).unwrap()).collect();
    match primitive {
        T::Boolean => Literal::Boolean(text == "true"),
        T::Int => Literal::Int(text.parse().unwrap()),
        T::Long => Literal::Long(text.parse().unwrap()),
        T::Float => Literal::Float(text.parse().unwrap()),
        T::Double => Literal::Double(text.parse().unwrap()),
        T::Binary => Literal::Binary(hex(&text)),
        T::Fixed(_) => Literal::Fixed(hex(&text)),
        T::String => Literal::String(text),
        other => Literal::from_json(other, &serde_json::Value::String(text)).unwrap(),
    }
}

/// Rows as text, sorted; columns of nested types only as null or not.
fn rendered(batches: &[RecordBatch], fields: &[Arc<NestedField>]) -> Vec<String> {
    let mut rows = Vec::new();
    for batch in batches {
        for row in 0..batch.num_rows() {
            let cells = fields.iter().zip(batch.columns()).map(|(f, array)| match &f.field_type {
                Type::Primitive(p) => format!("{:?}", literal_at(array, row, p).unwrap()),
                _ => format!("{}", array.is_null(row)),
            });
            rows.push(cells.collect::<Vec<_>>().join("|"));
        }
    }
    rows.sort();
    rows
}

fn expected(path: &Path, fields: &[Arc<NestedField>]) -> Vec<String> {
    let (header, rows) = csv(path);
    assert_eq!(header, fields.iter().map(|f| f.name.clone()).collect::<Vec<_>>());
    let render = |row: Vec<Option<String>>| {
        let cells = fields.iter().zip(row).map(|(f, cell)| match &f.field_type {
            Type::Primitive(p) => format!("{:?}", cell.map(|c| parse(p, &c))),
            _ => format!("{}", cell.is_none()),
        });
        cells.collect::<Vec<_>>().join("|")
    };
    let mut rows: Vec<String> = rows.into_iter().map(render).collect();
    rows.sort();
    rows
}

async fn collect(table: &Table, task: &FileScanTask, deleted: &DeletionVector) -> Vec<RecordBatch> {
    let survivors = surviving_batches(table, task, deleted).await.unwrap();
    survivors.batches.try_collect().await.unwrap()
}

/// What this version does not read.
fn pending(name: &str) -> bool {
    name == "fmt_orc"
}

#[tokio::test]
async fn survivors_of_golden_tables_are_the_rows_other_engines_read() {
    let dir = tempfile::tempdir().unwrap();
    let mut compared = 0;
    for entry in index() {
        let name = entry["table"].as_str().unwrap();
        let (table, folder) = golden(name, entry["current_metadata"].as_str().unwrap(), dir.path()).await;
        let fields = table.metadata.current_schema().unwrap().fields.fields.clone();
        let mut survivors = Vec::new();
        let mut refused = false;
        let mut rewritten = Vec::new();
        for task in tasks(&table).await {
            if pending(name) {
                let refusal = surviving_batches(&table, &task, &DeletionVector::new()).await.err();
                refused |= refusal.is_some_and(|e| e.kind() == ErrorKind::Unsupported);
                continue;
            }
            let deleted = deleted(&table, &task).await;
            survivors.extend(collect(&table, &task, &deleted).await);
            rewritten.extend(rewrite_file(&table, &task, &deleted, rewrite_options(&table, 0, 0)).await.unwrap());
        }
        if pending(name) {
            assert!(refused, "{name}");
            continue;
        }
        let want = expected(&folder.join("expected.csv"), &fields);
        assert_eq!(rendered(&survivors, &fields), want, "{name}");
        // Once through a file of ours, and there again by position.
        let mut again = Vec::new();
        for file in rewritten {
            assert_eq!(file.spec_id, table.metadata.default_spec_id);
            let task = FileScanTask { data_file: Arc::new(file), sequence_number: 99, deletes: Default::default() };
            again.extend(collect(&table, &task, &DeletionVector::new()).await);
        }
        assert_eq!(rendered(&again, &fields), want, "{name}");
        compared += 1;
    }
    assert!(compared > 45, "{compared}");
}

#[tokio::test]
async fn rows_keep_their_lineage() {
    for (name, metadata_file) in [("lineage_v3", "v8.metadata.json"), ("lineage_upgraded", "v9.metadata.json")] {
        let dir = tempfile::tempdir().unwrap();
        let (table, folder) = golden(name, metadata_file, dir.path()).await;
        let mut fields = table.metadata.current_schema().unwrap().fields.fields.clone();
        fields.extend(crate::writer::data_writer::lineage_fields());
        let want = expected(&folder.join("expected-lineage.csv"), &fields);
        let (mut survivors, mut again) = (Vec::new(), Vec::new());
        for task in tasks(&table).await {
            let deleted = deleted(&table, &task).await;
            survivors.extend(collect(&table, &task, &deleted).await);
            for mut file in rewrite_file(&table, &task, &deleted, rewrite_options(&table, 0, 0)).await.unwrap() {
                assert_eq!(file.first_row_id, None, "the commit assigns it");
                // What the commit would assign; what is stored wins.
                file.first_row_id = Some(1000);
                let task = FileScanTask { data_file: Arc::new(file), sequence_number: 99, deletes: Default::default() };
                again.extend(collect(&table, &task, &DeletionVector::new()).await);
            }
        }
        assert_eq!(rendered(&survivors, &fields), want, "{name}");
        assert_eq!(rendered(&again, &fields), want, "{name}");
    }
}

#[tokio::test]
async fn metrics_are_those_that_other_engines_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let mut bounds = 0;
    for entry in index() {
        let name = entry["table"].as_str().unwrap();
        if name == "fmt_avro" || name == "fmt_orc" {
            continue;
        }
        let (table, _) = golden(name, entry["current_metadata"].as_str().unwrap(), dir.path()).await;
        let schema = table.metadata.current_schema().unwrap().clone();
        for mut task in tasks(&table).await {
            task.deletes = Default::default();
            let theirs = &task.data_file;
            let files = rewrite_file(&table, &task, &DeletionVector::new(), rewrite_options(&table, 0, 0)).await;
            let files = files.unwrap();
            let [ours] = files.as_slice() else { continue };
            let place = |id: i32| format!("{name}, field {id} of {}", theirs.file_path);
            assert_eq!(ours.record_count, theirs.record_count);
            if ours.spec_id == theirs.spec_id {
                assert_eq!(ours.partition, theirs.partition, "{name}");
            }
            let (mut lower_only, mut upper_only) = (Vec::new(), Vec::new());
            schema.visit(&mut |field| {
                let Type::Primitive(primitive) = &field.field_type else { return };
                let id = field.id;
                if schema.is_under_list_or_map(id) {
                    return;
                }
                for (their, our, kept) in [
                    (&theirs.lower_bounds, &ours.lower_bounds, &mut lower_only),
                    (&theirs.upper_bounds, &ours.upper_bounds, &mut upper_only),
                ] {
                    let Some(their) = their.get(id) else { continue };
                    let Some(our) = our.get(id) else {
                        kept.push(id);
                        continue;
                    };
                    let read = |b: &[u8]| Literal::from_bytes(primitive, b).unwrap();
                    assert_eq!(read(our).compare(&read(their)), Some(Ordering::Equal), "{}", place(id));
                    bounds += 1;
                }
                // Java counts a float under a null struct neither as a value nor consistently as a null.
                if schema.top_level_index_of(id).is_some() {
                    for (their, our) in [
                        (&theirs.value_counts, &ours.value_counts),
                        (&theirs.null_value_counts, &ours.null_value_counts),
                        (&theirs.nan_value_counts, &ours.nan_value_counts),
                    ] {
                        if let (Some(their), Some(our)) = (their.get(id), our.get(id)) {
                            assert_eq!(our, their, "{}", place(id));
                        }
                    }
                }
            });
            // The table's modes may have changed since an old file was written.
            if name != "metrics_none" {
                assert_eq!((lower_only, upper_only), (vec![], vec![]), "{name} {}", theirs.file_path);
            }
        }
    }
    assert!(bounds > 1000, "{bounds}");
}

#[tokio::test]
async fn nothing_left_makes_no_file_and_a_delete_beyond_the_end_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (table, _) = golden("orders_v2_mor", "v17.metadata.json", dir.path()).await;
    let task = tasks(&table).await.remove(0);
    let rows = task.data_file.record_count;
    let all = DeletionVector::from_positions(0..rows);
    let files = rewrite_file(&table, &task, &all, rewrite_options(&table, 0, 0)).await.unwrap();
    assert_eq!(files, Vec::new());
    let beyond = DeletionVector::from_positions([rows]);
    let error = rewrite_file(&table, &task, &beyond, rewrite_options(&table, 0, 0)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DataInvalid);
    let first = DeletionVector::from_positions([0, 2]);
    let batches = collect(&table, &task, &first).await;
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>() as u64, rows - 2);
    let whole = collect(&table, &task, &DeletionVector::new()).await;
    let ids = |b: &RecordBatch| b.column(0).as_primitive::<arrow::datatypes::Int64Type>().values().to_vec();
    let mut want = ids(&whole[0]);
    want.remove(2);
    want.remove(0);
    assert_eq!(ids(&batches[0]), want);
}
