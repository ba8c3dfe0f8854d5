//! The analysis against a model with sets of bytes.

use std::collections::BTreeSet;

use nki_isa::ids::TagId;
use nki_isa::names::Engine;
use nki_isa::program::{Node, NodeKind};
use nki_isa::{DType, Inst, Space, View};
use proptest::prelude::*;

use super::IN_ORDER;
use super::*;
use crate::place::place;
use crate::testing::{Builder, add, dma, pattern};

/// Every byte as (memory, partition or 0, byte).
type Bytes = BTreeSet<(u32, i64, i64)>;

fn bytes(program: &Program, placement: &Placement, view: &View) -> Bytes {
    let size = view.dtype.size() as i64;
    let on_chip = view.space.is_on_chip();
    let mut starts: Vec<(i64, i64)> = vec![(i64::from(view.partition), view.offset)];
    for (i, d) in view.dims.iter().enumerate() {
        let step =
            |(p, e): (i64, i64), k: i64| if on_chip && i == 0 { (p + k * d.stride, e) } else { (p, e + k * d.stride) };
        starts = starts.iter().flat_map(|s| (0..i64::from(d.count)).map(move |k| step(*s, k))).collect();
    }
    let base = placement.address(view.tensor).map_or((0, 0), |a| (i64::from(a.partition), i64::from(a.byte)));
    let memory = match view.space {
        Space::Sbuf => 0,
        Space::Psum => 1,
        _ => 2 + view.tensor.0,
    };
    let _ = program;
    starts.iter().flat_map(|(p, e)| (0..size).map(move |b| (memory, p + base.0, e * size + b + base.1))).collect()
}

#[derive(Debug, Clone)]
struct Access {
    tensor: usize,
    partition: u32,
    partitions: u32,
    offset: i64,
    stride: i64,
    rows: u32,
    pitch: i64,
}

fn access() -> impl Strategy<Value = Access> {
    (0usize..4, 0u32..3, 1u32..4, 0i64..8, 1i64..4, 1u32..3, 0i64..13).prop_map(
        |(tensor, partition, partitions, offset, stride, rows, pitch)| Access {
            tensor,
            partition,
            partitions,
            offset,
            stride,
            rows,
            pitch,
        },
    )
}

