//! Atomic file output, and the terminal.

use std::fmt;
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use nki_diag::{ColorChoice, progress};
use nki_sim_core::HostTensor;
use tempfile::NamedTempFile;

use crate::cli::Color;
use crate::npy;
use crate::places::Inputs;

/// Writes a file through a temporary one in the same directory, so that a reader never sees a partial file. Pipes and devices, such as
/// `/dev/stdout` and `/dev/null`, are written directly; `-` is standard output.
pub(crate) fn write_file(path: &Path, parts: &[&[u8]]) -> Result<(), String> {
    let mut file = NewFile::create(path)?;
    parts.iter().try_for_each(|part| file.write(part))?;
    file.finish()
}

/// A file written piece by piece, with the guarantees of [`write_file`]: the old file is kept until the new one is finished.
pub(crate) struct NewFile {
    /// For messages.
    path: PathBuf,
    to: Sink,
}

enum Sink {
    Stdout,
    /// A pipe or a device.
    Direct(File),
    /// A temporary file, its destination, and the permissions of the file that it replaces.
    Replacement(NamedTempFile, PathBuf, Option<Permissions>),
}

impl NewFile {
    /// # Errors
    /// If the directory cannot be written to, or the path is a directory.
    pub(crate) fn create(path: &Path) -> Result<Self, String> {
        let known = fs::metadata(path);
        let to = match &known {
            Ok(m) if m.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
            _ if is_stdout(path) => Ok(Sink::Stdout),
            Ok(m) if !m.is_file() => OpenOptions::new().write(true).open(path).map(Sink::Direct),
            _ => replacement(path, known.ok()),
        };
        match to {
            Ok(to) => Ok(NewFile { path: path.to_path_buf(), to }),
            Err(e) => Err(failed(path, &e)),
        }
    }

    /// # Errors
    /// If it cannot be written.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), String> {
        let done = match &mut self.to {
            // A closed pipe (`--json - | head`) is not an error.
            Sink::Stdout => unless_closed(io::stdout().lock().write_all(bytes)),
            Sink::Direct(file) => file.write_all(bytes),
            Sink::Replacement(file, ..) => file.write_all(bytes),
        };
        done.map_err(|e| failed(&self.path, &e))
    }

    /// Moves the file to its destination.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn finish(self) -> Result<(), String> {
        let done = match self.to {
            Sink::Stdout => unless_closed(io::stdout().lock().flush()),
            Sink::Direct(mut file) => file.flush(),
            Sink::Replacement(file, place, permissions) => permissions
                .map_or(Ok(()), |p| file.as_file().set_permissions(p))
                .and_then(|()| file.persist(place).map(drop).map_err(|e| e.error)),
        };
        done.map_err(|e| failed(&self.path, &e))
    }
}

/// Maximum number of symbolic links to follow, as in Linux.
const MOST_LINKS: usize = 40;

/// The target of a path that may not exist: a symbolic link may point to a file that is still to be created.
///
/// # Errors
/// If links form a cycle.
pub(crate) fn link_target(path: &Path) -> io::Result<PathBuf> {
    let mut at = path.to_path_buf();
    for _ in 0..MOST_LINKS {
        match fs::read_link(&at) {
            Ok(target) => at = at.parent().unwrap_or(Path::new("")).join(target),
            Err(_) => return Ok(at),
        }
    }
    Err(io::Error::other("too many levels of symbolic links"))
}

fn replacement(path: &Path, known: Option<Metadata>) -> io::Result<Sink> {
    // A link is kept: its target is replaced or created.
    let path = if known.is_some() { fs::canonicalize(path)? } else { link_target(path)? };
    let directory = match path.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(".nki-sim-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // Temporary files are private; results have the permissions of the user's umask.
        builder.permissions(Permissions::from_mode(0o666));
    }
    let file = builder.tempfile_in(directory)?;
    Ok(Sink::Replacement(file, path, known.map(|m| m.permissions())))
}

fn failed(path: &Path, error: &io::Error) -> String {
    format!("cannot write `{}`: {}", path.display(), plain(error))
}

/// The file of an output in the output directory.
pub(crate) fn output_file(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{name}.npy"))
}

/// Writes each output to `NAME.npy` in a directory, unless that would overwrite an input.
pub(crate) fn write_outputs(inputs: &Inputs, directory: &Path, outputs: &[HostTensor]) -> Result<(), String> {
    fs::create_dir_all(directory).map_err(|e| format!("cannot make directory `{}`: {e}", directory.display()))?;
    let paths: Vec<_> = outputs.iter().map(|o| output_file(directory, &o.name)).collect();
    paths.iter().try_for_each(|path| inputs.check("--out", path))?;
    for (output, path) in outputs.iter().zip(paths) {
        write_file(&path, &[&npy::header(output.dtype, &output.shape), &output.data])?;
    }
    Ok(())
}

/// The error message without the name of the temporary file.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    text.split_once(" at path ").map_or(text.clone(), |(what, _)| what.into())
}

/// Duration of work before its progress is shown.
const PATIENCE: Duration = Duration::from_secs(1);

/// A progress bar on standard error, shown after a second of work, if standard error is a terminal.
pub(crate) struct Progress {
    bar: ProgressBar,
    started: Instant,
}

impl Progress {
    /// A bar that counts `what`.
    pub(crate) fn new(what: &'static str) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden()).with_prefix(what);
        if let Ok(style) = ProgressStyle::with_template("[{bar:30}] {pos} of {len} {prefix} {msg}") {
            bar.set_style(style.progress_chars("#>-"));
        }
        Progress { bar, started: Instant::now() }
    }

