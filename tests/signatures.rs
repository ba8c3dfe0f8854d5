//! Every documented parameter: the schemas have it with its name, position and default, and
//! `nki.language` accepts it by keyword.

mod snippet;

use std::fmt::Write;
use std::fs;
use std::path::Path;

use nki_isa::schema::Schema;
use nki_isa::{Target, inst, reference};
use snippet::Snippet;

/// A function of tests/api/signatures.txt: its full name, and its parameters with their defaults.
struct Function {
    name: String,
    parameters: Vec<(String, Option<String>)>,
}

fn read(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/api").join(file);
    fs::read_to_string(path).expect("readable")
}

/// Splits at commas outside brackets and strings.
fn split(list: &str) -> Vec<&str> {
    let (mut depth, mut quoted, mut start, mut out) = (0, false, 0, Vec::new());
    for (i, c) in list.char_indices() {
        match c {
            '\'' => quoted = !quoted,
            '(' | '[' | '{' if !quoted => depth += 1,
            ')' | ']' | '}' if !quoted => depth -= 1,
            ',' if depth == 0 && !quoted => {
                out.push(list[start..i].trim());
                start = i + 1;
            }
            _ => {}
        }
    }
    out.push(list[start..].trim());
    out.retain(|item| !item.is_empty());
    out
}

fn functions(prefix: &str) -> Vec<Function> {
    let text = read("signatures.txt");
    let lines =
        text.lines().filter_map(|l| l.strip_suffix(')')?.split_once('(')).filter(|(n, _)| n.starts_with(prefix));
    let parameters = |list: &str| {
        let pair = |p: &str| match p.split_once('=') {
            Some((name, default)) => (name.to_owned(), Some(default.to_owned())),
            None => (p.to_owned(), None),
        };
        split(list).into_iter().map(pair).collect()
    };
    lines.map(|(name, list)| Function { name: name.to_owned(), parameters: parameters(list) }).collect()
}

/// A schema's parameters in the format of the file.
fn of_schema(schema: &Schema) -> Vec<(String, Option<String>)> {
    let page = reference::page(schema, 1);
    let (_, rest) = page.split_once("\n    n").expect("a line with the call");
    let line = rest.lines().next().unwrap_or_default();
    let (_, list) = line.strip_suffix(')').and_then(|l| l.split_once('(')).expect("a call");
    let pair = |p: &str| match p.split_once('=') {
        Some((name, default)) => (name.to_owned(), Some(default.to_owned())),
        None => (p.to_owned(), None),
    };
    split(list).into_iter().map(pair).collect()
}

/// `()` and None both mean "not given"; `[0]` and `(0)` are the same list.
fn same_default(ours: Option<&str>, documented: Option<&str>) -> bool {
    let plain = |d: &str| match d {
        "()" => "None".to_owned(),
        other => other.replace(['[', ']', '(', ')'], ""),
    };
    ours.map(plain) == documented.map(plain)
}

#[test]
fn instructions_have_the_documented_parameters() {
    let mut problems = String::new();
    let mut compared = 0;
    for prefix in ["nisa.", "nki.collectives."] {
        for function in functions(prefix) {
            let short = function.name.trim_start_matches(prefix);
            let Some(entry) = inst::find(short) else {
                let known = ["get_nc_version", "get_nc_sub_version", "register_alloc"];
                if !known.contains(&short) {
                    let _ = writeln!(problems, "{}: no such instruction", function.name);
                }
                continue;
            };
            compared += 1;
            let mut ours = of_schema(entry.schema);
            // The function's return value is the schema's first operand.
            if short.ends_with("rank_id") {
                ours.remove(0);
            }
            let fits = ours.len() == function.parameters.len()
                && ours
                    .iter()
                    .zip(&function.parameters)
                    .all(|((a, x), (b, y))| a == b && same_default(x.as_deref(), y.as_deref()));
            if !fits {
                let _ =
                    writeln!(problems, "{}: documented {:?}\n    ours {ours:?}", function.name, function.parameters);
            }
        }
    }
    assert!(problems.is_empty(), "\n{problems}");
    assert!(compared >= 60, "{compared}");
}

/// The arguments in a statement's call of `name`: their position and text.
fn call<'s>(statement: &'s str, name: &str) -> Option<(usize, usize, Vec<&'s str>)> {
    let start = statement.find(&format!("{name}("))? + name.len() + 1;
    let mut depth = 1;
    let end = statement[start..].char_indices().find(|(_, c)| {
        depth += match c {
            '(' | '[' => 1,
            ')' | ']' => -1,
            _ => 0,
        };
        depth == 0
    })?;
    let end = start + end.0;
    Some((start, end, split(&statement[start..end])))
}