/// Operations of a kernel with overlapping tensors: (dst, a, b, queue).
fn kernel() -> impl Strategy<Value = Vec<(Access, Access, Access, usize)>> {
    prop::collection::vec((access(), access(), access(), 0usize..4), 1..24)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn agrees_with_sets_of_bytes(ops in kernel()) {
        let mut b = Builder::new();
        // Two tensors share bytes, one is disjoint, one is in HBM.
        let t = [
            b.placed("a", Space::Sbuf, &[8, 64], DType::F32, (0, 0)),
            b.placed("b", Space::Sbuf, &[8, 64], DType::F32, (2, 24)),
            b.placed("c", Space::Sbuf, &[8, 64], DType::F32, (0, 1024)),
            b.output("h", &[8, 64], DType::F32),
        ];
        let view = |b: &Builder, a: &Access, hbm: bool| {
            let tensor = if hbm { a.tensor } else { a.tensor % 3 };
            let id = t[tensor];
            let dims = [(1, a.partitions), (a.pitch, a.rows), (a.stride, 4)];
            if tensor == 3 {
                let dims = [(64, a.partitions), (a.pitch, a.rows), (a.stride, 4)];
                pattern(b.whole(id), 0, i64::from(a.partition) * 64 + a.offset, &dims)
            } else {
                pattern(b.whole(id), a.partition, a.offset, &dims)
            }
        };
        let mut kinds = Vec::new();
        for (dst, x, y, queue) in &ops {
            let inst: Inst = if *queue < 2 {
                add(view(&b, dst, false), view(&b, x, false), view(&b, y, false))
            } else {
                dma(view(&b, dst, true), view(&b, x, true))
            };
            b.push(inst);
            kinds.push(*queue);
        }
        let program = b.program;
        let placement = place(&program).unwrap();
        let nodes: Vec<&Node> = program.cores[0].iter().collect();
        let list: Vec<Op<'_>> = nodes
            .iter()
            .zip(&kinds)
            .map(|(node, queue)| Op {
                node,
                resolved: None,
                queue: *queue as u8,
                engine: [Some(Engine::Vector), Some(Engine::GpSimd), None, None][*queue],
                control: [None; 2],
            })
            .collect();
        let deps = analyze(&program, &placement, &list, &written_tensors(&program), &IN_ORDER);

        let sets: Vec<(Bytes, Bytes)> = nodes
            .iter()
            .map(|n| {
                let NodeKind::Inst(inst) = &n.kind else { unreachable!() };
                let mut f = Footprint::default();
                inst.footprint(&mut f);
                let all = |views: &[&View]| views.iter().flat_map(|v| bytes(&program, &placement, v)).collect();
                (all(&f.reads), all(&f.writes))
            })
            .collect();
        let overlap = |a: &Bytes, b: &Bytes| !a.is_disjoint(b);
        for j in 0..list.len() {
            // Each edge is a conflict of its kind.
            for d in deps.of(j) {
                let i = d.on as usize;
                let real = match d.hazard {
                    Hazard::Raw => overlap(&sets[i].1, &sets[j].0),
                    Hazard::Waw => overlap(&sets[i].1, &sets[j].1),
                    Hazard::War => overlap(&sets[i].0, &sets[j].1),
                    // Nothing here requests an order.
                    Hazard::Order => false,
                };
                prop_assert!(real, "edge {i} -> {j} {:?} is no conflict", d.hazard);
            }
            // Each conflict is covered: by an edge, by a later one of the same queue, or transitively.
            let mut done = vec![false; list.len()];
            let mut todo: Vec<usize> = deps.of(j).iter().map(|d| d.on as usize).collect();
            // A compute engine starts in order: the dependences of its earlier instructions are complete when this one starts.
            let earlier = (0..j).filter(|&i| list[i].queue == list[j].queue && list[j].engine.is_some());
            todo.extend(earlier.flat_map(|i| deps.of(i)).map(|d| d.on as usize));
            while let Some(k) = todo.pop() {
                for i in 0..=k {
                    // When an operation completes, the earlier operations of its queue and its dependences have completed.
                    if list[i].queue == list[k].queue && !done[i] {
                        done[i] = true;
                        todo.extend(deps.of(i).iter().map(|d| d.on as usize));
                    }
                }
            }
            for i in 0..j {
                let raw = overlap(&sets[i].1, &sets[j].0);
                let other = overlap(&sets[i].1, &sets[j].1) || overlap(&sets[i].0, &sets[j].1);
                let in_order = list[i].queue == list[j].queue && list[j].engine.is_some();
                if raw || other && !in_order {
                    prop_assert!(done[i], "conflict {i} -> {j} is missed");
                }
            }
        }
    }
}

#[test]
fn strided_tiles_that_interleave_do_not_meet() {
    let mut b = Builder::new();
    let t = b.tensor("t", Space::Sbuf, &[128, 256], DType::F32);
    let x = b.input("x", &[128, 128], DType::F32);
    for phase in 0..2 {
        let dst = pattern(b.whole(t), 0, phase, &[(1, 128), (2, 128)]);
        let src = b.whole(x);
        b.push(dma(dst, src));
    }
    let program = b.program;
    let list: Vec<Op<'_>> = program.cores[0]
        .iter()
        .map(|node| Op { node, resolved: None, queue: 5, engine: None, control: [None; 2] })
        .collect();
    let deps = analyze(&program, &place(&program).unwrap(), &list, &written_tensors(&program), &IN_ORDER);
    assert!(deps.is_empty(), "{deps:?}");
}

/// The dependences of each operation, for instructions with tags in these blocks on one queue with this reach.
fn order_of(blocks: &[Option<u32>], reach: u32) -> Vec<Vec<u32>> {
    let mut b = Builder::new();
    for i in 0..blocks.len() {
        let t = b.tensor(&format!("t{i}"), Space::Sbuf, &[128, 64], DType::F32);
        let x = b.input(&format!("x{i}"), &[128, 64], DType::F32);
        let (dst, src) = (b.whole(t), b.whole(x));
        b.push(dma(dst, src));
    }
    let mut program = b.program;
    program.tags = blocks.iter().map(|block| nki_isa::program::Tag { block: *block, ..Default::default() }).collect();
    for (i, node) in program.cores[0].iter_mut().enumerate() {
        node.tag = Some(TagId(i as u32));
    }
    let list: Vec<Op<'_>> = program.cores[0]
        .iter()
        .map(|node| Op { node, resolved: None, queue: 0, engine: None, control: [None; 2] })
        .collect();
    let mut reaches = IN_ORDER;
    reaches[0] = reach;
    let deps = analyze(&program, &place(&program).unwrap(), &list, &written_tensors(&program), &reaches);
    (0..blocks.len())
        .map(|op| {
            assert!(deps.of(op).iter().all(|d| d.hazard == Hazard::War && matches!(d.subject(), Subject::Tag(_))));
            deps.of(op).iter().map(|d| d.on).collect()
        })
        .collect()
}

