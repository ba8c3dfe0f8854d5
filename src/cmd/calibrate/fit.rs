//! Least squares over classes of measurements.
//!
//! Each class is represented by its median, which is robust against outliers, weighted by the number of its measurements. Derivatives are finite
//! differences of the model itself, so no law is duplicated. A parameter is fitted if enough measurements depend on it and its effect
//! is not a linear combination of the effects of earlier parameters in the list.

use nki_sim_core::timing::{Laws, Params};

use super::samples::{Class, Classes};
use crate::cmd::replay::median;

/// Minimum number of measurements.
pub(super) const LEAST_SAMPLES: usize = 3;

/// Relative step of the finite differences.
const STEP: f64 = 0.01;

/// A measurement depends on a parameter if its prediction has a larger relative derivative than this.
const DEPENDS: f64 = 0.05;

/// Minimum share of a parameter's effect that is independent of the earlier parameters.
const OPEN: f64 = 0.1;

/// A larger change than this factor indicates a different law, not a different machine.
const MOST_CHANGE: f64 = 4.0;

/// Number of iterations: the laws are piecewise linear.
const ROUNDS: usize = 12;

/// The result for a parameter.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Outcome {
    /// It was fitted.
    Fitted {
        /// Its value.
        value: f64,
        /// Measurements that depend on it.
        samples: usize,
        /// Median distance of these from the fitted model, ns.
        spread_ns: f64,
    },
    /// It was fitted to this value, but keeps the old one: the fitted values of its section make the replays of the profiles worse.
    Contradicted(f64),
    /// It keeps its value, for this reason.
    Kept(String),
}

/// A parameter before and after.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fit {
    pub(super) name: &'static str,
    pub(super) before: f64,
    pub(super) outcome: Outcome,
}

/// Parameters that profiles can determine. Of two that the measurements cannot distinguish, the first is fitted.
pub(super) const CANDIDATES: &[&str] = &[
    "tensor.cycles_per_row",
    "tensor.fp32_cycles_per_row",
    "tensor.fp32_transpose_cycles_per_row",
    "tensor.transpose_cycles_per_row",
    "tensor.limiter_rate",
    "tensor.issue_overhead_ns",
    "tensor.drain_ns",
    "tensor.fp32_drain_ns",
    "tensor.limiter_period_ns",
    "vector.fixed_ns.copy",
    "vector.fixed_ns.tensor_scalar",
    "vector.fixed_ns.tensor_tensor",
    "vector.fixed_ns.reduce",
    "vector.fixed_ns.reciprocal",
    "vector.fixed_ns.scan",
    "vector.fixed_ns.predicated",
    "vector.fixed_ns.memset",
    "vector.fixed_ns.transpose",
    "vector.fixed_ns.typical",
    "vector.issue_overhead_cycles",
    "vector.operand_cycles",
    "vector.cycles.copy",
    "vector.cycles.copy_16bit",
    "vector.cycles.copy_16bit_strided",
    "vector.cycles.copy_psum",
    "vector.cycles.copy_psum_16bit",
    "vector.cycles.tensor_tensor",
    "vector.cycles.tensor_tensor_16bit",
    "vector.cycles.tensor_tensor_psum",
    "vector.cycles.reduce",
    "vector.cycles.reciprocal",
    "vector.cycles.scan",
    "vector.cycles.predicated",
    "vector.cycles.memset",
    "vector.cycles.transpose",
    "vector.cycles.bn_stats",
    "vector.cycles.bn_aggr",
    "vector.cycles.max8",
    "vector.fixed_ns.vector_operand",
    "scalar.activation_fixed_ns",
    "scalar.copy_fixed_ns",
    "scalar.copy_psum_fixed_ns",
    "scalar.issue_overhead_ns",
    "scalar.issue_overhead_psum_ns",
    "scalar.cycles_per_element",
    "scalar.cycles_per_element_16bit",
    "scalar.vector_operand_ns",
    "scalar.table_load_ns",
    "gpsimd.fixed_cycles",
    "gpsimd.cycles_per_element",
    "dma.hardware_trigger_ns",
    "dma.software_trigger_ns",
    "dma.profile_trigger_ns",
    "dma.load_dispatch_ns",
    "dma.store_dispatch_ns",
    "dma.software_dispatch_ns",
    "dma.bytes_per_ns",
    "dma.descriptor_ns",
    "dma.load_payload_ns",
    "dma.load_tail_ns",
    "dma.store_payload_ns",
    "dma.load_notify_ns",
    "dma.store_notify_ns",
    "sync.engine_ns.tensor",
    "sync.engine_ns.vector",
    "sync.engine_ns.scalar",
    "sync.engine_ns.gpsimd",
    "sync.engine_ns.sync",
    "sync.dma_ns.tensor",
    "sync.dma_ns.vector",
    "sync.dma_ns.scalar",
    "sync.dma_ns.gpsimd",
    "sync.dma_ns.sync",
    "kernel.head_us",
    "kernel.tail_us",
];

