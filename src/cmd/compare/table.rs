//! Tables in CSV (RFC 4180) as rows of named fields.

/// One row: field by column name.
pub(super) type Row = std::collections::BTreeMap<String, String>;

/// Reads a table whose first line has the column names.
pub(super) fn parse(text: &str) -> Result<Vec<Row>, String> {
    let mut records = records(text)?.into_iter();
    let head = records.next().ok_or("it is empty")?;
    let mut out = Vec::new();
    for (i, record) in records.enumerate() {
        if record.len() != head.len() {
            return Err(format!("record {} has {} fields, the first line has {}", i + 2, record.len(), head.len()));
        }
        out.push(head.iter().cloned().zip(record).collect());
    }
    Ok(out)
}

fn records(text: &str) -> Result<Vec<Vec<String>>, String> {
    let mut out = Vec::new();
    let mut record: Vec<String> = Vec::new();
    let mut field = String::new();
    let mut quoted = false;
    let mut chars = text.strip_prefix('\u{feff}').unwrap_or(text).chars().peekable();
    while let Some(c) = chars.next() {
        match (c, quoted) {
            ('"', true) if chars.peek() == Some(&'"') => {
                chars.next();
                field.push('"');
            }
            ('"', true) => quoted = false,
            ('"', false) if field.is_empty() => quoted = true,
            (',', false) => record.push(std::mem::take(&mut field)),
            ('\n', false) => {
                record.push(std::mem::take(&mut field));
                if record.len() > 1 || !record[0].is_empty() {
                    out.push(std::mem::take(&mut record));
                }
                record.clear();
            }
            ('\r', false) if chars.peek() == Some(&'\n') => {}
            (c, _) => field.push(c),
        }
    }
    if quoted {
        return Err("a quoted field is never closed".into());
    }
    if !field.is_empty() || !record.is_empty() {
        record.push(field);
        out.push(record);
    }
    Ok(out)
}
