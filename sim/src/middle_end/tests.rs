use nki_isa::inst::Action;
use nki_isa::names::{DgeMode, Engine, Named};
use nki_isa::program::NodeKind;
use nki_isa::{Arg, DType, Program, Space, Target, TensorId, View};
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::exec::{ExecOptions, run};
use crate::place::place;
use crate::testing::*;
use crate::timing::{Laws, Params};

pub(super) fn rewritten(program: &Program, passes: Passes) -> (Program, Vec<Change>) {
    let params = Params::of(program.target);
    rewrite(program, passes, &Laws::new(&params).expect("has a meaning").expected_by_compiler())
}

/// Transfers from and to HBM.
fn transfers(program: &Program) -> (usize, usize) {
    let mut count = (0, 0);
    program.visit(&mut |node| {
        if let NodeKind::Inst(inst) = &node.kind
            && let Action::Transfers(t) = inst.action()
        {
            *(if t.src.space.is_hbm() { &mut count.0 } else { &mut count.1 }) += 1;
        }
    });
    count
}

/// The results for inputs of small integers, and the findings of the run.
pub(super) fn results(program: &Program) -> (Vec<Vec<f32>>, Vec<String>) {
    let inputs = program.inputs.iter().map(|input| {
        let shape: Vec<usize> = program.tensor(input.tensor).shape.iter().map(|&n| n as usize).collect();
        let values: Vec<f32> =
            (0..shape.iter().product()).map(|i| ((i * 7 + input.tensor.0 as usize) % 13) as f32).collect();
        host_f32(&input.name, &shape, &values)
    });
    let placement = place(program).expect("fits");
    let result = run(program, &placement, inputs.collect(), &ExecOptions::default()).expect("runs");
    (result.outputs.iter().map(f32s).collect(), result.findings.iter().map(|d| d.id.to_string()).collect())
}

pub(super) fn counted(changes: &[Change], what: ChangeKind) -> u32 {
    changes.iter().filter(|c| c.what == what).map(|c| c.count).sum()
}

/// `tiles` loads of different rows, each used immediately and again at the end.
fn used_twice(tiles: u32, columns: u32) -> Builder {
    let mut b = Builder::new();
    let x = b.input("x", &[tiles * 128, columns], DType::F32);
    let out = b.output("out", &[128, columns], DType::F32);
    let sum = b.tensor("sum", Space::Sbuf, &[128, columns], DType::F32);
    let loaded: Vec<TensorId> = (0..tiles).map(|_| b.tensor("t", Space::Sbuf, &[128, columns], DType::F32)).collect();
    for (i, &t) in (0..).zip(&loaded) {
        let c = i64::from(columns);
        let rows = pattern(b.whole(x), 0, i * 128 * c, &[(c, 128), (1, columns)]);
        b.push(dma(b.whole(t), rows));
        let first = if i == 0 { t } else { sum };
        b.push(add(b.whole(sum), b.whole(first), b.whole(t)));
    }
    for &t in &loaded {
        b.push(add(b.whole(sum), b.whole(sum), b.whole(t)));
    }
    b.push(dma(b.whole(out), b.whole(sum)));
    b
}

#[test]
fn a_tile_that_does_not_fit_is_loaded_again() {
    let b = used_twice(12, 5000);
    assert!(place(&b.program).is_err());
    let (fitted, changes) = rewritten(&b.program, Passes::ALL);
    // Nine tenths of the compiler's 212992 bytes hold 9 tiles of 20000 bytes, one of which is the sum: four of twelve are evicted, and
    // with furthest-first eviction no other one.
    assert_eq!(counted(&changes, ChangeKind::Reloaded), 4);
    assert_eq!(counted(&changes, ChangeKind::Spilled), 0);
    assert_eq!(transfers(&fitted), (16, 1));
    let bytes: u64 = changes.iter().map(|c| c.bytes).sum();
    assert_eq!(bytes, 4 * 128 * 5000 * 4);
    // With room for all of them.
    let all = used_twice(12, 50);
    let (same, changes) = rewritten(&all.program, Passes::ALL);
    assert_eq!((same, changes), (all.program, Vec::new()));
}

