//! A table as a Parquet file.

use std::sync::Arc;

use parquet::basic::{Compression, ConvertedType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type, TypePtr};

use super::schema::{Column, Kind, Table};
use crate::VERSION;

/// The values of a column, in row order.
pub(super) enum Values {
    /// For [`Kind::Int32`] and [`Kind::Int64`].
    Int(Vec<Option<i64>>),
    /// For [`Kind::Float`].
    Float(Vec<Option<f64>>),
    /// For [`Kind::Text`].
    Text(Vec<Option<ByteArray>>),
    /// For [`Kind::Bool`].
    Bool(Vec<Option<bool>>),
}

/// A column with an integer in every row.
pub(super) fn ints<T: TryInto<i64>>(values: impl Iterator<Item = T>) -> Values {
    some_ints(values.map(Some))
}

/// A column of integers; missing values, and those beyond 64 bits, are null.
pub(super) fn some_ints<T: TryInto<i64>>(values: impl Iterator<Item = Option<T>>) -> Values {
    Values::Int(values.map(|v| v.and_then(|v| v.try_into().ok())).collect())
}

/// A column with a number in every row; NaN and infinities are null.
pub(super) fn floats(values: impl Iterator<Item = f64>) -> Values {
    Values::Float(values.map(|v| v.is_finite().then_some(v)).collect())
}

/// A column with a text in every row.
pub(super) fn texts<T: AsRef<str>>(values: impl Iterator<Item = T>) -> Values {
    some_texts(values.map(Some))
}

/// A column of texts; missing values are null.
pub(super) fn some_texts<T: AsRef<str>>(values: impl Iterator<Item = Option<T>>) -> Values {
    Values::Text(values.map(|v| v.map(|v| ByteArray::from(v.as_ref()))).collect())
}

/// A column with a boolean in every row.
pub(super) fn bools(values: impl Iterator<Item = bool>) -> Values {
    Values::Bool(values.map(Some).collect())
}

/// Writes a table with this number of rows. `fill` returns the values of a column by name; columns that the schema leaves null are not requested.
///
/// # Errors
/// If `fill` returns no values for another column, or values of the wrong type or number.
pub(super) fn write(
    table: &Table,
    rows: usize,
    mut fill: impl FnMut(&'static str) -> Option<Values>,
) -> Result<Vec<u8>, String> {
    let mut write = || -> Result<Vec<u8>, ParquetError> {
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(format!("nki-sim {VERSION}"))
            .build();
        let mut file = SerializedFileWriter::new(Vec::new(), schema(table)?, Arc::new(properties))?;
        let mut group = file.next_row_group()?;
        for column in table.columns {
            let values = match column.about {
                Some(_) => fill(column.name).ok_or_else(|| wrong(table, column, "has no values"))?,
                None => empty(column.kind, rows),
            };
            put(&mut group, table, column, rows, values)?;
        }
        group.close()?;
        file.into_inner()
    };
    write().map_err(|e| format!("cannot write table {}: {e}", table.name))
}

fn wrong(table: &Table, column: &Column, what: &str) -> ParquetError {
    ParquetError::General(format!("{}.{} {what}", table.name, column.name))
}

/// The schema of a file.
fn schema(table: &Table) -> Result<TypePtr, ParquetError> {
    let of = |column: &Column| {
        let (physical, converted) = match column.kind {
            Kind::Int32 => (Physical::INT32, ConvertedType::NONE),
            Kind::Int64 => (Physical::INT64, ConvertedType::NONE),
            Kind::Float => (Physical::DOUBLE, ConvertedType::NONE),
            Kind::Text => (Physical::BYTE_ARRAY, ConvertedType::UTF8),
            Kind::Bool => (Physical::BOOLEAN, ConvertedType::NONE),
        };
        let repetition = if column.required { Repetition::REQUIRED } else { Repetition::OPTIONAL };
        let column = Type::primitive_type_builder(column.name, physical)
            .with_repetition(repetition)
            .with_converted_type(converted)
            .build()?;
        Ok(Arc::new(column))
    };
    let columns = table.columns.iter().map(of).collect::<Result<Vec<_>, ParquetError>>()?;
    Ok(Arc::new(Type::group_type_builder(table.name).with_fields(columns).build()?))
}

fn empty(kind: Kind, rows: usize) -> Values {
    match kind {
        Kind::Int32 | Kind::Int64 => Values::Int(vec![None; rows]),
        Kind::Float => Values::Float(vec![None; rows]),
        Kind::Text => Values::Text(vec![None; rows]),
        Kind::Bool => Values::Bool(vec![None; rows]),
    }
}

/// Writes the next column.
fn put(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    table: &Table,
    column: &Column,
    rows: usize,
    values: Values,
) -> Result<(), ParquetError> {
    let wrong = |what| wrong(table, column, what);
    let count = match &values {
        Values::Int(v) => v.len(),
        Values::Float(v) => v.len(),
        Values::Text(v) => v.len(),
        Values::Bool(v) => v.len(),
    };
    if count != rows {
        return Err(wrong("has another number of rows"));
    }
    match (column.kind, values) {
        (Kind::Int64, Values::Int(v)) => typed::<Int64Type>(group, column, v),
        (Kind::Int32, Values::Int(v)) => {
            let narrow = v.into_iter().map(|v| v.and_then(|v| i32::try_from(v).ok())).collect();
            typed::<Int32Type>(group, column, narrow)
        }
        (Kind::Float, Values::Float(v)) => typed::<DoubleType>(group, column, v),
        (Kind::Text, Values::Text(v)) => typed::<ByteArrayType>(group, column, v),
        (Kind::Bool, Values::Bool(v)) => typed::<BoolType>(group, column, v),
        _ => Err(wrong("has values of another type")),
    }
}

fn typed<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    column: &Column,
    values: Vec<Option<T::T>>,
) -> Result<(), ParquetError> {
    let missing = || ParquetError::General(format!("{} is null in a row", column.name));
    let mut writer = group.next_column()?.ok_or_else(missing)?;
    if column.required {
        let all: Vec<T::T> = values.into_iter().collect::<Option<_>>().ok_or_else(missing)?;
        writer.typed::<T>().write_batch(&all, None, None)?;
    } else {
        let levels: Vec<i16> = values.iter().map(|v| i16::from(v.is_some())).collect();
        let known: Vec<T::T> = values.into_iter().flatten().collect();
        writer.typed::<T>().write_batch(&known, Some(&levels), None)?;
    }
    writer.close()
}
