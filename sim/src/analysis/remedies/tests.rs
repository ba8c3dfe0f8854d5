//! Each remedy on a kernel that is built to need it.

use nki_isa::{DType, Program, Space};

use super::*;
use crate::exec::trace_only;
use crate::testing::{Builder, add, dma, matmul, pattern};
use crate::timing::tests::{tensor_add, time_with};
use nki_isa::Target;

fn tried(program: &Program) -> Remedies {
    let params = Params::of(Target::Trn2);
    let (timeline, placement) = time_with(program, &params);
    let trace = trace_only(program).unwrap();
    remedies(&Case { program, placement: &placement, trace: &trace, params: &params, timeline: &timeline }, THOROUGH)
}

fn gain(found: &Remedies, kind: &str) -> i64 {
    found.tried.iter().find(|r| r.change.kind() == kind).unwrap_or_else(|| panic!("{kind} in {found:#?}")).gain
}

/// Tiles through one buffer, or through a buffer each; loaded tile by tile.
fn tiles_of(n: i64, one_buffer: bool, width: i64) -> Program {
    let mut b = Builder::new();
    let x = b.input("x", &[n as u32, 128, width as u32], DType::F32);
    let y = b.output("y", &[n as u32, 128, width as u32], DType::F32);
    let shared = b.tensor("buffer", Space::Sbuf, &[128, width as u32], DType::F32);
    let load = b.loc();
    for i in 0..n {
        let buf = if one_buffer { shared } else { b.tensor("buffer", Space::Sbuf, &[128, width as u32], DType::F32) };
        let sum = b.tensor("sum", Space::Sbuf, &[128, width as u32], DType::F32);
        let tile = |v| pattern(v, 0, i * 128 * width, &[(width, 128), (1, width as u32)]);
        let (src, dst) = (tile(b.whole(x)), tile(b.whole(y)));
        let (buf, sum) = (b.whole(buf), b.whole(sum));
        b.push(dma(buf.clone(), src));
        if let Some(node) = b.program.cores[0].last_mut() {
            node.loc = load;
        }
        b.push(add(sum.clone(), buf.clone(), buf));
        b.push(dma(dst, sum));
    }
    b.program
}

#[test]
fn a_second_buffer_helps_where_one_is_waited_for() {
    let found = tried(&tiles_of(8, true, 2048));
    assert!(gain(&found, "double-buffering") > 0, "{found:#?}");
    assert!(!tried(&tiles_of(8, false, 2048)).tried.iter().any(|r| r.change.kind() == "double-buffering"));
}

#[test]
fn small_neighbouring_loads_are_merged() {
    let mut program = tiles_of(16, false, 64);
    // Only the last sum is stored, or the stores would bound it.
    let all = std::mem::take(&mut program.cores[0]);
    let last = all.len() - 1;
    program.cores[0] = all.into_iter().enumerate().filter(|(i, _)| i % 3 != 2 || *i == last).map(|(_, n)| n).collect();
    let merged = rewrite::merged(&program, &trace_only(&program).unwrap(), 4).unwrap();
    assert_eq!((merged.before, merged.after), (16, 4));
    // The same bytes arrive.
    let params = Params::of(Target::Trn2);
    let bytes = |p: &Program, t: &Trace| simulate(p, &place(p).unwrap(), t, &params).unwrap().dma.bytes;
    assert_eq!(bytes(&merged.program, &merged.trace), bytes(&program, &trace_only(&program).unwrap()));
    assert!(gain(&tried(&program), "larger-dma") > 0);
}

#[test]
fn loads_through_one_buffer_are_not_merged() {
    let program = tiles_of(8, true, 64);
    assert!(rewrite::merged(&program, &trace_only(&program).unwrap(), 4).is_none());
}

