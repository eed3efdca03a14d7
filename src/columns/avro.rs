//! Avro data and delete files in Arrow.
//!
//! Implements the spec's "Appendix A: Format-specific Requirements, Avro": field ids are attributes of the schema, maps
//! may be arrays of pairs, logical types say what numbers and bytes mean. Invariant: the batches have the file's own
//! columns, called as there, with field ids in their metadata; making them the table's is left to others.

use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Decimal128Array, ListArray, MapArray, RecordBatch, RecordBatchOptions, StructArray,
    new_null_array,
};
use arrow::compute::cast;
use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, Field, Fields, Schema, SchemaRef, TimeUnit};
use bytes::Bytes;

use super::arrow_to::{FIELD_ID_KEY, UTC};
use crate::spec::avro::{AvroField, AvroType, Container, Kind, Notes, decode_batches, physical_name};
use crate::{Error, Result};

/// A file, in memory.
#[derive(Debug, Clone)]
pub(crate) struct AvroFile {
    bytes: Bytes,
    row_type: Arc<AvroType>,
    schema: SchemaRef,
}

impl AvroFile {
    /// Reads the header. The caller adds the path to errors, here and below.
    ///
    /// # Errors
    /// `DataInvalid` for a file that is damaged or not of records, `Unsupported` for a codec or type out of reach.
    pub(crate) fn open(bytes: Bytes) -> Result<Self> {
        let container = Container::open(&bytes)?;
        let invalid = |what: String| Error::data_invalid(format!("Avro schema: {what}"));
        let json = container.get("avro.schema").ok_or_else(|| Error::data_invalid("Avro header: no avro.schema"))?;
        let json = serde_json::from_str(json).map_err(|e| invalid(e.to_string()))?;
        let row_type = AvroType::parse(&json).map_err(invalid)?;
        let fields = row_type.fields().iter().map(|f| field(f).map(Arc::new)).collect::<Result<Fields>>()?;
        if fields.is_empty() {
            return Err(invalid("rows are not records".into()));
        }
        Ok(Self { bytes, row_type, schema: Arc::new(Schema::new(fields)) })
    }

    /// The file's columns.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Decodes the columns at `wanted` (positions in [`AvroFile::schema`], ascending) and passes on batches of them, in
    /// file order, until `each` says to stop.
    ///
    /// # Errors
    /// As [`AvroFile::open`], and those of `each`.
    pub(crate) fn read(
        &self,
        wanted: &[usize],
        batch_rows: usize,
        mut each: impl FnMut(RecordBatch) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let fields = self.row_type.fields();
        let schema = self.schema.project(wanted);
        let schema = Arc::new(schema.map_err(|e| Error::internal("no such column in an Avro file").with_source(e))?);
        let has_bytes = |i: &usize| fields.get(*i).is_some_and(|f| !f.field_type.is_void());
        // Rows of no column at all cannot be counted, so one is decoded in any case.
        let spare = if wanted.iter().any(has_bytes) { None } else { (0..fields.len()).find(has_bytes) };
        let keep = |field: &AvroField| match fields.iter().position(|f| std::ptr::eq(f, field)) {
            Some(i) => wanted.contains(&i) || spare == Some(i),
            None => true,
        };
        let mut stopped = false;
        let decoded = decode_batches(Container::open(&self.bytes)?, &self.row_type, batch_rows, &keep, |rows| {
            let length = rows.len();
            let columns = wanted.iter().zip(schema.fields()).map(|(index, target)| {
                let invalid = || Error::internal("an Avro column was not decoded");
                let field = fields.get(*index).ok_or_else(invalid)?;
                match rows.column_by_name(&physical_name(*index)) {
                    Some(column) => convert(column, &field.field_type, target.data_type()),
                    None => Ok(new_null_array(target.data_type(), length)),
                }
            });
            let columns = columns.collect::<Result<Vec<_>>>()?;
            let options = RecordBatchOptions::new().with_row_count(Some(length));
            let batch = RecordBatch::try_new_with_options(Arc::clone(&schema), columns, &options)
                .map_err(|e| Error::data_invalid("Avro rows do not fit their schema").with_source(e))?;
            match each(batch)? {
                ControlFlow::Continue(()) => Ok(()),
                ControlFlow::Break(()) => {
                    stopped = true;
                    Err(Error::internal("stopped"))
                }
            }
        });
        if stopped { Ok(()) } else { decoded }
    }
}

