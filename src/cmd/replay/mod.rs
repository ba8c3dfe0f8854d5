//! `nki-sim replay PROFILE.json`: times the instruction stream of a hardware profile with the machine model, and compares.

mod figures;
mod render;

use nki_isa::Target;
use nki_sim_core::timing::replay::{Recorded, RecordedKind, replay};
use nki_sim_core::timing::{Laws, Params};
use serde::Serialize;

use crate::cli::ReplayArgs;
use crate::output::{print, write_file};
use crate::places::{Inputs, check_places};
use crate::profile::{HardwareProfile, Mapped};
use crate::settings::ParamChanges;
use crate::{Failure, VERSION};

pub(crate) use figures::{Figures, median};

use figures::figures;

#[derive(Debug, Serialize)]
struct Report {
    nki_sim_version: &'static str,
    profile: String,
    target: String,
    #[serde(flatten)]
    figures: Figures,
}

/// Replays a profile.
pub(crate) fn run(args: &ReplayArgs) -> Result<(), Failure> {
    let mut inputs = Inputs::default();
    inputs.add("the profile", &args.profile);
    if let Some(path) = &args.changes.params {
        inputs.add("--params", path);
    }
    check_places(&[("--json", args.json.as_deref())], &inputs)?;
    let profile = HardwareProfile::read(&args.profile)?;
    let target = target_of(&profile, args.target)?;
    let params = ParamChanges::from(&args.changes).params(target)?;
    let figures = timed(&profile, &params).map_err(|why| format!("`{}`: {why}", args.profile.display()))?;
    if let Some(path) = &args.json {
        let report = Report {
            nki_sim_version: VERSION,
            profile: args.profile.display().to_string(),
            target: target.to_string(),
            figures: figures.clone(),
        };
        write_file(path, &[&crate::report::json(&report)?])?;
    }
    print(&render::text(&figures, target, args.top));
    Ok(())
}

/// A day, in picoseconds.
const MOST_TIME: u128 = 86_400 * 1_000_000_000_000;

/// The given generation, or that of the profile.
pub(crate) fn target_of(profile: &HardwareProfile, given: Option<Target>) -> Result<Target, String> {
    match (given, profile.target(), &profile.instance) {
        (Some(target), ..) | (None, Some(target), _) => Ok(target),
        (None, None, Some(instance)) => {
            Err(format!("the profile is from `{instance}`, whose generation is unknown; give it with --target"))
        }
        (None, None, None) => {
            Err("the profile does not say on which instance it was captured; give the generation with --target".into())
        }
    }
}

/// Replays a profile with these parameters.
pub(crate) fn timed(profile: &HardwareProfile, params: &Params) -> Result<Figures, String> {
    let mapped: Vec<(usize, Mapped)> = profile.busy_cores().map(|(i, core)| (i, Mapped::of(core))).collect();
    if mapped.iter().all(|(_, m)| m.stream.is_empty()) {
        return Err("it has no instruction of a program, only those of the runtime".into());
    }
    let known = |r: &Recorded| match r.kind {
        RecordedKind::Known { busy, complete } => busy.max(complete),
        _ => 0,
    };
    let sum: u128 = mapped.iter().flat_map(|(_, m)| &m.stream).map(|r| u128::from(known(r))).sum();
    if sum > MOST_TIME {
        return Err("the recorded times of instructions that no law covers add up to more than a day".into());
    }
    let laws = Laws::new(params).map_err(|e| e.to_string())?;
    let streams: Vec<_> = mapped.iter().map(|(_, m)| m.stream.clone()).collect();
    let grid = profile.busy_cores().find_map(|(_, core)| core.limiter.first()).map(|l| l.0.unsigned_abs() * 1000);
    let start = mapped.iter().filter_map(|(core, m)| m.start(&profile.cores[*core])).min();
    let done = replay(&streams, &laws, grid, start.map(|ns| ns.unsigned_abs() * 1000)).map_err(|stuck| {
        let (core, m) = &mapped[stuck.core];
        let part = m.ops[stuck.op].first_instruction();
        let i = &profile.cores[*core].instructions[part];
        format!(
            "{} at {} ns (pc {}): {stuck}; the recorded order of the queues contradicts the semaphores",
            i.opcode, i.start, i.pc
        )
    })?;
    Ok(figures(profile, &mapped, &done))
}

#[cfg(test)]
mod tests;