/// The value of a numeric parameter.
pub(super) fn value(params: &Params, name: &str) -> Option<f64> {
    params.get(name)?.value.as_float()
}

fn predictions(params: &Params, classes: &[&Class]) -> Result<Vec<f64>, String> {
    let laws = Laws::new(params).map_err(|e| e.to_string())?;
    Ok(classes.iter().map(|c| c.quantity.predicted(&laws)).collect())
}

/// By parameter: derivative of each class's prediction with respect to the logarithm of the parameter, ns.
fn derivatives(params: &Params, names: &[&'static str], classes: &[&Class]) -> Result<Vec<Vec<f64>>, String> {
    let column = |name: &&'static str| {
        let at = value(params, name).filter(|v| *v > 0.0).ok_or_else(|| format!("`{name}` has no positive value"))?;
        let side = |factor: f64| {
            let mut changed = params.clone();
            // At a limit of the parameter, use a one-sided difference.
            let factor = if changed.set(name, at * factor).is_ok() { factor } else { 1.0 };
            predictions(&changed, classes).map(|values| (factor, values))
        };
        let ((from, low), (to, high)) = (side(1.0 - STEP)?, side(1.0 + STEP)?);
        Ok(low.iter().zip(&high).map(|(l, h)| (h - l) / (to - from).max(STEP)).collect())
    };
    names.iter().map(column).collect()
}