#[test]
fn a_computed_tile_that_does_not_fit_is_stored() {
    let mut b = Builder::new();
    let x = b.input("x", &[128, 5000], DType::F32);
    let out = b.output("out", &[128, 5000], DType::F32);
    let tiles: Vec<TensorId> = (0..13).map(|_| b.tensor("t", Space::Sbuf, &[128, 5000], DType::F32)).collect();
    b.push(dma(b.whole(tiles[0]), b.whole(x)));
    for w in tiles.windows(2) {
        b.push(add(b.whole(w[1]), b.whole(w[0]), b.whole(tiles[0])));
    }
    for w in tiles.windows(2) {
        b.push(add(b.whole(w[1]), b.whole(w[0]), b.whole(w[1])));
    }
    b.push(dma(b.whole(out), b.whole(tiles[12])));
    let (fitted, changes) = rewritten(&b.program, Passes::ALL);
    let (spilled, restored) = (counted(&changes, ChangeKind::Spilled), counted(&changes, ChangeKind::Restored));
    assert!(spilled >= 1 && restored >= spilled, "{spilled} {restored}");
    let tile = 128 * 5000 * 4;
    assert_eq!(spilled_bytes(&changes), (spilled as u64 * tile, restored as u64 * tile));
    let (values, findings) = results(&fitted);
    // Tile n is n + 1 times x; then the sum of all tiles up to it.
    let expected = |x: f32| (1..=13).map(|n| n as f32 * x).sum::<f32>();
    let inputs: Vec<f32> = (0..128 * 5000).map(|i| (i * 7 % 13) as f32).collect();
    assert!(values[0].iter().zip(&inputs).all(|(v, x)| *v == expected(*x)));
    assert_eq!(findings, Vec::<String>::new());
}

#[test]
fn a_load_is_dropped_while_its_bytes_are_in_sbuf() {
    for (alive, written, drops) in [(true, false, 1), (false, false, 1), (true, true, 0)] {
        let mut b = Builder::new();
        let x = b.input("x", &[128, 64], DType::F32);
        let out = b.output("out", &[128, 64], DType::F32);
        let [first, second, sum] = ["first", "second", "sum"].map(|n| b.tensor(n, Space::Sbuf, &[128, 64], DType::F32));
        b.push(dma(b.whole(first), b.whole(x)));
        b.push(add(b.whole(sum), b.whole(first), b.whole(first)));
        if written {
            b.push(dma(b.whole(x), b.whole(sum)));
        }
        b.push(dma(b.whole(second), b.whole(x)));
        let other = if alive { first } else { sum };
        b.push(add(b.whole(sum), b.whole(second), b.whole(other)));
        b.push(dma(b.whole(out), b.whole(sum)));
        let (less, changes) = rewritten(&b.program, Passes::ALL);
        assert_eq!(counted(&changes, ChangeKind::DroppedLoad), drops, "alive {alive}, written {written}");
        assert_eq!(transfers(&less).0, 2 - drops as usize);
        assert_eq!(results(&less), results(&b.program));
        let (same, none) = rewritten(&b.program, Passes::NONE);
        assert_eq!((same, none), (b.program, Vec::new()));
    }
}

#[test]
fn a_copy_from_psum_is_dropped_if_its_readers_may_read_psum() {
    // An addition of two tiles cannot have a second operand in PSUM.
    for (other_in_psum, drops) in [(false, 1), (true, 0)] {
        let mut b = Builder::new();
        let x = b.input("x", &[128, 64], DType::F32);
        let out = b.output("out", &[128, 64], DType::F32);
        let [bank, more] = ["bank", "more"].map(|n| b.tensor(n, Space::Psum, &[128, 64], DType::F32));
        let [tile, read, sum] = ["tile", "read", "sum"].map(|n| b.tensor(n, Space::Sbuf, &[128, 64], DType::F32));
        b.push(dma(b.whole(tile), b.whole(x)));
        b.push(copy(b.whole(bank), b.whole(tile)));
        b.push(copy(b.whole(more), b.whole(tile)));
        b.push(copy(b.whole(read), b.whole(bank)));
        b.push(add(b.whole(sum), b.whole(read), b.whole(if other_in_psum { more } else { tile })));
        b.push(dma(b.whole(out), b.whole(sum)));
        let (less, changes) = rewritten(&b.program, Passes { evictions: true, ..Passes::NONE });
        assert_eq!(counted(&changes, ChangeKind::DroppedCopy), drops);
        assert_eq!(results(&less), results(&b.program));
    }
}

#[test]
fn explicit_addresses_keep_a_program_as_it_is() {
    let mut b = used_twice(12, 5000);
    b.placed("u", Space::Sbuf, &[128, 8], DType::F32, (0, 0));
    let (same, changes) = rewritten(&b.program, Passes::ALL);
    assert_eq!((same, changes), (b.program, Vec::new()));
}

/// A step of a random program, with the indices of its tiles.
#[derive(Debug, Clone)]
enum Random {
    Load(usize, usize),
    Store(usize, usize),
    Add(usize, usize, usize),
    Copy(usize, usize),
}

const TILES: usize = 9;
const BANKS: usize = 3;
const ROWS: usize = 4;

