//! `nki-sim explain NAME`: a diagnostic, an API name, a cause of stalls, a remedy, a timing parameter, or a table or column of a report.

use std::collections::BTreeSet;
use std::fmt::Write;

use nki_diag::slugs;
use nki_frontend::reference::{self, CLASSES, Class, Entry};
use nki_frontend::{ApiKind, api_names, tile_size};
use nki_isa::names::Named as _;
use nki_isa::{Target, inst, reference as instructions};
use nki_sim_core::report::{CAUSES, FIGURES, REMEDIES};
use nki_sim_core::timing::{Params, params};

use crate::Failure;
use crate::output::print;
use crate::tables;

/// The modules of the API with their usual aliases.
const MODULES: [(&str, &str); 3] =
    [("nki.language", "nl"), ("nki.isa", "nisa"), ("nki.collectives", "nki.collectives")];

/// Prints all pages with this name; without a name, the list of names.
pub(crate) fn run(name: Option<&str>) -> Result<(), Failure> {
    print(&text(name)?);
    Ok(())
}

/// The pages as text.
///
/// # Errors
/// If nothing has this name.
pub(crate) fn text(name: Option<&str>) -> Result<String, Failure> {
    let Some(name) = name else { return Ok(list()) };
    let found = pages(name);
    if found.is_empty() {
        let hint = match nearest(name, &names()) {
            Some(near) => format!("; did you mean `{near}`?"),
            None => "; `nki-sim explain` lists most of them".into(),
        };
        return Err(Failure::Call(format!(
            "no diagnostic, name of the API, cause of a stall, remedy, timing parameter, table or column is called `{name}`{hint}"
        )));
    }
    Ok(found.join("\n"))
}

/// The most similar name, if one is close enough: for `nisa.NAME`, among those that begin with `nisa.`.
fn nearest(word: &str, names: &[String]) -> Option<String> {
    let words = || names.iter().map(String::as_str).filter(|name| name.len() > 1);
    let Some((home, _)) = word.rsplit_once('.').filter(|(home, _)| words().any(|name| inside(name, home).is_some()))
    else {
        return slugs::nearest_of(word, words()).map(str::to_owned);
    };
    let near = slugs::nearest_of(inside(word, home)?, words().filter_map(|name| inside(name, home)))?;
    Some(format!("{home}.{near}"))
}

/// The part of a name after its module, class or group.
fn inside<'a>(name: &'a str, home: &str) -> Option<&'a str> {
    name.strip_prefix(home)?.strip_prefix('.')
}

/// All pages with this name.
fn pages(name: &str) -> Vec<String> {
    let mut out: Vec<String> = slugs::explain(name).into_iter().collect();
    let (module, rest) = qualified(name);
    let wanted = |m: &str| module.is_none_or(|module| module == m);
    if let Some(entry) = inst::find(rest) {
        let home = if entry.collective { "nki.collectives" } else { "nki.isa" };
        // A function that returns the instruction's result has a separate page.
        if wanted(home) && reference::functions(home).iter().all(|e| e.name != rest) {
            out.push(instructions::page(entry.schema, 1));
        }
    }
    // `nl.reshape` is not a function: the method is `nl.NkiTensor.reshape`.
    let bare = module.is_some() && !rest.contains('.');
    for (module, short) in MODULES.iter().filter(|(m, _)| wanted(m)) {
        let functions = reference::functions(module);
        out.extend(functions.iter().filter(|e| e.name == rest).map(|e| page(&format!("{short}.{}", e.name), e)));
        let classes = || CLASSES.iter().filter(|c| c.module == *module);
        out.extend(classes().filter(|c| c.name == rest).map(|c| class(short, c)));
        let member = |c: &Class| -> Vec<String> {
            let members = c.members.iter().filter(|e| !bare && names_member(rest, c, e));
            members.map(|e| page(&format!("{short}.{}.{}", c.name, e.name), e)).collect()
        };
        out.extend(classes().flat_map(member));
        out.extend(
            api_names()
                .iter()
                .filter(|(m, n, _)| m == module && names_value(rest, n))
                .filter_map(|n| value(short, n, rest)),
        );
    }
    out.extend(
        CAUSES
            .iter()
            .filter(|c| c.name == cause_of(name))
            .map(|c| format!("# {}\n\nCause of a stall. The row waits: {}.\n\n{}\n", c.name, c.because, c.remedy)),
    );
    let remedies = REMEDIES.iter().filter(|r| r.0 == name);
    out.extend(remedies.map(|(name, about)| format!("# {name}\n\nRemedy that a run tries. Timed: {about}\n")));
    let figures = FIGURES.iter().filter(|f| f.names.contains(&name));
    out.extend(figures.map(|f| format!("# {name}\n\nColumn of a report (`{}`). {}\n", f.names.join("`, `"), f.about)));
    out.extend(parameter(name).or_else(|| tables::explain(name)));
    if out.is_empty() {
        out.extend(group(name));
    }
    out
}

