//! Kernels and programs with random faults: a number replaced, a word removed or taken from another
//! line, a line removed, repeated or moved.
//!
//! For any fault, the simulator returns an outcome or a diagnostic and never panics. If a faulty
//! kernel still runs, its program survives printing and parsing, gives the same results twice, and
//! has a consistent timeline.

mod oracle;

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nki_frontend::{Arg, Options};
use nki_isa::DType::{self, BF16, F32, I32};
use nki_isa::Target;
use proptest::prelude::*;

/// A kernel file, the kernel in it, its tensors and its literals.
struct Case {
    file: &'static str,
    kernel: Option<&'static str>,
    tensors: &'static [(&'static str, &'static [usize], DType)],
    literals: &'static [(&'static str, i64)],
}

const fn case(
    file: &'static str,
    kernel: Option<&'static str>,
    tensors: &'static [(&'static str, &'static [usize], DType)],
    literals: &'static [(&'static str, i64)],
) -> Case {
    Case { file, kernel, tensors, literals }
}

const CASES: &[Case] = &[
    case("examples/elementwise.py", None, &[("a", &[129, 513], F32), ("b", &[129, 513], F32)], &[]),
    case("examples/matmul_tiled.py", None, &[("a_t", &[256, 128], BF16), ("b", &[256, 512], BF16)], &[]),
    case(
        "examples/matmul_blocked.py",
        None,
        &[("a_t", &[256, 256], F32), ("b", &[256, 512], F32)],
        &[("block_m", 2), ("block_n", 1)],
    ),
    case("examples/softmax.py", None, &[("x", &[130, 96], F32)], &[]),
    case("examples/rmsnorm.py", None, &[("x", &[130, 96], BF16), ("weight", &[1, 96], BF16)], &[]),
    case(
        "examples/flash_attention.py",
        None,
        &[("q_t", &[64, 128], BF16), ("k_t", &[64, 512], BF16), ("v", &[512, 64], BF16)],
        &[("scale", 1)],
    ),
    case("examples/gather.py", None, &[("table", &[100, 64], F32), ("indices", &[130, 1], I32)], &[]),
    case("examples/dynamic_loop.py", None, &[("x", &[8, 128, 32], F32), ("count", &[1, 1], I32)], &[]),
    case("examples/direct_allocation.py", None, &[("a_t", &[128, 128], F32), ("b", &[128, 1024], F32)], &[]),
    case("tests/kernels/panels.py", Some("tile_of_its_own"), &[("x", &[10, 112, 384], F32)], &[]),
    case("tests/kernels/midpoint.py", None, &[("p", &[96, 320], F32), ("q", &[96, 320], F32)], &[]),
];

/// Replacements for a number or a word.
const NUMBERS: &[&str] = &[
    "0", "1", "-1", "2", "3", "127", "128", "129", "512", "513", "4096", "10**9", "2**31", "2**63", "2**64", "-2**63",
    "1.5", "1e308", "None", "True", "'x'", "[]", "()", "{}",
];
const WORDS: &[&str] = &[
    "nl.float32",
    "nl.bfloat16",
    "nl.int32",
    "nl.uint8",
    "nl.float8_e4m3",
    "nl.sbuf",
    "nl.psum",
    "nl.shared_hbm",
    "nl.private_hbm",
    "nl.add",
    "nl.exp",
    "nl.max",
    "None",
    "range(4)",
    "nisa.vector_engine",
    "nisa.scalar_engine",
    "nisa.gpsimd_engine",
    "len",
    "nl.tile_size.pmax",
];

/// Random numbers that determine one fault: kind, line, word, replacement.
type Fault = (u8, u16, u16, u16);

/// The start and end of each number, name or sign of a line.
fn words(line: &str) -> Vec<(usize, usize)> {
    let mut out: Vec<(usize, usize)> = Vec::new();
    let part = |c: char| c.is_alphanumeric() || c == '_';
    for (at, c) in line.char_indices().filter(|(_, c)| !c.is_whitespace()) {
        match out.last_mut() {
            Some(last) if last.1 == at && part(c) && line[last.0..at].chars().all(part) => last.1 = at + c.len_utf8(),
            _ => out.push((at, at + c.len_utf8())),
        }
    }
    out
}

/// Adds one more fault to the source, after the start of the first function.
fn spoil(source: &str, (kind, line, word, other): Fault) -> String {
    let mut lines: Vec<String> = source.lines().map(String::from).collect();
    let first = lines.iter().position(|l| l.starts_with("def ")).unwrap_or(0);
    let pick = |n: u16| first + usize::from(n) % (lines.len() - first);
    let (i, j) = (pick(line), pick(other));
    let all = words(&lines[i]);
    let Some(&any) = all.get(usize::from(word) % all.len().max(1)) else { return source.into() };
    let text = lines[i].clone();
    let starts = |test: fn(char) -> bool| {
        let some: Vec<_> = all.iter().copied().filter(|w| text[w.0..].starts_with(test)).collect();
        some.get(usize::from(word) % some.len().max(1)).copied().unwrap_or(any)
    };
    let replaced = |(a, b): (usize, usize), by: &str| format!("{}{by}{}", &text[..a], &text[b..]);
    match kind % 8 {
        0..=2 => lines[i] = replaced(starts(|c| c.is_ascii_digit()), NUMBERS[usize::from(other) % NUMBERS.len()]),
        3 => lines[i] = replaced(starts(char::is_alphabetic), WORDS[usize::from(other) % WORDS.len()]),
        4 => {
            let there = words(&lines[j]);
            let by = there.get(usize::from(word) % there.len().max(1)).map_or("x", |w| &lines[j][w.0..w.1]);
            lines[i] = replaced(any, by);
        }
        5 => lines[i] = replaced(any, ""),
        6 => drop(lines.remove(i)),
        _ => lines.swap(i, j),
    }
    lines.join("\n") + "\n"
}

