//! Each remedy on a kernel built to need it.

use nki_isa::ids::RegId;
use nki_isa::names::DgeMode;
use nki_isa::program::{Bound, Control};
use nki_isa::{DType, Program, Space, View};

use super::*;
use crate::HostTensor;
use crate::exec::{self, trace_only};
use crate::testing::{Builder, add, copy, dma, matmul, pattern};
use crate::timing::tests::{tensor_add, time_with};
use nki_isa::Target;

fn tried(program: &Program) -> Remedies {
    tried_with(program, &Params::of(Target::Trn2))
}

fn tried_with(program: &Program, params: &Params) -> Remedies {
    let (timeline, placement) = time_with(program, params);
    let trace = trace_only(program).unwrap();
    remedies(
        &Case { program, placement: &placement, trace: &trace, params, timeline: &timeline, known: None },
        THOROUGH,
    )
}

fn gain(found: &Remedies, kind: &str) -> i64 {
    found.tried.iter().find(|r| r.change.kind() == kind).unwrap_or_else(|| panic!("{kind} in {found:#?}")).gain
}

/// Tiles through one buffer, or through separate buffers; loaded tile by tile.
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
    // Only the last sum is stored: otherwise stores would be the bottleneck.
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
    // The tensor engine cannot add, so nothing moves there.
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

/// A transfer with hardware descriptors in the queue of the sync engine.
fn hw(dst: View, src: View) -> Inst {
    dma(dst, src).with_descriptors(DgeMode::HwDge, Engine::Sync).unwrap()
}

/// All weights are loaded at once; each matmul reads a block of them. With `looped`, a dynamic loop is between the loads.
fn blocks_of_weights(looped: bool) -> Program {
    let mut b = Builder::new();
    let (x, w) = (b.input("x", &[128, 128], DType::BF16), b.input("w", &[128, 16, 512], DType::BF16));
    let y = b.output("y", &[128, 512], DType::BF16);
    let (xs, ws) = (
        b.tensor("xs", Space::Sbuf, &[128, 128], DType::BF16),
        b.tensor("ws", Space::Sbuf, &[128, 16, 512], DType::BF16),
    );
    let (sum, out) =
        (b.tensor("sum", Space::Psum, &[128, 512], DType::F32), b.tensor("out", Space::Sbuf, &[128, 512], DType::BF16));
    let [x, w, y, xs, ws, sum, out] = [x, w, y, xs, ws, sum, out].map(|t| b.whole(t));
    b.push(hw(xs.clone(), x));
    if looped {
        b.program.registers = 1;
        let body = vec![b.node(NodeKind::Inst(add(xs.clone(), xs.clone(), xs.clone())))];
        let (lower, upper) = (Bound::Static(0), Bound::Static(2));
        b.push_node(Control::For { variable: RegId(0), lower, upper, step: 1, body }.into());
    }
    b.push(hw(ws.clone(), w));
    for i in 0..16 {
        let block = pattern(ws.clone(), 0, i * 512, &[(1, 128), (1, 512)]);
        b.push(matmul(sum.clone(), xs.clone(), block, Some(i > 0)));
    }
    b.push(copy(out.clone(), sum));
    b.push(hw(y, out));
    b.program
}

/// A big load before a small one that starts a chain of computation.
fn small_load_last() -> Program {
    let mut b = Builder::new();
    let (x, w) = (b.input("x", &[128, 64], DType::BF16), b.input("w", &[128, 16384], DType::BF16));
    let y = b.output("y", &[128, 64], DType::BF16);
    let names = ["ws", "xs", "a", "c"];
    let widths = [16384, 64, 64, 64];
    let [ws, xs, a, c] = std::array::from_fn(|i| b.tensor(names[i], Space::Sbuf, &[128, widths[i]], DType::BF16));
    let [x, w, y, ws, xs, a, c] = [x, w, y, ws, xs, a, c].map(|t| b.whole(t));
    b.push(hw(ws.clone(), w));
    b.push(hw(xs.clone(), x));
    b.push(add(a.clone(), xs.clone(), xs));
    for _ in 0..30 {
        b.push(add(a.clone(), a.clone(), a.clone()));
    }
    let first = pattern(ws, 0, 0, &[(1, 128), (1, 64)]);
    b.push(add(c.clone(), a, first));
    b.push(hw(y, c));
    b.program
}

