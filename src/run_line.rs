//! Run lines: comments above a kernel that supply its arguments, `# nki-sim: x=float32[256,512] causal=True`.
//!
//! They apply if the call has no `--arg`. A kernel may have several; together they are one list, in order.

use std::path::{Path, PathBuf};

use nki_diag::{Diagnostic, FileId, SourceMap, Span};
use nki_frontend::{KernelInfo, Loader, Refused, kernels};
use nki_isa::Target;

use crate::cli::KernelArgs;
use crate::session::{Compilation, Session};
use crate::value::{self, TensorSpec, Value};

/// The text after `#` in a run line.
const MARK: &str = "nki-sim:";

/// Invalid run lines, or run lines that name unknown parameters.
#[derive(Debug)]
pub(crate) struct Malformed {
    /// The kernel below them.
    pub(crate) kernel: String,
    /// The errors, each with its location.
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// The file.
    pub(crate) sources: SourceMap,
}

impl Malformed {
    /// As the compilation of a wrong kernel.
    pub(crate) fn program(self, target: Target) -> Compilation {
        Compilation { name: self.kernel, sources: self.sources, ..Compilation::wrong(target, self.diagnostics) }
    }
}

/// The arguments in the run lines of the selected kernel, in the syntax of `--arg`. `None` if the call has arguments, if the file is not Python
/// source, or if it cannot be evaluated or has no such kernel, which compilation reports.
///
/// # Errors
/// If the run lines are invalid.
pub(crate) fn arguments(
    args: &KernelArgs,
    session: &Session,
    loader: &dyn Loader,
) -> Result<Vec<(String, String)>, Malformed> {
    if !may_supply(args, loader) {
        return Ok(Vec::new());
    }
    let listing = kernels(&args.file, loader, args.kernel.as_deref(), session.memory);
    let Ok(kernel) = listing.choose(args.kernel.as_deref()) else { return Ok(Vec::new()) };
    let Some(text) = listing.sources.text(kernel.span.file) else { return Ok(Vec::new()) };
    let mut found = RunLine { file: kernel.span.file, kernel, arguments: Vec::new(), diagnostics: Vec::new() };
    for line in above(text, kernel.span.start as usize) {
        found.read(text, line);
    }
    if found.diagnostics.is_empty() {
        let folder = Path::new(listing.sources.path(kernel.span.file)).parent().unwrap_or(Path::new(""));
        return Ok(found.arguments.into_iter().map(|(name, text)| (name, beside(&text, folder))).collect());
    }
    let RunLine { diagnostics, .. } = found;
    Err(Malformed { kernel: kernel.name.clone(), diagnostics, sources: listing.sources })
}

/// Whether run lines apply: the call has no arguments, and the file is a source with a possible run line.
fn may_supply(args: &KernelArgs, loader: &dyn Loader) -> bool {
    let is_source = args.file.extension().is_none_or(|e| e != "nkir");
    args.args.is_empty() && is_source && loader.read(&args.file).is_ok_and(|text| text.contains(MARK))
}

/// The kernels of a file with several kernels, if the call selects none: those with a run line, and the others. Both are empty if there is one
/// kernel.
pub(crate) fn kernels_of(args: &KernelArgs, session: &Session, loader: &dyn Loader) -> (Vec<String>, Vec<String>) {
    if args.kernel.is_some() || !may_supply(args, loader) {
        return (Vec::new(), Vec::new());
    }
    let listing = kernels(&args.file, loader, None, session.memory);
    let Err(Refused::SeveralKernels(all)) = listing.choose(None) else { return (Vec::new(), Vec::new()) };
    let marked = |k: &KernelInfo| listing.sources.text(k.span.file).is_some_and(|text| is_above(k, text));
    let (with, without): (Vec<_>, Vec<_>) = all.into_iter().partition(marked);
    let names = |list: Vec<KernelInfo>| list.into_iter().map(|k| k.name).collect();
    (names(with), names(without))
}

/// Whether this text of the kernel's file has run lines above the kernel.
pub(crate) fn is_above(kernel: &KernelInfo, text: &str) -> bool {
    !above(text, kernel.span.start as usize).is_empty()
}

