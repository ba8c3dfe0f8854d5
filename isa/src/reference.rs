//! The reference page of an instruction, generated from its schema, for `nki-sim explain` and docs/isa.md.

use std::fmt::Write;

use crate::arch::Target;
use crate::arg::Arg;
use crate::inst::{self, REGISTRY};
use crate::names::Named;
use crate::schema::{Kind, OperandSchema, Role, Rule, Schema};

/// The page in Markdown, under a heading of `level` `#`.
pub fn page(schema: &Schema, level: usize) -> String {
    let doc: Vec<&str> = schema.doc.trim().lines().map(str::trim).collect();
    let entry = inst::find(schema.name);
    let mut out = format!("{} {}\n\n{}\n\n", "#".repeat(level), schema.path(), doc.join("\n"));
    let operands: Vec<String> = schema
        .operands
        .iter()
        .map(|o| match o.default {
            None => o.name.to_string(),
            Some(default) => format!("{}={}", o.name, literal(&default())),
        })
        .collect();
    let _ = writeln!(out, "    {}({})\n", schema.path(), operands.join(", "));
    out += "| operand | use | takes | memory | dtype | meaning |\n| --- | --- | --- | --- | --- | --- |\n";
    for o in schema.operands {
        let doc: Vec<&str> = o.doc.trim().lines().map(str::trim).collect();
        let _ = writeln!(
            out,
            "| `{}` | {} | {} | {} | {} | {} |",
            o.name,
            role(o.role),
            takes(o),
            list(o.spaces),
            if o.spaces.is_empty() || !o.dtypes.is_empty() { list(o.dtypes) } else { "any".into() },
            doc.join(" ").replace('|', "\\|")
        );
    }
    let _ = writeln!(out, "\n**Engines.** {}\n", engines(schema));
    let _ = writeln!(out, "**Numerics.** {}\n", schema.numerics);
    let _ = writeln!(out, "**Cost** ({}). {}\n", schema.cost.confidence.name(), schema.cost.text);
    if let Some(names) = entry.map(|e| e.indirect).filter(|names| !names.is_empty()) {
        let names: Vec<String> = names.iter().map(|n| format!("`{n}`")).collect();
        let _ = writeln!(out, "**Indirect** (trn3). {}\n", names.join(", "));
    }
    let general =
        if entry.is_some_and(|e| e.collective) { "every operand and every collective" } else { "every operand" };
    if schema.rules.is_empty() {
        let _ = writeln!(out, "**Rules.** Those of {general}.");
    } else {
        let _ = writeln!(out, "**Rules**, beside those of {general}:\n");
        out += &rules(schema.rules);
    }
    out
}

/// The rules as a list.
pub fn rules(rules: &[Rule]) -> String {
    rules.iter().map(|r| format!("- {} (`{}`)\n", r.text, r.id)).collect()
}

/// The schemas by name.
pub fn by_name() -> Vec<&'static Schema> {
    let mut all: Vec<_> = REGISTRY.iter().filter(|e| e.public).map(|e| e.schema).collect();
    all.sort_by_key(|s| s.name);
    all
}

/// The engines of each generation, one line.
fn engines(schema: &Schema) -> String {
    if schema.engines.is_empty() {
        return "None.".into();
    }
    let on = |target: Target| {
        let names: Vec<_> = schema.engines.iter().filter(|e| e.since <= target).map(|e| e.on.name()).collect();
        format!("{target}: {}", if names.is_empty() { "none".into() } else { names.join(", ") })
    };
    let all: Vec<_> = Target::ALL.iter().map(|&t| on(t)).collect();
    format!("{}.", all.join("; "))
}

fn list<T: std::fmt::Display>(items: &[T]) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}

fn role(role: Role) -> &'static str {
    match role {
        Role::In => "read",
        Role::Out => "written",
        Role::InOut => "read, written",
        Role::Attr => "parameter",
    }
}

fn takes(operand: &OperandSchema) -> String {
    let mut out = kind(&operand.kind);
    if !operand.members.is_empty() {
        out += &format!(": {}", operand.members.join(", "));
    }
    out
}

fn kind(kind: &Kind) -> String {
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
        Kind::Optional(inner) => format!("{} or None", self::kind(inner)),
    }
}

/// A default in Python syntax.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_have_names_of_their_own() {
        for schema in by_name() {
            let mut ids: Vec<_> = schema.rules.iter().map(|r| r.id).collect();
            ids.sort_unstable();
            ids.dedup();
            assert_eq!(ids.len(), schema.rules.len(), "{}", schema.name);
        }
    }
}