fn with_id(field: Field, id: Option<i32>) -> Field {
    match id {
        Some(id) => field.with_metadata([(FIELD_ID_KEY.to_owned(), id.to_string())].into()),
        None => field,
    }
}

fn field(field: &AvroField) -> Result<Field> {
    let data_type = data_type(&field.field_type).map_err(|e| e.with_context("Avro field", field.name.clone()))?;
    Ok(with_id(Field::new(&field.name, data_type, true), field.id))
}

fn notes(avro: &AvroType) -> Notes {
    avro.notes.as_deref().cloned().unwrap_or_default()
}

/// The Arrow type of a field's values. Everything is nullable: what must not be null the table says.
fn data_type(avro: &AvroType) -> Result<DataType> {
    let avro = avro.non_null();
    let zone = |default: bool| notes(avro).adjust_to_utc.unwrap_or(default).then(|| UTC.into());
    Ok(match (&avro.kind, avro.logical()) {
        (Kind::Null, _) | (Kind::Fixed(0), _) => DataType::Null,
        (Kind::Boolean, _) => DataType::Boolean,
        (Kind::Int, "date") => DataType::Date32,
        (Kind::Int, "time-millis") => DataType::Time32(TimeUnit::Millisecond),
        (Kind::Int, _) => DataType::Int32,
        (Kind::Long, "time-micros") => DataType::Time64(TimeUnit::Microsecond),
        (Kind::Long, "timestamp-millis") => DataType::Timestamp(TimeUnit::Millisecond, zone(true)),
        (Kind::Long, "timestamp-micros") => DataType::Timestamp(TimeUnit::Microsecond, zone(true)),
        (Kind::Long, "timestamp-nanos") => DataType::Timestamp(TimeUnit::Nanosecond, zone(true)),
        (Kind::Long, "local-timestamp-millis") => DataType::Timestamp(TimeUnit::Millisecond, zone(false)),
        (Kind::Long, "local-timestamp-micros") => DataType::Timestamp(TimeUnit::Microsecond, zone(false)),
        (Kind::Long, "local-timestamp-nanos") => DataType::Timestamp(TimeUnit::Nanosecond, zone(false)),
        (Kind::Long, _) => DataType::Int64,
        (Kind::Float, _) => DataType::Float32,
        (Kind::Double, _) => DataType::Float64,
        (Kind::Bytes | Kind::Fixed(_), "decimal") => {
            let notes = notes(avro);
            let (precision, scale) = (notes.precision.unwrap_or(0), notes.scale.unwrap_or(0));
            if precision == 0 || precision > DECIMAL128_MAX_PRECISION || !(0..=precision as i16).contains(&scale.into())
            {
                return Err(Error::data_invalid(format!("Avro schema: decimal({precision}, {scale})")));
            }
            DataType::Decimal128(precision, scale)
        }
        (Kind::Bytes, _) => DataType::Binary,
        (Kind::Fixed(size), _) => {
            DataType::FixedSizeBinary(i32::try_from(*size).map_err(|_| Error::data_invalid("Avro schema: fixed"))?)
        }
        (Kind::String | Kind::Enum(_), _) => DataType::Utf8,
        (Kind::Array(item), logical) => match pair(item).filter(|_| logical == "map") {
            Some([key, value]) => map_type(field(key)?, field(value)?),
            None => {
                DataType::List(Arc::new(with_id(Field::new("element", data_type(item)?, true), notes(avro).element_id)))
            }
        },
        (Kind::Map(value), _) => map_type(
            with_id(Field::new("key", DataType::Utf8, false), notes(avro).key_id),
            with_id(Field::new("value", data_type(value)?, true), notes(avro).value_id),
        ),
        (Kind::Record(fields), _) => {
            DataType::Struct(fields.iter().map(|f| field(f).map(Arc::new)).collect::<Result<Fields>>()?)
        }
        (Kind::Union(_), _) => {
            return Err(Error::unsupported("reading Avro unions other than of null and one type"));
        }
    })
}

fn map_type(key: Field, value: Field) -> DataType {
    let pair = Fields::from(vec![key.with_nullable(false), value]);
    DataType::Map(Arc::new(Field::new("key_value", DataType::Struct(pair), false)), false)
}

/// Key and value of the pairs of a map kept as an array.
fn pair(item: &AvroType) -> Option<[&AvroField; 2]> {
    match item.fields() {
        [key, value] => Some([key, value]),
        _ => None,
    }
}

