//! The memory limit of a kernel: the option, the variable, the share of the machine.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use nki_diag::memory::{Limit, size};

/// Advice if the limit is too low.
pub(crate) const ADVICE: &str = "if the kernel is meant to be this large, raise the limit: --max-memory SIZE, NKI_SIM_MAX_MEMORY, or nki_sim.configure(max_memory=SIZE)";

/// Sets the limit in the absence of an option.
const VARIABLE: &str = "NKI_SIM_MAX_MEMORY";

/// The limit if the system does not report its memory.
const UNKNOWN: u64 = 8 << 30;

/// The last computed limit, for code that reads files without a session.
static IN_FORCE: AtomicU64 = AtomicU64::new(u64::MAX);

/// The default limit, computed on first use.
static DEFAULT: OnceLock<u64> = OnceLock::new();

/// Maximum bytes of a source file.
const LONGEST_SOURCE: u64 = 256 << 20;

/// The limit configured by a caller of the library.
static CONFIGURED: Mutex<Option<String>> = Mutex::new(None);

/// Sets the limit for this process, in the syntax of `--max-memory`; `None` resets it.
///
/// # Errors
/// If it is not a valid size.
pub fn configure(size: Option<&str>) -> Result<(), String> {
    if let Some(size) = size {
        parse(size)?;
    }
    *CONFIGURED.lock().unwrap_or_else(PoisonError::into_inner) = size.map(String::from);
    Ok(())
}

/// The limit: the option, else the value of [`configure`], else the variable, else half of the available memory. The rest is for
/// uncounted memory (parsing, rendering, temporary copies, allocator overhead) and for other processes.
///
/// # Errors
/// If the option or the variable is not a valid size.
pub fn limit(option: Option<&str>) -> Result<Limit, String> {
    let bytes = |text: &str, from: &str| parse(text).map_err(|e| format!("{from}: {e}"));
    let configured = CONFIGURED.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let bytes = match (option, configured) {
        (Some(text), _) => bytes(text, "--max-memory")?,
        (None, Some(text)) => bytes(&text, "max_memory")?,
        (None, None) => match std::env::var(VARIABLE) {
            Ok(text) if !text.trim().is_empty() => bytes(&text, &format!("environment variable {VARIABLE}"))?,
            Err(std::env::VarError::NotUnicode(_)) => {
                return Err(format!("environment variable {VARIABLE} is not UTF-8"));
            }
            _ => *DEFAULT.get_or_init(|| available().map_or(UNKNOWN, |free| free / 2)),
        },
    };
    IN_FORCE.store(bytes, Ordering::Relaxed);
    Ok(Limit { bytes, resident })
}

/// Rejects a file of this size if it does not fit into the memory limit.
pub(crate) fn check_file(path: &Path, bytes: u64) -> Result<(), String> {
    let limit = IN_FORCE.load(Ordering::Relaxed);
    if bytes <= limit {
        return Ok(());
    }
    let file = path.display();
    Err(format!("`{file}` has {}; the memory limit is {}: {ADVICE}", size(bytes), size(limit)))
}

/// Reads a stream without a known size, such as a pipe.
pub(crate) fn read_stream(path: &Path) -> Result<Vec<u8>, String> {
    let fail = |e: io::Error| format!("cannot read `{}`: {e}", path.display());
    let limit = IN_FORCE.load(Ordering::Relaxed);
    let mut bytes = Vec::new();
    fs::File::open(path).map_err(fail)?.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(fail)?;
    check_file(path, bytes.len() as u64)?;
    Ok(bytes)
}

/// The bytes of a source file, or of a pipe.
///
/// # Errors
/// If it cannot be read, or seems endless.
pub(crate) fn read_source(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(LONGEST_SOURCE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LONGEST_SOURCE {
        return Err(io::Error::other(format!("it has more than {}", size(LONGEST_SOURCE))));
    }
    Ok(bytes)
}

/// The text of a source file, or of a pipe.
///
/// # Errors
/// If it cannot be read, seems endless, or is not UTF-8 (`InvalidData`).
pub(crate) fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read_source(path)?).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))
}