fn random() -> impl Strategy<Value = Vec<Random>> {
    let tile = 0..TILES + BANKS;
    let step = prop_oneof![
        (0..TILES, 0..ROWS).prop_map(|(t, r)| Random::Load(t, r)),
        (0..TILES, 0..ROWS).prop_map(|(t, r)| Random::Store(t, r)),
        (tile.clone(), 0..TILES, tile.clone()).prop_map(|(d, a, c)| Random::Add(d, a, c)),
        (tile.clone(), tile).prop_map(|(d, s)| Random::Copy(d, s)),
    ];
    vec(step, 1..60)
}

/// The random program with tiles of `columns` columns. All tiles are loaded first; `x` is an input that stores change.
fn program_of(steps: &[Random], columns: u32) -> Program {
    let mut b = Builder::new();
    let x = b.input("x", &[ROWS as u32 * 8, columns], DType::F32);
    let out = b.output("out", &[TILES as u32 * 8, columns], DType::F32);
    let mut tiles: Vec<TensorId> = (0..TILES).map(|_| b.tensor("t", Space::Sbuf, &[8, columns], DType::F32)).collect();
    tiles.extend((0..BANKS).map(|_| b.tensor("p", Space::Psum, &[8, columns.min(512)], DType::F32)));
    let c = i64::from(columns);
    let rows = |b: &Builder, id: TensorId, r: usize| pattern(b.whole(id), 0, r as i64 * 8 * c, &[(c, 8), (1, columns)]);
    let part = |b: &Builder, id: TensorId| {
        let whole = b.whole(id);
        pattern(whole, 0, 0, &[(1, 8), (1, columns.min(512))])
    };
    for (i, &t) in tiles.iter().take(TILES).enumerate() {
        b.push(dma(b.whole(t), rows(&b, x, i % ROWS)));
    }
    for i in TILES..TILES + BANKS {
        b.push(copy(b.whole(tiles[i]), part(&b, tiles[0])));
    }
    for step in steps {
        match *step {
            Random::Load(t, r) => b.push(dma(b.whole(tiles[t]), rows(&b, x, r))),
            Random::Store(t, r) => b.push(dma(rows(&b, x, r), b.whole(tiles[t]))),
            Random::Add(d, a, c) => b.push(add(part(&b, tiles[d]), part(&b, tiles[a]), part(&b, tiles[c]))),
            Random::Copy(d, s) => b.push(copy(part(&b, tiles[d]), part(&b, tiles[s]))),
        }
    }
    for (i, &t) in tiles.iter().take(TILES).enumerate() {
        b.push(dma(rows(&b, out, i), b.whole(t)));
    }
    b.program
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Each pass alone, and all together, preserve the bits and add no finding.
    #[test]
    fn passes_change_no_number(steps in random()) {
        let small = program_of(&steps, 64);
        let expected = results(&small);
        for passes in [
            Passes { reloads: true, ..Passes::NONE },
            Passes { evictions: true, ..Passes::NONE },
            Passes { engines: true, ..Passes::NONE },
            Passes::ALL,
        ] {
            prop_assert_eq!(&results(&rewritten(&small, passes).0), &expected);
        }
    }

    /// Restored tiles hold their old content.
    #[test]
    fn spills_change_no_number(steps in random()) {
        // Nine tiles, of which four fit, or eight with partition packing.
        let wide = program_of(&steps, 14_000);
        let (fitted, changes) = rewritten(&wide, Passes { spills: true, ..Passes::NONE });
        prop_assert_eq!(place(&wide).is_err(), !changes.is_empty());
        let reference = unlimited(&wide);
        prop_assert_eq!(results(&fitted).0, reference);
    }
}

/// The results of a program whose tiles extend beyond the end of SBUF.
fn unlimited(program: &Program) -> Vec<Vec<f32>> {
    use crate::place::{Capacity, place_with};
    let inputs = program.inputs.iter().map(|input| {
        let shape: Vec<usize> = program.tensor(input.tensor).shape.iter().map(|&n| n as usize).collect();
        let values: Vec<f32> =
            (0..shape.iter().product()).map(|i| ((i * 7 + input.tensor.0 as usize) % 13) as f32).collect();
        host_f32(&input.name, &shape, &values)
    });
    let placement = place_with(program, Capacity::Warn, 0).expect("warns");
    let result = run(program, &placement, inputs.collect(), &ExecOptions::default()).expect("runs");
    result.outputs.iter().map(f32s).collect()
}

/// The engine and the descriptor mode of each instruction, in program order.
fn chosen(program: &Program) -> Vec<(Engine, DgeMode)> {
    let mut out = Vec::new();
    program.visit(&mut |node| {
        let NodeKind::Inst(inst) = &node.kind else { return };
        let name = |operand: &str| match inst.schema().position(operand).map(|p| inst.args()[p].clone()) {
            Some(Arg::Name(name)) => name.to_string(),
            _ => "unknown".into(),
        };
        let engine = Engine::from_name(&name("engine")).expect("an engine");
        out.push((engine, DgeMode::from_name(&name("dge_mode")).expect("a mode")));
    });
    out
}

