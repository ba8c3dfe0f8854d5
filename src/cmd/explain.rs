//! `nki-sim explain SLUG|INSTRUCTION`.

use std::fmt::Write;

use nki_diag::slugs;
use nki_isa::Arg;
use nki_isa::inst::{self, REGISTRY};
use nki_isa::names::Named;
use nki_isa::schema::{Kind, OperandSchema, Role, Schema};

use crate::Failure;
use crate::output::print;

/// Prints the page of a diagnostic or an instruction, or the list of all.
pub(crate) fn run(name: Option<&str>) -> Result<(), Failure> {
    let Some(name) = name else {
        print(&list());
        return Ok(());
    };
    let short = name.strip_prefix("nisa.").or_else(|| name.strip_prefix("nki.isa.")).unwrap_or(name);
    if let Some(page) = slugs::explain(name) {
        print(&page);
    } else if let Some(entry) = inst::find(short) {
        print(&instruction(entry.schema));
    } else {
        let hint = match slugs::nearest(name) {
            Some(near) => format!("; did you mean `{}`?", near.id),
            None => "; `nki-sim explain` lists all".into(),
        };
        return Err(Failure::Call(format!("no diagnostic or instruction is called `{name}`{hint}")));
    }
    Ok(())
}

fn list() -> String {
    let mut out = String::from("diagnostics:\n");
    let width = slugs::all().map(|s| s.id.len()).max().unwrap_or(0);
    let mut all: Vec<_> = slugs::all().collect();
    all.sort_by_key(|s| s.id);
    for s in all {
        let _ = writeln!(out, "  {:width$}  {}", s.id, s.summary);
    }
    out += "\ninstructions:\n";
    let mut all: Vec<&Schema> = REGISTRY.iter().map(|e| e.schema).collect();
    all.sort_by_key(|s| s.name);
    for s in all {
        let _ = writeln!(out, "  {:width$}  {}", s.name, first_line(s.doc));
    }
    out
}

fn first_line(doc: &str) -> &str {
    doc.trim().lines().next().unwrap_or("")
}

fn instruction(schema: &Schema) -> String {
    let doc: Vec<&str> = schema.doc.trim().lines().map(str::trim).collect();
    let mut out = format!("# nisa.{}\n\n{}\n\n", schema.name, doc.join("\n"));
    let operands: Vec<String> = schema
        .operands
        .iter()
        .map(|o| match o.default {
            None => o.name.to_string(),
            Some(default) => format!("{}={}", o.name, literal(&default())),
        })
        .collect();
    let _ = writeln!(out, "    nisa.{}({})\n", schema.name, operands.join(", "));
    if !schema.engines.is_empty() {
        let engines: Vec<&str> = schema.engines.iter().map(|e| e.name()).collect();
        let _ =
            writeln!(out, "Engines: {} (the first unless `engine=` or a rule says otherwise).\n", engines.join(", "));
    }
    for o in schema.operands {
        let _ = writeln!(
            out,
            "- `{}` ({}){}",
            o.name,
            kind(o),
            if o.doc.is_empty() { String::new() } else { format!(": {}", o.doc.trim()) }
        );
    }
    out
}

fn kind(operand: &OperandSchema) -> String {
    let role = match operand.role {
        Role::In => "read, ",
        Role::Out => "written, ",
        Role::InOut => "read and written, ",
        Role::Attr => "",
    };
    let mut out = format!("{role}{}", kind_name(&operand.kind));
    if !operand.members.is_empty() {
        out += &format!(": {}", operand.members.join(", "));
    }
    if !operand.spaces.is_empty() {
        let spaces: Vec<String> = operand.spaces.iter().map(|s| s.to_string()).collect();
        out += &format!(" in {}", spaces.join(", "));
    }
    out
}

fn kind_name(kind: &Kind) -> String {
    match kind {
        Kind::View => "tile".into(),
        Kind::Scalar => "number, (P, 1) tile or register".into(),
        Kind::Number => "number".into(),
        Kind::Int => "integer".into(),
        Kind::Bool => "bool".into(),
        Kind::Name(what) => (*what).into(),
        Kind::Register => "register".into(),
        Kind::RegisterOrInt => "register or integer".into(),
        Kind::Ints => "integers".into(),
        Kind::Pattern => "[[step, count], ...]".into(),
        Kind::IntLists => "lists of integers".into(),
        Kind::Views => "list of tiles".into(),
        Kind::Numbers => "list of numbers".into(),
        Kind::Text => "string".into(),
        Kind::Optional(inner) => format!("{} or None", kind_name(inner)),
    }
}

/// A default as Python writes it.
fn literal(arg: &Arg) -> String {
    match arg {
        Arg::None => "None".into(),
        Arg::Bool(true) => "True".into(),
        Arg::Bool(false) => "False".into(),
        Arg::Int(n) => n.to_string(),
        Arg::Float(x) => format!("{x:?}"),
        Arg::Name(name) => name.to_string(),
        Arg::Text(text) => format!("{text:?}"),
        Arg::DType(dtype) => dtype.to_string(),
        Arg::List(items) => {
            let items: Vec<String> = items.iter().map(literal).collect();
            format!("({})", items.join(", "))
        }
        Arg::View(_) | Arg::Register(_) => arg.what(),
    }
}