    /// Shows that `done` of `total` are finished. Threads may report out of order.
    pub(crate) fn show(&self, done: usize, total: usize, note: &str) {
        if self.bar.is_hidden() && self.started.elapsed() >= PATIENCE && io::stderr().is_terminal() {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.set_length(total as u64);
        self.bar.set_position(done as u64);
        self.bar.set_message(note.to_owned());
    }

    /// Removes the bar.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// A status line on standard error, shown after a second of work, if standard error is a terminal.
/// Dropping it removes the line.
pub(crate) struct PendingOutput {
    bar: ProgressBar,
    /// Closed to end the thread that shows the line after a delay.
    over: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl PendingOutput {
    /// Starts an activity.
    pub(crate) fn new(what: &'static str) -> Self {
        progress::begin("statements", 0);
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden()).with_message(what);
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}{count}, {elapsed}") {
            // Redrawn ten times a second.
            bar.set_style(style.with_key("count", |_: &ProgressState, out: &mut dyn fmt::Write| {
                let count = progress::text();
                let _ = if count.is_empty() { Ok(()) } else { write!(out, ": {count}") };
            }));
        }
        let (over, ends) = channel();
        let shown = bar.clone();
        let thread = io::stderr().is_terminal().then(|| {
            std::thread::spawn(move || {
                if ends.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                    shown.set_draw_target(ProgressDrawTarget::stderr());
                    shown.enable_steady_tick(Duration::from_millis(100));
                }
            })
        });
        PendingOutput { bar, over: Some(over), thread }
    }

    /// Switches to another activity.
    pub(crate) fn say(&self, what: &'static str) {
        progress::begin("statements", 0);
        self.bar.set_message(what);
    }
}

impl Drop for PendingOutput {
    fn drop(&mut self) {
        self.over = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        self.bar.finish_and_clear();
    }
}

/// Whether a path from the command line is standard output.
pub(crate) fn is_stdout(path: &Path) -> bool {
    [Path::new("-"), Path::new("/dev/stdout")].contains(&path)
}

/// Treats a closed pipe as success.
fn unless_closed(done: io::Result<()>) -> io::Result<()> {
    done.or_else(|e| if e.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(e) })
}

/// If one of a command's output files is standard output, its messages go to standard error, so that they do not corrupt the
/// file.
pub(crate) fn reserve_stdout<'a>(mut files: impl Iterator<Item = &'a Path>) {
    if files.any(is_stdout) {
        RESERVED.store(true, Ordering::Relaxed);
    }
}

/// Whether the command's messages go to standard error ([`reserve_stdout`]).
pub(crate) fn stdout_is_reserved() -> bool {
    RESERVED.load(Ordering::Relaxed)
}

/// Whether standard output is one of the command's files.
static RESERVED: AtomicBool = AtomicBool::new(false);

/// Prints human-readable text to standard output, or to standard error if standard output is reserved ([`reserve_stdout`]).
pub(crate) fn print(text: &str) {
    if RESERVED.load(Ordering::Relaxed) { eprint(text) } else { print_document(text) }
}

/// Prints machine-readable text to standard output. A closed pipe (`| head`) is not an error; other errors are reported at the end
/// ([`printed`]).
pub(crate) fn print_document(text: &str) {
    let mut out = io::stdout().lock();
    if let Err(e) = unless_closed(out.write_all(text.as_bytes()).and_then(|()| out.flush())) {
        UNPRINTED.get_or_init(|| e.to_string());
    }
}

/// Whether all output was written.
pub(crate) fn printed() -> Result<(), String> {
    UNPRINTED.get().map_or(Ok(()), |e| Err(format!("cannot write to standard output: {e}")))
}

/// The error of the first failed write to standard output.
static UNPRINTED: OnceLock<String> = OnceLock::new();

/// Prints to standard error.
pub(crate) fn eprint(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Starts the simulator's own log on standard error, with the level in `NKI_SIM_LOG`: `error`, `warn`, `info`, `debug` or `trace`.
pub(crate) fn start_log() {
    let Ok(level) = std::env::var("NKI_SIM_LOG") else { return };
    match level.parse::<tracing::level_filters::LevelFilter>() {
        // A process may run several commands, as in Python.
        Ok(level) => {
            let _ = tracing_subscriber::fmt().with_max_level(level).with_writer(io::stderr).try_init();
        }
        Err(_) => {
            eprint(&format!("warning: NKI_SIM_LOG={level} is not a level: error, warn, info, debug, trace or off\n"))
        }
    }
}

/// The value of `--color`, as the position in [`Color`]. A process may run several commands, as in Python.
static COLOR: AtomicU8 = AtomicU8::new(Color::Auto as u8);

/// Starts a command with this colour setting.
pub(crate) fn begin(color: Color) {
    COLOR.store(color as u8, Ordering::Relaxed);
    RESERVED.store(false, Ordering::Relaxed);
}

/// Whether diagnostics on standard error are coloured.
pub(crate) fn color() -> ColorChoice {
    let plain = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
    let wanted = match COLOR.load(Ordering::Relaxed) {
        c if c == Color::Always as u8 => true,
        c if c == Color::Never as u8 => false,
        _ => io::stderr().is_terminal() && !plain,
    };
    if wanted { ColorChoice::Color } else { ColorChoice::Plain }
}
