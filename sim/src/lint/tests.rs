//! Lost results against a model that tracks the writer of every byte.

use std::collections::{BTreeMap, BTreeSet};

use nki_isa::program::{Bound, Control, NodeKind};
use nki_isa::{DType, Space};
use proptest::prelude::*;

use super::*;
use crate::place::place;
use crate::testing::{Builder, add, copy, dma, pattern};

fn found(program: &Program) -> Vec<&'static str> {
    let placement = place(program).unwrap();
    let trace = exec::trace_only(program).unwrap();
    accesses(program, &placement, &trace).iter().map(|d| d.id).collect()
}

/// A part of a tile, or a strided pattern within it.
#[derive(Debug, Clone)]
struct Part {
    tensor: usize,
    partition: u32,
    partitions: u32,
    offset: i64,
    stride: i64,
    count: u32,
}

fn part(strided: bool) -> impl Strategy<Value = Part> {
    let stride = if strided { 1i64..4 } else { 1i64..2 };
    (0usize..3, 0u32..3, 1u32..4, 0i64..6, stride, 1u32..6).prop_map(
        |(tensor, partition, partitions, offset, stride, count)| Part {
            tensor,
            partition,
            partitions,
            offset,
            stride,
            count,
        },
    )
}

/// The lost instructions, by the analysis and by definition.
fn both(ops: &[(Part, Part, bool)]) -> (BTreeSet<usize>, BTreeSet<usize>) {
    let mut b = Builder::new();
    // Two tiles share bytes, one is disjoint.
    let tiles = [
        b.placed("a", Space::Sbuf, &[8, 64], DType::F32, (0, 0)),
        b.placed("b", Space::Sbuf, &[8, 64], DType::F32, (2, 24)),
        b.placed("c", Space::Sbuf, &[8, 64], DType::F32, (0, 1024)),
    ];
    let base = [(0, 0), (2, 6), (0, 256)];
    let view = |b: &Builder, p: &Part, width: u32| {
        let dims = [(1, p.partitions), (p.stride, width)];
        pattern(b.whole(tiles[p.tensor]), p.partition, p.offset, &dims)
    };
    let cells = |p: &Part, width: u32| -> Vec<(i64, i64)> {
        let (row, column) = base[p.tensor];
        let rows = 0..i64::from(p.partitions);
        rows.flat_map(|r| {
            (0..i64::from(width)).map(move |i| (row + i64::from(p.partition) + r, column + p.offset + i * p.stride))
        })
        .collect()
    };
    let mut writer: BTreeMap<(i64, i64), usize> = BTreeMap::new();
    let mut read = BTreeSet::new();
    for (i, (dst, src, reads)) in ops.iter().enumerate() {
        let width = dst.count;
        let src = Part { partitions: dst.partitions, ..src.clone() };
        if *reads {
            let v = view(&b, &src, width);
            b.push(add(view(&b, dst, width), v.clone(), v));
            read.extend(cells(&src, width).iter().filter_map(|c| writer.get(c).copied()));
        } else {
            let v = view(&b, dst, width);
            b.push(nki_isa::inst::vector::memset::Memset {
                dst: v,
                value: nki_isa::Imm::Float(1.0),
                engine: nki_isa::Engine::Vector,
            });
        }
        for c in cells(dst, width) {
            writer.insert(c, i);
        }
    }
    let program = b.program;
    let placement = place(&program).unwrap();
    let trace = exec::trace_only(&program).unwrap();
    let mut watch = lost::Watch::new(&program, &placement);
    walk(&program, &trace, &mut watch);
    let lost: BTreeSet<usize> =
        watch.finish().iter().map(|l| program.cores[0].iter().position(|n| std::ptr::eq(n, l.node)).unwrap()).collect();
    (lost, (0..ops.len()).filter(|i| !read.contains(i)).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]
    #[test]
    fn lost_rectangles_are_those_of_which_no_byte_is_read(
        ops in prop::collection::vec((part(false), part(false), any::<bool>()), 1..20),
    ) {
        let (got, want) = both(&ops);
        prop_assert_eq!(got, want);
    }

    #[test]
    fn what_is_reported_as_lost_is_lost(
        ops in prop::collection::vec((part(true), part(true), any::<bool>()), 1..20),
    ) {
        let (got, want) = both(&ops);
        prop_assert!(got.is_subset(&want), "{got:?} of {want:?}");
    }
}

#[test]
fn a_transfer_to_an_output_may_end_unread_and_may_not_be_overwritten() {
    let mut b = Builder::new();
    let x = b.input("x", &[8, 64], DType::F32);
    let out = b.output("out", &[8, 64], DType::F32);
    let (from, to) = (b.whole(x), b.whole(out));
    b.push(dma(to.clone(), from.clone()));
    assert_eq!(found(&b.program), [] as [&str; 0]);
    b.push(dma(to, from));
    assert_eq!(found(&b.program), ["overwritten-before-read"]);
}