#[test]
fn a_copy_is_on_the_engine_that_is_done_first() {
    for (target, columns, on) in [
        // Out of PSUM, in fp32: the scalar engine has the higher clock.
        (Target::Trn1, 512, Engine::Scalar),
        (Target::Trn2, 512, Engine::Scalar),
        // The fixed part decides.
        (Target::Trn2, 1, Engine::Unknown),
    ] {
        let mut b = Builder::new();
        b.program.target = target;
        let x = b.input("x", &[128, columns], DType::F32);
        let out = b.output("out", &[128, columns], DType::F32);
        let [tile, result] = ["tile", "result"].map(|n| b.tensor(n, Space::Sbuf, &[128, columns], DType::F32));
        let bank = b.tensor("bank", Space::Psum, &[128, columns], DType::F32);
        b.push(dma(b.whole(tile), b.whole(x)));
        b.push(add(b.whole(bank), b.whole(tile), b.whole(tile)));
        b.push(copy(b.whole(result), b.whole(bank)));
        b.push(dma(b.whole(out), b.whole(result)));
        let (moved, changes) = rewritten(&b.program, Passes { engines: true, ..Passes::NONE });
        assert_eq!(chosen(&moved)[2].0, on, "{target} {columns}");
        assert_eq!(counted(&changes, ChangeKind::OnScalar), u32::from(on == Engine::Scalar));
        // The scalar engine cannot add two tiles.
        assert_eq!(chosen(&moved)[1].0, Engine::Unknown);
    }
}

#[test]
fn copies_go_to_both_engines_if_one_is_busy() {
    let mut b = Builder::new();
    let x = b.input("x", &[128, 512], DType::F32);
    let out = b.output("out", &[128, 512 * 4], DType::F32);
    let tile = b.tensor("tile", Space::Sbuf, &[128, 512], DType::F32);
    let bank = b.tensor("bank", Space::Psum, &[128, 512], DType::F32);
    let results: Vec<TensorId> = (0..4).map(|_| b.tensor("result", Space::Sbuf, &[128, 512], DType::F32)).collect();
    b.push(dma(b.whole(tile), b.whole(x)));
    b.push(add(b.whole(bank), b.whole(tile), b.whole(tile)));
    for &result in &results {
        b.push(copy(b.whole(result), b.whole(bank)));
    }
    for (i, &result) in (0..).zip(&results) {
        b.push(dma(pattern(b.whole(out), 0, i * 512, &[(512 * 4, 128), (1, 512)]), b.whole(result)));
    }
    let (moved, _) = rewritten(&b.program, Passes { engines: true, ..Passes::NONE });
    let engines: Vec<Engine> = chosen(&moved)[2..6].iter().map(|c| c.0).collect();
    assert_eq!(engines, [Engine::Scalar, Engine::Unknown, Engine::Scalar, Engine::Unknown]);
}

/// A load, a store to a private tensor, a load of that and a store of the result.
fn through_hbm(target: Target, own: Space, partitions: u32) -> Program {
    let mut b = Builder::new();
    b.program.target = target;
    let x = b.input("x", &[partitions, 64], DType::F32);
    let out = b.output("out", &[partitions, 64], DType::F32);
    let own = b.tensor("own", own, &[partitions, 64], DType::F32);
    let [first, second] = ["first", "second"].map(|n| b.tensor(n, Space::Sbuf, &[partitions, 64], DType::F32));
    b.push(dma(b.whole(first), b.whole(x)));
    b.push(dma(b.whole(own), b.whole(first)));
    b.push(dma(b.whole(second), b.whole(own)));
    b.push(dma(b.whole(out), b.whole(second)));
    b.program
}

#[test]
fn descriptors_of_own_tensors_are_made_by_the_hardware() {
    use descriptors::{Descriptors, choose};
    const OPEN: (Engine, DgeMode) = (Engine::Unknown, DgeMode::Unknown);
    let hardware = [OPEN, (Engine::Scalar, DgeMode::HwDge), (Engine::Sync, DgeMode::HwDge), OPEN];
    let made_before = [(Engine::Unknown, DgeMode::None); 4];
    for (target, kind, expected) in [
        (Target::Trn2, Descriptors::Older, hardware),
        // No hardware descriptors.
        (Target::Trn1, Descriptors::Older, [OPEN; 4]),
        (Target::Trn2, Descriptors::Static, made_before),
        (Target::Trn1, Descriptors::Static, made_before),
    ] {
        let mut program = through_hbm(target, Space::Hbm, 128);
        let before = results(&program);
        choose(&mut program, kind);
        assert_eq!(chosen(&program), expected, "{target} {kind:?}");
        assert_eq!(results(&program), before);
        // A chosen mode is final.
        let once = program.clone();
        choose(&mut program, Descriptors::Static);
        choose(&mut program, Descriptors::Older);
        let kept = |p: &Program| chosen(p).into_iter().filter(|c| c.1 != DgeMode::None).collect::<Vec<_>>();
        assert!(kept(&program).iter().all(|c| chosen(&once).contains(c)));
    }
}