/// A decoded column as the type [`data_type`] gives.
fn convert(array: &ArrayRef, avro: &AvroType, target: &DataType) -> Result<ArrayRef> {
    let avro = avro.non_null();
    let unexpected = || Error::data_invalid(format!("Avro rows hold {} where {target} is due", array.data_type()));
    if let (DataType::Decimal128(_, _), Kind::Bytes | Kind::Fixed(_)) = (target, &avro.kind) {
        return decimals(array, target);
    }
    let built = |built: std::result::Result<ArrayRef, arrow::error::ArrowError>| {
        built.map_err(|e| Error::data_invalid("Avro rows do not fit their schema").with_source(e))
    };
    match (target, &avro.kind) {
        (DataType::Struct(fields), Kind::Record(avro_fields)) => {
            let rows = array.as_struct_opt().ok_or_else(unexpected)?;
            let children = record_children(rows, avro_fields, fields)?;
            built(
                StructArray::try_new_with_length(fields.clone(), children, rows.nulls().cloned(), rows.len())
                    .map(|a| Arc::new(a) as ArrayRef),
            )
        }
        (DataType::List(element), Kind::Array(item)) => {
            let list = array.as_list_opt::<i32>().ok_or_else(unexpected)?;
            let values = convert(list.values(), item, element.data_type())?;
            let list = ListArray::try_new(Arc::clone(element), list.offsets().clone(), values, list.nulls().cloned());
            built(list.map(|a| Arc::new(a) as ArrayRef))
        }
        (DataType::Map(entries, _), kind) => {
            let DataType::Struct(fields) = entries.data_type() else { return Err(unexpected()) };
            let (offsets, nulls, columns) = match kind {
                Kind::Array(item) => {
                    let list = array.as_list_opt::<i32>().ok_or_else(unexpected)?;
                    let pairs = list.values().as_struct_opt().ok_or_else(unexpected)?;
                    let columns = record_children(pairs, item.fields(), fields)?;
                    (list.offsets().clone(), list.nulls().cloned(), columns)
                }
                Kind::Map(value) => {
                    let map = array.as_map_opt().ok_or_else(unexpected)?;
                    let [_, value_field] = fields.as_ref() else { return Err(unexpected()) };
                    let columns = vec![Arc::clone(map.keys()), convert(map.values(), value, value_field.data_type())?];
                    (map.offsets().clone(), map.nulls().cloned(), columns)
                }
                _ => return Err(unexpected()),
            };
            let pairs = built(StructArray::try_new(fields.clone(), columns, None).map(|a| Arc::new(a) as ArrayRef))?;
            let map = MapArray::try_new(Arc::clone(entries), offsets, pairs.as_struct().clone(), nulls, false);
            built(map.map(|a| Arc::new(a) as ArrayRef))
        }
        _ if array.data_type() == target => Ok(Arc::clone(array)),
        // Decoded without their logical types, numbers only have to be called what they are.
        _ => cast(array, target).map_err(|e| unexpected().with_source(e)),
    }
}

fn record_children(rows: &StructArray, avro: &[AvroField], fields: &Fields) -> Result<Vec<ArrayRef>> {
    let children = avro.iter().zip(fields).enumerate().map(|(i, (avro, field))| {
        match rows.column_by_name(&physical_name(i)) {
            Some(child) => convert(child, &avro.field_type, field.data_type()),
            // A field of nulls alone takes no bytes, so it is not among what was decoded.
            None => Ok(new_null_array(field.data_type(), rows.len())),
        }
    });
    children.collect()
}

/// Unscaled big-endian numbers of any length.
fn decimals(array: &ArrayRef, target: &DataType) -> Result<ArrayRef> {
    let bytes: Vec<Option<&[u8]>> = match array.data_type() {
        DataType::Binary => array.as_binary::<i32>().iter().collect(),
        DataType::FixedSizeBinary(_) => array.as_fixed_size_binary().iter().collect(),
        other => return Err(Error::data_invalid(format!("Avro rows hold a decimal as {other}"))),
    };
    let value = |bytes: &[u8]| {
        let negative = bytes.first().is_some_and(|b| b & 0x80 != 0);
        let fill = if negative { 0xff } else { 0 };
        // Leading bytes beyond sixteen may only repeat the sign.
        let (lead, rest) = bytes.split_at(bytes.len().saturating_sub(16));
        if lead.iter().any(|b| *b != fill)
            || !lead.is_empty() && rest.first().is_some_and(|b| (b & 0x80 != 0) != negative)
        {
            return Err(Error::data_invalid("Avro rows hold a decimal of more than 38 digits"));
        }
        let mut wide = [fill; 16];
        if let Some(tail) = wide.get_mut(16 - rest.len()..) {
            tail.copy_from_slice(rest);
        }
        Ok(i128::from_be_bytes(wide))
    };
    let values = bytes.into_iter().map(|b| b.map(value).transpose()).collect::<Result<Decimal128Array>>()?;
    Ok(Arc::new(values.with_data_type(target.clone())))
}

