//! Files that are written whole or not at all, and the terminal.

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use nki_diag::ColorChoice;

/// Writes a file through a temporary one in the same directory, so that a reader never sees half of it.
pub(crate) fn write_file(path: &Path, parts: &[&[u8]]) -> Result<(), String> {
    let fail = |e: io::Error| format!("cannot write `{}`: {e}", path.display());
    let directory = match path.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    };
    let mut file = tempfile::Builder::new().prefix(".nki-sim-").tempfile_in(directory).map_err(fail)?;
    for part in parts {
        file.write_all(part).map_err(fail)?;
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // Temporary files are private; results are not.
        file.as_file().set_permissions(std::fs::Permissions::from_mode(0o644)).map_err(fail)?;
    }
    file.persist(path).map_err(|e| fail(e.error))?;
    Ok(())
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

/// Prints to standard output. A closed pipe (`| head`) is not an error.
pub(crate) fn print(text: &str) {
    let _ = io::stdout().lock().write_all(text.as_bytes());
}

/// Prints to standard error.
pub(crate) fn eprint(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Whether diagnostics on standard error get colours: on a terminal, unless `NO_COLOR` is set.
pub(crate) fn color() -> ColorChoice {
    let wanted = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
    if wanted { ColorChoice::Color } else { ColorChoice::Plain }
}