#[test]
fn the_compiler_of_today_chooses_descriptors_by_partitions_and_memory() {
    use DgeMode::{HwDge, None as Before, Unknown as Open};
    use descriptors::{Descriptors, choose};
    for (target, own, partitions, expected) in [
        (Target::Trn2, Space::Hbm, 128, [Open, HwDge, HwDge, Open]),
        (Target::Trn3, Space::Hbm, 128, [Open, HwDge, HwDge, Open]),
        // No hardware descriptors.
        (Target::Trn1, Space::Hbm, 128, [Open; 4]),
        // Tensors visible to other cores are treated like arguments.
        (Target::Trn2, Space::SharedHbm, 128, [Open; 4]),
        (Target::Trn2, Space::Hbm, 127, [Open; 4]),
        (Target::Trn2, Space::Hbm, 2, [Open; 4]),
        (Target::Trn2, Space::Hbm, 1, [Before; 4]),
        (Target::Trn2, Space::SharedHbm, 1, [Before; 4]),
    ] {
        let mut program = through_hbm(target, own, partitions);
        let before = results(&program);
        choose(&mut program, Descriptors::Current);
        let modes: Vec<DgeMode> = chosen(&program).into_iter().map(|(_, mode)| mode).collect();
        assert_eq!(modes, expected, "{target} {own:?} {partitions}");
        assert_eq!(results(&program), before);
        // A chosen mode is final.
        let once = program.clone();
        choose(&mut program, Descriptors::Current);
        assert_eq!(program, once);
    }
}

#[test]
fn a_row_of_a_larger_tile_has_open_descriptors() {
    use descriptors::{Descriptors, choose};
    let mut b = Builder::new();
    b.program.target = Target::Trn2;
    let x = b.input("x", &[1, 64], DType::F32);
    let out = b.output("out", &[1, 64], DType::F32);
    let tile = b.tensor("tile", Space::Sbuf, &[128, 64], DType::F32);
    let row = pattern(b.whole(tile), 5, 0, &[(1, 1), (1, 64)]);
    b.push(dma(row.clone(), b.whole(x)));
    b.push(dma(b.whole(out), row));
    choose(&mut b.program, Descriptors::Current);
    assert!(chosen(&b.program).iter().all(|(_, mode)| *mode == DgeMode::Unknown));
}

/// Sets the source locations of tiles to those of the loads that fill them.
fn made_by_their_loads(program: &mut Program, tiles: &[TensorId]) {
    for node in &program.cores[0] {
        if let NodeKind::Inst(inst) = &node.kind
            && let Action::Transfers(t) = inst.action()
            && tiles.contains(&t.dst.tensor)
        {
            program.tensors[t.dst.tensor.0 as usize].loc = node.loc;
        }
    }
}

#[test]
fn a_tile_stays_for_a_later_load_only_where_there_is_room() {
    // `between` tiles of 4 KiB are loaded between two loads of the same bytes, and all of them are alive together if `held`. Half of the compiler's
    // 208 KiB of a trn2 are 26 tiles; nine tenths, the limit for tiles that their loads create, are 46.
    let cases = [(25, true), (26, true), (52, false), (53, false)].map(|(between, held)| (between, held, false));
    for ((between, held, by_load), drops) in
        cases.into_iter().chain([(45, true, true), (46, true, true)]).zip([1, 0, 1, 0, 1, 0])
    {
        let mut b = Builder::new();
        let x = b.input("x", &[128 * 60, 1024], DType::F32);
        let out = b.output("out", &[128, 1024], DType::F32);
        let sum = b.tensor("sum", Space::Psum, &[128, 512], DType::F32);
        let tiles: Vec<TensorId> =
            (0..between + 2).map(|_| b.tensor("t", Space::Sbuf, &[128, 1024], DType::F32)).collect();
        let half = |b: &Builder, id| pattern(b.whole(id), 0, 0, &[(1, 128), (1, 512)]);
        let rows = |b: &Builder, r: usize| pattern(b.whole(x), 0, r as i64 * 128 * 1024, &[(1024, 128), (1, 1024)]);
        for (i, &tile) in tiles.iter().enumerate() {
            b.push(dma(b.whole(tile), rows(&b, if i == between + 1 { 0 } else { i })));
            b.push(copy(b.whole(sum), half(&b, tile)));
        }
        if held {
            tiles[1..=between].iter().for_each(|&tile| b.push(copy(b.whole(sum), half(&b, tile))));
        }
        b.push(dma(b.whole(out), b.whole(tiles[between + 1])));
        if by_load {
            made_by_their_loads(&mut b.program, &tiles);
        }
        let (less, changes) = rewritten(&b.program, Passes { reloads: true, ..Passes::NONE });
        assert_eq!(counted(&changes, ChangeKind::DroppedLoad), drops, "{between} {held} {by_load}");
        assert_eq!(transfers(&less).0, between + 2 - drops as usize);
        assert_eq!(results(&less), results(&b.program));
    }
}