#[test]
fn a_block_without_reordering_chains_its_instructions_on_a_queue() {
    let (a, b) = (Some(7), Some(8));
    assert_eq!(order_of(&[a, a, a], 100), [vec![], vec![0], vec![1]]);
    // No order with instructions outside of a block or in another block.
    assert_eq!(order_of(&[None, a, a, None, b, b], 100), [vec![], vec![], vec![1], vec![], vec![], vec![4]]);
    assert!(order_of(&[None, None], 100).iter().all(Vec::is_empty));
}

#[test]
fn an_order_that_is_asked_for_is_an_edge() {
    let mut b = Builder::new();
    for name in ["a", "b", "c"] {
        let t = b.tensor(name, Space::Sbuf, &[128, 64], DType::F32);
        let x = b.input(name, &[128, 64], DType::F32);
        let (dst, src) = (b.whole(t), b.whole(x));
        b.push(dma(dst, src));
    }
    let mut program = b.program;
    let tag = |after: &[u32]| nki_isa::program::Tag {
        name: "".into(),
        after: after.iter().map(|t| TagId(*t)).collect(),
        issued_after: Vec::new(),
        block: None,
    };
    program.tags = vec![tag(&[]), tag(&[0])];
    program.cores[0][0].tag = Some(TagId(0));
    program.cores[0][2].tag = Some(TagId(1));
    let list: Vec<Op<'_>> = program.cores[0]
        .iter()
        .enumerate()
        .map(|(i, node)| Op { node, resolved: None, queue: 5 + i as u8, engine: None, control: [None; 2] })
        .collect();
    let deps = analyze(&program, &place(&program).unwrap(), &list, &written_tensors(&program), &IN_ORDER);
    assert!(deps.of(1).is_empty());
    assert_eq!(deps.of(2), [Dep::new(0, Hazard::Order, Subject::Tag(TagId(0)))]);
}

proptest! {
    /// The fast path for a single run produces the same region as the pattern.
    #[test]
    fn one_run_is_the_same_region(
        dims in prop::collection::vec((-3i64..40, 1u32..5), 0..4),
        offset in 0i64..9,
        size in prop::sample::select(vec![1i64, 2, 4]),
        nested in any::<bool>(),
    ) {
        let mut dims: Vec<nki_isa::Dim> = dims.into_iter().map(|(stride, count)| nki_isa::Dim { stride, count }).collect();
        let mut inner = 1;
        for d in dims.iter_mut().rev().filter(|_| nested) {
            d.stride = inner;
            inner *= i64::from(d.count);
        }
        let partitions = Partitions { start: 0, stride: 1, count: 1 };
        prop_assert_eq!(
            Region::of(partitions, &dims, offset, size, 64),
            Region::new(partitions, Pattern::new(&dims, offset, size, 64)),
        );
    }
}

#[test]
fn rows_written_one_by_one_hide_what_they_cover_together() {
    const ROWS: i64 = 64;
    let mut index = Index::new(8 * ROWS as u64);
    let region =
        |start: i64, end: i64| Region::new(Partitions { start: 0, stride: 1, count: 1 }, Pattern::run(start, end));
    let by = |op| By { op, queue: 0, reach: 1, write: true };
    let subject = Subject::Tensor(TensorId(0));
    index.insert(region(0, 8 * ROWS), by(0), subject);
    for op in 1..20 {
        // All rows but the last, which stays with the first write, in an order in which none continues another.
        let rows = || (0..ROWS - 1).map(|i| i * 2 % (ROWS - 1)).map(|row| region(8 * row, 8 * row + 8));
        let mut found = Vec::new();
        rows().for_each(|row| index.conflicts(&row, by(op), |on, _, _, _, _| found.push(on)));
        assert_eq!(found, vec![op - 1; ROWS as usize - 1]);
        rows().for_each(|row| index.insert(row, by(op), subject));
    }
    let mut found = Vec::new();
    let read = By { write: false, ..by(20) };
    index.conflicts(&region(0, 8 * ROWS), read, |on, _, _, _, _| found.push(on));
    found.sort_unstable();
    found.dedup();
    assert_eq!(found, [0, 19]);
}
