//! Ports to memory that two engines share.

use nki_isa::names::{DgeMode, Engine};
use nki_isa::{DType, Program, Space, Target, TensorId};

use super::{time, time_with};
use crate::testing::{Builder, copy, dma, pattern};
use crate::timeline::Event;
use crate::timing::Params;

/// Nanoseconds.
fn ns(ps: u64) -> f64 {
    ps as f64 / 1e3
}

/// Copies on GpSimd, and one on the vector engine that depends on the first of them: the engines alternate on the port.
#[test]
fn the_port_is_taken_in_turns() {
    let mut b = Builder::new();
    let shape = [128, 512];
    let tile = b.tensor("tile", Space::Sbuf, &shape, DType::F32);
    let outs: Vec<TensorId> = (0..21).map(|i| b.tensor(&format!("o{i}"), Space::Sbuf, &shape, DType::F32)).collect();
    for (i, &out) in outs.iter().enumerate() {
        let engine = if i < 20 { Engine::GpSimd } else { Engine::Vector };
        let source = if i < 20 { tile } else { outs[0] };
        let mut inst = copy(b.whole(out), b.whole(source));
        if let nki_isa::Inst::TensorCopy(copy) = &mut inst {
            copy.engine = engine;
        }
        b.push(inst);
    }
    let t = time(&b.program);
    let vector = t.events.iter().find(|e| t.rows[e.origin.row.0 as usize].kind.name() == "vector").expect("a copy");
    let gpsimd: Vec<&Event> = t.events.iter().filter(|e| !std::ptr::eq(*e, vector)).collect();
    assert!(gpsimd[0].end <= vector.start, "{} {}", gpsimd[0].end, vector.start);
    assert!(vector.end <= gpsimd[2].start, "{} {}", vector.end, gpsimd[2].start);
}

/// Copies of 512 columns, in turns on the vector engine from `space` and on the other engines from theirs. All are independent.
fn copies_in_turns(space: Space, others: &[(Engine, Space)], rounds: usize) -> Program {
    let mut b = Builder::new();
    let shape = [128, 512];
    let engines: Vec<(Engine, Space)> = [(Engine::Vector, space)].into_iter().chain(others.iter().copied()).collect();
    let tiles: Vec<(TensorId, TensorId)> = engines
        .iter()
        .map(|(engine, space)| {
            let mut tile = |name, space| b.tensor(&format!("{name}_{engine}"), space, &shape, DType::F32);
            (tile("from", *space), tile("to", Space::Sbuf))
        })
        .collect();
    for _ in 0..rounds {
        for (&(engine, _), &(from, to)) in engines.iter().zip(&tiles) {
            let mut inst = copy(b.whole(to), b.whole(from));
            if let nki_isa::Inst::TensorCopy(copy) = &mut inst {
                copy.engine = engine;
            }
            b.push(inst);
        }
    }
    b.program
}

/// From one instruction of each engine to its next, in the order of the program: nanoseconds, by engine.
fn intervals(program: &Program, target: Target, rounds: usize) -> Vec<(&'static str, f64)> {
    let mut params = Params::of(target);
    params.set("compiler.tensor_window", 1.0).unwrap();
    let t = time_with(program, &params).0;
    ["vector", "scalar", "gpsimd"]
        .into_iter()
        .filter_map(|name| {
            let of = |e: &&Event| t.rows[e.origin.row.0 as usize].kind.name() == name;
            let events: Vec<&Event> = t.events.iter().filter(of).collect();
            let (first, last) = (events.first()?, events.last()?);
            Some((name, ns(last.start - first.start) / (rounds - 1) as f64))
        })
        .collect()
}