/// Columns of a tile that fills a bank.
const WIDE: u32 = 512;

/// The rows `8 * r..8 * r + 8` of a tensor with `WIDE` columns.
fn row_of(b: &Builder, id: TensorId, r: usize) -> View {
    pattern(b.whole(id), 0, r as i64 * 8 * i64::from(WIDE), &[(i64::from(WIDE), 8), (1, WIDE)])
}

const BANKS_ONLY: Passes = Passes { banks: true, ..Passes::NONE };

/// Asserts that a program that exceeds PSUM has the same results after the pass as in an unlimited PSUM.
fn banked(program: &Program) -> (Program, Vec<Change>) {
    assert!(place(program).is_err());
    let (fitted, changes) = rewritten(program, BANKS_ONLY);
    let (values, findings) = results(&fitted);
    assert_eq!(values, unlimited(program));
    assert_eq!(findings, Vec::<String>::new());
    (fitted, changes)
}

#[test]
fn accumulations_wait_for_a_bank() {
    // Eleven sums of three products each, accumulated in turns; PSUM has eight banks. Each is read twice before the next loop.
    let mut b = Builder::new();
    let x = b.input("x", &[8 * 14, WIDE], DType::F32);
    let out = b.output("out", &[8 * 22, WIDE], DType::F32);
    let tiles: Vec<TensorId> = (0..14).map(|_| b.tensor("t", Space::Sbuf, &[8, WIDE], DType::F32)).collect();
    for (r, &t) in tiles.iter().enumerate() {
        b.push(dma(b.whole(t), row_of(&b, x, r)));
    }
    for half in 0..2 {
        let sums: Vec<TensorId> = (0..11).map(|_| b.tensor("sum", Space::Psum, &[8, WIDE], DType::F32)).collect();
        for k in 0..3 {
            for (m, &sum) in sums.iter().enumerate() {
                b.push(matmul(
                    b.whole(sum),
                    pattern(b.whole(tiles[m]), 0, 0, &[(1, 8), (1, 8)]),
                    b.whole(tiles[11 + k]),
                    None,
                ));
            }
        }
        for (m, &sum) in sums.iter().enumerate() {
            let copied = b.tensor("copied", Space::Sbuf, &[8, WIDE], DType::F32);
            b.push(copy(b.whole(copied), b.whole(sum)));
            b.push(dma(row_of(&b, out, half * 11 + m), b.whole(copied)));
        }
    }
    let (fitted, changes) = banked(&b.program);
    assert_eq!((counted(&changes, ChangeKind::Delayed), counted(&changes, ChangeKind::Evicted)), (6, 0));
    assert_eq!(fitted.cores[0].len(), b.program.cores[0].len());
}

#[test]
fn loops_over_results_are_joined() {
    // Three loops over twelve products: compute all products, then the maximum of each, then subtract it.
    let mut b = Builder::new();
    let x = b.input("x", &[8, WIDE], DType::F32);
    let out = b.output("out", &[8 * 12, WIDE], DType::F32);
    let tile = b.tensor("tile", Space::Sbuf, &[8, WIDE], DType::F32);
    let kept = b.tensor("kept", Space::Sbuf, &[8, 12], DType::F32);
    let products: Vec<TensorId> = (0..12).map(|_| b.tensor("product", Space::Psum, &[8, WIDE], DType::F32)).collect();
    b.push(dma(b.whole(tile), b.whole(x)));
    for &product in &products {
        b.push(matmul(b.whole(product), pattern(b.whole(tile), 0, 0, &[(1, 8), (1, 8)]), b.whole(tile), None));
    }
    let column = |b: &Builder, i: usize| pattern(b.whole(kept), 0, i as i64, &[(1, 8), (1, 1)]);
    for (i, &product) in products.iter().enumerate() {
        b.push(copy(column(&b, i), pattern(b.whole(product), 0, i as i64, &[(1, 8), (1, 1)])));
    }
    for (i, &product) in products.iter().enumerate() {
        let sum = b.tensor("sum", Space::Sbuf, &[8, WIDE], DType::F32);
        let repeated = pattern(b.whole(kept), 0, i as i64, &[(1, 8), (0, WIDE)]);
        b.push(add(b.whole(sum), b.whole(product), repeated));
        b.push(dma(row_of(&b, out, i), b.whole(sum)));
    }
    let (_, changes) = banked(&b.program);
    assert_eq!((counted(&changes, ChangeKind::Delayed), counted(&changes, ChangeKind::Evicted)), (4, 0));
}