/// The statement of tests/api/documented.txt with all parameters by keyword, and the optional ones
/// with their defaults.
fn by_keyword(statement: &str, function: &Function) -> Option<String> {
    // A method is called on a tensor.
    let name = function.name.strip_prefix("nl.NkiTensor").unwrap_or(&function.name);
    let (start, end, given) = call(statement, name)?;
    let mut arguments = Vec::new();
    let keyword = |g: &&str| {
        g.split_once('=')
            .filter(|(k, _)| k.chars().all(|c| c.is_alphanumeric() || c == '_'))
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
    };
    let named: Vec<(String, String)> = given.iter().filter_map(&keyword).collect();
    let positional: Vec<&str> = given.iter().filter(|g| keyword(g).is_none()).copied().collect();
    for (i, (name, default)) in function.parameters.iter().enumerate() {
        let value = positional
            .get(i)
            .map(|v| (*v).to_owned())
            .or_else(|| named.iter().find(|(k, _)| k == name).map(|(_, v)| v.clone()))
            .or_else(|| {
                default.as_ref().map(|d| if ["sbuf", "uint8"].contains(&&**d) { format!("nl.{d}") } else { d.clone() })
            })?;
        arguments.push(format!("{name}={value}"));
    }
    Some(format!("{}{}{}", &statement[..start], arguments.join(", "), &statement[end..]))
}

#[test]
fn the_language_takes_every_parameter_by_keyword() {
    let documented = read("documented.txt");
    let statement = |name: &str| {
        let line = documented.lines().find(|l| l.split_whitespace().next() == Some(name))?;
        let rest = line[name.len()..].trim();
        let (target, rest) = rest.strip_prefix("@trn3 ").map_or((Target::Trn2, rest), |r| (Target::Trn3, r));
        Some((target, rest.to_owned()))
    };
    let mut problems = String::new();
    let mut checked = 0;
    for function in functions("nl.") {
        let Some((target, plain)) = statement(&function.name) else {
            let _ = writeln!(problems, "{}: no statement in documented.txt", function.name);
            continue;
        };
        let Some(full) = by_keyword(&plain, &function) else {
            let _ = writeln!(problems, "{}: `{plain}` is no call of it with all that it requires", function.name);
            continue;
        };
        checked += 1;
        if let Some((slug, said)) = Snippet::compile(snippet::SETUP, &full, target).error() {
            let _ = writeln!(problems, "`{full}`: [{slug}] {said}");
        }
    }
    assert!(problems.is_empty(), "\n{problems}");
    assert!(checked > 80, "{checked}");
}

/// The reference's parameters of a function or method in the format of the file, without `*` and
/// variadic parameters.
fn of_entry(entry: &nki_frontend::reference::Entry) -> Vec<(String, Option<String>)> {
    let parameters = entry.each_parameter().expect("a function");
    let named = parameters.into_iter().filter(|(name, ..)| !name.starts_with('*'));
    named.map(|(name, _, default)| (name.to_owned(), (!default.is_empty()).then(|| default.to_owned()))).collect()
}

#[test]
fn the_reference_has_the_documented_parameters() {
    use nki_frontend::reference;
    let mut problems = String::new();
    let mut compared = 0;
    let class = reference::CLASSES.iter().find(|c| c.name == "NkiTensor").expect("documented");
    let functions_of_language = reference::functions("nki.language");
    for function in functions("nl.") {
        let method = function.name.strip_prefix("nl.NkiTensor.");
        let known = match method {
            Some(method) => class.members.iter().find(|e| e.name == method),
            None => functions_of_language.iter().find(|e| function.name[3..] == *e.name),
        };
        let Some(entry) = known else {
            let _ = writeln!(problems, "{}: not in the reference", function.name);
            continue;
        };
        compared += 1;
        let ours = of_entry(entry);
        let documented = &function.parameters;
        let number = |d: &str| d.parse::<f64>().ok();
        let same = |x: Option<&str>, y: Option<&str>| {
            same_default(x, y) || x.and_then(number).is_some() && x.and_then(number) == y.and_then(number)
        };
        // Older releases have an additional parameter.
        let fits = documented.len() <= ours.len()
            && ours.iter().zip(documented).all(|((a, x), (b, y))| a == b && same(x.as_deref(), y.as_deref()))
            && ours[documented.len()..].iter().all(|(name, _)| name == "address" || name == "dtype");
        if !fits {
            let _ = writeln!(problems, "{}: documented {documented:?}\n    ours {ours:?}", function.name);
        }
    }
    assert!(problems.is_empty(), "\n{problems}");
    assert!(compared >= 115, "{compared}");
}
