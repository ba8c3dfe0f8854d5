//! `nki-sim calibrate PROFILE... -o my.toml`: fits the timing parameters that hardware profiles determine.

mod fit;
mod samples;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use nki_isa::Target;
use nki_sim_core::timing::{Laws, Params, params};

use crate::Failure;
use crate::cli::CalibrateArgs;
use crate::cmd::replay::{target_of, timed};
use crate::output::{print, write_file};
use crate::places::{Inputs, check_places};
use crate::profile::HardwareProfile;
use crate::settings::ParamChanges;
use fit::{CANDIDATES, Fit, Outcome};
use samples::Classes;

/// Fits the parameters and writes them.
pub(crate) fn run(args: &CalibrateArgs) -> Result<(), Failure> {
    let mut inputs = Inputs::default();
    for path in &args.profiles {
        inputs.add("a profile", path);
    }
    if let Some(path) = &args.params {
        inputs.add("--params", path);
    }
    check_places(&[("--output", Some(&args.output))], &inputs)?;
    let mut profiles: Vec<(String, HardwareProfile)> = Vec::new();
    let mut target: Option<Target> = None;
    for path in &args.profiles {
        let profile = HardwareProfile::read(path)?;
        if let Some((known, _)) = profiles.iter().find(|(_, known)| *known == profile) {
            return Err(Failure::Call(format!(
                "`{}` is the same profile as `{known}`: its measurements would count twice",
                path.display()
            )));
        }
        let own = target_of(&profile, args.target).map_err(|why| format!("`{}`: {why}", path.display()))?;
        if let Some(other) = target.replace(own).filter(|t| *t != own) {
            return Err(Failure::Call(format!(
                "`{}` is for {own}, but `{}` is for {other}: the parameters must be for one generation",
                path.display(),
                args.profiles[0].display()
            )));
        }
        profiles.push((path.display().to_string(), profile));
    }
    let target = target.unwrap_or(Target::DEFAULT);
    let changes = ParamChanges { file: args.params.clone(), ..ParamChanges::default() };
    let start = changes.params(target)?;
    let mut classes = Classes::new();
    for (_, profile) in &profiles {
        samples::add(profile, &start, &mut classes);
    }
    let (_, mut fits) = fit::fit(&start, &classes)?;
    let fitted = checked(&profiles, &start, &mut fits)?;
    let text = file(&fits, &start, target, profiles.len());
    // The output must be valid input of `--params`.
    let mut read = start.clone();
    read.overlay(&text).map_err(|e| format!("the fitted parameters cannot be used: {e}"))?;
    Laws::new(&read).map_err(|e| format!("the fitted parameters cannot be used: {e}"))?;
    let mut out = table(&fits, target);
    replays(&mut out, &profiles, &start, &fitted);
    write_file(&args.output, &[text.as_bytes()])?;
    print(&out);
    Ok(())
}

/// The error of replays: error of the total plus median error of the starts, both in percent of the total, averaged over the profiles.
fn distance(profiles: &[(String, HardwareProfile)], params: &Params) -> Result<f64, String> {
    let mut sum = 0.0;
    for (name, profile) in profiles {
        let figures = timed(profile, params).map_err(|why| format!("`{name}`: {why}"))?;
        sum += figures.total_us.error_percent.unwrap_or(0.0).abs() + figures.drift.median_percent;
    }
    Ok(sum / profiles.len().max(1) as f64)
}

/// A section is dropped if the replays without it are better by more than this, in percent of the total.
const WORSE: f64 = 0.05;

/// Replays the profiles with the fitted values, and reverts sections that make the replays worse: there the measurements are right, but
/// another law is wrong. Returns the remaining parameters.
fn checked(profiles: &[(String, HardwareProfile)], start: &Params, fits: &mut [Fit]) -> Result<Params, String> {
    let section = |f: &Fit| f.name.split('.').next().unwrap_or_default();
    let with = |left: &[&str], fits: &[Fit]| -> Result<Params, String> {
        let mut params = start.clone();
        for f in fits {
            if let (Outcome::Fitted { value, .. }, false) = (&f.outcome, left.contains(&section(f))) {
                params.set(f.name, *value).map_err(|e| e.to_string())?;
            }
        }
        Ok(params)
    };
    let fitted = fits.iter().filter(|f| matches!(f.outcome, Outcome::Fitted { .. }));
    let sections: BTreeSet<&'static str> = fitted.map(section).collect();
    let mut left: Vec<&str> = Vec::new();
    let mut best = distance(profiles, &with(&left, fits)?)?;
    loop {
        let mut better = None;
        for &s in sections.iter().filter(|s| !left.contains(*s)) {
            let less: Vec<&str> = left.iter().copied().chain([s]).collect();
            let without = distance(profiles, &with(&less, fits)?)?;
            if without < best - WORSE {
                best = without;
                better = Some(s);
            }
        }
        match better {
            Some(s) => left.push(s),
            None => break,
        }
    }
    let params = with(&left, fits)?;
    for f in fits.iter_mut().filter(|f| left.contains(&f.name.split('.').next().unwrap_or_default())) {
        if let Outcome::Fitted { value, .. } = f.outcome {
            f.outcome = Outcome::Contradicted(value);
        }
    }
    Ok(params)
}

