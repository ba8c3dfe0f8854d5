//! Names of Beta 1 that were removed, with replacements (migration guide of the SDK's manual).

use nki_diag::{Diagnostic, Span};

use crate::eval::Interp;
use crate::eval::error::{EvalResult, Raise};
use crate::eval::foreign::Object;
use crate::eval::native::CallArgs;
use crate::eval::value::Value;

/// A name that Beta 1 had (`nl.mgrid`): any use is an error.
#[derive(Debug)]
struct Removed(&'static str);

impl Object for Removed {
    fn type_name(&self) -> &'static str {
        self.0
    }

    fn is_absent(&self) -> bool {
        true
    }

    fn no_attribute(&self, interp: &Interp<'_>, _name: &str, span: Span) -> Box<Raise> {
        raise(&interp.sources, self.0, span)
    }

    fn call(&self, interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
        Err(raise(&interp.sources, self.0, args.span))
    }

    fn item(&self, interp: &mut Interp<'_>, _this: &Value, _index: &Value, span: Span) -> EvalResult<Value> {
        Err(raise(&interp.sources, self.0, span))
    }
}

/// Feature, its full name, and the replacement.
const TABLE: &[(&str, &str, &str)] = &[
    (
        "nl.arange",
        "arange",
        "index with slices: t[start:stop:step]; for other patterns use t.ap(pattern=[[stride, count], ...])",
    ),
    ("nl.mgrid", "mgrid", "index with slices: t[0:128, 0:512] instead of i, j = nl.mgrid[0:128, 0:512]; t[i, j]"),
    (
        "nl.par_dim",
        "par_dim",
        "the partition dimension is always the first: move block dimensions into a list of tensors, or into the free dimensions: nl.ndarray((128, 8, 512), ...)",
    ),
    ("nl.spmd_dim", "spmd_dim", "launch with kernel[lnc](...)"),
    ("nl.nc", "nc", "launch with kernel[lnc](...)"),
    ("nl.loop_reduce", "loop_reduce", "accumulate in a tensor made before the loop"),
    ("nl.static_cast", "static_cast", "nisa.tensor_copy to a tensor of the other dtype"),
    ("nl.instruction_wrapper", "instruction_wrapper", "call nki.isa directly"),
    ("nl.atomic_rmw", "atomic_rmw", "nisa.dma_compute(dst, [src, dst], reduce_op=nl.add)"),
    ("nl.all_reduce", "all_reduce", "nisa.tensor_partition_reduce, or a matmul with ones, over partitions"),
    ("nl.simulate_kernel", "simulate_kernel", "nki-sim run FILE.py"),
    ("nki.trace", "trace", "decorate the kernel with @nki.jit, and leave helpers undecorated"),
    ("nki.simulate_kernel", "simulate_kernel", "nki-sim run FILE.py"),
    (
        "nisa.tensor_copy_dynamic_src",
        "tensor_copy_dynamic_src",
        "nisa.tensor_copy with src.ap(..., scalar_offset=index)",
    ),
    (
        "nisa.tensor_copy_dynamic_dst",
        "tensor_copy_dynamic_dst",
        "nisa.tensor_copy with dst.ap(..., scalar_offset=index)",
    ),
];

fn find(feature: &str) -> Option<Value> {
    let found = TABLE.iter().find(|r| r.0 == feature)?;
    Some(Value::object(Removed(found.0)))
}

/// A removed name of `nki.language`.
pub(super) fn language(attr: &str) -> Option<Value> {
    find(&format!("nl.{attr}"))
}

/// A removed name of another module.
pub(super) fn name(module: &str, attr: &str) -> Option<Value> {
    if module.starts_with("neuronxcc") {
        return Some(Value::object(Removed("neuronxcc.nki")));
    }
    let prefix = if module == "nki.isa" { "nisa" } else { module };
    find(&format!("{prefix}.{attr}"))
}

/// Other necessary changes to a Beta 1 file, by text in its lines, with replacements. Names of [`TABLE`] come first.
const PATTERNS: &[(&str, &str)] = &[
    ("mask=", "bound the slice instead: t[0:min(size, end)]"),
    ("= nisa.", "instructions return nothing: make the tile with nl.ndarray and pass it as dst="),
    ("nki.compiler.", "nl.ndarray(..., address=(partition, byte)) places a tensor"),
    ("nki.baremetal", "nki-sim run FILE.py"),
];

/// The replacement for a removed name (`nl.mgrid`), or for a part of a name in [`PATTERNS`].
pub(crate) fn instead(feature: &str) -> Option<&'static str> {
    let named = TABLE.iter().find(|r| r.0 == feature).map(|r| r.2);
    named.or(PATTERNS.iter().find(|p| p.0 == feature).map(|p| p.1))
}

