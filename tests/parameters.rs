//! docs/parameters.md: the timing parameters of all targets, from the parameter files.
//!
//! `BLESS=1 cargo test --test parameters` rewrites the page.

use std::fmt::Write;
use std::path::Path;

use nki_isa::Target;
use nki_sim_core::timing::Params;
use nki_sim_core::timing::params::names;

const TARGETS: [Target; 3] = [Target::Trn1, Target::Trn2, Target::Trn3];

/// A cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn page() -> String {
    let mut out = String::from(
        "# Timing parameters\n\n\
         Every number of [the machine model](machine_model.md), with its unit, source and confidence. `--set NAME=VALUE` \
         changes one for a run, `--params FILE.toml` several, and `nki-sim whatif` ranks them by their effect on a kernel.\n\n\
         - *documented*: a manual states it; *measured*: a published measurement shows it directly.\n\
         - *derived*: it follows from measurements together with the model, or was fitted; *assumed*: nobody published it.\n\n\
         Generated from `sim/src/timing/params/*.toml`; `BLESS=1 cargo test --test parameters` rewrites this file. Source and \
         confidence are those of trn2 where the targets differ in the value alone.\n",
    );
    let all = TARGETS.map(Params::of);
    let mut section = String::new();
    for name in names(Target::Trn2) {
        let param = all[1].get(&name).expect("a parameter");
        let (of, own) = name.rsplit_once('.').expect("a section");
        if of != section {
            section = of.to_owned();
            write!(out, "\n## `{section}`\n\n| parameter | trn1 | trn2 | trn3 | unit | confidence | source |\n|---|---|---|---|---|---|---|\n")
                .expect("a string");
        }
        let value =
            |params: &Params| params.get(&name).map_or_else(|| "-".into(), |p| p.value.to_string().replace('"', ""));
        let values: Vec<String> = all.iter().map(value).collect();
        writeln!(
            out,
            "| `{own}` | {} | {} | {} | {} |",
            values.join(" | "),
            cell(&param.unit),
            param.confidence.name(),
            cell(&param.source)
        )
        .expect("a string");
    }
    out
}

#[test]
fn the_page_lists_the_parameters() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/parameters.md");
    let page = page();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &page).expect("writable");
    }
    let have = std::fs::read_to_string(path).unwrap_or_default();
    assert!(have == page, "docs/parameters.md is stale: run BLESS=1 cargo test --test parameters");
}
