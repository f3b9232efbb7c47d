//! A table of optional columns, written as one Parquet file (Snappy, no Arrow).

use super::RunDirError;
use parquet::basic::Compression;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{
    SerializedColumnWriter, SerializedFileWriter, SerializedRowGroupWriter,
};
use parquet::schema::parser::parse_message_type;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// Rows of a row group: bounds the memory of writing.
const GROUP: usize = 65_536;

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

    /// Writes the table.
    ///
    /// # Errors
    /// The file cannot be written, or the columns differ in length.
    pub fn write(&self, path: &Path) -> Result<(), RunDirError> {
        let rows = self.columns.first().map_or(0, |(_, c)| c.len());
        if let Some((name, _)) = self.columns.iter().find(|(_, c)| c.len() != rows) {
            let what = format!("column {name} has another length than the first");
            return Err(RunDirError::Damaged {
                path: path.to_owned(),
                what,
            });
        }
        self.try_write(path, rows)
            .map_err(|e| RunDirError::Damaged {
                path: path.to_owned(),
                what: e.to_string(),
            })
    }

    fn try_write(&self, path: &Path, rows: usize) -> parquet::errors::Result<()> {
        let fields: String = self
            .columns
            .iter()
            .map(|(name, column)| {
                let note = if matches!(column, Column::Text(_)) {
                    " (UTF8)"
                } else {
                    ""
                };
                format!("OPTIONAL {} {name}{note}; ", column.kind())
            })
            .collect();
        let schema = Arc::new(parse_message_type(&format!("message rows {{ {fields} }}"))?);
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .build();
        let mut file =
            SerializedFileWriter::new(File::create(path)?, schema, Arc::new(properties))?;
        let mut from = 0;
        while from < rows {
            let to = rows.min(from + GROUP);
            let mut group = file.next_row_group()?;
            self.write_group(&mut group, from, to)?;
            group.close()?;
            from = to;
        }
        file.close()?;
        Ok(())
    }

    fn write_group(
        &self,
        group: &mut SerializedRowGroupWriter<'_, File>,
        from: usize,
        to: usize,
    ) -> parquet::errors::Result<()> {
        for (_, column) in &self.columns {
            let Some(mut writer) = group.next_column()? else {
                break;
            };
            match column {
                Column::Int(v) => put::<Int64Type, _>(&mut writer, &v[from..to], |x| *x)?,
                Column::Float(v) => put::<DoubleType, _>(&mut writer, &v[from..to], |x| *x)?,
                Column::Flag(v) => put::<BoolType, _>(&mut writer, &v[from..to], |x| *x)?,
                Column::Text(v) => {
                    put::<ByteArrayType, _>(&mut writer, &v[from..to], |x| {
                        ByteArray::from(x.as_str())
                    })?;
                }
            }
            writer.close()?;
        }
        Ok(())
    }
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

    #[test]
    fn absent_values_stay_absent() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.parquet");
        let mut table = Table::default();
        table.int("n", [Some(7), None].into_iter());
        table.text("s", [None, Some("é".to_owned())].into_iter());
        table.float("f", [Some(0.0), None].into_iter());
        table.flag("b", [None, Some(false)].into_iter());
        table.write(&path).unwrap();
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
}
