//! Ranks timing parameters by their effect on the latency: changes each slightly, and times the kernel again.

use nki_isa::names::Engine;
use nki_isa::schema::Confidence;
use rayon::prelude::*;

use super::remedies::Case;
use crate::schedule::Policy;
use crate::timeline::{Ps, RowKind};
use crate::timing::lower::Dependences;
use crate::timing::params::{is_whole, names};
use crate::timing::{Laws, Params};

/// The effect of a parameter on the latency.
#[derive(Debug, Clone, PartialEq)]
pub struct Sensitivity {
    /// Its name, such as `dma.bytes_per_ns`.
    pub name: String,
    /// Its value.
    pub value: f64,
    /// Its unit.
    pub unit: String,
    /// How well the value is supported.
    pub confidence: Confidence,
    /// The smaller value, with its latency; `None` if it is not allowed.
    pub low: Option<(f64, Ps)>,
    /// The larger value, with its latency.
    pub high: Option<(f64, Ps)>,
}

impl Sensitivity {
    /// The larger change of the latency.
    pub fn effect(&self, elapsed: Ps) -> Ps {
        [self.low, self.high].into_iter().flatten().map(|(_, t)| t.abs_diff(elapsed)).max().unwrap_or(0)
    }
}

/// Whether a section of the parameters can affect a kernel, judged by its non-empty rows.
fn matters(case: &Case<'_>, section: &str) -> bool {
    let ran = |kind: RowKind| case.timeline.rows.iter().any(|r| r.kind == kind && r.count > 0);
    match section {
        "tensor" => ran(RowKind::Engine(Engine::Tensor)),
        "vector" => ran(RowKind::Engine(Engine::Vector)),
        "scalar" => ran(RowKind::Engine(Engine::Scalar)),
        "gpsimd" => ran(RowKind::Engine(Engine::GpSimd)),
        "dma" => case.timeline.dma.transfers > 0,
        _ => true,
    }
}

/// Tries each number lower and higher by the share `part` (for example 0.1); integers change by at least 1. Largest effect first. `done(total)` is
/// called after each of `total` parameters.
pub fn sensitivities(case: &Case<'_>, part: f64, done: &(dyn Fn(usize) + Sync)) -> Vec<Sensitivity> {
    let candidates: Vec<String> = names(case.params.target())
        .into_iter()
        .filter(|n| matters(case, n.split('.').next().unwrap_or_default()))
        .filter(|n| case.params.get(n).is_some_and(|p| p.value.as_float().is_some()))
        .collect();
    let total = candidates.len();
    let known = Dependences::default();
    let case = &Case { known: Some(&known), ..*case };
    let mut out: Vec<Sensitivity> = candidates
        .into_par_iter()
        .filter_map(|name| {
            let p = case.params.get(&name)?;
            let value = p.value.as_float()?;
            // Integer counts in the model.
            let step =
                if is_whole(&p.unit) || p.unit == "passes" { (value * part).round().max(1.0) } else { value * part };
            let with = |new: f64| -> Option<(f64, Ps)> {
                let mut params: Params = case.params.clone();
                params.set(&name, new).ok()?;
                Some((new, case.again(&Laws::new(&params).ok()?, &Policy::of(&params))))
            };
            let (low, high) = if step > 0.0 { (with(value - step), with(value + step)) } else { (None, None) };
            done(total);
            Some(Sensitivity { name, value, unit: p.unit, confidence: p.confidence, low, high })
        })
        .collect();
    out.sort_by(|a, b| {
        let of = |s: &Sensitivity| s.effect(case.timeline.elapsed);
        of(b).cmp(&of(a)).then_with(|| a.name.cmp(&b.name))
    });
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::trace_only;
    use crate::timing::tests::{tensor_add, time_with};
    use nki_isa::Target;

    #[test]
    fn what_the_kernel_uses_moves_it() {
        let program = tensor_add();
        let params = Params::of(Target::Trn2);
        let (timeline, placement) = time_with(&program, &params);
        let trace = trace_only(&program).unwrap();
        let case = Case {
            program: &program,
            placement: &placement,
            trace: &trace,
            params: &params,
            timeline: &timeline,
            known: None,
        };
        let found = sensitivities(&case, 0.1, &|_| {});
        let effect = |name: &str| found.iter().find(|s| s.name == name).map(|s| s.effect(timeline.elapsed));
        // Head and tail are on every critical path, so their whole change counts.
        assert_eq!(effect("kernel.head_us"), Some((params.kernel.head_us.value * 1e5).round() as Ps));
        assert!(effect("dma.load_dispatch_ns").is_some_and(|e| e > 0));
        assert_eq!(effect("tensor.clock_ghz"), None);
        assert_eq!(effect("vector.cycles.reciprocal"), Some(0));
        assert!(found.windows(2).all(|w| w[0].effect(timeline.elapsed) >= w[1].effect(timeline.elapsed)));
    }
}