#[test]
fn a_result_leaves_psum_if_all_instructions_wait() {
    // Ten products, the last of which is needed first.
    let mut b = Builder::new();
    let x = b.input("x", &[8, WIDE], DType::F32);
    let out = b.output("out", &[8, WIDE], DType::F32);
    let [tile, sum] = ["tile", "sum"].map(|n| b.tensor(n, Space::Sbuf, &[8, WIDE], DType::F32));
    let products: Vec<TensorId> = (0..10).map(|_| b.tensor("product", Space::Psum, &[8, WIDE], DType::F32)).collect();
    b.push(dma(b.whole(tile), b.whole(x)));
    b.push(copy(b.whole(sum), b.whole(tile)));
    for (i, &product) in products.iter().enumerate() {
        let stationary = pattern(b.whole(tile), 0, i as i64, &[(1, 8), (1, 8)]);
        b.push(matmul(b.whole(product), stationary, b.whole(tile), None));
    }
    for &product in products.iter().rev() {
        b.push(add(b.whole(sum), b.whole(sum), b.whole(product)));
    }
    b.push(dma(b.whole(out), b.whole(sum)));
    let (fitted, changes) = banked(&b.program);
    // Two evictions of the results with the furthest next use: for the ninth product, and for the tenth.
    assert_eq!(counted(&changes, ChangeKind::Evicted), 2);
    assert_eq!(fitted.cores[0].len(), b.program.cores[0].len() + 2);
}

#[test]
fn all_results_of_a_statement_leave_psum_where_some_have_to() {
    // Two rows of twelve products each. The maximum of a row is computed before any of them is read again.
    let mut b = Builder::new();
    let x = b.input("x", &[8, WIDE], DType::F32);
    let out = b.output("out", &[8 * 24, WIDE], DType::F32);
    let tile = b.tensor("tile", Space::Sbuf, &[8, WIDE], DType::F32);
    b.push(dma(b.whole(tile), b.whole(x)));
    let statement = b.program.tensor(tile).loc;
    for row in 0..2 {
        let products: Vec<TensorId> = (0..12).map(|_| b.tensor("p", Space::Psum, &[8, WIDE], DType::F32)).collect();
        for product in &products {
            b.program.tensors[product.0 as usize].loc = statement;
        }
        let largest = b.tensor("largest", Space::Sbuf, &[8, WIDE], DType::F32);
        b.push(copy(b.whole(largest), b.whole(tile)));
        for &product in &products {
            b.push(matmul(b.whole(product), pattern(b.whole(tile), 0, 0, &[(1, 8), (1, 8)]), b.whole(tile), None));
        }
        for &product in &products {
            b.push(add(b.whole(largest), b.whole(largest), b.whole(product)));
        }
        for (i, &product) in products.iter().enumerate() {
            let sum = b.tensor("sum", Space::Sbuf, &[8, WIDE], DType::F32);
            b.push(add(b.whole(sum), b.whole(product), b.whole(largest)));
            b.push(dma(row_of(&b, out, row * 12 + i), b.whole(sum)));
        }
    }
    let (_, changes) = banked(&b.program);
    assert_eq!(counted(&changes, ChangeKind::Evicted), 24);
}

#[test]
fn sums_of_a_later_loop_leave_a_bank() {
    // Nine products that leave PSUM, two products for each of nine sums, which start when the first is available, and then the sums. Once eight
    // sums have a bank each, no bank is left for the second products.
    let mut b = Builder::new();
    let x = b.input("x", &[8, WIDE], DType::F32);
    let out = b.output("out", &[8 * 18, WIDE], DType::F32);
    let tile = b.tensor("tile", Space::Sbuf, &[8, WIDE], DType::F32);
    let stationary = pattern(b.whole(tile), 0, 0, &[(1, 8), (1, 8)]);
    let tiles = |b: &mut Builder, space: Space, n: usize| -> Vec<TensorId> {
        (0..n).map(|_| b.tensor("t", space, &[8, WIDE], DType::F32)).collect()
    };
    let (products, parts, sums) =
        (tiles(&mut b, Space::Psum, 9), tiles(&mut b, Space::Psum, 18), tiles(&mut b, Space::Psum, 9));
    let (copied, results) = (tiles(&mut b, Space::Sbuf, 18), tiles(&mut b, Space::Sbuf, 18));
    b.push(dma(b.whole(tile), b.whole(x)));
    for &product in &products {
        b.push(matmul(b.whole(product), stationary.clone(), b.whole(tile), None));
    }
    for (&part, &copied) in parts.iter().zip(&copied) {
        b.push(matmul(b.whole(part), stationary.clone(), b.whole(tile), None));
        b.push(copy(b.whole(copied), b.whole(part)));
    }
    for (i, &sum) in sums.iter().enumerate() {
        for (part, more) in [(copied[i], false), (copied[i + 9], true)] {
            b.push(matmul(b.whole(sum), stationary.clone(), b.whole(part), Some(more)));
        }
    }
    for (i, (&bank, &result)) in sums.iter().chain(&products).zip(&results).enumerate() {
        b.push(copy(b.whole(result), b.whole(bank)));
        b.push(dma(row_of(&b, out, i), b.whole(result)));
    }
    let (fitted, _) = banked(&b.program);
    assert!(place(&fitted).is_ok());
}

