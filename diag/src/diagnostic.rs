//! The diagnostic value and its builders.

use serde::Serialize;

use crate::source::{FileId, SourceMap, Span, floor_char};

/// Severity of a diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The kernel is wrong: exit code 1.
    Error,
    /// The kernel runs, but probably not as intended.
    Warning,
    /// Additional information.
    Info,
}

impl Severity {
    /// `error`, `warning` or `info`.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info => "info",
        }
    }
}

/// A location in the user's source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A range of bytes of a file.
    Span(Span),
    /// A range of bytes whose line and column (1-based) are known even if the text is not, as in
    /// a `.nkir` program.
    Loc {
        /// The bytes.
        span: Span,
        /// 1-based line.
        line: u32,
        /// 1-based column in characters.
        column: u32,
    },
    /// A line of a file known by name.
    Line {
        /// The file's name.
        path: String,
        /// 1-based line.
        line: u32,
    },
}

impl Place {
    /// The file's name, line and column; zeros where unknown.
    pub fn resolve<'a>(&'a self, map: &'a SourceMap) -> (&'a str, u32, u32) {
        match self {
            Place::Span(span) => {
                let (line, column) = map.line_col(*span);
                (map.path(span.file), line, column)
            }
            Place::Loc { span, line, column } => (map.path(span.file), *line, *column),
            Place::Line { path, line } => (path, *line, 0),
        }
    }

    /// The bytes to underline, if the file's text is known.
    pub(crate) fn underline(&self, map: &SourceMap) -> Option<Span> {
        match self {
            Place::Span(span) => map.text(span.file).map(|_| *span),
            Place::Loc { span, line, .. } => {
                map.text(span.file)?;
                // The text may have changed since the program was lowered.
                if map.line_col(*span).0 == *line { Some(*span) } else { map.line_span(span.file, *line) }
            }
            Place::Line { path, line } => map.line_span(map.find(path)?, *line),
        }
    }

    pub(crate) fn file(&self, map: &SourceMap) -> Option<FileId> {
        match self {
            Place::Span(span) | Place::Loc { span, .. } => Some(span.file),
            Place::Line { path, .. } => map.find(path),
        }
    }
}

/// A place with a short description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// The location.
    pub place: Place,
    /// The description; may be empty.
    pub text: String,
    /// Whether this is the diagnostic's primary place (else it is context).
    pub primary: bool,
}

/// Something the user should know about the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Slug, e.g. `uninitialized-read`: a line of [`crate::slugs`].
    pub id: &'static str,
    /// Severity.
    pub severity: Severity,
    /// One sentence: the operand, the rule, the actual number, the limit.
    pub message: String,
    /// Places, the primary one first.
    pub labels: Vec<Label>,
    /// Facts that explain it.
    pub notes: Vec<String>,
    /// What to do.
    pub help: Vec<String>,
    /// A change to the call; rendered as a line of help if the caller's options are known.
    pub advice: Option<Advice>,
}

/// A change to the way a kernel is launched. The launcher names its own option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// Start as many ranks as the kernel names.
    MoreRanks,
    /// Start the kernel on two cores.
    TwoCores,
    /// Choose another target.
    OtherTarget,
    /// Allow more steps of specialisation.
    MoreSteps,
    /// Allow more memory.
    MoreMemory,
}

/// Maximum bytes of a message, label, note or help text.
const LONGEST: usize = 4000;

/// The text, truncated if it is too long to read: it may contain a kernel's data.
fn cut(text: impl Into<String>) -> String {
    let mut text = text.into();
    if text.len() > LONGEST {
        let end = floor_char(&text, LONGEST);
        let rest = text.len() - end;
        text.truncate(end);
        text.push_str(&format!("... ({rest} more bytes)"));
        text.shrink_to_fit();
    }
    text
}

impl Diagnostic {
    fn new(severity: Severity, id: &'static str, message: impl Into<String>) -> Self {
        let (labels, notes, help) = (Vec::new(), Vec::new(), Vec::new());
        Diagnostic { id, severity, message: cut(message), labels, notes, help, advice: None }
    }

    /// An error: the kernel is wrong.
    pub fn error(id: &'static str, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, id, message)
    }

    /// A warning.
    pub fn warning(id: &'static str, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, id, message)
    }

    /// A remark.
    pub fn info(id: &'static str, message: impl Into<String>) -> Self {
        Self::new(Severity::Info, id, message)
    }

    fn label(mut self, place: Place, text: impl Into<String>, primary: bool) -> Self {
        self.labels.push(Label { place, text: cut(text), primary });
        self
    }

    /// The primary place.
    #[must_use]
    pub fn at(self, span: Span, text: impl Into<String>) -> Self {
        self.label(Place::Span(span), text, true)
    }

    /// A further relevant place.
    #[must_use]
    pub fn with(self, span: Span, text: impl Into<String>) -> Self {
        self.label(Place::Span(span), text, false)
    }

    /// The primary place, with line and column in case the source text is not available.
    #[must_use]
    pub fn at_loc(self, span: Span, line: u32, column: u32, text: impl Into<String>) -> Self {
        self.label(Place::Loc { span, line, column }, text, true)
    }

    /// A further relevant place, with line and column in case the source text is not available.
    #[must_use]
    pub fn with_loc(self, span: Span, line: u32, column: u32, text: impl Into<String>) -> Self {
        self.label(Place::Loc { span, line, column }, text, false)
    }

    /// The primary line, in a file known by name.
    #[must_use]
    pub fn at_line(self, path: impl Into<String>, line: u32, text: impl Into<String>) -> Self {
        let path = path.into();
        self.label(Place::Line { path, line }, text, true)
    }

    /// A further relevant line, in a file known by name.
    #[must_use]
    pub fn with_line(self, path: impl Into<String>, line: u32, text: impl Into<String>) -> Self {
        let path = path.into();
        self.label(Place::Line { path, line }, text, false)
    }

    /// A change to the call.
    #[must_use]
    pub fn advise(mut self, advice: Advice) -> Self {
        self.advice = Some(advice);
        self
    }

    /// A fact that explains it.
    #[must_use]
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(cut(text));
        self
    }

    /// A possible fix.
    #[must_use]
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.help.push(cut(text));
        self
    }

    /// Whether it makes the kernel wrong.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// The primary place: the first primary label, else the first label.
    pub fn primary(&self) -> Option<&Label> {
        self.labels.iter().find(|l| l.primary).or_else(|| self.labels.first())
    }

    /// File, line and column (1-based) of the primary place, if any.
    pub fn location<'a>(&'a self, map: &'a SourceMap) -> Option<(&'a str, u32, u32)> {
        self.primary().map(|l| l.place.resolve(map))
    }
}