/// Bytes of a size: `8GiB`, `500MB`, `2e9`, `50%` of the machine's memory.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let wrong = || format!("`{text}` is not a size: expected a number with a unit, such as 8GiB, 500MB or 50%");
    let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let factor = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "kb" => 1e3,
        "mb" => 1e6,
        "gb" => 1e9,
        "tb" => 1e12,
        "k" | "kib" => 1024.0,
        "m" | "mib" => 1024.0 * 1024.0,
        "g" | "gib" => 1024.0 * 1024.0 * 1024.0,
        "t" | "tib" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        "%" => {
            let total = total().ok_or("a percentage needs the machine's memory size, which is unknown; give a size")?;
            total as f64 / 100.0
        }
        _ => return Err(wrong()),
    };
    let bytes = number * factor;
    if bytes >= (1 << 20) as f64 && bytes.is_finite() {
        Ok(bytes as u64)
    } else {
        Err(format!("`{text}` is too small: the minimum is 1MiB"))
    }
}

/// The value in bytes of a line of `/proc/meminfo` or `/proc/self/status`.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(':'))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

fn meminfo(name: &str) -> Option<u64> {
    field(&fs::read_to_string("/proc/meminfo").ok()?, name)
}

/// The machine's memory, or the limit of its control group.
fn total() -> Option<u64> {
    let machine = meminfo("MemTotal");
    groups().into_iter().filter_map(|g| g.limit()).chain(machine).min()
}

/// Memory available without swapping and within the limits of control groups.
fn available() -> Option<u64> {
    let machine = meminfo("MemAvailable");
    let room = |g: Group| Some(g.limit()?.saturating_sub(g.usage().unwrap_or(0)));
    groups().into_iter().filter_map(room).chain(machine).min()
}

/// Bytes that this process occupies, resident or swapped out.
fn resident() -> Option<u64> {
    occupied("self")
}

/// Bytes that another process occupies.
pub(crate) fn resident_of(process: u32) -> Option<u64> {
    occupied(&process.to_string())
}

fn occupied(process: &str) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    Some(field(&text, "VmRSS")?.saturating_add(field(&text, "VmSwap").unwrap_or(0)))
}

/// A control group of this process: its directory, and the names of its files.
struct Group {
    directory: PathBuf,
    limit: &'static str,
    usage: &'static str,
}

impl Group {
    fn number(&self, name: &str) -> Option<u64> {
        fs::read_to_string(self.directory.join(name)).ok()?.trim().parse().ok()
    }

    /// `None` if there is no limit: `max` is not a number.
    fn limit(&self) -> Option<u64> {
        self.number(self.limit)
    }

    fn usage(&self) -> Option<u64> {
        self.number(self.usage)
    }
}

/// The control groups of this process, of either version, and their ancestors.
fn groups() -> Vec<Group> {
    let Ok(text) = fs::read_to_string("/proc/self/cgroup") else { return Vec::new() };
    let mut out = Vec::new();
    for line in text.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let (root, limit, usage) = if controllers.is_empty() {
            ("/sys/fs/cgroup", "memory.max", "memory.current")
        } else if controllers.split(',').any(|c| c == "memory") {
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes")
        } else {
            continue;
        };
        // In a container the path may be the host's: then only the root exists.
        for at in Path::new(path).ancestors() {
            let directory = Path::new(root).join(at.strip_prefix("/").unwrap_or(at));
            out.push(Group { directory, limit, usage });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(parse("8GiB"), Ok(8 << 30));
        assert_eq!(parse(" 500 MB "), Ok(500_000_000));
        assert_eq!(parse("1.5m"), Ok(3 << 19));
        assert_eq!(parse("1048576"), Ok(1 << 20));
        for wrong in ["", "GiB", "8 GiBs", "-1GB", "1KB", "0", "nan", "1e999", "inf%"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_files_of_the_system_are_read() {
        let text = "VmPeak:\t  100 kB\nVmRSS:\t    12 kB\nThreads:\t3\n";
        assert_eq!(field(text, "VmRSS"), Some(12 * 1024));
        assert_eq!((field(text, "Vm"), field(text, "Threads")), (None, None));
        if cfg!(target_os = "linux") {
            assert!(resident().is_some_and(|r| r > 100_000));
            assert!(available() <= total() && parse("50%").is_ok());
        }
    }
}
