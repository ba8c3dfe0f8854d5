//! `nki-sim migrate OLD.py [-o NEW.py]`: a file for `neuronxcc.nki` in the current language.

use std::path::Path;

use nki_diag::{FileId, SourceMap, Span, render_all};
use nki_frontend::{Api, Change, Migration, migrate};

use crate::cli::MigrateArgs;
use crate::output::{color, eprint, print, write_file};
use crate::places::{Inputs, check_places};
use crate::{Failure, other_file, source_text};

/// Maximum length of a construct's text in the report.
const SHOWN: usize = 100;

/// Reports each construct on standard error, and writes the new file.
pub(crate) fn run(args: &MigrateArgs) -> Result<(), Failure> {
    let mut inputs = Inputs::default();
    inputs.add("the file that is migrated", &args.file);
    check_places(&[("--output", args.output.as_deref())], &inputs)?;
    let path = args.file.display().to_string();
    if let Some(what) = other_file::describe(&args.file) {
        return Err(Failure::Call(what));
    }
    let text = source_text::read(&args.file).map_err(|error| format!("cannot read `{path}`: {error}"))?;
    let mut sources = SourceMap::default();
    let file = sources.add(path, text.clone());
    let api = if args.beta1 { Api::Any } else { Api::Neuronxcc };
    let migrated = migrate(file, &text, api);
    if !migrated.errors.is_empty() {
        eprint(&render_all(&migrated.errors, &sources, color()));
        return Err(Failure::Kernel);
    }
    eprint(&report(&args.file, &sources, file, &migrated));
    let new = source_text::as_utf8(&with_line_ends_of(&text, &migrated.text));
    match &args.output {
        Some(output) => write_file(output, &[new.as_bytes()])?,
        None => print(&new),
    }
    if migrated.changes.iter().all(|c| c.rewritten) { Ok(()) } else { Err(Failure::Kernel) }
}

/// The new text, with CRLF line ends if the old text uses only these.
fn with_line_ends_of(old: &str, new: &str) -> String {
    let pairs = old.matches("\r\n").count();
    if pairs == 0 || pairs < old.matches('\n').count() {
        return new.to_owned();
    }
    new.replace("\r\n", "\n").replace('\n', "\r\n")
}

/// One line per construct, and their number.
fn report(path: &Path, sources: &SourceMap, file: FileId, migrated: &Migration) -> String {
    let mut out = String::new();
    for change in &migrated.changes {
        let (start, end) = (change.span.start as u32, change.span.end as u32);
        let (line, column) = sources.line_col(Span { file, start, end });
        out += &format!("{}:{line}:{column}: {}\n", path.display(), described(change));
    }
    let (done, left): (Vec<_>, Vec<_>) = migrated.changes.iter().partition(|c| c.rewritten);
    out += &match (done.len(), left.len()) {
        (0, 0) => {
            format!("{}: nothing of neuronxcc.nki (--beta1 also reads what a file imports from nki)\n", path.display())
        }
        (done, 0) => format!("{}: {done} rewritten, nothing is left to do by hand\n", path.display()),
        (done, left) => format!("{}: {done} rewritten, {left} left to do by hand\n", path.display()),
    };
    out
}

fn described(change: &Change) -> String {
    let short = |text: &str| {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        match text.char_indices().nth(SHOWN) {
            Some((at, _)) => format!("{}...", &text[..at]),
            None => text,
        }
    };
    if change.rewritten {
        format!("{} -> {}", short(&change.old), short(&change.new))
    } else {
        format!("by hand: {} -> {}", short(&change.old), change.new)
    }
}
