//! The evaluator against CPython: each file of tests/python has a function `main`, whose output must be the same in both.

use std::path::Path;
use std::process::Command;

use nki_frontend::{Loader, Options, compile};

struct Text(String);

impl Loader for Text {
    fn read(&self, path: &Path) -> std::io::Result<String> {
        if path == Path::new("k.py") { Ok(self.0.clone()) } else { Err(std::io::ErrorKind::NotFound.into()) }
    }
}

/// What CPython prints.
fn python(source: &str) -> Vec<String> {
    let out = Command::new("python3").arg("-c").arg(format!("{source}\nmain()\n")).output().expect("python3 runs");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).lines().map(str::to_owned).collect()
}

/// What the evaluator prints when a kernel calls `main`, and its errors.
fn evaluator(source: &str) -> Vec<String> {
    let source = format!("{source}\nimport nki\n@nki.jit\ndef k():\n    main()\n");
    let compiled = compile(Path::new("k.py"), &Text(source), &[], &Options::default());
    let errors = compiled.diagnostics.iter().filter(|d| d.is_error() && d.id != "no-output");
    let lines = compiled.prints.iter().flat_map(|p| p.lines()).map(str::to_owned);
    lines.chain(errors.map(|d| format!("{}: {}: {:?}", d.id, d.message, d.labels))).collect()
}

fn check(file: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python").join(file);
    let source = std::fs::read_to_string(path).expect("readable");
    let (expected, got) = (python(&source), evaluator(&source));
    assert!(expected.len() > 20, "{file} prints little");
    for (at, (e, g)) in expected.iter().zip(&got).enumerate() {
        assert_eq!(g, e, "line {} of the output of {file}", at + 1);
    }
    assert_eq!(got.len(), expected.len(), "{:?}", &got[expected.len().min(got.len())..]);
}

#[test]
fn generators_are_lazy_and_take_values_and_exceptions() {
    check("generators.py");
}

#[test]
fn iterators_give_each_item_once() {
    check("iterators.py");
}

#[test]
fn patterns_of_every_kind_match() {
    check("patterns.py");
}

#[test]
fn numbers_divide_compare_and_round_exactly() {
    check("arithmetic.py");
}

#[test]
fn librarys_containers_contexts_and_dispatch_behave() {
    check("library.py");
}

#[test]
fn classes_derive_from_types_and_have_fields_of_every_kind() {
    check("classes.py");
}

#[test]
fn what_derives_from_immutable_types_is_a_value_and_functions_and_exceptions_have_attributes() {
    check("derived.py");
}

#[test]
fn fields_of_formats_are_paths_and_functions_reject_what_python_rejects() {
    check("formats.py");
}
