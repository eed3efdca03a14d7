//! Printing results: datafusion-cli's formats, row count and time.

use std::io::Write;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::csv::WriterBuilder;
use arrow::datatypes::{Schema, SchemaRef};
use arrow::json::{ArrayWriter, LineDelimitedWriter};
use arrow::util::pretty::pretty_format_batches_with_schema;
use calve::{Error, Result};
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt;

use crate::args::{Format, MaxRows};

/// How to print.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PrintOptions {
    pub(crate) format: Format,
    pub(crate) quiet: bool,
    pub(crate) maxrows: MaxRows,
}

impl PrintOptions {
    /// The same without a limit of rows.
    pub(crate) fn unlimited(self) -> Self {
        Self { maxrows: MaxRows::Unlimited, ..self }
    }

    /// Prints a result as it comes and returns its number of rows. Only what is shown is kept in memory.
    pub(crate) async fn print(&self, rows: SendableRecordBatchStream, out: &mut impl Write) -> Result<usize> {
        let schema = rows.schema();
        match self.format {
            Format::Table | Format::Automatic => self.print_table(rows, &schema, out).await,
            Format::Csv => print_separated(rows, b',', out).await,
            Format::Tsv => print_separated(rows, b'\t', out).await,
            Format::Json => print_json(rows, out).await,
            Format::NdJson => print_json_lines(rows, out).await,
        }
    }

    /// Prints the lines below a result, unless quiet.
    pub(crate) fn print_details(&self, rows: usize, elapsed: Duration, out: &mut impl Write) -> Result<()> {
        if self.quiet {
            return Ok(());
        }
        let table = matches!(self.format, Format::Table | Format::Automatic);
        let shown = match self.maxrows {
            MaxRows::Limited(limit) if table && rows > limit => {
                format!("(First {limit} displayed. Use --maxrows to adjust)")
            }
            _ => String::new(),
        };
        let seconds = elapsed.as_secs_f64();
        writeln!(out, "{rows} row(s) fetched. {shown}\nElapsed {seconds:.3} seconds.\n").map_err(output_error)
    }

    async fn print_table(
        &self,
        mut rows: SendableRecordBatchStream,
        schema: &SchemaRef,
        out: &mut impl Write,
    ) -> Result<usize> {
        let limit = match self.maxrows {
            MaxRows::Limited(limit) => limit,
            MaxRows::Unlimited => usize::MAX,
        };
        let (mut kept, mut shown, mut count) = (Vec::new(), 0usize, 0usize);
        while let Some(batch) = next(&mut rows).await? {
            count += batch.num_rows();
            let take = batch.num_rows().min(limit - shown);
            if take > 0 {
                kept.push(batch.slice(0, take));
                shown += take;
            }
        }
        if schema.fields().is_empty() {
            return Ok(count);
        }
        write!(out, "{}", table(schema, &kept, count > shown)?).map_err(output_error)?;
        Ok(count)
    }
}

/// Rows as a table; `cut` says that there are more.
fn table(schema: &SchemaRef, batches: &[RecordBatch], cut: bool) -> Result<String> {
    let text = pretty_format_batches_with_schema(SchemaRef::clone(schema), batches)
        .map_err(|e| Error::internal("cannot print the result").with_source(e))?
        .to_string();
    let mut lines: Vec<&str> = text.lines().collect();
    let border = lines.last().copied().unwrap_or_default().to_owned();
    let dots = format!("| .{:<width$}|", "", width = border.chars().count().saturating_sub(4));
    if cut {
        lines.pop();
        lines.extend([dots.as_str(), dots.as_str(), dots.as_str(), border.as_str()]);
    }
    Ok(lines.join("\n") + "\n")
}

async fn next(rows: &mut SendableRecordBatchStream) -> Result<Option<RecordBatch>> {
    rows.next().await.transpose().map_err(calve::session::from_datafusion)
}

async fn print_separated(mut rows: SendableRecordBatchStream, delimiter: u8, out: &mut impl Write) -> Result<usize> {
    let mut count = 0;
    while let Some(batch) = next(&mut rows).await? {
        if batch.num_rows() > 0 {
            let builder = WriterBuilder::new().with_header(count == 0).with_delimiter(delimiter);
            builder.build(&mut *out).write(&batch).map_err(format_error)?;
            count += batch.num_rows();
        }
    }
    Ok(count)
}

async fn print_json(mut rows: SendableRecordBatchStream, out: &mut impl Write) -> Result<usize> {
    let mut count = 0;
    let mut writer = ArrayWriter::new(&mut *out);
    while let Some(batch) = next(&mut rows).await? {
        if batch.num_rows() > 0 {
            writer.write(&batch).map_err(format_error)?;
            count += batch.num_rows();
        }
    }
    if count > 0 {
        writer.finish().map_err(format_error)?;
        writeln!(out).map_err(output_error)?;
    }
    Ok(count)
}

async fn print_json_lines(mut rows: SendableRecordBatchStream, out: &mut impl Write) -> Result<usize> {
    let mut count = 0;
    let mut writer = LineDelimitedWriter::new(out);
    while let Some(batch) = next(&mut rows).await? {
        if batch.num_rows() > 0 {
            writer.write(&batch).map_err(format_error)?;
            count += batch.num_rows();
        }
    }
    writer.finish().map_err(format_error)?;
    Ok(count)
}

fn format_error(e: arrow::error::ArrowError) -> Error {
    Error::unsupported("the result cannot be printed in this format").with_source(e)
}

/// Output that went away, such as `calve … | head`.
pub(crate) fn output_error(e: std::io::Error) -> Error {
    Error::unavailable("cannot write the result").with_source(e)
}

/// A table of texts, for help.
pub(crate) fn text_table(header: [&str; 2], rows: &[(&str, &str)]) -> Result<String> {
    use arrow::array::{ArrayRef, StringArray};
    use arrow::datatypes::{DataType, Field};
    let schema = Schema::new(header.map(|name| Field::new(name, DataType::Utf8, false)).to_vec());
    let schema = SchemaRef::new(schema);
    let left: ArrayRef = std::sync::Arc::new(StringArray::from_iter_values(rows.iter().map(|(l, _)| l)));
    let right: ArrayRef = std::sync::Arc::new(StringArray::from_iter_values(rows.iter().map(|(_, r)| r)));
    let batch = RecordBatch::try_new(SchemaRef::clone(&schema), vec![left, right]);
    table(&schema, &[batch.map_err(|e| Error::internal("cannot print help").with_source(e))?], false)
}
