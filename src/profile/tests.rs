use nki_isa::Target;
use nki_isa::names::Engine;
use nki_isa::work::WorkKind;
use nki_sim_core::timing::Params;
use nki_sim_core::timing::replay::RecordedKind;

use super::testing::{After, Program, mixed};
use super::*;

fn read(text: &str) -> HardwareProfile {
    HardwareProfile::parse(text).unwrap().unwrap()
}

#[test]
fn a_profile_is_read_back() {
    let profile = read(&mixed().profile(&Params::of(Target::Trn2)));
    assert_eq!((profile.cores.len(), profile.target()), (1, Some(Target::Trn2)));
    let mapped = Mapped::of(&profile.cores[0]);
    assert!(mapped.unmapped.is_empty() && mapped.unmet == 0 && mapped.notes.is_empty(), "{:?}", mapped.notes);
    assert_eq!(mapped.transfers.len(), 16);
    assert!(mapped.transfers.iter().all(|t| t.packets.len() == 128));
    // The two loads and passes of fp32 form one matmul.
    let four = mapped.ops.iter().filter(|o| o.parts.len() == 4).count();
    assert_eq!(four, 4 * (1 + 48 + 2));
}

#[test]
fn waits_are_for_what_set_the_semaphore() {
    let mut p = Program::default();
    let tile = "src=fp32@0x4000[1,1][64,1] dst=fp32@0x4800[1,1][64,1] channels=128";
    let load = p.transfer(Engine::Sync, false, 512, After::Nothing);
    p.pass(Engine::Vector, "COPY", After::Transfer(load), tile);
    p.pass(Engine::Vector, "COPY", After::Nothing, tile);
    p.pass(Engine::Scalar, "COPY", After::Engine(Engine::Vector), tile);
    p.raw("Scalar", "EVENT_SEMAPHORE", " S[4] (Vector)>=1 setter=0 ");
    p.raw("Scalar", "EVENT_SEMAPHORE", " S[4] (Vector)>=9 setter=0 ");
    let profile = read(&p.profile(&Params::of(Target::Trn2)));
    let mapped = Mapped::of(&profile.cores[0]);
    let queue = |e: Engine| -> Vec<usize> { (0..mapped.ops.len()).filter(|o| mapped.stream[*o].queue == e).collect() };
    let (vector, scalar, sync) = (queue(Engine::Vector), queue(Engine::Scalar), queue(Engine::Sync));
    assert_eq!(mapped.stream[vector[0]].waits, [sync[0] as u32]);
    assert!(mapped.stream[vector[1]].waits.is_empty());
    // The second copy, not the first.
    assert_eq!(mapped.stream[scalar[0]].waits, [vector[1] as u32]);
    assert_eq!(mapped.stream[scalar[1]].waits, [vector[0] as u32]);
    assert!(matches!(mapped.stream[scalar[1]].kind, RecordedKind::Known { .. }));
    // No instruction sets it to 9.
    assert_eq!(mapped.unmet, 1);
}

#[test]
fn semaphores_that_are_reset_belong_to_a_round() {
    let row = |at: u32, label: &str, pc: u32, operands: &str| {
        format!(
            "{{\"timestamp\": {at}, \"duration\": 50, \"label\": \"{label}\", \"opcode\": \"COPY\", \"operands\": \"{operands}\", \"instruction_type\": \"REGULAR\", \"subgraph\": \"a\", \"pc\": {pc}}}"
        )
    };
    let set = |at, pc| row(at, "Vector", pc, "S[4]++@complete");
    let take = |at, pc| row(at, "Scalar", pc, "S[4]>=1 S[4]--@complete");
    let rows = [set(0, 1), take(100, 1), set(200, 2), take(300, 2)].join(",");
    let profile = read(&format!("{{\"instruction\": [{rows}]}}"));
    let mapped = Mapped::of(&profile.cores[0]);
    let of = |op: usize| mapped.stream[op].waits.clone();
    assert_eq!((of(2), mapped.unmet), (vec![0], 0));
    assert!(of(3).contains(&1), "{:?}", of(3));
}

#[test]
fn transfers_have_the_shape_of_their_operands() {
    let mut p = Program::default();
    p.transfer(Engine::Scalar, true, 2048, After::Nothing);
    let profile = read(&p.profile(&Params::of(Target::Trn2)));
    let mapped = Mapped::of(&profile.cores[0]);
    let RecordedKind::Work { work, partition, .. } = &mapped.stream[0].kind else { panic!() };
    let WorkKind::Dma(dma) = &work.kind else { panic!() };
    assert_eq!((dma.bytes, dma.src.runs, dma.src.run_bytes, *partition), (128 * 2048, 128, 2048, Some(0)));
    // Contiguous rows form one run.
    assert_eq!((dma.dst.runs, dma.dst.run_bytes), (1, 128 * 2048));
    assert!(dma.src.space.is_on_chip() && dma.dst.space.is_hbm());
}

#[test]
fn other_json_is_no_profile_and_bad_profiles_are_named() {
    for other in [
        "[]",
        "{}",
        "3",
        "\"x\"",
        "{\"instruction\": 3}",
        "{\"instruction\": [{\"start_ts\": 1, \"engine\": \"Vector\"}]}",
    ] {
        assert_eq!(HardwareProfile::parse(other), Ok(None), "{other}");
    }
    let row = "\"label\": \"Vector\", \"duration\": 1";
    for (bad, why) in [
        (String::new(), "empty"),
        (" \n".into(), "empty"),
        ("{\"instruction\": [".into(), "ends in the middle"),
        ("{\"instruction\": x}".into(), "not JSON"),
        (format!("{{\"instruction\": [{{\"timestamp\": 1, {row}}}], \"dma\": 3}}"), "table `dma`"),
        (format!("{{\"instruction\": [{{\"timestamp\": -1, {row}}}]}}"), "record 0 of table `instruction`"),
        (format!("{{\"instruction\": [{{\"timestamp\": 1e300, {row}}}]}}"), "record 0 of table `instruction`"),
        (format!("{{\"instruction\": [{{\"timestamp\": null, {row}}}]}}"), "record 0 of table `instruction`"),
        (format!("{{\"instruction\": [{{\"timestamp\": 1, \"opcode\": 7, {row}}}]}}"), "table `instruction`"),
        ("[".repeat(100_000), "not JSON"),
    ] {
        let e = HardwareProfile::parse(&bad).unwrap_err();
        assert!(e.contains(why), "{why}: {e}");
    }
    // The text of a valid profile, truncated anywhere, is an error or a profile without the rest; it never panics.
    let whole = mixed().profile(&Params::of(Target::Trn2));
    for at in (0..whole.len()).step_by(whole.len() / 97) {
        assert!(HardwareProfile::parse(&whole[..at]).is_err());
    }
}
