//! A table of optional columns, written as one Parquet file (Snappy, no Arrow).

use super::RunDirError;
use parquet::basic::Compression;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::parser::parse_message_type;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// Rows of a row group: bounds the memory of writing.
const GROUP: usize = 8_192;

/// One column's values.
#[derive(Debug, Clone, PartialEq)]
pub enum Column {
    /// Whole numbers; nanoseconds and counts.
    Int(Vec<Option<i64>>),
    /// Fractions.
    Float(Vec<Option<f64>>),
    /// Words.
    Text(Vec<Option<String>>),
    /// Yes or no.
    Flag(Vec<Option<bool>>),
}

impl Column {
    fn kind(&self) -> &'static str {
        match self {
            Self::Int(_) => "INT64",
            Self::Float(_) => "DOUBLE",
            Self::Text(_) => "BYTE_ARRAY",
            Self::Flag(_) => "BOOLEAN",
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Int(v) => v.len(),
            Self::Float(v) => v.len(),
            Self::Text(v) => v.len(),
            Self::Flag(v) => v.len(),
        }
    }
}

/// Named columns of one length.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Table {
    columns: Vec<(&'static str, Column)>,
}

impl Table {
    /// Adds a column of whole numbers.
    pub fn int(&mut self, name: &'static str, values: impl Iterator<Item = Option<i64>>) {
        self.columns.push((name, Column::Int(values.collect())));
    }

    /// Adds a column of fractions.
    pub fn float(&mut self, name: &'static str, values: impl Iterator<Item = Option<f64>>) {
        self.columns.push((name, Column::Float(values.collect())));
    }

    /// Adds a column of words.
    pub fn text(&mut self, name: &'static str, values: impl Iterator<Item = Option<String>>) {
        self.columns.push((name, Column::Text(values.collect())));
    }

    /// Adds a column of yes or no.
    pub fn flag(&mut self, name: &'static str, values: impl Iterator<Item = Option<bool>>) {
        self.columns.push((name, Column::Flag(values.collect())));
    }

    /// How many rows; says which column has another number of them than the first.
    fn rows(&self) -> parquet::errors::Result<usize> {
        let rows = self.columns.first().map_or(0, |(_, c)| c.len());
        match self.columns.iter().find(|(_, c)| c.len() != rows) {
            Some((name, _)) => Err(ParquetError::General(format!(
                "column {name} has another length than the first"
            ))),
            None => Ok(rows),
        }
    }

    fn schema(&self) -> String {
        let field = |(name, column): &(&str, Column)| {
            let text = matches!(column, Column::Text(_));
            let note = if text { " (UTF8)" } else { "" };
            format!("OPTIONAL {} {name}{note}; ", column.kind())
        };
        let fields: String = self.columns.iter().map(field).collect();
        format!("message rows {{ {fields} }}")
    }

    fn write(&self, file: &mut SerializedFileWriter<File>) -> parquet::errors::Result<()> {
        self.rows()?;
        let mut group = file.next_row_group()?;
        for (_, column) in &self.columns {
            let Some(mut writer) = group.next_column()? else {
                break;
            };
            match column {
                Column::Int(v) => put::<Int64Type, _>(&mut writer, v, |x| *x)?,
                Column::Float(v) => put::<DoubleType, _>(&mut writer, v, |x| *x)?,
                Column::Flag(v) => put::<BoolType, _>(&mut writer, v, |x| *x)?,
                Column::Text(v) => {
                    put::<ByteArrayType, _>(&mut writer, v, |x| ByteArray::from(x.as_str()))?;
                }
            }
            writer.close()?;
        }
        group.close()?;
        Ok(())
    }
}

/// Writes `rows` as one file, of which `table` makes the columns of some at a time. However many there are,
/// it holds one group of them.
///
/// # Errors
/// The file cannot be written, or columns differ in length.
pub fn write_rows<T>(
    path: &Path,
    mut rows: impl Iterator<Item = T>,
    table: impl Fn(&[T]) -> Table,
) -> Result<(), RunDirError> {
    let mut write = || {
        let schema = Arc::new(parse_message_type(&table(&[]).schema())?);
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .build();
        let mut file =
            SerializedFileWriter::new(File::create(path)?, schema, Arc::new(properties))?;
        let mut group = Vec::new();
        loop {
            group.clear();
            group.extend(rows.by_ref().take(GROUP));
            if group.is_empty() {
                break;
            }
            table(&group).write(&mut file)?;
        }
        file.close()?;
        Ok(())
    };
    write().map_err(|e: ParquetError| RunDirError::Damaged {
        path: path.to_owned(),
        what: e.to_string(),
    })
}

fn put<D: parquet::data_type::DataType, V>(
    writer: &mut SerializedColumnWriter<'_>,
    values: &[Option<V>],
    convert: impl Fn(&V) -> D::T,
) -> parquet::errors::Result<()> {
    let levels: Vec<i16> = values.iter().map(|v| i16::from(v.is_some())).collect();
    let present: Vec<D::T> = values.iter().flatten().map(convert).collect();
    writer
        .typed::<D>()
        .write_batch(&present, Some(&levels), None)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor as _;

    #[test]
    fn absent_values_stay_absent() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.parquet");
        let rows = [
            (Some(7), None, Some(0.0), None),
            (None, Some("é".to_owned()), None, Some(false)),
        ];
        write_rows(&path, rows.into_iter(), |rows| {
            let mut table = Table::default();
            table.int("n", rows.iter().map(|row| row.0));
            table.text("s", rows.iter().map(|row| row.1.clone()));
            table.float("f", rows.iter().map(|row| row.2));
            table.flag("b", rows.iter().map(|row| row.3));
            table
        })
        .unwrap();
        let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
        let rows: Vec<String> = reader
            .get_row_iter(None)
            .unwrap()
            .map(|r| r.unwrap().to_string())
            .collect();
        assert_eq!(
            rows,
            [
                "{n: 7, s: null, f: 0E0, b: null}",
                "{n: null, s: \"é\", f: null, b: false}"
            ]
        );
    }

    #[test]
    fn many_rows_are_groups_of_one_file_and_none_are_a_file_too() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.parquet");
        let table = |rows: &[i64]| {
            let mut table = Table::default();
            table.int("n", rows.iter().map(|n| Some(*n)));
            table
        };
        for count in [0, 1, GROUP, 2 * GROUP + 1] {
            let many = i64::try_from(count).unwrap();
            write_rows(&path, 0..many, table).unwrap();
            let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
            assert_eq!(reader.num_row_groups(), count.div_ceil(GROUP));
            let rows = reader.get_row_iter(None).unwrap();
            let sum: i64 = rows.map(|row| row.unwrap().get_long(0).unwrap()).sum();
            assert_eq!(sum, many * (many - 1) / 2);
        }
    }

    #[test]
    fn columns_of_different_length_are_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.parquet");
        let error = write_rows(&path, [1].into_iter(), |rows| {
            let mut table = Table::default();
            table.int("n", rows.iter().map(|n| Some(*n)));
            table.flag("short", std::iter::empty());
            table
        })
        .unwrap_err();
        assert!(error.to_string().contains("column short"), "{error}");
    }
}
