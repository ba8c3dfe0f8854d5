//! Programs in text form, each for one rule of the schedule: the events and waits of every row of
//! the timeline, in order.
//!
//! The expected rows are in comments at the end of each file of tests/programs, without times, so
//! that a calibration does not change them. `BLESS=1 cargo test --test programs` rewrites them;
//! review the difference before committing it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use nki_isa::text;
use nki_sim::session::{Compilation, Session};
use nki_sim_core::HostTensor;
use nki_sim_core::report;
use nki_sim_core::timeline::Timeline;

/// The number of characters before the text in a line of a timeline.
const TIMES: usize = 23;
/// The line that starts the expected rows.
const ROWS: &str = "\n// rows\n";

fn programs() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let entries = std::fs::read_dir(folder).expect("a folder of programs");
    let mut all: Vec<PathBuf> = entries.map(|e| e.expect("an entry").path()).collect();
    all.retain(|p| p.extension().is_some_and(|e| e == "nkir"));
    all.sort();
    all
}

/// Runs and times a program; all inputs are zero.
fn time(path: &Path, source: &str) -> Timeline {
    let name = path.file_name().expect("a file").to_string_lossy();
    let program = text::parse_file(&name, source).unwrap_or_else(|e| panic!("{name}: {e:#?}"));
    let wrong = program.validate();
    assert!(wrong.is_empty(), "{name}: {wrong:#?}");
    let session = Session::default();
    let kernel = session.place(&mut Compilation::of(program)).unwrap_or_else(|e| panic!("{name}: {e:#?}"));
    let inputs = kernel.program.inputs.iter().map(|i| {
        let tensor = kernel.program.tensor(i.tensor);
        let shape: Vec<usize> = tensor.shape.iter().map(|&n| n as usize).collect();
        let bytes = shape.iter().product::<usize>() * tensor.dtype.size();
        HostTensor { name: i.name.clone(), shape, dtype: tensor.dtype, data: vec![0; bytes].into() }.into()
    });
    session.run_alone_timed(&kernel, inputs.collect()).unwrap_or_else(|e| panic!("{name}: {e:?}")).1
}

/// Each row with activity: its events and its waits in order, as comment lines.
fn rows(timeline: &Timeline) -> String {
    let mut out = String::new();
    let mut last = "";
    let text = report::timeline(timeline);
    for line in text.lines().skip(1) {
        // Omit the two times. The issue of a transfer and its bytes are two spans.
        let what = line.get(TIMES..).filter(|_| line.starts_with(' '));
        if what != Some(last) {
            let _ = writeln!(out, "// {}{}", if what.is_some() { "  " } else { "" }, what.unwrap_or(line));
        }
        last = what.unwrap_or_default();
    }
    out
}

#[test]
fn rows_do_what_the_programs_say() {
    let all = programs();
    assert!(all.len() >= 12, "programs are missing: {all:?}");
    for path in all {
        let source = std::fs::read_to_string(&path).expect("readable");
        let (program, want) = source.split_once(ROWS).unwrap_or((source.trim_end(), ""));
        let got = rows(&time(&path, program));
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&path, format!("{}\n{ROWS}{got}", program.trim_end())).expect("writable");
        } else {
            assert_eq!(got, want, "{} (BLESS=1 rewrites it)", path.display());
        }
    }
}