#[test]
fn a_load_in_parts_is_the_best_offer_where_each_part_has_its_reader() {
    let found = tried(&blocks_of_weights(false));
    let best = &found.tried[0];
    assert_eq!(best.change.kind(), "split-dma", "{found:#?}");
    assert!(best.gain * 20 > best.elapsed as i64, "{found:#?}");
    let RemedyChange::SplitDma { before: 1, after, first, engine: _ } = &best.change else { panic!("{best:#?}") };
    assert_eq!((*after, first.parts, first.dst.axis, &*first.dst.tensor), (first.parts, first.parts, 1, "ws"));
    assert!(first.dst.whole && first.dst.step * first.parts == 16);
}

#[test]
fn a_load_whose_reader_needs_all_of_it_stays_whole() {
    let mut b = Builder::new();
    let (x, y) = (b.input("x", &[128, 4096], DType::BF16), b.output("y", &[128, 4096], DType::BF16));
    let t = b.tensor("t", Space::Sbuf, &[128, 4096], DType::BF16);
    let [x, y, t] = [x, y, t].map(|t| b.whole(t));
    b.push(hw(t.clone(), x));
    b.push(add(t.clone(), t.clone(), t.clone()));
    b.push(hw(y, t));
    let found = tried(&b.program);
    for kind in ["split-dma", "earlier-loads"] {
        assert!(found.tried.iter().all(|r| r.change.kind() != kind || r.gain <= 0), "{found:#?}");
    }
    assert!(found.tried.iter().any(|r| r.change.kind() == "split-dma"), "{found:#?}");
}

#[test]
fn an_earlier_load_is_the_best_offer_in_program_order_only() {
    let program = small_load_last();
    let mut params = Params::of(Target::Trn2);
    params.set("compiler.tensor_window", 1.0).unwrap();
    let found = tried_with(&program, &params);
    assert_eq!(found.tried[0].change.kind(), "earlier-loads", "{found:#?}");
    assert!(found.tried[0].gain * 20 > found.tried[0].elapsed as i64, "{found:#?}");
    // The compiler orders loads by their first readers.
    let found = tried(&program);
    assert!(found.tried.iter().all(|r| r.change.kind() != "earlier-loads" || r.gain <= 0), "{found:#?}");
}

/// The results of a program on inputs with distinct elements.
fn results(program: &Program) -> Vec<Vec<u8>> {
    let inputs = program.inputs.iter().map(|i| {
        let t = program.tensor(i.tensor);
        let elements: usize = t.shape.iter().map(|n| *n as usize).product();
        let bytes = (0..elements).flat_map(|i| half::bf16::from_f32((i % 251) as f32 * 0.125).to_le_bytes());
        let shape = t.shape.iter().map(|n| *n as usize).collect();
        HostTensor { name: i.name.clone(), shape, dtype: t.dtype, data: bytes.collect::<Vec<u8>>().into() }
    });
    let done = exec::run(program, &place(program).unwrap(), inputs.collect(), &exec::ExecOptions::default()).unwrap();
    done.outputs.iter().map(|o| o.data.to_vec()).collect()
}

#[test]
fn rearranged_programs_compute_the_same_and_have_the_trace_of_their_run() {
    let same = |old: &Program, new: &Program, trace: &Trace| {
        assert!(new.validate().is_empty());
        assert_eq!(*trace, trace_only(new).unwrap());
        assert_eq!(results(new), results(old));
    };
    for looped in [false, true] {
        let old = blocks_of_weights(looped);
        let trace = trace_only(&old).unwrap();
        let lines: Vec<_> = old.cores[0].iter().map(|n| (n.loc.file, n.loc.line)).collect();
        for (most, engine) in [(4, None), (16, None), (5, Some(Engine::Scalar))] {
            let cuts: Vec<_> = lines.iter().map(|line| (*line, rearrange::Parts { most, engine })).collect();
            let split = rearrange::split(&old, &trace, &cuts);
            // An explicit queue leaves no choice.
            assert_eq!(split.is_none(), engine.is_some());
            if let Some(split) = split {
                // Both loads and the store.
                assert_eq!((split.before, split.after), (3, 3 * most));
                same(&old, &split.program, &split.trace);
            }
        }
        // Loads cannot pass a loop; before it, both have the same first reader.
        assert!(rearrange::hoisted(&old, &trace, &lines).is_none());
    }
    let old = small_load_last();
    let trace = trace_only(&old).unwrap();
    let load = |at: usize| (old.cores[0][at].loc.file, old.cores[0][at].loc.line);
    let moved = rearrange::hoisted(&old, &trace, &[load(1)]).unwrap();
    assert_eq!((moved.loads, moved.first.0.loc.line, moved.first.1.loc.line), (1, load(1).1, load(0).1));
    same(&old, &moved.program, &moved.trace);
}
