use nki_isa::Target;
use nki_isa::names::Engine;
use nki_sim_core::timing::Params;

use super::*;
use crate::profile::testing::{After, Program, mixed};

fn read(text: &str) -> HardwareProfile {
    HardwareProfile::parse(text).unwrap().unwrap()
}

#[test]
fn a_profile_of_the_model_replays_as_itself() {
    let params = Params::of(Target::Trn2);
    let figures = timed(&read(&mixed().profile(&params)), &params).unwrap();
    // A profile's times are rounded to nanoseconds.
    assert!((figures.total_us.recorded - figures.total_us.replayed).abs() < 0.002, "{:?}", figures.total_us);
    assert!(figures.drift.worst_us < 0.005, "{:?}", figures.drift);
    assert!(!figures.limiter[0].recorded_us.is_empty());
    assert_eq!(figures.limiter[0].recorded_us.len(), figures.limiter[0].replayed_us.len());
    assert_eq!(figures.coverage.by_law, figures.coverage.instructions);
    for k in &figures.opcodes {
        assert!((k.duration_ns.recorded - k.duration_ns.replayed).abs() < 2.0, "{k:?}");
    }
}

#[test]
fn another_machine_is_off_by_what_it_is_slower() {
    let mut slower = Params::of(Target::Trn2);
    slower.set("tensor.clock_ghz", 1.2).unwrap();
    let figures = timed(&read(&mixed().profile(&Params::of(Target::Trn2))), &slower).unwrap();
    assert!(figures.total_us.error_percent.unwrap() > 20.0, "{:?}", figures.total_us);
    assert!(figures.drift.bias_us > 0.0);
}

#[test]
fn what_no_law_covers_is_said_and_takes_the_recorded_time() {
    let mut p = Program::default();
    p.raw("Vector", "FROBNICATE", " S[4] (Vector)++@complete ");
    p.raw("Scalar", "EVENT_SEMAPHORE", " S[4] (Vector)>=1 setter=0 ");
    let params = Params::of(Target::Trn2);
    let figures = timed(&read(&p.profile(&params)), &params).unwrap();
    let names: Vec<&str> = figures.coverage.as_recorded.iter().map(|t| t.opcode.as_str()).collect();
    assert_eq!((names, figures.coverage.by_law), (vec!["FROBNICATE", "EVENT_SEMAPHORE"], 0));
    assert!(render::text(&figures, Target::Trn2, 5).contains("no law, so they take the recorded time (100.0%)"));
}

#[test]
fn waits_that_cannot_be_met_are_an_error() {
    // Each waits for the other.
    let row = |label: &str, pc: u32, operands: &str| {
        format!(
            "{{\"timestamp\": {pc}, \"duration\": 5, \"label\": \"{label}\", \"opcode\": \"COPY\", \"operands\": \"{operands}\", \"instruction_type\": \"REGULAR\", \"subgraph\": \"a\", \"pc\": {pc}}}"
        )
    };
    let text = format!(
        "{{\"instruction\": [{},{}]}}",
        row("Vector", 1, "S[5]>=1 S[4]++@complete"),
        row("Scalar", 2, "S[4]>=1 S[5]++@complete")
    );
    let e = timed(&read(&text), &Params::of(Target::Trn2)).unwrap_err();
    assert!(e.contains("waits for something that comes after it"), "{e}");
    let runtime = r#"{"instruction": [{"timestamp": 1, "duration": 5, "label": "Vector", "opcode": "DRAIN", "operands": "", "subgraph": "a", "pc": 1}]}"#;
    assert!(timed(&read(runtime), &Params::of(Target::Trn2)).unwrap_err().contains("no instruction of a program"));
}

#[test]
fn two_cores_run_side_by_side() {
    let mut p = Program::default();
    p.transfer(Engine::Sync, false, 4096, After::Nothing);
    let params = Params::of(Target::Trn2);
    let mut profile = read(&p.profile(&params));
    let mut other = profile.cores[0].clone();
    other.name = "sg01".into();
    profile.cores.push(other);
    let figures = timed(&profile, &params).unwrap();
    assert_eq!(figures.engines.len(), 2);
    // The two cores share an HBM stack, so neither is faster than alone.
    assert!(figures.total_us.replayed >= figures.total_us.recorded - 0.002);
}
