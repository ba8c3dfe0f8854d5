//! A loop over a range, whose iterations are copied where they make the same, makes what the loop over the same numbers in a tuple makes, where
//! each iteration is evaluated.

use std::path::Path;

use nki_frontend::{Loader, Options, compile};
use nki_isa::Program;
use proptest::prelude::*;

struct Text(String);

impl Loader for Text {
    fn read(&self, path: &Path) -> std::io::Result<String> {
        if path == Path::new("k.py") { Ok(self.0.clone()) } else { Err(std::io::ErrorKind::NotFound.into()) }
    }
}

/// Statements of the body, in which `A` and `B` are numbers. Many are no law of the iterations, or break one at the end of a tensor.
const STATEMENTS: &[&str] = &[
    "nisa.dma_copy(dst=tile, src=x[:, i * A:i * A + 8])",
    "nisa.dma_copy(dst=tile, src=x[:, nl.ds(B + i * A, 8)])",
    "here = nl.ds(i * A, 8)\n        nisa.dma_copy(dst=out[:, here], src=tile)",
    "at = A * i - B\n        nisa.dma_copy(dst=tile, src=x[:, at:at + 8])",
    "at = -i - 8\n        nisa.dma_copy(dst=tile, src=x[:, at:at + 8])",
    "nisa.tensor_copy(dst=tile, src=wide[:, i * A:i * A + 8])",
    "nisa.tensor_copy(dst=tile[i * A:i * A + 32, :], src=wide[0:32, B:B + 8])",
    "other = nl.ndarray((128, 8), dtype=nl.float32, buffer=nl.sbuf)\n        nisa.tensor_copy(dst=other, src=tile)",
    "sums = nl.ndarray((128, 8), dtype=nl.float32, buffer=nl.psum)\n        nisa.nc_matmul(dst=sums, stationary=wide[:, 0:128], moving=tile)",
    "zero = nl.zeros((128, A + 1), dtype=nl.bfloat16, buffer=nl.sbuf)\n        nisa.tensor_scalar(dst=zero, data=zero, op0=nl.add, operand0=B)",
    "part = nl.ndarray((128, i // 2 + 1), dtype=nl.float32, buffer=nl.sbuf)",
    "nisa.memset(dst=tile, value=i * A)",
    "nisa.memset(dst=tile, value=i // 12)",
    "nisa.memset(dst=tile, value=TABLE[i % 16])",
    "nisa.dma_copy(dst=tile, src=x[:, TABLE[i % 16]:TABLE[i % 16] + 8])",
    "nisa.dma_copy(dst=tile, src=x[:, i // 4 * 8:i // 4 * 8 + 8])",
    "nisa.dma_copy(dst=tile, src=x[:, i % 5:i % 5 + 8])",
    "nisa.dma_copy(dst=tile, src=x[:, i * i:i * i + 8])",
    "nisa.dma_copy(dst=tile, src=x[:, abs(i - 9):abs(i - 9) + 8])",
    "nisa.dma_copy(dst=tile, src=x[:, min(i, 7):min(i, 7) + 8])",
    "if i > 9:\n            nisa.memset(dst=tile, value=1.0)",
    "if i == A:\n            nisa.memset(dst=tile, value=1.0)",
    "if A > 4:\n            nisa.memset(dst=tile, value=2.0)\n        else:\n            nisa.tensor_copy(dst=tile, src=wide[:, i:i + 8])",
    "if FLAG and i > 5:\n            continue\n        nisa.tensor_copy(dst=tile, src=wide[:, i:i + 8])",
    "if not FLAG or i > 5:\n            nisa.tensor_copy(dst=tile, src=wide[:, i:i + 8])",
    "if A != 4 or i > 5:\n            nisa.tensor_copy(dst=tile, src=wide[:, i:i + 8])",
    "from_here = B if FLAG else i\n        nisa.tensor_copy(dst=tile, src=wide[:, from_here:from_here + 8])",
    "for k in range(3):\n            nisa.tensor_copy(dst=tile, src=wide[:, k * 8 + i:k * 8 + i + 8])",
    "for k in nl.affine_range(3):\n            deep = nl.ndarray((128, 8), dtype=nl.float32, buffer=nl.sbuf)\n            nisa.tensor_copy(dst=deep, src=wide[:, nl.ds(k * A + i, 8)])",
    "for k in range(i):\n            nisa.memset(dst=tile, value=0.0)",
    "for k in range(14):\n            nisa.tensor_copy(dst=tile, src=wide[:, k + i:k + i + 8])",
    "off = i\n        for k in range(3):\n            off = off + A\n        nisa.tensor_copy(dst=tile, src=wide[:, off:off + 8])",
    "off = 1\n        for k in range(3):\n            off = off * (i + 1)\n        nisa.tensor_copy(dst=tile, src=wide[:, off % 8:off % 8 + 8])",
    "count = count + 1\n        nisa.tensor_copy(dst=tile, src=wide[:, count % 8:count % 8 + 8])",
    "nisa.memset(dst=tile, value=counted())",
    "made.append(i)\n        nisa.memset(dst=tile, value=len(made))",
    "named = nl.ndarray((128, 8), dtype=nl.float32, buffer=nl.sbuf, name=f'n{i // 10}')",
    "named = nl.ndarray((128, 8), dtype=nl.float32, buffer=nl.sbuf, name='ab'[i // 20:])",
    "assert i < 18, 'too many'",
    "assert A < 100\n        rows, columns = tile.shape\n        nisa.memset(dst=tile[:, 0:columns - 1], value=0.5)",
    "view = x[:, i * A:i * A + 8]\n        nisa.dma_copy(dst=tile, src=view)",
    "view = x[:, i * A::4]\n        nisa.memset(dst=tile, value=1.0)\n        nisa.dma_copy(dst=tile[:, 0:1], src=view[:, -1:])",
    "view = x[:, 0:i + 1]\n        nisa.memset(dst=tile, value=view.shape[1])",
    "view = wide[:, i:i + 16]\n        nisa.tensor_copy(dst=tile, src=view[:, A % 8:A % 8 + 8])",
    "tile = nl.ndarray((128, 8), dtype=nl.float32, buffer=nl.sbuf)\n        nisa.memset(dst=tile, value=0.0)",
    "nisa.tensor_copy(dst=tile, src=tiles[A % 2])",
    "nisa.tensor_copy(dst=tile, src=tiles[i % 2])",
    "nisa.tensor_copy(dst=tile, src=wide[:, ITEM.start + i:ITEM.start + i + 8])",
    "print(i)",
];