#[cfg(test)]
mod tests {
    use arrow::util::pretty::pretty_format_batches;
    use serde_json::{Value, json};

    use super::*;
    use crate::ErrorKind;
    use crate::spec::avro::write_container;

    fn long(bytes: &mut Vec<u8>, value: i64) {
        let mut zigzag = ((value << 1) ^ (value >> 63)) as u64;
        while zigzag >= 0x80 {
            bytes.push(zigzag as u8 | 0x80);
            zigzag >>= 7;
        }
        bytes.push(zigzag as u8);
    }

    fn counted(bytes: &mut Vec<u8>, value: &[u8]) {
        long(bytes, value.len() as i64);
        bytes.extend_from_slice(value);
    }

    fn file(schema: &Value, rows: &[Vec<u8>]) -> Bytes {
        let ends: Vec<usize> = rows
            .iter()
            .scan(0, |end, row| {
                *end += row.len();
                Some(*end)
            })
            .collect();
        write_container(&[("avro.schema", &schema.to_string())], &rows.concat(), &ends).unwrap().into()
    }

    fn read(file: &AvroFile, wanted: &[usize]) -> Vec<RecordBatch> {
        let mut batches = Vec::new();
        file.read(wanted, 2, |batch| {
            batches.push(batch);
            Ok(ControlFlow::Continue(()))
        })
        .unwrap();
        batches
    }