#[test]
fn random_numbers_keep_their_order() {
    // The second of two draws would be issued first: its result is in SBUF, while the first waits for a bank.
    let mut b = Builder::new();
    let out = b.output("out", &[8 * 10, WIDE], DType::F32);
    let banks: Vec<TensorId> = (0..9).map(|_| b.tensor("bank", Space::Psum, &[8, WIDE], DType::F32)).collect();
    let drawn = b.tensor("drawn", Space::Sbuf, &[8, WIDE], DType::F32);
    for &bank in &banks {
        b.push(random_numbers(b.whole(bank)));
    }
    b.push(random_numbers(b.whole(drawn)));
    b.push(dma(row_of(&b, out, 9), b.whole(drawn)));
    for (i, &bank) in banks.iter().enumerate() {
        let copied = b.tensor("copied", Space::Sbuf, &[8, WIDE], DType::F32);
        b.push(copy(b.whole(copied), b.whole(bank)));
        b.push(dma(row_of(&b, out, i), b.whole(copied)));
    }
    let (_, changes) = banked(&b.program);
    assert_eq!(counted(&changes, ChangeKind::Delayed), 1);
}

fn random_numbers(dst: View) -> nki_isa::Inst {
    let entry = nki_isa::inst::find("rand2").expect("registered");
    let mut args: Vec<Option<Arg>> = vec![None; entry.schema.operands.len()];
    args[entry.schema.position("dst").expect("an operand")] = Some(Arg::View(dst));
    for (bound, value) in [("min", 0.0), ("max", 1.0)] {
        args[entry.schema.position(bound).expect("an operand")] = Some(Arg::Float(value));
    }
    (entry.build)(&mut args).expect("valid")
}

/// Each step adds two tiles, at most one of them in PSUM, to a new tile in PSUM or to an old one.
fn sums(steps: &[(usize, usize, bool)]) -> Program {
    let mut b = Builder::new();
    let x = b.input("x", &[8, WIDE], DType::F32);
    let out = b.output("out", &[8 * 64, WIDE], DType::F32);
    let tiles: Vec<TensorId> = (0..3).map(|_| b.tensor("t", Space::Sbuf, &[8, WIDE], DType::F32)).collect();
    let mut banks: Vec<TensorId> = Vec::new();
    for &t in &tiles {
        b.push(dma(b.whole(t), b.whole(x)));
    }
    for i in 0..64 {
        b.push(dma(row_of(&b, out, i), b.whole(tiles[0])));
    }
    for (i, &(tile, other, new)) in steps.iter().enumerate() {
        let read = if banks.is_empty() { tiles[0] } else { banks[other % banks.len()] };
        if new {
            let bank = b.tensor("bank", Space::Psum, &[8, WIDE], DType::F32);
            b.push(add(b.whole(bank), b.whole(tiles[tile]), b.whole(read)));
            banks.push(bank);
        } else if other % 3 == 0 && !banks.is_empty() {
            b.push(add(b.whole(read), b.whole(tiles[tile]), b.whole(read)));
        } else {
            b.push(add(b.whole(tiles[tile]), b.whole(tiles[tile]), b.whole(read)));
            b.push(dma(row_of(&b, out, i), b.whole(tiles[tile])));
        }
    }
    b.push(dma(row_of(&b, out, 63), b.whole(tiles[0])));
    b.program
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Delaying instructions until a bank is free preserves their results.
    #[test]
    fn banks_change_no_number(steps in vec((0..3usize, 0..40usize, prop::bool::weighted(0.6)), 20..63)) {
        let program = sums(&steps);
        let (fitted, changes) = rewritten(&program, BANKS_ONLY);
        prop_assert!(place(&program).is_err() || changes.is_empty());
        if place(&fitted).is_ok() {
            prop_assert_eq!(results(&fitted).0, unlimited(&program));
        }
    }
}