/// The cause of a stall named in a report's text: names of semaphores include hazards.
fn cause_of(text: &str) -> &str {
    match text.strip_prefix("waits: ").unwrap_or(text) {
        "RAW" | "WAR" | "WAW" => "semaphore",
        name => name,
    }
}

/// The module prefix of a name, and the rest of the name.
fn qualified(name: &str) -> (Option<&'static str>, &str) {
    // The older package has modules with the same names.
    let name = name.strip_prefix("neuronxcc.").unwrap_or(name);
    for (module, short) in MODULES {
        for prefix in [module, short] {
            if let Some(rest) = name.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('.')) {
                return (Some(module), rest);
            }
        }
    }
    (None, name)
}

/// Whether a text names a member: `reshape`, `NkiTensor.reshape`, or `tensor.reshape` and the like.
fn names_member(text: &str, class: &Class, member: &Entry) -> bool {
    match text.split_once('.') {
        None => text == member.name,
        Some((owner, name)) => {
            let short = class.name.trim_start_matches("Nki").to_lowercase();
            name == member.name && (owner == class.name || owner.to_lowercase() == short)
        }
    }
}

/// Whether a text names a value of the API or part of it: `engine`, `engine.vector`.
fn names_value(text: &str, name: &str) -> bool {
    text.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The page of a function, method or attribute.
fn page(name: &str, entry: &Entry) -> String {
    let Some(parameters) = entry.each_parameter() else {
        return format!("# {name}\n\nAttribute, {}. {}\n", entry.result, entry.doc);
    };
    let plain = |(name, _, default): &reference::Parameter<'_>| match *default {
        "" => (*name).to_owned(),
        default => format!("{name}={default}"),
    };
    let list: Vec<String> = parameters.iter().map(plain).collect();
    let mut out = format!("# {name}\n\n    {name}({}) -> {}\n\n{}\n", list.join(", "), entry.result, entry.doc);
    if parameters.iter().any(|(_, kind, _)| !kind.is_empty()) {
        out += "\n| parameter | type | default |\n| --- | --- | --- |\n";
        for (name, kind, default) in parameters.into_iter().filter(|(_, kind, _)| !kind.is_empty()) {
            let _ = writeln!(out, "| `{name}` | {} | {default} |", kind.replace('|', "or"));
        }
    }
    out
}

fn class(short: &str, class: &Class) -> String {
    let mut out = format!("# {short}.{}\n\nClass. {}\n", class.name, class.doc);
    match class.base {
        "" => {}
        "NKIObject" => out += "\nIts base class is nl.NKIObject.\n",
        base => {
            let _ = writeln!(out, "\nIt has what {short}.{base} has.");
        }
    }
    if !class.members.is_empty() {
        out.push('\n');
    }
    for e in class.members {
        let call = if e.parameters.is_some() { "()" } else { "" };
        let _ = writeln!(out, "- `{}{call}`: {}", e.name, e.doc);
    }
    out
}

