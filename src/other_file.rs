//! Files mistakenly given as a kernel: reports, traces, profiles, arrays.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use serde::de::IgnoredAny;

/// Describes a file, and the tool that reads it, if its content shows that it is not a kernel.
pub(crate) fn describe(path: &Path) -> Option<String> {
    // A pipe can be read only once.
    if !std::fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let what = of_content(File::open(path).ok()?)?;
    Some(format!("`{}` is {what}; expected a .py or .nkir file with a kernel", path.display()))
}

fn of_content(mut file: File) -> Option<&'static str> {
    let mut start = [0; 256];
    let length = file.read(&mut start).ok()?;
    let start = &start[..length];
    if start.starts_with(b"\x93NUMPY") {
        return Some("an array; pass it as an argument of a kernel: --arg NAME=FILE.npy");
    }
    if start.starts_with(b"PK\x03\x04") {
        return Some("an archive; `--arg NAME=FILE.npy` takes an array that numpy.save wrote");
    }
    if start.starts_with(b"PAR1") {
        return Some("a table in Parquet; `nki-sim compare` reads the directory of such tables");
    }
    // Packets of a Perfetto trace are field 1 of the file. Text contains no NUL.
    if start.starts_with(b"\x0a") && start.contains(&0) {
        return Some("a trace; https://ui.perfetto.dev shows it");
    }
    let text = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start).trim_ascii_start();
    if !text.starts_with(b"{") && !text.starts_with(b"[") {
        return None;
    }
    let skipped = (start.len() - text.len()) as u64;
    let mut from_text = || file.seek(SeekFrom::Start(skipped)).and_then(|_| file.try_clone()).map(BufReader::new).ok();
    let keys: Option<BTreeMap<String, IgnoredAny>> = serde_json::from_reader(from_text()?).ok();
    if let Some(keys) = keys {
        return Some(of_keys(|name| keys.contains_key(name)));
    }
    let is_list = serde_json::from_reader::<_, Vec<IgnoredAny>>(from_text()?).is_ok();
    is_list.then_some("JSON")
}

/// Describes a JSON object with these keys.
fn of_keys(has: impl Fn(&str) -> bool) -> &'static str {
    if has("latency_us") && has("engines") {
        return "a report of `nki-sim run`; `nki-sim compare BEFORE AFTER` compares two of them";
    }
    if has("nki_sim_version") && has("files") {
        return "a report of `nki-sim compare`";
    }
    if has("nki_sim_version") && has("findings") {
        return "a report of `nki-sim check`, or of a kernel that did not run: see its findings";
    }
    if has("traceEvents") {
        return "a trace; https://ui.perfetto.dev shows it";
    }
    if has("instruction") {
        return "a profile; `nki-sim replay`, `calibrate` and `compare` read those of the hardware";
    }
    if has("nbformat") {
        return "a notebook; `jupyter nbconvert --to script` makes a Python file of it";
    }
    if has("runs") && has("$schema") {
        return "a list of findings (SARIF)";
    }
    "JSON"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(content: &[u8]) -> Option<String> {
        let folder = tempfile::tempdir().expect("created");
        let path = folder.path().join("f.py");
        std::fs::write(&path, content).expect("written");
        describe(&path)
    }

    #[test]
    fn other_files_are_known_by_their_content() {
        let rows: [(&[u8], &str); 9] = [
            (b"\x93NUMPY\x01\x00", "is an array; pass it"),
            (b"PK\x03\x04", "is an archive"),
            (b"PAR1", "is a table in Parquet"),
            (b"\xef\xbb\xbf {\"latency_us\": 1, \"engines\": {}}", "is a report of `nki-sim run`; `nki-sim compare"),
            (b"{\"traceEvents\": []}", "is a trace"),
            (b"\x0a\x10\x08\x00", "is a trace"),
            (b"{\"instruction\": []}", "is a profile; `nki-sim replay`"),
            (b"\n[1, {\"a\": 2}]\n", "is JSON; expected a .py or .nkir file"),
            (b"{\"cells\": [], \"nbformat\": 4}", "is a notebook"),
        ];
        for (content, what) in rows {
            let text = of(content).expect("known");
            assert!(text.contains(what), "{text}");
        }
    }

    #[test]
    fn python_is_left_to_the_compiler() {
        for content in ["import nki\n", "", "[x for x in y]\n", "{'a': 1}\n", "(1)\n"] {
            assert_eq!(of(content.as_bytes()), None, "{content}");
        }
        assert_eq!(describe(Path::new("nothing/of/this/name.json")), None);
    }
}
