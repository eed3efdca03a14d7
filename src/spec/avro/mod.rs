//! Avro object container files: frame, schema and rows. Manifests are such files, and data and delete files may be.

mod avro_type;
mod container;
mod decode;
mod varint;

pub(crate) use avro_type::{AvroField, AvroType, Kind, Notes, physical_name};
pub(crate) use container::{Container, write_container};
pub(crate) use decode::decode_batches;