    fn types() -> Value {
        let optional = |t: Value| json!(["null", t]);
        let pair = json!({"type": "record", "name": "k3_v4", "fields": [
            {"name": "key", "type": "int", "field-id": 23},
            {"name": "value", "type": ["null", "string"], "field-id": 24}]});
        let named = |name: &str, id: i32, t: Value| json!({"name": name, "type": t, "field-id": id});
        json!({"type": "record", "name": "row", "fields": [
            named("d", 1, optional(json!({"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 2}))),
            named("f", 2, json!({"type": "fixed", "name": "f", "size": 3, "logicalType": "decimal", "precision": 5, "scale": 1})),
            named("u", 3, json!({"type": "fixed", "name": "u", "size": 2})),
            named("day", 4, json!({"type": "int", "logicalType": "date"})),
            named("t", 5, json!({"type": "long", "logicalType": "time-micros"})),
            named("ts", 6, json!({"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": false})),
            named("tz", 7, json!({"type": "long", "logicalType": "timestamp-nanos", "adjust-to-utc": true})),
            named("s", 8, optional(json!({"type": "record", "name": "s", "fields": [
                named("x", 20, optional(json!("int"))), named("none", 21, json!("null"))]}))),
            named("l", 9, json!({"type": "array", "items": ["null", "boolean"], "element-id": 22})),
            named("m", 10, json!({"type": "array", "items": pair, "logicalType": "map"})),
            named("n", 11, json!({"type": "map", "values": "double", "key-id": 25, "value-id": 26})),
            named("nothing", 12, json!("null"))]})
    }

    fn row(first: bool) -> Vec<u8> {
        let mut b = Vec::new();
        if first {
            long(&mut b, 1);
            counted(&mut b, &[0xff, 0x38]);
        } else {
            long(&mut b, 0);
        }
        b.extend([0x00, 0x01, 0x02]);
        b.extend([0xab, 0xcd]);
        long(&mut b, -1);
        long(&mut b, 1);
        long(&mut b, -1);
        long(&mut b, 1);
        if first {
            // s: there, with a null x
            long(&mut b, 1);
            long(&mut b, 0);
        } else {
            long(&mut b, 0);
        }
        long(&mut b, 2);
        b.extend([2, 1, 0]);
        long(&mut b, 0);
        long(&mut b, 1);
        long(&mut b, 7);
        long(&mut b, 1);
        counted(&mut b, b"seven");
        long(&mut b, 0);
        long(&mut b, 1);
        counted(&mut b, b"key");
        b.extend(1.5f64.to_le_bytes());
        long(&mut b, 0);
        b
    }

    #[test]
    fn every_type_is_what_its_logical_type_says() {
        let avro = AvroFile::open(file(&types(), &[row(true), row(false), row(true)])).unwrap();
        let all: Vec<usize> = (0..12).collect();
        let batches = read(&avro, &all);
        assert_eq!(batches.iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), [2, 1]);
        let first = batches[0].slice(0, 1);
        let text = pretty_format_batches(&[first]).unwrap().to_string();
        let cells: Vec<&str> = text.lines().nth(3).unwrap().split('|').map(str::trim).collect();
        assert_eq!(
            cells[1..13],
            [
                "-2.00",
                "25.8",
                "abcd",
                "1969-12-31",
                "00:00:00.000001",
                "1969-12-31T23:59:59.999999",
                "1970-01-01T00:00:00.000000001Z",
                "{x: , none: }",
                "[true, ]",
                "{7: seven}",
                "{key: 1.5}",
                ""
            ]
        );
        assert!(batches[0].column(0).is_null(1) && batches[0].column(7).is_null(1));
        let id = |field: &Field| field.metadata().get(FIELD_ID_KEY).cloned().unwrap_or_default();
        let DataType::List(element) = avro.schema().field(8).data_type() else { panic!() };
        assert_eq!((id(avro.schema().field(8)), id(element)), ("9".into(), "22".into()));
    }

    #[test]
    fn decodes_only_what_is_wanted_and_counts_rows_of_nothing() {
        let avro = AvroFile::open(file(&types(), &[row(true), row(false), row(true)])).unwrap();
        let batches = read(&avro, &[3, 8]);
        assert_eq!(batches[0].schema().fields().iter().map(|f| f.name().as_str()).collect::<Vec<_>>(), ["day", "l"]);
        for wanted in [&[][..], &[11]] {
            let rows: usize = read(&avro, wanted).iter().map(RecordBatch::num_rows).sum();
            assert_eq!(rows, 3);
        }
        let mut seen = 0;
        avro.read(&[3], 1, |_| {
            seen += 1;
            Ok(ControlFlow::Break(()))
        })
        .unwrap();
        assert_eq!(seen, 1);
    }

    #[test]
    fn damage_and_strange_types_are_errors() {
        let bytes = file(&types(), &[row(true), row(false)]);
        let mut rng = fastrand::Rng::with_seed(5);
        for _ in 0..2000 {
            let mut bad = bytes.to_vec();
            let at = rng.usize(0..bad.len());
            bad[at] ^= 1 << rng.u8(0..8);
            bad.truncate(if rng.bool() { bad.len() } else { rng.usize(0..bad.len()) });
            if let Ok(file) = AvroFile::open(bad.into()) {
                let all: Vec<usize> = (0..file.schema().fields().len()).collect();
                let _ = file.read(&all, 2, |_| Ok(ControlFlow::Continue(())));
            }
        }
        let record = |t: Value| json!({"type": "record", "name": "r", "fields": [{"name": "x", "type": t}]});
        let open = |t: Value| AvroFile::open(file(&record(t), &[])).unwrap_err();
        assert_eq!(open(json!(["int", "string"])).kind(), ErrorKind::Unsupported);
        let wide = json!({"type": "bytes", "logicalType": "decimal", "precision": 60, "scale": 2});
        assert_eq!(open(wide).kind(), ErrorKind::DataInvalid);
        assert_eq!(AvroFile::open(Bytes::new()).unwrap_err().kind(), ErrorKind::DataInvalid);
    }

    #[test]
    fn decimals_of_any_length() {
        let target = DataType::Decimal128(38, 0);
        let read = |bytes: &[u8]| {
            let array: ArrayRef = Arc::new(arrow::array::BinaryArray::from(vec![Some(bytes)]));
            decimals(&array, &target).map(|a| a.as_primitive::<arrow::datatypes::Decimal128Type>().value(0))
        };
        assert_eq!(read(&[]).unwrap(), 0);
        assert_eq!(read(&[0x80]).unwrap(), -128);
        assert_eq!(read(&[0x00, 0x80]).unwrap(), 128);
        assert_eq!(read(&[[0xff; 4].as_slice(), &(-5i128).to_be_bytes()].concat()).unwrap(), -5);
        assert!(read(&[[1u8; 1].as_slice(), &5i128.to_be_bytes()].concat()).is_err());
        assert!(read(&[[0u8; 1].as_slice(), &(-5i128).to_be_bytes()].concat()).is_err());
    }
}
