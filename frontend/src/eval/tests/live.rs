//! Functions of a live Python process.

use crate::host::{Host, HostArray, HostFunction, HostObject};
use crate::{Arg, Options, compile_live};

/// The line, parameters and body of a lambda.
type Lambda = (u32, &'static str, Option<(u32, u32)>);

/// A process with one file, whose function 0 is `k` on line 1 and whose other functions are lambdas.
struct Process {
    text: &'static str,
    lambdas: Vec<Lambda>,
}

impl Host for Process {
    fn global(&self, _: u64, name: &str) -> Option<Arg> {
        name.strip_prefix('f').and_then(|n| n.parse().ok()).map(Arg::Object)
    }

    fn describe(&self, object: u64) -> HostObject {
        let lambda = object.checked_sub(1).map(|n| self.lambdas[n as usize]);
        let (line, param, body) = lambda.unwrap_or((1, "", None));
        HostObject::Function(HostFunction {
            name: if lambda.is_some() { "<lambda>" } else { "k" }.into(),
            file: "k.py".into(),
            line,
            params: param.split_whitespace().map(str::to_owned).collect(),
            body,
            scope: 0,
            defaults: Vec::new(),
            closure: Vec::new(),
            kernel: None,
            has_grid: false,
        })
    }

    fn source(&self, _: &str) -> Option<String> {
        Some(self.text.into())
    }

    fn array(&self, _: &str) -> Result<HostArray, String> {
        Err("there is none".into())
    }

    fn import(&self, _: u64, _: &str) -> Option<Arg> {
        None
    }
}

#[track_caller]
fn check(text: &'static str, lambdas: Vec<Lambda>, expected: &str) {
    let compiled = compile_live(&Process { text, lambdas }, &Arg::Object(0), &[], &Options::default());
    let mut lines = compiled.prints;
    lines.extend(compiled.diagnostics.iter().filter(|d| d.id != "no-output").map(|d| d.id.to_string()));
    assert_eq!(lines.join("\n"), expected);
}

#[test]
fn lambdas_of_a_line_are_distinguished_by_column() {
    let text = "def k(): print(f1(1), f2(1), f3(1))\nX = [lambda a: a + 1, lambda a: (a + 2), lambda a:\n  a + 3]\n";
    let at = |line, column| (2, "a", Some((line, column)));
    check(text, vec![at(2, 15), at(2, 33), at(3, 2)], "2 3 4");
    check(text, vec![at(2, 33), at(3, 2), at(2, 15)], "3 4 2");
    // Columns count bytes.
    let text = "def k(): print(f1(1), f2(1))\né = \"é\"; X = lambda a: a + 1; Y = lambda a: a + 2\n";
    check(text, vec![(2, "a", Some((2, 25))), (2, "a", Some((2, 46)))], "2 3");
}

#[test]
fn the_inner_one_of_nested_lambdas_is_found() {
    let text = "def k(): print(f1(1)(2), f2(1))\nX = lambda a: lambda a: a + 1\n";
    check(text, vec![(2, "a", Some((2, 14))), (2, "a", Some((2, 24)))], "3 2");
}

#[test]
fn lambdas_that_cannot_be_distinguished_are_an_error() {
    let text = "def k(): print(f1(1))\nX = [lambda a: a + 1, lambda a: a + 2]\n";
    check(text, vec![(2, "a", None)], "ambiguous-lambda");
    check(text, vec![(2, "a", Some((9, 0)))], "ambiguous-lambda");
    // In the first case, the parameters distinguish the lambdas; in the second, their code is the
    // same.
    check("def k(): print(f1(1))\nX = [lambda a: a + 1, lambda b: b + 2]\n", vec![(2, "b", None)], "3");
    check("def k(): print(f1(1))\nX = [lambda a: a + 1, lambda a: a + 1]\n", vec![(2, "a", None)], "2");
}
