//! Loops split into phases execute small instructions consecutively and preserve results.

use std::sync::Arc;

use nki_isa::ids::TrailId;
use nki_isa::program::{Step, Trail};
use nki_isa::{DType, Inst, Loc, Program, Space, TensorId, View};
use proptest::collection::vec;
use proptest::prelude::*;

use super::tests::{counted, results, rewritten};
use super::{Change, ChangeKind, Passes};
use crate::testing::*;

const PHASES: Passes = Passes { phases: true, ..Passes::NONE };
const P: u32 = 8;
const COLUMNS: u32 = 128;
const ITERATIONS: usize = 4;

/// A statement of the body.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Statement {
    /// Loads the rows of the iteration.
    Load,
    /// Adds the tile of the iteration to itself.
    Large,
    /// Adds only its first column to itself.
    Small,
    /// Copies the first column to a column of a tile shared by all iterations.
    Column,
    /// Reads this iteration's column of that tile.
    OwnColumn,
    /// Reads the column of the first iteration.
    FirstColumn,
    /// Stores to the rows of the iteration.
    Store,
    /// Stores to the first rows.
    StoreFirst,
    /// Loads rows of the result, half of them of this and half of the previous iteration.
    LoadBehind,
    /// A loop of two iterations with a large and a small instruction.
    Inner,
}

use Statement::*;

fn at(line: u32) -> Loc {
    Loc { line, column: 1, ..Loc::default() }
}

/// The rows of an HBM tensor that belong to an iteration.
fn rows(b: &Builder, id: TensorId, i: u32) -> View {
    pattern(b.whole(id), 0, i64::from(i * P * COLUMNS), &[(i64::from(COLUMNS), P), (1, COLUMNS)])
}

/// A loop with one of `bodies` per iteration: statements with their lines. All tensors are initialised before it.
fn looped(bodies: &[Vec<(u32, Statement)>], independent: bool) -> Program {
    let mut b = Builder::new();
    let n = bodies.len() as u32;
    let x = b.input("x", &[n * P, COLUMNS], DType::F32);
    let out = b.output("out", &[n * P, COLUMNS], DType::F32);
    let all = b.output("all", &[P, n], DType::F32);
    let shared = b.tensor("shared", Space::Sbuf, &[P, n], DType::F32);
    b.push(dma(b.whole(shared), pattern(b.whole(x), 0, 0, &[(i64::from(COLUMNS), P), (1, n)])));
    for i in 0..n {
        b.push(dma(rows(&b, out, i), rows(&b, x, 0)));
    }
    for (i, body) in (0..).zip(bodies) {
        let outer = iteration(&mut b, TrailId::ROOT, 100, i, independent);
        let tile = b.tensor("tile", Space::Sbuf, &[P, COLUMNS], DType::F32);
        let first = |view: View| pattern(view, 0, 0, &[(1, P), (1, 1)]);
        let column = |b: &Builder, i: u32| pattern(b.whole(shared), 0, i64::from(i), &[(1, P), (1, 1)]);
        let load = dma(b.whole(tile), rows(&b, x, i));
        push(&mut b, outer, 99, load);
        for &(line, statement) in body {
            let whole = b.whole(tile);
            let inst = match statement {
                Load => dma(whole, rows(&b, x, i)),
                Large => add(whole.clone(), whole.clone(), whole),
                Small => add(first(whole.clone()), first(whole.clone()), first(whole)),
                Column => copy(column(&b, i), first(whole)),
                OwnColumn => copy(first(whole), column(&b, i)),
                FirstColumn => copy(first(whole), column(&b, 0)),
                Store => dma(rows(&b, out, i), whole),
                StoreFirst => dma(rows(&b, out, 0), whole),
                LoadBehind => {
                    let here = rows(&b, out, i);
                    let offset = (here.offset - i64::from(P / 2 * COLUMNS)).max(0);
                    dma(whole, View { offset, ..here })
                }
                Inner => {
                    for j in 0..2 {
                        let inner = iteration(&mut b, outer, 200 + line, j, independent);
                        push(&mut b, inner, 300 + line, add(whole.clone(), whole.clone(), whole.clone()));
                        let small = first(whole.clone());
                        push(&mut b, inner, 400 + line, add(small.clone(), small.clone(), small));
                    }
                    continue;
                }
            };
            push(&mut b, outer, line, inst);
        }
    }
    b.push(dma(b.whole(all), b.whole(shared)));
    b.program
}

fn iteration(b: &mut Builder, parent: TrailId, line: u32, value: u32, independent: bool) -> TrailId {
    let step =
        Step::Iteration { variable: Arc::from("i"), value: value.into(), is_count: false, loc: at(line), independent };
    b.program.trails.push(Trail { parent: Some(parent), step });
    TrailId(b.program.trails.len() as u32 - 1)
}

fn push(b: &mut Builder, trail: TrailId, line: u32, inst: Inst) {
    b.push(inst);
    let node = b.program.cores[0].last_mut().expect("pushed");
    (node.trail, node.loc) = (trail, at(line));
}

fn numbered(statements: &[Statement]) -> Vec<(u32, Statement)> {
    (1..).zip(statements.iter().copied()).collect()
}

fn alike(statements: &[Statement]) -> Vec<Vec<(u32, Statement)>> {
    vec![numbered(statements); ITERATIONS]
}

fn split(program: &Program) -> (Program, Vec<Change>) {
    let (changed, changes) = rewritten(program, PHASES);
    assert_eq!(results(&changed), results(program));
    (changed, changes)
}

