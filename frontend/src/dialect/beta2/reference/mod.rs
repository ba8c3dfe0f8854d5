//! The functions of the API that are not instructions, and the members of its classes: signatures and documentation, for `nki-sim explain`,
//! the docstrings of the Python package and its type stubs.

mod classes;
mod language;

pub use classes::CLASSES;

use std::borrow::Cow;

use crate::build::ops::{OPS, Op, OpKind};

/// A function, method or attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// Its parameters as Python writes them, with types and defaults; none for an attribute. `Shape`, `Dtype`, `Operand`, `Index` and
    /// `Operator` are the aliases that the type stubs define.
    pub parameters: Option<&'static str>,
    /// The type of the result, or of the attribute.
    pub result: &'static str,
    /// What it does.
    pub doc: Cow<'static, str>,
}

/// A class with its members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Class {
    /// Its module.
    pub module: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Its base class in the same module, or `NKIObject`; empty without.
    pub base: &'static str,
    /// What its objects are.
    pub doc: &'static str,
    /// Attributes and methods.
    pub members: &'static [Entry],
}

const fn function(name: &'static str, parameters: &'static str, result: &'static str, doc: &'static str) -> Entry {
    Entry { name, parameters: Some(parameters), result, doc: Cow::Borrowed(doc) }
}

const fn attribute(name: &'static str, result: &'static str, doc: &'static str) -> Entry {
    Entry { name, parameters: None, result, doc: Cow::Borrowed(doc) }
}

/// Functions of `nki.isa` that are not instructions.
const ISA: &[Entry] = &[
    function(
        "register_alloc",
        "x: int | NkiTensor | None = None",
        "VirtualRegister",
        "A register of the device: uninitialised, or with an int or the single element of a tensor.",
    ),
    function("get_nc_version", "", "nc_version", "The target generation of the kernel."),
    function("get_nc_sub_version", "", "int", "Always 0."),
];

/// Functions of `nki.collectives` that are not instructions.
const COLLECTIVES: &[Entry] = &[
    function("rank_id", "", "VirtualRegister", "The rank that runs the kernel."),
    function(
        super::collectives::PROCESSING,
        "iteration_id: int, replica_group: ReplicaGroup, channel_id: int = 0",
        "VirtualRegister",
        "The rank whose data this rank has after `iteration_id` steps of the ring of its group.",
    ),
];

/// The functions of a module that are not instructions.
pub fn functions(module: &str) -> Vec<Entry> {
    match module {
        "nki.language" => OPS.iter().map(operator).chain(language::FUNCTIONS.iter().cloned()).collect(),
        "nki.isa" => ISA.to_vec(),
        "nki.collectives" => COLLECTIVES.to_vec(),
        _ => Vec::new(),
    }
}

/// An operator: a function of tiles, and a name for `op=` arguments.
fn operator(op: &Op) -> Entry {
    let also = "Also an operator for `op=` arguments of instructions.";
    let (parameters, result, doc) = match op.kind {
        OpKind::Binary(_) => (
            "x: Operand, y: Operand, dtype: Dtype | None = None",
            "NkiTensor",
            format!("Element by element: {}. `x` and `y` are tiles or numbers. {also}", op.formula),
        ),
        OpKind::Unary => (
            "x: NkiTensor, dtype: Dtype | None = None",
            "NkiTensor",
            format!("Element by element: {}. `x` is a tile. {also}", op.formula),
        ),
        OpKind::Name => (
            "",
            "NoReturn",
            format!("An operator for `op=` arguments of instructions: {}. It cannot be called.", op.formula),
        ),
    };
    Entry { name: op.name, parameters: Some(parameters), result, doc: doc.into() }
}

/// A parameter of a function: name (`*` and `**` belong to it), type and default; both empty where there is none.
pub type Parameter<'a> = (&'a str, &'a str, &'a str);

impl Entry {
    /// The parameters one by one; none for an attribute. A lone `*` stands before parameters that have to be named.
    pub fn each_parameter(&self) -> Option<Vec<Parameter<'static>>> {
        let list = self.parameters?;
        let (mut depth, mut start, mut out) = (0, 0, Vec::new());
        for (i, c) in list.char_indices().chain([(list.len(), ',')]) {
            match c {
                '[' | '(' => depth += 1,
                ']' | ')' => depth -= 1,
                ',' if depth == 0 && !list[start..i].trim().is_empty() => {
                    out.push(parameter(list[start..i].trim()));
                    start = i + 1;
                }
                _ => {}
            }
        }
        Some(out)
    }
}

fn parameter(text: &'static str) -> Parameter<'static> {
    let (rest, default) = text.split_once(" = ").unwrap_or((text, ""));
    let (name, kind) = rest.split_once(": ").unwrap_or((rest, ""));
    (name, kind, default)
}

#[cfg(test)]
mod tests {
    use super::super::language::FUNCTIONS;
    use super::*;
    use crate::dialect::common::tensor::{ATTRIBUTES, METHODS};

    #[test]
    fn every_function_is_documented_once() {
        let listed: Vec<&str> = FUNCTIONS.iter().map(|f| f.0).collect();
        let documented: Vec<&str> = language::FUNCTIONS.iter().map(|e| e.name).collect();
        for name in &listed {
            assert_eq!(documented.iter().filter(|d| *d == name).count(), 1, "{name}");
        }
        assert_eq!(listed.len(), documented.len());
    }

    #[test]
    fn every_member_of_a_tensor_is_documented_once() {
        let class = CLASSES.iter().find(|c| c.name == "NkiTensor").expect("documented");
        let members: Vec<&str> = class.members.iter().map(|e| e.name).filter(|n| !n.starts_with("__")).collect();
        for name in METHODS.iter().chain(ATTRIBUTES) {
            assert_eq!(members.iter().filter(|m| *m == name).count(), 1, "{name}");
        }
        assert_eq!(members.len(), METHODS.len() + ATTRIBUTES.len());
    }

    #[test]
    fn parameters_are_split() {
        let entry = function("f", "a: Sequence[tuple[int, ...]], *, b: str = '', **more: Any", "None", "");
        let want =
            vec![("a", "Sequence[tuple[int, ...]]", ""), ("*", "", ""), ("b", "str", "''"), ("**more", "Any", "")];
        assert_eq!(entry.each_parameter(), Some(want));
        assert_eq!(function("f", "", "None", "").each_parameter(), Some(Vec::new()));
        assert_eq!(attribute("f", "int", "").each_parameter(), None);
    }
}