/// A kernel whose loop goes over these numbers: a range, or a tuple in text of the same length.
fn kernel(numbers: &str, is_range: bool, body: &[String]) -> String {
    let function = if is_range { "     " } else { "tuple" };
    let body: String = body.iter().map(|line| format!("        {line}\n")).collect();
    format!(
        "import nki\nimport nki.isa as nisa\nimport nki.language as nl\n\nFLAG = False\nTABLE = [0, 3, 1, 2, 7, 5, 6, 4, 8, 9, 15, 11, 12, 13, 14, 10]\n\n\
         class Item:\n    def __init__(self):\n        self.times = 0\n    @property\n    def start(self):\n        self.times = (self.times + 1) % 3\n        \
         return self.times\n\n@nki.jit\ndef k():\n    ITEM = Item()\n    \
         made = []\n    count = 0\n    box = [0]\n    def counted():\n        box[0] = box[0] + 1\n        return box[0]\n    \
         x = nl.ndarray((128, 96), nl.float32, buffer=nl.private_hbm)\n    \
         out = nl.ndarray((128, 96), nl.float32, buffer=nl.shared_hbm)\n    \
         wide = nl.ndarray((128, 200), nl.float32)\n    tile = nl.ndarray((128, 8), nl.float32)\n    \
         tiles = [nl.ndarray((128, 8), nl.float32), nl.ndarray((128, 8), nl.float32)]\n    \
         numbers = {function}({numbers})\n    for i in numbers:\n{body}    \
         nisa.dma_copy(dst=out[:, 0:8], src=tile)\n    return out\n"
    )
}

/// The program, what was found, and what was printed.
fn compiled(source: String) -> (Option<Program>, Vec<String>, Vec<String>) {
    let compiled = compile(Path::new("k.py"), &Text(source), &[], &Options::default());
    let found = compiled.diagnostics.iter().map(|d| format!("{d:?}")).collect();
    (compiled.program, found, compiled.prints)
}

fn is_alike(numbers: &str, body: &[String]) -> Result<(), TestCaseError> {
    let each = compiled(kernel(numbers, false, body));
    let copied = compiled(kernel(numbers, true, body));
    prop_assert_eq!(copied.1, each.1, "findings of {:?} over {}", body, numbers);
    prop_assert_eq!(copied.2, each.2, "prints of {:?} over {}", body, numbers);
    prop_assert!(copied.0 == each.0, "other programs: {body:?} over {numbers}");
    Ok(())
}

fn statement(which: usize, a: i64, b: i64) -> String {
    let text = STATEMENTS[which % STATEMENTS.len()];
    let word = |text: &str, name: &str, value: i64| {
        let mut out = String::new();
        let mut before = ' ';
        for (at, c) in text.char_indices() {
            let after = text[at + 1..].chars().next().unwrap_or(' ');
            let is_word = |c: char| c.is_alphanumeric() || c == '_';
            if name.starts_with(c) && !is_word(before) && !is_word(after) {
                out.push_str(&value.to_string());
            } else {
                out.push(c);
            }
            before = c;
        }
        out
    };
    word(&word(text, "A", a), "B", b)
}

#[test]
fn each_statement_alone() {
    for which in 0..STATEMENTS.len() {
        for (a, b) in [(1, 0), (4, 3), (8, 40), (-4, 80), (0, 0)] {
            for numbers in ["range(20)", "range(3, 40, 2)", "range(24, 0, -1)", "range(13)"] {
                is_alike(numbers, &[statement(which, a, b)]).expect("the same");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn several_statements(
        picked in prop::collection::vec((0..STATEMENTS.len(), -4..12_i64, 0..48_i64), 1..5),
        start in -2..20_i64,
        count in 0..30_i64,
        step in prop::sample::select(vec![1_i64, 1, 1, 2, 4, -1]),
    ) {
        let body: Vec<String> = picked.into_iter().map(|(which, a, b)| statement(which, a, b)).collect();
        is_alike(&format!("range({start}, {}, {step})", start + count * step), &body)?;
    }
}

/// Evaluation takes most of the time of a long loop.
#[test]
fn copies_take_less_time_than_iterations() {
    let body: Vec<String> = [0, 1, 7, 8].map(|which| statement(which, 0, 3)).to_vec();
    let time = |is_range| {
        let once = || {
            let begin = std::time::Instant::now();
            assert!(compiled(kernel("range(4000)", is_range, &body)).0.is_some());
            begin.elapsed()
        };
        (0..5).map(|_| once()).min().unwrap_or_default()
    };
    let (copied, evaluated) = (time(true), time(false));
    assert!(copied * 2 < evaluated, "{copied:?} with copies, {evaluated:?} without");
}
