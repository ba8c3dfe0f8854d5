//! Source texts and locations in them.

/// A file of a [`SourceMap`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct FileId(pub u32);

/// A range of bytes in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Span {
    /// The file.
    pub file: FileId,
    /// Offset of the first byte.
    pub start: u32,
    /// Offset after the last byte.
    pub end: u32,
}

impl Span {
    /// A span from its parts.
    pub const fn new(file: FileId, start: u32, end: u32) -> Self {
        Span { file, start, end }
    }
}

#[derive(Debug, Clone)]
struct Source {
    path: String,
    text: Option<String>,
    /// Offset of the first byte of each line.
    lines: Vec<u32>,
}

/// The files of spans. A file may be known by name only (a `.nkir` program names the
/// Python files of its origin, which may not exist any more).
#[derive(Debug, Clone, Default)]
pub struct SourceMap {
    files: Vec<Source>,
}

impl SourceMap {
    /// No files.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file with its text. Ids are assigned in order, from 0.
    pub fn add(&mut self, path: impl Into<String>, text: impl Into<String>) -> FileId {
        let text = text.into();
        let mut lines = vec![0];
        lines.extend(text.bytes().enumerate().filter(|&(_, b)| b == b'\n').map(|(i, _)| i as u32 + 1));
        self.push(Source { path: path.into(), text: Some(text), lines })
    }

    /// Adds a file of which only the name is known.
    pub fn add_name(&mut self, path: impl Into<String>) -> FileId {
        self.push(Source { path: path.into(), text: None, lines: Vec::new() })
    }

    fn push(&mut self, source: Source) -> FileId {
        self.files.push(source);
        FileId(self.files.len() as u32 - 1)
    }

    /// Number of files.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Whether there are no files.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The name of a file as the user gave it, or `?` for an unknown id.
    pub fn path(&self, file: FileId) -> &str {
        self.files.get(file.0 as usize).map_or("?", |f| &f.path)
    }

    /// The text of a file, if it is known.
    pub fn text(&self, file: FileId) -> Option<&str> {
        self.files.get(file.0 as usize)?.text.as_deref()
    }

    /// The file with this name.
    pub fn find(&self, path: &str) -> Option<FileId> {
        let i = self.files.iter().position(|f| f.path == path)?;
        Some(FileId(i as u32))
    }

    /// Line and column of a span's first byte: 1-based, columns in characters.
    /// `(0, 0)` if the text is not known.
    pub fn line_col(&self, span: Span) -> (u32, u32) {
        let Some(source) = self.files.get(span.file.0 as usize) else {
            return (0, 0);
        };
        let Some(text) = &source.text else {
            return (0, 0);
        };
        let line = source.lines.partition_point(|&s| s <= span.start);
        let from = source.lines[line - 1] as usize;
        let to = floor_char(text, span.start as usize);
        let column = text.get(from..to).map_or(0, |s| s.chars().count());
        (line as u32, column as u32 + 1)
    }

    /// The span of a whole line (1-based), without its indentation and line end.
    pub fn line_span(&self, file: FileId, line: u32) -> Option<Span> {
        let source = self.files.get(file.0 as usize)?;
        let text = source.text.as_deref()?;
        let start = *source.lines.get(line.checked_sub(1)? as usize)? as usize;
        let whole = text[start..].lines().next().unwrap_or("");
        let indent = whole.len() - whole.trim_start().len();
        let from = (start + indent) as u32;
        Some(Span::new(file, from, from + whole.trim().len() as u32))
    }

    /// The offset of a column, in bytes from 0, of a line (1-based).
    pub fn offset(&self, file: FileId, line: u32, column: u32) -> Option<u32> {
        let source = self.files.get(file.0 as usize)?;
        source.lines.get(line.checked_sub(1)? as usize)?.checked_add(column)
    }

    /// The text of a line (1-based), without its line end.
    pub fn line_text(&self, file: FileId, line: u32) -> Option<&str> {
        let source = self.files.get(file.0 as usize)?;
        let text = source.text.as_deref()?;
        let start = *source.lines.get(line.checked_sub(1)? as usize)? as usize;
        Some(text[start..].lines().next().unwrap_or(""))
    }
}

/// The nearest character boundary at or before `at`.
pub(crate) fn floor_char(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_and_column_count_characters_from_one() {
        let mut map = SourceMap::new();
        let f = map.add("a.py", "x = 1\ny = 'é' + z\n");
        assert_eq!(map.line_col(Span::new(f, 0, 1)), (1, 1));
        assert_eq!(map.line_col(Span::new(f, 6, 7)), (2, 1));
        // 'é' is two bytes: z is byte 17, character 11 of its line.
        assert_eq!(map.line_col(Span::new(f, 17, 18)), (2, 11));
        assert_eq!(map.line_col(Span::new(f, 999, 999)).0, 3);
        assert_eq!(map.line_text(f, 2), Some("y = 'é' + z"));
    }

    #[test]
    fn names_without_text_have_no_lines() {
        let mut map = SourceMap::new();
        let f = map.add_name("gone.py");
        assert_eq!(map.path(f), "gone.py");
        assert_eq!(map.line_col(Span::new(f, 3, 4)), (0, 0));
        assert_eq!(map.line_span(f, 1), None);
        assert_eq!(map.path(FileId(9)), "?");
    }
}