/// Fits the parameters that the classes determine, starting from `params`. Returns the fitted parameters, and the result for each candidate.
pub(super) fn fit(start: &Params, classes: &Classes) -> Result<(Params, Vec<Fit>), String> {
    let list: Vec<&Class> = classes.values().filter(|c| !c.measured.is_empty()).collect();
    let measured: Vec<f64> = list.iter().map(|c| median(&c.measured)).collect();
    let weights: Vec<f64> = list.iter().map(|c| (c.measured.len() as f64).sqrt()).collect();
    let mut params = start.clone();
    let mut fits = Vec::new();
    let mut open: Vec<&'static str> = Vec::new();
    for &name in CANDIDATES {
        let Some(before) = value(start, name) else { continue };
        // The fit uses logarithms.
        if before > 0.0 {
            open.push(name);
        } else {
            fits.push(Fit { name, before, outcome: Outcome::Kept("it is 0: no law uses it".into()) });
        }
    }
    let columns = derivatives(&params, &open, &list)?;
    let mut chosen: Vec<(&'static str, Vec<bool>)> = Vec::new();
    let mut basis: Vec<Vec<f64>> = Vec::new();
    for (name, column) in open.into_iter().zip(&columns) {
        let before = value(start, name).unwrap_or(0.0);
        let depends: Vec<bool> = column.iter().zip(&measured).map(|(d, m)| d.abs() > DEPENDS * m.abs()).collect();
        let samples: usize = list.iter().zip(&depends).filter(|(_, d)| **d).map(|(c, _)| c.measured.len()).sum();
        let mut rest: Vec<f64> = column.iter().zip(&weights).map(|(d, w)| d * w).collect();
        let all = norm(&rest);
        for b in &basis {
            let along: f64 = rest.iter().zip(b).map(|(x, y)| x * y).sum();
            rest.iter_mut().zip(b).for_each(|(x, y)| *x -= along * y);
        }
        let left = norm(&rest);
        let kept = if samples < LEAST_SAMPLES {
            Some(match samples {
                0 => "no measurement depends on it".to_owned(),
                n => format!("{}, {LEAST_SAMPLES} are needed", crate::count(n, "measurement")),
            })
        } else if left < OPEN * all {
            let with: Vec<&str> =
                chosen.iter().filter(|(_, d)| d.iter().zip(&depends).any(|(a, b)| *a && *b)).map(|(n, _)| *n).collect();
            Some(format!("the measurements cannot tell it from {}", with.join(", ")))
        } else {
            None
        };
        match kept {
            Some(why) => fits.push(Fit { name, before, outcome: Outcome::Kept(why) }),
            None => {
                basis.push(rest.iter().map(|x| x / left).collect());
                chosen.push((name, depends));
            }
        }
    }
    loop {
        let names: Vec<&'static str> = chosen.iter().map(|c| c.0).collect();
        params = start.clone();
        iterate(&mut params, &names, &list, &measured, &weights)?;
        // Drop the parameter with the largest change: without it, the others may converge.
        let far = |name: &str| {
            let ratio = value(&params, name).unwrap_or(0.0) / value(start, name).unwrap_or(1.0);
            ratio.max(1.0 / ratio.max(1e-12))
        };
        let Some(at) = (0..chosen.len()).max_by(|a, b| far(chosen[*a].0).total_cmp(&far(chosen[*b].0))) else { break };
        let name = chosen[at].0;
        if far(name) <= MOST_CHANGE {
            break;
        }
        let to = value(&params, name).unwrap_or(0.0);
        let why = format!(
            "its law does not describe the measurements: the fit differs from the old value by more than a factor of {MOST_CHANGE}"
        );
        tracing::debug!(parameter = name, to, "runs away");
        chosen.remove(at);
        fits.push(Fit { name, before: value(start, name).unwrap_or(0.0), outcome: Outcome::Kept(why) });
    }
    let fitted = predictions(&params, &list)?;
    for (name, depends) in &chosen {
        let own = || list.iter().zip(&fitted).zip(depends).filter(|(_, d)| **d).map(|(x, _)| x);
        let distances: Vec<f64> = own().flat_map(|(c, at)| c.measured.iter().map(move |m| (m - at).abs())).collect();
        let after = value(&params, name).unwrap_or(0.0);
        let outcome = Outcome::Fitted { value: after, samples: distances.len(), spread_ns: median(&distances) };
        fits.push(Fit { name, before: value(start, name).unwrap_or(0.0), outcome });
    }
    let place = |f: &Fit| CANDIDATES.iter().position(|c| *c == f.name);
    fits.sort_by_key(place);
    Ok((params, fits))
}

/// Gauss-Newton steps on the logarithms, with bounded influence of outlying classes.
fn iterate(
    params: &mut Params,
    names: &[&'static str],
    list: &[&Class],
    measured: &[f64],
    weights: &[f64],
) -> Result<(), String> {
    for round in 0..ROUNDS {
        let at = predictions(params, list)?;
        let columns = derivatives(params, names, list)?;
        // Relative to the measurement: a gap of 30 ns counts as much as a pass of a microsecond. Below 20 ns the clock's resolution is too coarse.
        let scale: Vec<f64> = measured.iter().map(|m| m.abs().max(20.0)).collect();
        let errors: Vec<f64> = measured.iter().zip(&at).zip(&scale).map(|((m, p), s)| (m - p) / s).collect();
        let sizes: Vec<f64> = errors.iter().map(|e| e.abs()).collect();
        // Outliers can be identified only after the first steps.
        let far = if round < 3 { f64::INFINITY } else { (3.0 * median(&sizes)).max(0.005) };
        let weight = |i: usize| {
            let bounded = if sizes[i] > far { (far / sizes[i]).sqrt() } else { 1.0 };
            weights[i] * bounded / scale[i]
        };
        let n = names.len();
        let mut matrix = vec![vec![0.0; n + 1]; n];
        for i in 0..list.len() {
            let w = weight(i) * weight(i);
            for a in 0..n {
                if columns[a][i] == 0.0 {
                    continue;
                }
                for b in 0..n {
                    matrix[a][b] += w * columns[a][i] * columns[b][i];
                }
                matrix[a][n] += w * columns[a][i] * (measured[i] - at[i]);
            }
        }
        for (name, step) in names.iter().zip(solve(matrix)) {
            let old = value(params, name).unwrap_or(0.0);
            let step = step.clamp(-0.7, 0.7);
            // A step beyond the limits of the parameter is shortened; at a limit, the value stays.
            let _ = (0..10).any(|halvings| params.set(name, old * (step / f64::from(1 << halvings)).exp()).is_ok());
        }
    }
    Ok(())
}

fn norm(list: &[f64]) -> f64 {
    list.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// Solves a symmetric system, the right side in the last column; undetermined unknowns are 0.
fn solve(mut m: Vec<Vec<f64>>) -> Vec<f64> {
    let n = m.len();
    for (i, row) in m.iter_mut().enumerate() {
        // A slight damping for unknowns that are hardly measured.
        row[i] *= 1.0 + 1e-9;
    }
    for c in 0..n {
        let best = (c..n).max_by(|a, b| m[*a][c].abs().total_cmp(&m[*b][c].abs())).unwrap_or(c);
        m.swap(c, best);
        if m[c][c].abs() < 1e-12 {
            continue;
        }
        let pivot = m[c].clone();
        for (r, row) in m.iter_mut().enumerate() {
            let f = row[c] / pivot[c];
            if r != c && f != 0.0 {
                row.iter_mut().zip(&pivot).skip(c).for_each(|(x, p)| *x -= f * p);
            }
        }
    }
    (0..n).map(|i| if m[i][i].abs() < 1e-12 { 0.0 } else { m[i][n] / m[i][i] }).collect()
}
