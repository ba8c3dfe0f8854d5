//! Compiles statements of a kernel in this process: hundreds of them in the time of one run of the
//! command.

use std::path::Path;

use nki_diag::Diagnostic;
use nki_frontend::{Arg, Compiled, Loader, Options};
use nki_isa::program::NodeKind;
use nki_isa::{DType, Target};

/// The names that a statement of tests/api/documented.txt uses.
#[allow(dead_code, reason = "each test binary uses a part of this module")]
pub(crate) const SETUP: &[&str] = &[
    "t = nl.ndarray((128, 64), nl.float32, nl.sbuf); nisa.memset(t, 1.0)",
    "u = nl.ndarray((128, 64), nl.float32, nl.sbuf); nisa.memset(u, 2.0)",
    "i = nl.ndarray((128, 64), nl.int32, nl.sbuf); nisa.memset(i, 1)",
    "w = nl.ndarray((128, 64), nl.uint32, nl.sbuf); nisa.memset(w, 1)",
    "b = nl.ndarray((128, 64), nl.bfloat16, nl.sbuf); nisa.memset(b, 1.0)",
    "col = nl.ndarray((128, 1), nl.float32, nl.sbuf); nisa.memset(col, 1.0)",
    "sq = nl.ndarray((128, 128), nl.float32, nl.sbuf); nisa.memset(sq, 1.0)",
    "one = nl.ndarray((1, 1), nl.int32, nl.sbuf); nisa.memset(one, 1)",
    "p = nl.ndarray((128, 64), nl.float32, nl.psum); nisa.memset(p, 0.0)",
    "r = nisa.register_alloc(1)",
];

struct Text(String);

impl Loader for Text {
    fn read(&self, path: &Path) -> std::io::Result<String> {
        if path == Path::new("kernel.py") { Ok(self.0.clone()) } else { Err(std::io::ErrorKind::NotFound.into()) }
    }
}

/// A kernel with the parameters `h` and `k`, float32[128,64] in HBM, that runs `setup` and then one statement.
pub(crate) struct Snippet {
    compiled: Compiled,
    line: u32,
}

impl Snippet {
    /// Compiles `statement` after `setup`.
    pub(crate) fn compile(setup: &[&str], statement: &str, target: Target) -> Self {
        let mut source = String::from(
            "import nki\nimport nki.isa as nisa\nimport nki.language as nl\n\n@nki.jit\ndef kernel(h, k):\n",
        );
        for line in setup.iter().chain([&statement]) {
            source += &format!("    {line}\n");
        }
        let line = source.lines().count() as u32;
        source += "    return k\n";
        let hbm = || Arg::Tensor { shape: vec![128, 64], dtype: DType::F32 };
        let options = Options { target, ..Options::default() };
        let compiled = nki_frontend::compile(
            Path::new("kernel.py"),
            &Text(source),
            &[("h".into(), hbm()), ("k".into(), hbm())],
            &options,
        );
        Snippet { compiled, line }
    }

    /// The first error: its slug and its full text.
    pub(crate) fn error(&self) -> Option<(&'static str, String)> {
        let error = self.compiled.diagnostics.iter().find(|d: &&Diagnostic| d.is_error())?;
        let labels = error.labels.iter().map(|l| &*l.text);
        let said: Vec<&str> = std::iter::once(&*error.message)
            .chain(labels)
            .chain(error.notes.iter().map(|s| &**s))
            .chain(error.help.iter().map(|s| &**s))
            .collect();
        Some((error.id, said.join("\n")))
    }

    /// The names of the instructions that the statement was compiled to, each once, in order.
    #[allow(dead_code, reason = "each test binary uses a part of this module")]
    pub(crate) fn instructions(&self) -> Vec<&'static str> {
        let mut out = Vec::new();
        let Some(program) = &self.compiled.program else { return out };
        program.visit(&mut |node| {
            if let NodeKind::Inst(inst) = &node.kind
                && node.loc.line == self.line
                && !out.contains(&inst.schema().name)
            {
                out.push(inst.schema().name);
            }
        });
        out
    }
}