/// The page of an enum, an element type, or a limit of the target.
fn value(short: &str, (_, name, kind): &nki_frontend::ApiName, text: &str) -> Option<String> {
    let part = text.strip_prefix(name)?.strip_prefix('.');
    let page = match (kind, part) {
        (ApiKind::Enum(members), None) => {
            let members: Vec<String> = members.iter().map(|(member, _)| format!("`{member}`")).collect();
            format!("Enum: {}.", members.join(", "))
        }
        (ApiKind::Enum(members), Some(part)) => {
            members.iter().find(|(member, _)| *member == part)?;
            format!("Member of the enum {short}.{name}.")
        }
        (ApiKind::Member(class, member), None) => format!("The same as {short}.{class}.{member}."),
        (ApiKind::Dtype(dtype), None) => {
            let bytes = dtype.size();
            format!("Element type of {bytes} byte{}.", if bytes == 1 { "" } else { "s" })
        }
        (ApiKind::TileSize(names), None) => {
            let names: Vec<String> = names.iter().map(|n| format!("`{n}`")).collect();
            format!("Limits of the target: {}.", names.join(", "))
        }
        (ApiKind::TileSize(_), Some(part)) => {
            let values = Target::ALL.iter().map(|&t| tile_size(t, part).map(|v| format!("{t}: {v}")));
            format!("Limit of the target. {}", values.collect::<Option<Vec<_>>>()?.join(", "))
        }
        _ => return None,
    };
    Some(format!("# {short}.{text}\n\n{page}\n"))
}

/// A timing parameter on every generation that has it.
fn parameter(name: &str) -> Option<String> {
    let mut out = format!("# {name}\n\nTiming parameter; `--set {name}=VALUE` changes it.\n\n");
    let empty = out.len();
    for &target in Target::ALL {
        let Some(p) = Params::of(target).get(name) else { continue };
        let _ = writeln!(out, "{target}: {} {} ({}: {})", p.value, p.unit, p.confidence.name(), p.source);
    }
    (out.len() > empty).then_some(out)
}

/// The timing parameters whose names begin with a group: `vector.cycles`, also written `vector.cycles.*`.
fn group(name: &str) -> Option<String> {
    let name = name.strip_suffix(".*").unwrap_or(name);
    let of = |&target: &Target| params::names(target).into_iter().filter(|p| inside(p, name).is_some());
    let members: BTreeSet<String> = Target::ALL.iter().flat_map(of).collect();
    if members.is_empty() {
        return None;
    }
    let mut out = format!("# {name}\n\nGroup of timing parameters:\n\n");
    for member in members {
        let values = Target::ALL.iter().filter_map(|&t| {
            let p = Params::of(t).get(&member)?;
            Some(format!("{t} {}", p.value))
        });
        let _ = writeln!(out, "- `{member}`: {}", values.collect::<Vec<_>>().join(", "));
    }
    Some(out)
}

/// The functions and members of the API that are not instructions, with their names in kernels.
fn api() -> Vec<(String, Entry)> {
    let mut out = Vec::new();
    for (module, short) in MODULES {
        out.extend(reference::functions(module).into_iter().map(|e| (format!("{short}.{}", e.name), e)));
        for c in CLASSES.iter().filter(|c| c.module == module) {
            let members = c.members.iter().filter(|e| !e.name.starts_with("__"));
            out.extend(members.map(|e| (format!("{short}.{}.{}", c.name, e.name), e.clone())));
        }
    }
    out
}

