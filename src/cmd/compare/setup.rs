//! What a run was made for, and what sets two runs apart before anything is compared.

use std::path::Path;

use serde_json::Value;

use super::profile::Profile;

/// The machine of a run, and whether its latency means anything.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Setup {
    /// The kernel fits into SBUF and PSUM, or the file does not say.
    pub(super) valid: bool,
    /// The chip generation, where the file says so.
    target: Option<String>,
    /// Ranks, where the file says so.
    ranks: Option<u64>,
    /// Physical cores per logical core, where the file says so.
    cores: Option<u64>,
}

impl Default for Setup {
    fn default() -> Self {
        Setup { valid: true, target: None, ranks: None, cores: None }
    }
}

impl Setup {
    /// Of the file of `run --json`.
    pub(super) fn of_run(json: &Value) -> Self {
        let ranks = json["ranks"].as_array();
        let first = ranks.and_then(|all| all.first()).unwrap_or(json);
        Setup {
            valid: json["latency_valid"].as_bool().unwrap_or(true),
            target: json["target"].as_str().map(str::to_owned),
            ranks: Some(ranks.map_or(1, |all| all.len() as u64)),
            cores: first["lnc"].as_u64(),
        }
    }
}

/// Latencies that mean nothing, and machines that are not the same.
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