/// The arguments in the run lines above a kernel, as far as they are valid.
pub(crate) fn supplied(kernel: &KernelInfo, text: &str) -> Vec<(String, String)> {
    let lines = above(text, kernel.span.start as usize);
    let arguments = |&(start, end): &(usize, usize)| {
        let line = &text[start..end];
        words(line).into_iter().filter_map(|(from, to)| line[from..to].split_once('=')).collect::<Vec<_>>()
    };
    lines.iter().flat_map(arguments).map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// The run lines above the function whose name is at `name`: start and end of the arguments of each. Between them and `def` there may be other
/// comments, blank lines and decorators.
fn above(text: &str, name: usize) -> Vec<(usize, usize)> {
    let mut out = Vec::new();
    // Brackets of a multi-line decorator that are closed further down.
    let mut open = 0i32;
    // Python may have read a different version of the text.
    let mut end = text.get(..name).and_then(|before| before.rfind('\n')).unwrap_or(0);
    while end > 0 {
        let start = text[..end].rfind('\n').map_or(0, |at| at + 1);
        let line = text[start..end].trim_end();
        let code = line.trim_start();
        if let Some(comment) = code.strip_prefix('#') {
            if let Some(arguments) = comment.trim_start_matches(['#', ' ', '\t']).strip_prefix(MARK) {
                out.push((start + line.len() - arguments.len(), start + line.len()));
            }
        } else if !code.is_empty() {
            let balance = |c: char| i32::from(")]}".contains(c)) - i32::from("([{".contains(c));
            open += code.chars().map(balance).sum::<i32>();
            if !code.starts_with('@') && open <= 0 {
                break;
            }
        }
        end = start.saturating_sub(1);
    }
    out.reverse();
    out
}

/// The content of a kernel's run lines.
struct RunLine<'a> {
    file: FileId,
    kernel: &'a KernelInfo,
    arguments: Vec<(String, String)>,
    diagnostics: Vec<Diagnostic>,
}

impl RunLine<'_> {
    /// Reads one line.
    fn read(&mut self, text: &str, (start, end): (usize, usize)) {
        let line = &text[start..end];
        if line.trim().is_empty() {
            self.wrong((start, end), "a run line without arguments", "expected NAME=VALUE after the colon");
            return;
        }
        for (from, to) in words(line) {
            self.argument(&line[from..to], start + from);
        }
    }

    /// Parses `NAME=VALUE`, starting at this offset.
    fn argument(&mut self, word: &str, at: usize) {
        let place = (at, at + word.len());
        let Some((name, value)) = word.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            self.wrong(place, format!("`{word}` is not an argument"), "expected NAME=VALUE, without blanks around `=`");
            return;
        };
        if let Err(e) = value::parse(value) {
            let skipped: usize = value.chars().take(e.at - 1).map(char::len_utf8).sum();
            let from = (at + name.len() + 1 + skipped).min(place.1.saturating_sub(1)).max(at);
            self.wrong((from, place.1), format!("the value of `{name}` cannot be read: {}", e.message), "here");
        }
        if self.arguments.iter().any(|(known, _)| known == name) {
            self.wrong(place, format!("`{name}` is given twice"), "second value");
        }
        // NAME@RANK is for one rank.
        let bare = name.rsplit_once('@').map_or(name, |(bare, _)| bare);
        if !self.kernel.params.iter().any(|p| p.name == bare) {
            let text = format!("kernel `{}` has no parameter `{bare}`", self.kernel.name);
            let signature = format!("its signature is {}", self.kernel.signature);
            let d = Diagnostic::error("unknown-argument", text);
            self.diagnostics.push(d.at(self.span(at, at + name.len()), "not a parameter").note(signature));
        }
        self.arguments.push((name.to_owned(), value.to_owned()));
    }

    fn span(&self, start: usize, end: usize) -> Span {
        Span::new(self.file, start as u32, end as u32)
    }

    fn wrong(&mut self, (start, end): (usize, usize), what: impl Into<String>, label: &str) {
        let d = Diagnostic::error("malformed-run-line", what.into()).at(self.span(start, end), label);
        self.diagnostics.push(d.help("a run line is a list as in `# nki-sim: x=float32[128,512] causal=True`"));
    }
}

