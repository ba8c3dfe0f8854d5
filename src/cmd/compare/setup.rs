//! The setup of a run, and differences between setups that affect the comparison.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use super::profile::Profile;
use super::table::Row;

/// The machine of a run, and whether its latency is meaningful.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Setup {
    /// Whether the kernel fits into SBUF and PSUM; true if unknown.
    pub(super) valid: bool,
    /// The chip generation, if the file has it.
    target: Option<String>,
    /// Ranks, if the file has them.
    ranks: Option<u64>,
    /// Physical cores per logical core, if the file has them.
    cores: Option<u64>,
    /// The timing parameters that differ from the defaults, by name, if the file has them.
    parameters: Option<BTreeMap<String, String>>,
}

impl Default for Setup {
    fn default() -> Self {
        Setup { valid: true, target: None, ranks: None, cores: None, parameters: None }
    }
}

impl Setup {
    /// From the file of `run --json`.
    pub(super) fn of_run(json: &Value) -> Self {
        let ranks = json["ranks"].as_array();
        let first = ranks.and_then(|all| all.first()).unwrap_or(json);
        Setup {
            valid: json["latency_valid"].as_bool().unwrap_or(true),
            target: json["target"].as_str().map(str::to_owned),
            ranks: Some(ranks.map_or(1, |all| all.len() as u64)),
            cores: first["lnc"].as_u64(),
            parameters: Some(
                json["parameters"].as_object().into_iter().flatten().map(|(k, v)| (k.clone(), v.to_string())).collect(),
            ),
        }
    }
}

impl Setup {
    /// From the rows of `run --csv`. Rows exist only for executed instructions, so only active cores are known.
    pub(super) fn of_table(rows: &[Row]) -> Self {
        let first = rows.first().and_then(|row| row.get("target"));
        let largest = |column: &str| rows.iter().filter_map(|row| row.get(column)?.parse::<u64>().ok()).max();
        Setup {
            valid: rows.iter().all(|row| row.get("latency_valid").is_none_or(|valid| valid != "false")),
            target: first.filter(|target| !target.is_empty()).cloned(),
            ranks: first.map(|_| largest("rank").map_or(1, |last| last + 1)),
            cores: first.and_then(|_| largest("pcore_idx")).map(|last| last + 1),
            parameters: None,
        }
    }

    /// From the directory of `run --parquet`, with its tables Metadata and Warning. A hardware profile has no such data.
    pub(super) fn of_profile(metadata: &[Row], warnings: &[Row]) -> Self {
        let Some(row) = metadata.first().filter(|row| row.get("is_simulation").is_some_and(|s| s == "true")) else {
            return Setup::default();
        };
        let is = |warning: &Row| warning.get("category").is_some_and(|slug| CAPACITY.contains(&slug.as_str()));
        Setup {
            valid: !warnings.iter().any(is),
            target: row.get("instance_type").cloned(),
            ranks: None,
            cores: row.get("num_physical_cores").and_then(|n| n.parse().ok()),
            parameters: None,
        }
    }
}

/// Findings about a kernel that exceeds its memory but was run (`--capacity warn`).
const CAPACITY: [&str; 4] = ["sbuf-capacity", "psum-capacity", "sbuf-overflow", "psum-overflow"];

/// Notes on meaningless latencies and different machines.
pub(super) fn notes(profiles: [&Profile; 2], files: [&Path; 2]) -> Vec<String> {
    let mut out = Vec::new();
    for (profile, file) in profiles.iter().zip(files) {
        if !profile.setup.valid {
            out.push(format!(
                "the latency of `{}` is not valid: the kernel does not fit into SBUF or PSUM",
                file.display()
            ));
        }
    }
    let [before, after] = profiles.map(|p| &p.setup);
    if let (Some(a), Some(b)) = (&before.parameters, &after.parameters) {
        let names: BTreeSet<&String> = a.keys().chain(b.keys()).filter(|name| a.get(*name) != b.get(*name)).collect();
        let value =
            |of: &BTreeMap<String, String>, name| of.get(name).map_or_else(|| "the default".to_owned(), Clone::clone);
        for name in names {
            out.push(format!(
                "the timing parameter {name} differs: {} in `{}`, {} in `{}`",
                value(a, name),
                files[0].display(),
                value(b, name),
                files[1].display()
            ));
        }
    }
    let text = |n: Option<u64>| n.map(|n| n.to_string());
    for (what, a, b) in [
        ("target", before.target.clone(), after.target.clone()),
        ("number of ranks", text(before.ranks), text(after.ranks)),
        ("number of cores (--lnc)", text(before.cores), text(after.cores)),
    ] {
        if let (Some(a), Some(b)) = (a, b)
            && a != b
        {
            out.push(format!("the {what} differs: {a} in `{}`, {b} in `{}`", files[0].display(), files[1].display()));
        }
    }
    out
}