#[test]
fn a_tile_that_another_gets_the_place_of_is_not_overwritten_but_unread() {
    let mut b = Builder::new();
    let x = b.input("x", &[128, 40000], DType::F32);
    let out = b.output("out", &[128, 40000], DType::F32);
    for (name, stored) in [("first", false), ("second", true)] {
        // Two of these do not fit at the same time.
        let t = b.tensor(name, Space::Sbuf, &[128, 40000], DType::F32);
        let tile = b.whole(t);
        let (from, to) = (b.whole(x), b.whole(out));
        b.push(dma(tile.clone(), from));
        if stored {
            b.push(dma(to, tile));
        }
    }
    assert_eq!(found(&b.program), ["dead-load"]);
}

/// A dynamic loop with this number of iterations.
fn repeated(b: &mut Builder, body: Vec<Node>, times: i64) -> NodeKind {
    let variable = nki_isa::RegId(b.program.registers);
    b.program.registers += 1;
    Control::For { variable, lower: Bound::Static(0), upper: Bound::Static(times), step: 1, body }.into()
}

#[test]
fn a_dynamic_loop_is_counted_by_its_iterations() {
    let mut b = Builder::new();
    let x = b.input("x", &[8, 64], DType::F32);
    let out = b.output("out", &[8, 64], DType::F32);
    let t = b.tensor("t", Space::Sbuf, &[8, 64], DType::F32);
    let (from, tile, to) = (b.whole(x), b.whole(t), b.whole(out));
    let body = vec![b.node(NodeKind::Inst(dma(tile.clone(), from)))];
    let loop_ = repeated(&mut b, body, 3);
    b.push_node(loop_);
    b.push(dma(to, tile));
    let program = b.program;
    let placement = place(&program).unwrap();
    let trace = exec::trace_only(&program).unwrap();
    let all = accesses(&program, &placement, &trace);
    assert_eq!(all.len(), 1, "{all:?}");
    assert!(all[0].notes.iter().any(|n| n.contains("2 of the 3 times")), "{all:?}");
    assert!(all[0].notes.iter().any(|n| n.contains("iteration 0 of the dynamic loop")), "{all:?}");
}

#[test]
fn what_a_loop_without_iterations_reads_is_not_lost() {
    for (reads_the_tile, want) in [(false, &["dead-load"][..]), (true, &[])] {
        let mut b = Builder::new();
        let x = b.input("x", &[8, 64], DType::F32);
        let out = b.output("out", &[8, 64], DType::F32);
        let t = b.tensor("t", Space::Sbuf, &[8, 64], DType::F32);
        let (from, tile, to) = (b.whole(x), b.whole(t), b.whole(out));
        b.push(dma(tile.clone(), from.clone()));
        b.push(dma(to.clone(), from.clone()));
        let source = if reads_the_tile { tile } else { from };
        let body = vec![b.node(NodeKind::Inst(dma(to, source)))];
        let loop_ = repeated(&mut b, body, 0);
        b.push_node(loop_);
        assert_eq!(found(&b.program), want);
    }
}

/// A value that each iteration of an inner loop reads and replaces, and that the outer loop sets: with one inner iteration nothing reads the
/// replacement, but a second would. A value that no iteration reads is lost whatever the number of iterations.
#[test]
fn what_another_inner_iteration_would_read_is_not_lost() {
    for carried in [true, false] {
        let mut b = Builder::new();
        let x = b.input("x", &[8, 64], DType::F32);
        let out = b.output("out", &[8, 64], DType::F32);
        let [t, u, kept] = ["t", "u", "kept"].map(|name| b.tensor(name, Space::Sbuf, &[8, 64], DType::F32));
        let [t, u, kept] = [t, u, kept].map(|id| b.whole(id));
        let (from, to) = (b.whole(x), b.whole(out));
        b.push(dma(u.clone(), from.clone()));
        b.push(dma(kept.clone(), from.clone()));
        let read = if carried { t.clone() } else { u.clone() };
        let inner = [add(kept.clone(), kept.clone(), read), copy(t.clone(), u)];
        let inner = inner.into_iter().map(|inst| b.node(NodeKind::Inst(inst))).collect();
        let inner = repeated(&mut b, inner, 1);
        let first = b.node(NodeKind::Inst(dma(t.clone(), from)));
        let body = vec![first, b.node(inner)];
        let outer = repeated(&mut b, body, 3);
        b.push_node(outer);
        b.push(dma(to, kept));
        let found = found(&b.program);
        assert_eq!(found.contains(&"overwritten-before-read"), !carried, "{found:?}");
    }
}