/// The lines of the loop's instructions, in order.
fn lines(program: &Program) -> Vec<u32> {
    let inside = program.cores[0].iter().filter(|node| node.trail != TrailId::ROOT);
    inside.map(|node| node.loc.line).collect()
}

#[test]
fn small_instructions_stand_side_by_side() {
    let program = looped(&alike(&[Large, Small, Large, Store]), true);
    let (changed, changes) = split(&program);
    let phase = |lines: &[u32]| lines.repeat(ITERATIONS);
    assert_eq!(lines(&changed), [phase(&[99, 1]), phase(&[2]), phase(&[3, 4])].concat());
    assert_eq!(counted(&changes, ChangeKind::Split), ITERATIONS as u32);
    // In each phase, iterations are in order.
    let values = |line: u32| -> Vec<u32> {
        changed.cores[0].iter().filter(|n| n.loc.line == line && n.trail != TrailId::ROOT).map(|n| n.trail.0).collect()
    };
    for line in [99, 1, 2, 3, 4] {
        assert!(values(line).is_sorted(), "{line}");
    }
}

#[test]
fn an_inner_loop_is_part_of_a_phase() {
    let program = looped(&alike(&[Inner, Small, Store]), true);
    let (changed, _) = split(&program);
    // The inner iterations share their tile.
    let inner = [99, 301, 401, 301, 401];
    assert_eq!(lines(&changed), [inner.repeat(ITERATIONS), [2].repeat(ITERATIONS), [3].repeat(ITERATIONS)].concat());
}

#[test]
fn loops_stay_whose_iterations_depend_on_each_other_or_differ() {
    let unequal = [numbered(&[Large, Small, Store]), numbered(&[Large, Small])];
    for (program, why) in [
        (looped(&alike(&[Large, Small, Store]), false), "dependent by declaration"),
        (looped(&alike(&[Large, Large, Store]), true), "nothing small"),
        (looped(&alike(&[Small, Column, FirstColumn, Store]), true), "reads what the first iteration writes"),
        (looped(&alike(&[Small, StoreFirst]), true), "all store to the same rows"),
        (looped(&alike(&[LoadBehind, Small, Store]), true), "loads rows that the iteration before stores"),
        (looped(&unequal, true), "unequal bodies"),
        (looped(&alike(&[Large, Small, Store])[..1], true), "one iteration"),
    ] {
        let (same, changes) = split(&program);
        assert_eq!((same, changes), (program, Vec::new()), "{why}");
    }
    // Columns that only one iteration uses prevent nothing.
    assert!(!split(&looped(&alike(&[Small, Column, OwnColumn, Store]), true)).1.is_empty());
}

#[test]
fn a_loop_stays_whose_iterations_do_not_fit_together() {
    let mut b = Builder::new();
    let (rows, columns) = (128, 16 << 10);
    let x = b.input("x", &[rows, columns], DType::F32);
    let out = b.output("out", &[ITERATIONS as u32 * rows, 1], DType::F32);
    for i in 0..ITERATIONS as u32 {
        let trail = iteration(&mut b, TrailId::ROOT, 100, i, true);
        let tile = b.tensor("tile", Space::Sbuf, &[rows, columns], DType::F32);
        let whole = b.whole(tile);
        let small = pattern(whole.clone(), 0, 0, &[(1, rows), (1, 1)]);
        let part = pattern(b.whole(out), 0, i64::from(i * rows), &[(1, rows), (1, 1)]);
        let load = dma(whole, b.whole(x));
        push(&mut b, trail, 1, load);
        push(&mut b, trail, 2, add(small.clone(), small.clone(), small.clone()));
        push(&mut b, trail, 3, dma(part, small));
    }
    let (same, changes) = split(&b.program);
    assert_eq!((same, changes), (b.program, Vec::new()));
}

fn statement() -> impl Strategy<Value = Statement> {
    prop::sample::select(vec![
        Load,
        Large,
        Large,
        Small,
        Small,
        Column,
        OwnColumn,
        FirstColumn,
        Store,
        Store,
        StoreFirst,
        Inner,
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// The results are equal, and each iteration is in order, whatever the body does.
    #[test]
    fn phases_change_no_number(
        body in vec(statement(), 1..8),
        iterations in 1..=ITERATIONS,
        independent in prop::bool::weighted(0.8),
        missing in prop::option::weighted(0.2, (0..ITERATIONS, 0..8usize)),
    ) {
        let mut bodies = vec![numbered(&body); iterations];
        if let Some((i, statement)) = missing && i < iterations && statement < body.len() {
            bodies[i].remove(statement);
        }
        let program = looped(&bodies, independent);
        let (changed, _) = rewritten(&program, PHASES);
        prop_assert_eq!(results(&changed), results(&program));
        let of_iteration = |p: &Program, outer: TrailId| -> Vec<Loc> {
            let inside = |mut trail: TrailId| loop {
                if trail == outer {
                    break true;
                }
                match p.trails[trail.0 as usize].parent {
                    Some(parent) => trail = parent,
                    None => break false,
                }
            };
            p.cores[0].iter().filter(|node| inside(node.trail)).map(|node| node.loc).collect()
        };
        for (i, trail) in program.trails.iter().enumerate() {
            if trail.parent == Some(TrailId::ROOT) {
                let outer = TrailId(i as u32);
                prop_assert_eq!(of_iteration(&changed, outer), of_iteration(&program, outer));
            }
        }
    }
}