/// Runs the kernel as far as possible.
fn run(case: &Case, source: String, target: Target) {
    let mut args: Vec<(String, Arg)> = (case.tensors.iter())
        .map(|&(name, shape, dtype)| (name.into(), Arg::Tensor { shape: shape.to_vec(), dtype }))
        .collect();
    args.extend(case.literals.iter().map(|&(name, value)| (name.into(), Arg::Int(value))));
    oracle::kernel(
        case.file,
        source,
        &args,
        Options { kernel: case.kernel.map(String::from), target, ..Options::default() },
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_faulty_kernel_is_answered(
        which in 0..CASES.len(),
        faults in prop::collection::vec(any::<Fault>(), 1..4),
        target in prop::sample::select(vec![Target::Trn1, Target::Trn2, Target::Trn3]),
    ) {
        let case = &CASES[which];
        let source = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(case.file)).expect("an example");
        let spoiled = faults.iter().fold(source, |text, &fault| spoil(&text, fault));
        let outcome = std::panic::catch_unwind(|| run(case, spoiled.clone(), target));
        prop_assert!(outcome.is_ok(), "for {target}:\n{spoiled}");
    }

    #[test]
    fn a_faulty_program_is_answered(
        which in any::<prop::sample::Index>(),
        faults in prop::collection::vec(any::<Fault>(), 1..4),
    ) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
        let mut files: Vec<_> = std::fs::read_dir(folder).expect("programs").map(|e| e.expect("an entry").path()).collect();
        files.sort();
        let source = std::fs::read_to_string(which.get(&files)).expect("a program");
        let spoiled = faults.iter().fold(source, |text, &fault| spoil(&text, fault));
        let outcome = std::panic::catch_unwind(|| oracle::program_text(&spoiled));
        prop_assert!(outcome.is_ok(), "{spoiled}");
    }
}

/// Files in these folders with this extension, sorted by name.
fn files(folders: &[&str], ending: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let entries = folders.iter().flat_map(|f| std::fs::read_dir(root.join(f)).expect("a folder"));
    let mut out: Vec<PathBuf> = entries.map(|e| e.expect("an entry").path()).collect();
    out.retain(|p| p.extension().is_some_and(|e| e == ending));
    out.sort();
    out
}

/// Passes mutated files to a fuzz target for `FUZZ_SECONDS` (60 unless set). The random numbers of
/// a case depend on `FUZZ_SEED` (0 unless set), on the name of its file and on how many times the
/// file was used before, so that a new file does not change the cases of the others.
#[expect(clippy::print_stderr, reason = "the number of cases is the result")]
fn fuzz(files: &[PathBuf], target: fn(&str)) {
    let number = |name: &str, default: u64| {
        std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|e| panic!("{name}={text}: {e}")))
    };
    let (seconds, seed) = (number("FUZZ_SECONDS", 60), number("FUZZ_SEED", 0));
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut cases = 0;
    for (round, path) in (0..).flat_map(|round| files.iter().map(move |path| (round, path))) {
        if Instant::now() >= end {
            break;
        }
        let name = path.file_name().expect("a name");
        let random = |i: u64| {
            let mut hasher = DefaultHasher::new();
            (seed, name, round, i).hash(&mut hasher);
            hasher.finish()
        };
        let fault = |n: u64| (n as u8, (n >> 8) as u16, (n >> 24) as u16, (n >> 40) as u16);
        let source = std::fs::read_to_string(path).expect("text");
        let spoiled = (1..=1 + random(0) % 6).fold(source, |text, i| spoil(&text, fault(random(i))));
        let outcome = std::panic::catch_unwind(|| target(&spoiled));
        assert!(outcome.is_ok(), "FUZZ_SEED={seed}, round {round} of {}:\n{spoiled}", path.display());
        cases += 1;
    }
    eprintln!("{cases} cases of {} files in {seconds} s", files.len());
}

// The targets of fuzz/ without its coverage, and therefore with stable Rust: `cargo test --test
// mutations -- --ignored --nocapture`.

#[test]
#[ignore = "takes a minute: .ci/run runs it"]
fn fuzz_kernels() {
    let folders =
        ["examples", "tests/beta1", "tests/corpus", "tests/kernels", "tests/planted", "tests/ports", "tests/refused"];
    fuzz(&files(&folders, "py"), oracle::source);
}

#[test]
#[ignore = "takes a minute: .ci/run runs it"]
fn fuzz_programs() {
    fuzz(&files(&["tests/programs"], "nkir"), oracle::program_text);
}
