//! Reads Parquet tables of simulated or hardware profiles.

use std::fs::File;
use std::path::{Path, PathBuf};

use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::Field;

/// A row: the non-null columns, as text.
pub(crate) type Row = std::collections::BTreeMap<String, String>;

/// Whether a path is a directory of tables, or one table.
pub(crate) fn is_profile(path: &Path) -> bool {
    path.is_dir() || path.extension().is_some_and(|e| e == "parquet")
}

/// The rows of a table: from `NAME.parquet` in the directory, or from `NAME_0.parquet`, `NAME_1.parquet`, ... as Neuron Explorer splits large ones.
/// `None` if the directory has no such file. If the path is a file, it is the table, whatever its name.
///
/// # Errors
/// If a file cannot be read.
pub(crate) fn table(profile: &Path, name: &str) -> Result<Option<Vec<Row>>, String> {
    let files = files(profile, name)?;
    if files.is_empty() {
        return Ok(None);
    }
    let mut rows = Vec::new();
    for file in files {
        read(&file, &mut rows).map_err(|e| format!("`{}`: {e}", file.display()))?;
    }
    Ok(Some(rows))
}

fn files(profile: &Path, name: &str) -> Result<Vec<PathBuf>, String> {
    if !profile.is_dir() {
        let is_table = profile.file_stem().is_some_and(|stem| part(&stem.to_string_lossy(), name).is_some());
        return Ok(if is_table { vec![profile.to_path_buf()] } else { Vec::new() });
    }
    let listing =
        std::fs::read_dir(profile).map_err(|e| format!("cannot read directory `{}`: {e}", profile.display()))?;
    let paths = listing.flatten().map(|entry| entry.path());
    let mut numbered: Vec<(u64, PathBuf)> = paths
        .filter(|path| path.extension().is_some_and(|e| e == "parquet"))
        .filter_map(|path| Some((part(&path.file_stem()?.to_string_lossy(), name)?, path)))
        .collect();
    numbered.sort();
    Ok(numbered.into_iter().map(|(_, path)| path).collect())
}

/// The part number of a table's file; 0 for an unsplit table.
fn part(stem: &str, name: &str) -> Option<u64> {
    match stem.strip_prefix(name)? {
        "" => Some(0),
        rest => rest.strip_prefix('_')?.parse().ok(),
    }
}

fn read(file: &Path, rows: &mut Vec<Row>) -> Result<(), String> {
    let file = File::open(file).map_err(|e| format!("cannot be read: {e}"))?;
    let reader = SerializedFileReader::new(file).map_err(|e| format!("is not a Parquet file: {e}"))?;
    for row in reader.get_row_iter(None).map_err(|e| e.to_string())? {
        let row = row.map_err(|e| e.to_string())?;
        rows.push(row.get_column_iter().filter_map(|(name, field)| Some((name.clone(), text(field)?))).collect());
    }
    Ok(())
}

/// A value as text; for a list, its first item, because an instruction may have several source locations.
fn text(field: &Field) -> Option<String> {
    match field {
        Field::Null => None,
        Field::Str(s) => Some(s.clone()),
        Field::ListInternal(list) => list.elements().first().and_then(text),
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::part;

    #[test]
    fn a_large_table_has_several_files() {
        assert_eq!(part("Instruction", "Instruction"), Some(0));
        assert_eq!(part("Instruction_12", "Instruction"), Some(12));
        assert_eq!(part("InstructionX", "Instruction"), None);
        assert_eq!(part("BirInstruction_0", "Instruction"), None);
    }
}