/// NKI architecture guide: the vector and the scalar engine of trn1 cannot access PSUM in parallel; those of trn2 can.
#[test]
fn vector_and_scalar_engine_share_psum_on_trn1_only() {
    let rounds = 20;
    let alone = |target, engine, space| {
        let other = if engine == Engine::Vector { vec![] } else { vec![(engine, space)] };
        let vector = if engine == Engine::Vector { space } else { Space::Sbuf };
        let program = copies_in_turns(vector, &other, rounds);
        intervals(&program, target, rounds).last().unwrap().1
    };
    for target in [Target::Trn1, Target::Trn2] {
        let vector = alone(target, Engine::Vector, Space::Psum);
        let scalar = alone(target, Engine::Scalar, Space::Psum);
        let both = copies_in_turns(Space::Psum, &[(Engine::Scalar, Space::Psum)], rounds);
        for (name, interval) in intervals(&both, target, rounds) {
            let want = match (target, name) {
                (Target::Trn1, _) => vector + scalar,
                (_, "vector") => vector,
                _ => scalar,
            };
            assert!((interval / want - 1.0).abs() < 0.06, "{name} on {target}: {interval}, expected {want}");
        }
        // One of them in SBUF: nothing is shared.
        let apart = copies_in_turns(Space::Psum, &[(Engine::Scalar, Space::Sbuf)], rounds);
        assert!((intervals(&apart, target, rounds)[0].1 / vector - 1.0).abs() < 0.01);
    }
}

/// Copies from PSUM to SBUF use both ports of trn1: the vector engine gets its turn although each port has another engine that is always busy.
#[test]
fn an_engine_that_needs_two_ports_does_not_starve() {
    let rounds = 20;
    let others = [(Engine::Scalar, Space::Psum), (Engine::GpSimd, Space::Sbuf)];
    let got = intervals(&copies_in_turns(Space::Psum, &others, rounds), Target::Trn1, rounds);
    let [vector, scalar, gpsimd] = got[..] else { panic!("{got:?}") };
    assert!(vector.1 <= scalar.1 + gpsimd.1 + 1000.0, "{got:?}");
    assert!((vector.1 / gpsimd.1 - 1.0).abs() < 0.1, "{got:?}");
}

/// GpSimd of trn1 writes descriptors through the port to SBUF, so they delay the vector engine. Static descriptors do not, nor does GpSimd of trn2.
#[test]
fn descriptors_of_trn1_take_the_port_to_sbuf() {
    let rounds = 8;
    let interval = |target, dge: DgeMode| {
        let mut b = Builder::new();
        let (columns, copied) = (64, 512);
        let h = b.input("h", &[rounds * 128, columns], DType::F32);
        let from = b.tensor("from", Space::Sbuf, &[128, copied], DType::F32);
        let to = b.tensor("to", Space::Sbuf, &[128, copied], DType::F32);
        for i in 0..rounds {
            let loaded = b.tensor(&format!("s{i}"), Space::Sbuf, &[128, columns], DType::F32);
            let at = i64::from(i * 128 * columns);
            let rows = pattern(b.whole(h), 0, at, &[(i64::from(columns), 128), (1, columns)]);
            let mut load = dma(b.whole(loaded), rows);
            if let nki_isa::Inst::DmaCopy(load) = &mut load {
                (load.dge_mode, load.engine) = (dge, Engine::GpSimd);
            }
            b.push(load);
            let mut inst = copy(b.whole(to), b.whole(from));
            if let nki_isa::Inst::TensorCopy(copy) = &mut inst {
                copy.engine = Engine::Vector;
            }
            b.push(inst);
        }
        intervals(&b.program, target, rounds as usize)[0].1
    };
    let dma = &Params::of(Target::Trn1).dma;
    let descriptors = dma.software_trigger_ns.value + dma.profile_trigger_ns.value;
    let (software, fixed) = (DgeMode::SwDge, DgeMode::None);
    let alone = interval(Target::Trn1, fixed);
    let both = interval(Target::Trn1, software);
    assert!((both / (alone + descriptors) - 1.0).abs() < 0.1, "{both}, {alone} without descriptors");
    let [without, with] = [fixed, software].map(|dge| interval(Target::Trn2, dge));
    assert!((with / without - 1.0).abs() < 0.01, "{with}, {without} without descriptors");
}