/// The files named in any run line of a text in this folder, whichever kernel it belongs to: the text is not evaluated.
pub(crate) fn files(text: &str, folder: &Path) -> Vec<PathBuf> {
    let mut out = Vec::new();
    let comments = text.lines().filter_map(|line| line.trim_start().strip_prefix('#'));
    for line in comments.filter_map(|comment| comment.trim_start_matches(['#', ' ', '\t']).strip_prefix(MARK)) {
        for (from, to) in words(line) {
            let Some((_, value)) = line[from..to].split_once('=') else { continue };
            if let Ok(value) = value::parse(&beside(value, folder)) {
                value.files(&mut |path| out.push(path.to_path_buf()));
            }
        }
    }
    out
}

/// The words of a line, separated by blanks outside of brackets and quotes.
fn words(line: &str) -> Vec<(usize, usize)> {
    let mut out = Vec::new();
    let (mut start, mut depth, mut quote) = (None, 0usize, None);
    for (at, c) in line.char_indices() {
        match (c, quote) {
            (c, Some(q)) if c == q => quote = None,
            (_, Some(_)) => {}
            ('"' | '\'', None) => quote = Some(c),
            ('(' | '[' | '{', None) => depth += 1,
            (')' | ']' | '}', None) => depth = depth.saturating_sub(1),
            _ => {}
        }
        if c.is_whitespace() && depth == 0 && quote.is_none() {
            out.extend(start.take().map(|from| (from, at)));
        } else {
            start.get_or_insert(at);
        }
    }
    out.extend(start.map(|from| (from, line.len())));
    out
}

/// The value with the path of an array resolved against the kernel's folder, independent of the current directory.
fn beside(text: &str, folder: &Path) -> String {
    match value::parse(text) {
        Ok(Value::Tensor(TensorSpec::File { path, .. })) if path.is_relative() => {
            let rest = text.trim_start().strip_prefix(&*path.to_string_lossy()).unwrap_or_default().to_owned();
            format!("{}{rest}", folder.join(path).display())
        }
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<&str> {
        let name = text.find("def k(").unwrap() + 4;
        above(text, name).into_iter().map(|(a, b)| text[a..b].trim()).collect()
    }

    #[test]
    fn run_lines_stand_above_the_decorators() {
        assert_eq!(lines("# nki-sim: x=1\n@nki.jit\ndef k(x): pass\n"), ["x=1"]);
        assert_eq!(lines("#nki-sim: x=1\n# Prose.\n\n## nki-sim: y=2\ndef k(x): pass\n"), ["x=1", "y=2"]);
        let decorated = "# nki-sim: x=1\n@nki.jit(\n    platform_target=(\n        'trn1'),\n)\ndef k(x): pass\n";
        assert_eq!(lines(decorated), ["x=1"]);
        // Neither the run line of a previous kernel nor one in a string applies.
        let before = "# nki-sim: x=1\ndef j(x):\n    pass\n\n@nki.jit\ndef k(x): pass\n";
        assert!(lines(before).is_empty());
        assert!(lines("'''\n# nki-sim: x=1\n'''\n@nki.jit\ndef k(x): pass\n").is_empty());
        assert!(lines("# nki-sim x=1\n@nki.jit\ndef k(x): pass\n").is_empty());
        // A place in another text.
        assert!(above("# nki-sim: x=1\n", 100).is_empty());
    }

    #[test]
    fn blanks_in_brackets_and_quotes_do_not_separate() {
        let line = " a=(k.npy, float32[1, 2])  b='x y' c={\"k\": 1}";
        let found: Vec<&str> = words(line).into_iter().map(|(a, b)| &line[a..b]).collect();
        assert_eq!(found, ["a=(k.npy, float32[1, 2])", "b='x y'", "c={\"k\": 1}"]);
    }

    #[test]
    fn files_of_all_run_lines_are_found_without_evaluation() {
        let text =
            "# nki-sim: x=a.npy n=3\nimport nothing\n  #nki-sim: y=(b.npy, float32[2])  z=/c.npy:int8\n# nki-sim: =\n";
        let found = files(text, Path::new("here"));
        assert_eq!(found, ["here/a.npy", "b.npy", "/c.npy"].map(PathBuf::from));
    }

    #[test]
    fn arrays_are_beside_the_kernel() {
        let folder = Path::new("some/where");
        assert_eq!(beside("x.npy", folder), "some/where/x.npy");
        assert_eq!(beside("x.npy:float8_e4m3", folder), "some/where/x.npy:float8_e4m3");
        assert_eq!(beside("/x.npy", folder), "/x.npy");
        assert_eq!(beside("float32[2]", folder), "float32[2]");
    }
}