/// Candidates for "did you mean" suggestions.
fn names() -> Vec<String> {
    let mut out: Vec<String> = slugs::all().map(|s| s.id.to_owned()).collect();
    for schema in instructions::by_name() {
        out.extend([schema.name.to_owned(), schema.path().to_string()]);
    }
    for (name, _) in api() {
        out.extend([name.rsplit('.').next().unwrap_or(&name).to_owned(), name]);
    }
    for &target in Target::ALL {
        out.extend(params::names(target));
    }
    out.extend(CAUSES.iter().map(|c| c.name.to_owned()));
    out.extend(REMEDIES.iter().map(|r| r.0.to_owned()));
    out.extend(FIGURES.iter().flat_map(|f| f.names).map(|name| (*name).to_owned()));
    out.extend(tables::names());
    out
}

fn list() -> String {
    let mut all: Vec<_> = slugs::all().collect();
    all.sort_by_key(|s| s.id);
    let mut out = String::new();
    let mut section = |title: &str, rows: Vec<(String, String)>| {
        let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let _ = writeln!(out, "{}{title}:", if out.is_empty() { "" } else { "\n" });
        for (name, about) in rows {
            let _ = writeln!(out, "  {name:width$}  {about}");
        }
    };
    section("diagnostics", all.into_iter().map(|s| (s.id.into(), s.summary.into())).collect());
    let instruction = |s: &'static nki_isa::schema::Schema| (s.name.to_owned(), first_line(s.doc).to_owned());
    section("instructions", instructions::by_name().into_iter().map(instruction).collect());
    section(
        "functions, methods and attributes",
        api().into_iter().map(|(n, e)| (n, first_line(&e.doc).to_owned())).collect(),
    );
    section("causes of stalls", CAUSES.iter().map(|c| (c.name.into(), c.because.into())).collect());
    section("remedies", REMEDIES.iter().map(|(name, about)| ((*name).into(), (*about).into())).collect());
    section("columns of reports", FIGURES.iter().map(|f| (f.names.join(", "), f.about.into())).collect());
    out
}

fn first_line(doc: &str) -> &str {
    doc.trim().lines().next().unwrap_or("")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn every_name_of_the_api_has_a_page() {
        // Names that exist only in the older language are described in docs/beta1.md.
        for (module, name, kind) in api_names().into_iter().filter(|(module, ..)| module.starts_with("nki")) {
            if matches!(kind, ApiKind::Class) && matches!(name, "tensor" | "NkiValidationError") {
                continue;
            }
            assert_eq!(pages(&format!("{module}.{name}")).len(), 1, "{module}.{name}");
        }
        for (name, _) in api() {
            assert_eq!(pages(&name).len(), 1, "{name}");
        }
    }

    #[test]
    fn every_name_that_is_offered_has_a_page() {
        for name in names() {
            assert!(!pages(&name).is_empty(), "{name}");
        }
    }

    #[test]
    fn a_group_of_parameters_lists_them() {
        let page = pages("vector.cycles").concat();
        assert!(page.contains("Group of timing parameters") && page.contains("- `vector.cycles."), "{page}");
        assert_eq!(pages("vector.cycles.*").concat(), page);
        // A prefix is a group only at a boundary between parts of a name.
        assert!(pages("vector.cyc").is_empty() && pages("*").is_empty() && pages("").is_empty());
    }

    #[test]
    fn only_near_names_are_suggested() {
        let near = |word| nearest(word, &names());
        assert_eq!(near("nisa.activtion").as_deref(), Some("nisa.activation"));
        assert_eq!(near("nias.activation").as_deref(), Some("nisa.activation"));
        assert_eq!(near("semafore").as_deref(), Some("semaphore"));
        for far in ["nope", "nisa.foo", "x", "hello"] {
            assert_eq!(near(far), None, "{far}");
        }
    }

    #[test]
    fn the_page_of_reports_has_the_causes() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/report.md");
        let text = std::fs::read_to_string(docs).expect("readable");
        for c in CAUSES {
            assert!(text.contains(&format!("\n| `{}` | {} |\n", c.name, c.because)), "{}", c.name);
        }
    }
}
