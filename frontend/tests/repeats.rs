//! Calls that repeat in a loop make what the same statements make one after the other, where no call repeats.

use std::fmt::Write as _;
use std::path::Path;

use nki_frontend::{Loader, Options, compile};
use nki_isa::program::NodeKind;
use proptest::prelude::*;

struct Text(String);

impl Loader for Text {
    fn read(&self, path: &Path) -> std::io::Result<String> {
        if path == Path::new("k.py") { Ok(self.0.clone()) } else { Err(std::io::ErrorKind::NotFound.into()) }
    }
}

/// What differs between the iterations, each by an index into one of [`CHOICES`].
type Iteration = [usize; 7];

/// Names of the choices, and what may be chosen. Some choices break a rule.
const CHOICES: [(&str, &[&str]); 7] = [
    ("WIDTH", &["4", "8", "8", "8"]),
    ("DTYPE", &["nl.float32", "nl.float32", "nl.float32", "nl.bfloat16"]),
    ("BUFFER", &["nl.sbuf", "nl.sbuf", "nl.sbuf", "nl.psum"]),
    ("OP", &["nl.add", "nl.add", "nl.multiply"]),
    ("NUMBER", &["2", "2", "2", "2.0", "-0.0", "0.0", "float('nan')", "True"]),
    ("START", &["0", "0", "32", "64", "96", "112"]),
    ("COLUMN", &["0", "0", "8", "56", "60"]),
];

/// The body of the loop. `[i]` follows the name of each choice.
const BODY: [&str; 8] = [
    "a = nl.ndarray((128, WIDTH[i]), dtype=DTYPE[i], buffer=BUFFER[i])",
    "b = nl.ndarray((128, 8), nl.float32)",
    "nisa.dma_copy(dst=b, src=x[:, COLUMN[i]:COLUMN[i] + 8])",
    "nisa.tensor_copy(a[START[i]:START[i] + 32, :], b[START[i]:START[i] + 32, 0:WIDTH[i]])",
    "nisa.tensor_scalar(dst=a, data=a, op0=OP[i], operand0=NUMBER[i])",
    "nisa.tensor_tensor(b[:, 0:WIDTH[i]], a, t[:, COLUMN[i] // 2:COLUMN[i] // 2 + WIDTH[i]], OP[i], name=f'sum{i}' if COLUMN[i] == 8 else None)",
    "nisa.activation(dst=b, op=nl.exp, data=b, bias=b[:, 0:1] if WIDTH[i] == 8 else None, scale=NUMBER[i])",
    "nisa.dma_copy(out[:, COLUMN[i]:COLUMN[i] + 8], b)",
];

fn kernel(body: &str) -> String {
    format!(
        "import nki\nimport nki.isa as nisa\nimport nki.language as nl\n\n@nki.jit\ndef k():\n\
         \x20   x = nl.ndarray((128, 64), nl.float32, buffer=nl.private_hbm)\n\
         \x20   out = nl.ndarray((128, 64), nl.float32, buffer=nl.shared_hbm)\n\
         \x20   t = nl.ndarray((128, 64), nl.float32)\n{body}\x20   return out\n"
    )
}

fn looped(iterations: &[Iteration]) -> String {
    let mut body = String::new();
    for (at, (name, values)) in CHOICES.iter().enumerate() {
        let list: Vec<&str> = iterations.iter().map(|i| values[i[at] % values.len()]).collect();
        let _ = writeln!(body, "    {name} = [{}]", list.join(", "));
    }
    let _ = writeln!(body, "    for i in range({}):", iterations.len());
    for line in BODY {
        let _ = writeln!(body, "        {line}");
    }
    kernel(&body)
}

fn unrolled(iterations: &[Iteration]) -> String {
    let mut body = String::new();
    for (number, iteration) in iterations.iter().enumerate() {
        for line in BODY {
            let mut line = line.to_owned();
            for (at, (name, values)) in CHOICES.iter().enumerate() {
                line = line.replace(&format!("{name}[i]"), values[iteration[at] % values.len()]);
            }
            let _ = writeln!(body, "    i = {number}\n    {line}");
        }
    }
    kernel(&body)
}

/// The first error, or tensors and instructions with their names.
fn made(source: String) -> Result<Vec<String>, String> {
    let compiled = compile(Path::new("k.py"), &Text(source), &[], &Options::default());
    if let Some(error) = compiled.diagnostics.iter().find(|d| d.is_error()) {
        return Err(format!("{}: {}", error.id, error.message));
    }
    let program = compiled.program.expect("a program without errors");
    let tensors = program.tensors.iter().map(|t| format!("{} {} {:?} {}", t.name, t.space, t.shape, t.dtype));
    let nodes = program.cores.iter().flatten().map(|node| match &node.kind {
        NodeKind::Inst(inst) => format!("{inst:?} {:?}", node.tag.map(|t| &program.tags[t.0 as usize])),
        NodeKind::Control(_) => "control".into(),
    });
    Ok(tensors.chain(nodes).collect())
}

proptest! {
    #[test]
    fn a_loop_makes_what_its_iterations_make(
        iterations in prop::collection::vec(prop::array::uniform7(0..8_usize), 1..12),
        alike in any::<bool>(),
    ) {
        // Iterations that differ in one thing only are the likeliest to be taken for each other.
        let mut iterations = iterations;
        if alike {
            for i in 1..iterations.len() {
                let at = iterations[i][0] % 7;
                let mut next = iterations[i - 1];
                next[at] = iterations[i][at];
                iterations[i] = next;
            }
        }
        prop_assert_eq!(made(looped(&iterations)), made(unrolled(&iterations)));
    }
}

#[test]
fn iterations_that_are_all_alike_differ_in_their_tensors() {
    let made = made(looped(&[[0; 7]; 20])).expect("no rule is broken");
    let tensors = made.iter().filter(|line| line.starts_with("a sbuf")).count();
    assert_eq!(tensors, 20);
    let instructions: std::collections::HashSet<&String> =
        made.iter().filter(|line| line.starts_with("TensorScalar")).collect();
    assert_eq!(instructions.len(), 20, "each computes its own tile");
}