#[test]
fn half_width_helps_what_moves_bytes_and_repeated_loads_are_seen() {
    let found = tried(&tiles_of(8, false, 2048));
    assert!(gain(&found, "lower-precision") > 0);
    let mut b = Builder::new();
    let x = b.input("x", &[128, 2048], DType::F32);
    let y = b.output("y", &[4, 128, 2048], DType::F32);
    for i in 0..4 {
        let t = b.tensor("t", Space::Sbuf, &[128, 2048], DType::F32);
        let dst = pattern(b.whole(y), 0, i * 128 * 2048, &[(2048, 128), (1, 2048)]);
        let (t, x) = (b.whole(t), b.whole(x));
        b.push(dma(t.clone(), x));
        b.push(dma(dst, t));
    }
    let found = tried(&b.program);
    assert!(gain(&found, "redundant-loads") > 0, "{found:#?}");
}

#[test]
fn work_moves_to_an_engine_that_may_do_it() {
    let mut b = Builder::new();
    let x = b.input("x", &[128, 4096], DType::F32);
    let y = b.output("y", &[128, 4096], DType::F32);
    let s: Vec<_> = (0..6).map(|i| b.tensor(&format!("s{i}"), Space::Sbuf, &[128, 4096], DType::F32)).collect();
    let w: Vec<_> = s.iter().map(|t| b.whole(*t)).collect();
    let (x, y) = (b.whole(x), b.whole(y));
    b.push(dma(w[0].clone(), x));
    let line = b.loc();
    for t in &w[1..] {
        b.push(add(t.clone(), w[0].clone(), w[0].clone()));
        if let Some(node) = b.program.cores[0].last_mut() {
            node.loc = line;
        }
    }
    b.push(dma(y, w[5].clone()));
    let all: FxHashSet<(u32, u32)> = (1..6).map(|i| (0, i)).collect();
    let (moved, n) = rewrite::on_engine(&b.program, &all, Engine::GpSimd).unwrap();
    assert_eq!(n, 5);
    let NodeKind::Inst(inst) = &moved.cores[0][1].kind else { panic!() };
    assert_eq!(engine_of(inst).as_deref(), Some("gpsimd"));
    // The tensor engine adds nothing, so nothing moves there.
    assert!(rewrite::on_engine(&b.program, &all, Engine::Tensor).is_none());
    assert!(tried(&b.program).tried.iter().any(|r| r.change.kind() == "idle-engine"));
}

#[test]
fn small_matmuls_are_worth_filling() {
    let mut b = Builder::new();
    let a = b.input("a", &[128, 128], DType::BF16);
    let t = b.tensor("t", Space::Sbuf, &[128, 128], DType::BF16);
    let p = b.tensor("p", Space::Psum, &[32, 64], DType::F32);
    let (a, whole) = (b.whole(a), b.whole(t));
    b.push(dma(whole.clone(), a));
    let line = b.loc();
    for i in 0..64 {
        let stationary = pattern(whole.clone(), 0, i % 4 * 32, &[(1, 32), (1, 32)]);
        let moving = pattern(whole.clone(), 0, 0, &[(1, 32), (1, 64)]);
        let dst = b.whole(p);
        b.push(matmul(dst, stationary, moving, Some(true)));
        if let Some(node) = b.program.cores[0].last_mut() {
            node.loc = line;
        }
    }
    let found = tried(&b.program);
    assert!(gain(&found, "tile-shape") > 0, "{found:#?}");
}

#[test]
fn what_does_not_apply_is_not_tried() {
    let found = tried(&tensor_add());
    for kind in ["double-buffering", "redundant-loads", "fewer-descriptors", "tile-shape"] {
        assert!(!found.tried.iter().any(|r| r.change.kind() == kind), "{kind}");
    }
    for r in &found.tried {
        assert_eq!(r.gain, tensor_add_elapsed() - r.elapsed as i64);
    }
}

fn tensor_add_elapsed() -> i64 {
    time_with(&tensor_add(), &Params::of(Target::Trn2)).0.elapsed as i64
}

/// The engine that an instruction names.
fn engine_of(inst: &Inst) -> Option<String> {
    let slot = inst.schema().position("engine")?;
    match inst.args().into_iter().nth(slot)? {
        nki_isa::arg::Arg::Name(n) => Some(n.into()),
        _ => None,
    }
}