/// The file for `--params`, with the fitted parameters only.
fn file(fits: &[Fit], start: &Params, target: Target, profiles: usize) -> String {
    let mut out = format!(
        "# Timing parameters of {target}, fitted by nki-sim {} to {}.\ntarget = \"{target}\"\n",
        crate::VERSION,
        crate::count(profiles, "hardware profile")
    );
    for f in fits {
        let Outcome::Fitted { value, samples, spread_ns } = &f.outcome else { continue };
        let unit = start.get(f.name).map(|p| p.unit).unwrap_or_default();
        let source = format!(
            "calibrated: {} in {}, spread {spread_ns:.1} ns; before {}",
            crate::count(*samples, "measurement"),
            crate::count(profiles, "profile"),
            f.before
        );
        let _ = writeln!(
            out,
            "{} = {{ value = {}, unit = {}, source = {}, confidence = \"measured\" }}",
            f.name,
            rounded(*value),
            toml::Value::String(unit),
            toml::Value::String(source)
        );
    }
    out
}

/// The number with five significant figures.
fn rounded(x: f64) -> String {
    let digits = (4 - x.abs().max(1e-9).log10().floor() as i32).clamp(0, 9);
    format!("{x:.*}", digits as usize)
}

/// A table of the results for all parameters.
fn table(fits: &[Fit], target: Target) -> String {
    let mut out = String::new();
    let fitted: Vec<&Fit> = fits.iter().filter(|f| matches!(f.outcome, Outcome::Fitted { .. })).collect();
    let wide = fits.iter().map(|f| f.name.len()).max().unwrap_or(0);
    let _ = writeln!(out, "{} of {target} determined:", crate::count(fitted.len(), "parameter"));
    let _ = writeln!(
        out,
        "  {:<wide$} {:>10} {:>10} {:>9} {:>8} {:>10}",
        "parameter", "before", "value", "change", "samples", "spread ns"
    );
    for f in fitted {
        let Outcome::Fitted { value, samples, spread_ns } = &f.outcome else { continue };
        let _ = writeln!(
            out,
            "  {:<wide$} {:>10} {:>10} {:>+8.1}% {samples:>8} {spread_ns:>10.1}",
            f.name,
            rounded(f.before),
            rounded(*value),
            (value / f.before - 1.0) * 100.0
        );
    }
    let contradicted: Vec<String> = fits
        .iter()
        .filter_map(|f| match f.outcome {
            Outcome::Contradicted(value) => Some(format!("{} {} -> {}", f.name, rounded(f.before), rounded(value))),
            _ => None,
        })
        .collect();
    if !contradicted.is_empty() {
        let _ = writeln!(
            out,
            "\nmeasured, but left as before: with these the replays of the profiles are worse, so some other law is wrong:\n  {}",
            contradicted.join("\n  ")
        );
    }
    let _ = writeln!(out, "\nnot determined, so as before:");
    let mut because: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for f in fits {
        if let Outcome::Kept(why) = &f.outcome {
            because.entry(why).or_default().push(f.name);
        }
    }
    for (why, names) in because {
        let _ = writeln!(out, "  {why}: {}", names.join(", "));
    }
    let mut rest: BTreeMap<String, usize> = BTreeMap::new();
    for name in params::names(target) {
        if !CANDIDATES.contains(&name.as_str()) {
            *rest.entry(name.rsplit_once('.').map_or(name.clone(), |x| x.0.to_owned())).or_insert(0) += 1;
        }
    }
    let rest: Vec<String> = rest.into_iter().map(|(section, n)| format!("{section} ({n})")).collect();
    let _ = writeln!(out, "  durations and gaps in a profile do not show them one by one: {}", rest.join(", "));
    out
}

/// The effect of the fit on the replays of the profiles used.
fn replays(out: &mut String, profiles: &[(String, HardwareProfile)], before: &Params, after: &Params) {
    let _ = writeln!(
        out,
        "\nreplay of these profiles (error of the total; starts of instructions off in the median), before -> after:"
    );
    for (name, profile) in profiles {
        match (timed(profile, before), timed(profile, after)) {
            (Ok(a), Ok(b)) => {
                let total = |f: &crate::cmd::replay::Figures| f.total_us.error_percent.unwrap_or(0.0);
                let _ = writeln!(
                    out,
                    "  {name}: {:+.1}% -> {:+.1}%; {:.2}% -> {:.2}% of the total",
                    total(&a),
                    total(&b),
                    a.drift.median_percent,
                    b.drift.median_percent
                );
            }
            (Err(why), _) | (_, Err(why)) => {
                let _ = writeln!(out, "  {name}: {why}");
            }
        }
    }
}

#[cfg(test)]
mod tests;