/// Advice for a file that imports both languages.
const ONE_LANGUAGE: &str = "a kernel for neuronxcc.nki belongs in a file that does not import nki";

/// The error for a removed name. For a file that imports Beta 1 it lists the necessary changes, line by line.
fn raise(sources: &nki_diag::SourceMap, feature: &'static str, span: Span) -> Box<Raise> {
    let text = sources.text(span.file).unwrap_or_default();
    if let Some(r) = TABLE.iter().find(|r| r.0 == feature) {
        let message = format!("`{feature}` was removed after Beta 1");
        let mut diagnostic = Diagnostic::error("removed-beta1", message).at(span, "here").help(r.2);
        if let Some((number, line)) = imports(text).next() {
            diagnostic = diagnostic.help(format!(
                "line {number}, `{line}`: the file also imports Beta 1, but counts as a file for nki; {ONE_LANGUAGE}"
            ));
        }
        return Raise::new(diagnostic);
    }
    let message = "a file that imports `nki` also imports `neuronxcc.nki`, the interface of Beta 1: a file can use only one of them";
    let mut diagnostic = Diagnostic::error("removed-beta1", message).at(span, "here").help(
        "for Beta 1 import everything from neuronxcc.nki; otherwise import nki, nki.language as nl and nki.isa as nisa, whose instructions take dst= first",
    );
    diagnostic = diagnostic.help(ONE_LANGUAGE);
    for change in changes(text) {
        diagnostic = diagnostic.help(change);
    }
    Raise::new(diagnostic)
}

/// The lines of a file without their comments, numbered from 1.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(i, line)| (i + 1, line.split('#').next().unwrap_or_default().trim()))
}

/// Whether a line imports something of Beta 1's package.
fn imports_beta1(line: &str) -> bool {
    (line.starts_with("import ") || line.starts_with("from ")) && line.contains("neuronxcc")
}

/// The lines that import Beta 1.
fn imports(text: &str) -> impl Iterator<Item = (usize, &str)> {
    lines(text).filter(|(_, line)| imports_beta1(line))
}

fn word_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The necessary changes to a Beta 1 file: every import, and the first occurrence of everything else.
fn changes(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let names = TABLE.iter().map(|r| (r.0, r.2));
    let mut open: Vec<(&str, &str)> = names.chain(PATTERNS.iter().copied()).collect();
    for (number, line) in lines(text) {
        if imports_beta1(line) {
            let new = line.replace("from neuronxcc import nki", "import nki").replace("neuronxcc.nki", "nki");
            let new = new.replace("import nki as nki", "import nki");
            let what = if new.contains("neuronxcc") { "leave it out".to_owned() } else { format!("write `{new}`") };
            found.push(format!("line {number}, `{line}`: {what}"));
            continue;
        }
        open.retain(|(pattern, instead)| {
            let word = |rest: &str| !pattern.ends_with(char::is_alphanumeric) || !rest.starts_with(word_part);
            let here = line.match_indices(pattern).any(|(at, _)| word(&line[at + pattern.len()..]));
            if here {
                found.push(format!("line {number}, `{}`: {instead}", pattern.trim_end_matches('.')));
            }
            !here
        });
    }
    found
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_imports_of_beta1_are_found() {
        let text =
            "import nki\nimport neuronxcc.nki.isa as nisa  # old\n# import neuronxcc\n    from neuronxcc import nki\n";
        let found: Vec<_> = super::imports(text).collect();
        assert_eq!(found, [(2, "import neuronxcc.nki.isa as nisa"), (4, "from neuronxcc import nki")]);
    }

    #[test]
    fn a_beta1_file_is_told_what_to_change() {
        let text = "from neuronxcc import nki\nimport neuronxcc.nki.language as nl\nfrom neuronxcc.starfish import x\n\
                    # nl.mgrid\nt = nl.ncores\nt = nisa.activation(nl.exp, x, mask=i < 3)\n";
        let found = super::changes(text);
        let starts = [
            "line 1, `from neuronxcc import nki`: write `import nki`",
            "line 2, `import neuronxcc.nki.language as nl`: write `import nki.language as nl`",
            "line 3, `from neuronxcc.starfish import x`: leave it out",
            "line 6, `mask=`: bound the slice",
            "line 6, `= nisa`: instructions return nothing",
        ];
        assert_eq!(found.len(), starts.len(), "{found:?}");
        assert!(found.iter().zip(starts).all(|(f, s)| f.starts_with(s)), "{found:?}");
    }
}
