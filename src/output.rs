//! Files that are written whole or not at all, and the terminal.

use std::fs::{self, Metadata, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::OnceLock;

use nki_diag::ColorChoice;

/// Writes a file through a temporary one in the same directory, so that a reader never sees half of it. What is no regular file (a pipe,
/// `/dev/stdout`, `/dev/null`) is written as it is.
pub(crate) fn write_file(path: &Path, parts: &[&[u8]]) -> Result<(), String> {
    let known = fs::metadata(path);
    let done = match &known {
        Ok(m) if m.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        _ if path == Path::new("/dev/stdout") => write_all(&mut io::stdout().lock(), parts),
        Ok(m) if !m.is_file() => OpenOptions::new().write(true).open(path).and_then(|mut f| write_all(&mut f, parts)),
        _ => replace(path, known.ok(), parts),
    };
    done.map_err(|e| format!("cannot write `{}`: {}", path.display(), plain(&e)))
}

fn write_all(to: &mut impl Write, parts: &[&[u8]]) -> io::Result<()> {
    parts.iter().try_for_each(|part| to.write_all(part))?;
    to.flush()
}

fn replace(path: &Path, known: Option<Metadata>, parts: &[&[u8]]) -> io::Result<()> {
    // A link stays one: the file it leads to is replaced.
    let path = if known.is_some() { fs::canonicalize(path)? } else { path.to_path_buf() };
    let directory = match path.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(".nki-sim-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // Temporary files are private; results are what the user's umask makes them.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    let mut file = builder.tempfile_in(directory)?;
    write_all(file.as_file_mut(), parts)?;
    if let Some(known) = known {
        file.as_file().set_permissions(known.permissions())?;
    }
    file.persist(path).map(drop).map_err(|e| e.error)
}

/// The error without the name of the temporary file.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    text.split_once(" at path ").map_or(text.clone(), |(what, _)| what.into())
}

/// A progress bar on standard error; nothing where that is not a terminal.
pub(crate) struct Progress {
    what: &'static str,
    shown: bool,
}

impl Progress {
    /// A bar that counts `what`.
    pub(crate) fn new(what: &'static str) -> Self {
        Progress { what, shown: io::stderr().is_terminal() }
    }

    /// Shows that `done` of `total` are finished.
    pub(crate) fn show(&self, done: usize, total: usize, note: &str) {
        if self.shown {
            const WIDTH: usize = 30;
            let full = (done * WIDTH).checked_div(total).unwrap_or(WIDTH).min(WIDTH);
            let bar = format!("{}{}", "#".repeat(full), "-".repeat(WIDTH - full));
            eprint(&format!("\r\x1b[K[{bar}] {done} of {total} {} {note}", self.what));
        }
    }

    /// Removes the bar.
    pub(crate) fn clear(&self) {
        if self.shown {
            eprint("\r\x1b[K");
        }
    }
}

/// Prints to standard output. A closed pipe (`| head`) is not an error; other errors are reported at the end ([`printed`]).
pub(crate) fn print(text: &str) {
    let mut out = io::stdout().lock();
    if let Err(e) = out.write_all(text.as_bytes()).and_then(|()| out.flush())
        && e.kind() != io::ErrorKind::BrokenPipe
    {
        UNPRINTED.get_or_init(|| e.to_string());
    }
}

/// Whether all that was printed has arrived.
pub(crate) fn printed() -> Result<(), String> {
    UNPRINTED.get().map_or(Ok(()), |e| Err(format!("cannot write to standard output: {e}")))
}

/// Why standard output takes nothing.
static UNPRINTED: OnceLock<String> = OnceLock::new();

/// Prints to standard error.
pub(crate) fn eprint(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Whether diagnostics on standard error get colours: on a terminal, unless `NO_COLOR` is set.
pub(crate) fn color() -> ColorChoice {
    let wanted = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
    if wanted { ColorChoice::Color } else { ColorChoice::Plain }
}
