use nki_isa::Target;
use nki_sim_core::timing::Params;

use super::fit::{self, Outcome};
use super::samples::{self, Classes};
use super::*;
use crate::profile::testing::mixed;

fn profile(params: &Params) -> HardwareProfile {
    HardwareProfile::parse(&mixed().profile(params)).unwrap().unwrap()
}

fn fitted(of: &Params) -> (Params, Vec<Fit>) {
    let mut classes = Classes::new();
    let start = Params::of(Target::Trn2);
    samples::add(&profile(of), &start, &mut classes);
    fit::fit(&start, &classes).unwrap()
}

/// Parameters of another machine, in percent of the default.
const ALTERED: [(&str, f64); 19] = [
    ("tensor.cycles_per_row", 95.0),
    ("tensor.fp32_cycles_per_row", 112.0),
    ("tensor.transpose_cycles_per_row", 90.0),
    ("tensor.fp32_drain_ns", 125.0),
    ("tensor.limiter_rate", 85.0),
    ("vector.fixed_ns.reduce", 130.0),
    ("vector.cycles.reduce", 85.0),
    ("vector.issue_overhead_cycles", 120.0),
    ("scalar.copy_psum_fixed_ns", 140.0),
    ("scalar.activation_fixed_ns", 90.0),
    ("scalar.cycles_per_element", 110.0),
    ("scalar.table_load_ns", 75.0),
    ("dma.hardware_trigger_ns", 115.0),
    ("dma.software_trigger_ns", 110.0),
    ("dma.bytes_per_ns", 80.0),
    ("dma.load_dispatch_ns", 130.0),
    ("dma.load_notify_ns", 120.0),
    ("sync.engine_ns.vector", 150.0),
    ("sync.dma_ns.tensor", 200.0),
];

#[test]
fn parameters_of_another_machine_are_found() {
    let default = Params::of(Target::Trn2);
    let mut other = default.clone();
    for (name, percent) in ALTERED {
        other.set(name, fit::value(&default, name).unwrap() * percent / 100.0).unwrap();
    }
    let (params, fits) = fitted(&other);
    for (name, _) in ALTERED {
        let outcome = &fits.iter().find(|f| f.name == name).unwrap().outcome;
        assert!(matches!(outcome, Outcome::Fitted { .. }), "{name}: {outcome:?}");
        let (want, got) = (fit::value(&other, name).unwrap(), fit::value(&params, name).unwrap());
        // A profile's times are rounded to nanoseconds: 2% of short times.
        assert!((got / want - 1.0).abs() < 0.02, "{name}: {got} for {want}");
    }
    // Unaltered parameters keep their values, within the uncertainty from rounding to nanoseconds and from fitting the others.
    for f in &fits {
        if let Outcome::Fitted { value, .. } = f.outcome
            && !ALTERED.iter().any(|(name, _)| *name == f.name)
        {
            assert!((value / f.before - 1.0).abs() < 0.05, "{}: {value} for {}", f.name, f.before);
        }
    }
    // The replay matches the other machine.
    let figures = timed(&profile(&other), &params).unwrap();
    assert!(figures.total_us.error_percent.unwrap().abs() < 0.1, "{:?}", figures.total_us);
}

#[test]
fn what_is_not_measured_stays() {
    let (params, fits) = fitted(&Params::of(Target::Trn2));
    let kept = |name: &str| match &fits.iter().find(|f| f.name == name).unwrap().outcome {
        Outcome::Kept(why) => why.clone(),
        other => panic!("{name}: {other:?}"),
    };
    assert_eq!(kept("vector.fixed_ns.scan"), "no measurement depends on it");
    assert!(kept("kernel.tail_us").starts_with("1 measurement, 3 are needed"));
    assert!(kept("dma.profile_trigger_ns").contains("cannot tell it from dma.software_trigger_ns"));
    assert_eq!(
        fit::value(&params, "vector.fixed_ns.scan"),
        fit::value(&Params::of(Target::Trn2), "vector.fixed_ns.scan")
    );
}

#[test]
fn the_file_is_what_params_reads() {
    let default = Params::of(Target::Trn2);
    let (params, fits) = fitted(&default);
    let text = file(&fits, &default, Target::Trn2, 1);
    let mut read = default;
    read.overlay(&text).unwrap();
    for f in &fits {
        let (a, b) = (fit::value(&read, f.name).unwrap(), fit::value(&params, f.name).unwrap());
        assert!((a / b - 1.0).abs() < 1e-4, "{}: {a} {b}", f.name);
    }
    assert_eq!(rounded(3413.3), "3413.3");
    assert_eq!(rounded(0.012345678), "0.012346");
}

#[test]
fn a_section_that_makes_replays_worse_is_taken_back() {
    let default = Params::of(Target::Trn2);
    let profiles = [("p".to_owned(), profile(&default))];
    let fitted = |name, value| Fit {
        name,
        before: fit::value(&default, name).unwrap(),
        outcome: Outcome::Fitted { value, samples: 9, spread_ns: 0.0 },
    };
    let mut fits = [fitted("tensor.fp32_cycles_per_row", 6.0), fitted("sync.dma_ns.tensor", 28.5)];
    let left = checked(&profiles, &default, &mut fits).unwrap();
    assert_eq!(fits[0].outcome, Outcome::Contradicted(6.0));
    assert!(matches!(fits[1].outcome, Outcome::Fitted { .. }));
    assert_eq!(fit::value(&left, "tensor.fp32_cycles_per_row"), Some(4.0));
    assert_eq!(fit::value(&left, "sync.dma_ns.tensor"), Some(28.5));
    assert!(table(&fits, Target::Trn2).contains("tensor.fp32_cycles_per_row 4.0000 -> 6.0000"));
    assert!(!file(&fits, &default, Target::Trn2, 1).contains("fp32_cycles_per_row"));
}

#[test]
fn a_fit_stays_within_the_limits_of_a_parameter() {
    let mut start = Params::of(Target::Trn2);
    start.set("dma.bytes_per_ns", 0.0012).unwrap();
    let mut classes = Classes::new();
    samples::add(&profile(&start), &start, &mut classes);
    // The rate would have to be a third, but the minimum is 0.001.
    classes.values_mut().flat_map(|c| &mut c.measured).for_each(|ns| *ns *= 3.0);
    let (_, fits) = fit::fit(&start, &classes).unwrap();
    let rate = fits.iter().find(|f| f.name == "dma.bytes_per_ns").unwrap();
    assert!(matches!(rate.outcome, Outcome::Fitted { value, .. } if (0.001..0.00105).contains(&value)), "{rate:?}");
}
