use ndarray::Array2;

use crate::arch::Target;
use crate::arg::Arg;
use crate::dtype::DType;
use crate::ids::RegId;
use crate::inst::{Inst, find};
use crate::names::Space;
use crate::rendezvous::Contribution;
use crate::testing::TestMachine;
use crate::view::View;

fn build(name: &str, args: &[(&str, Arg)]) -> Inst {
    let entry = find(name).unwrap();
    let mut slots = vec![None; entry.schema.operands.len()];
    for (operand, arg) in args {
        slots[entry.schema.position(operand).unwrap()] = Some(arg.clone());
    }
    (entry.build)(&mut slots).unwrap()
}

fn ranks(groups: &[&[i64]]) -> Arg {
    Arg::List(groups.iter().map(|g| Arg::List(g.iter().map(|&r| Arg::Int(r)).collect())).collect())
}

fn one(view: &View) -> Arg {
    Arg::List(vec![Arg::View(view.clone())])
}

fn channel(view: &View) -> Arg {
    Arg::List(vec![one(view)])
}

/// Runs `inst` on ranks 0, 1, ..., each with its values in `src`, and returns the resulting `dst` of each rank.
fn run(inst: &Inst, m: &TestMachine, src: &View, dst: &View, values: &[&[f32]]) -> Vec<Vec<f32>> {
    let on = |rank: usize| {
        let mut m = m.clone();
        m.rank = rank as u32;
        m.set_f32(src, values[rank]);
        m
    };
    let contributions: Vec<Contribution> = (0..values.len())
        .map(|r| Contribution { member: r as u32, tiles: inst.contribute(&mut on(r)).unwrap() })
        .collect();
    (0..values.len())
        .map(|r| {
            let mut m = on(r);
            m.contributions = contributions.clone();
            m.run(inst.clone()).unwrap();
            m.f32s(dst)
        })
        .collect()
}

fn tensors(space: Space, dtype: DType, src: &[u32], dst: &[u32]) -> (TestMachine, View, View) {
    let mut m = TestMachine::new(Target::Trn2);
    let s = m.tensor("s", space, dtype, src);
    let d = m.tensor("d", space, dtype, dst);
    (m, s, d)
}

#[test]
fn all_gather_joins_along_either_dimension() {
    let values: [&[f32]; 2] = [&[1., 2., 3., 4.], &[5., 6., 7., 8.]];
    for (dim, shape, want) in
        [(0, [4, 2], [1., 2., 3., 4., 5., 6., 7., 8.]), (1, [2, 4], [1., 2., 5., 6., 3., 4., 7., 8.])]
    {
        let (m, s, d) = tensors(Space::Sbuf, DType::BF16, &[2, 2], &shape);
        let args = [
            ("srcs", one(&s)),
            ("dsts", one(&d)),
            ("replica_group", ranks(&[&[0, 1]])),
            ("collective_dim", Arg::Int(dim)),
        ];
        let inst = build("all_gather", &args);
        assert_eq!(run(&inst, &m, &s, &d, &values), [want.to_vec(), want.to_vec()]);
    }
}

#[test]
fn reductions_round_once_at_the_end() {
    // 256 + 1 is 256 in bfloat16; 256 + 1 + 1 is 258.
    let values: [&[f32]; 3] = [&[256.], &[1.], &[1.]];
    let (m, s, d) = tensors(Space::Hbm, DType::BF16, &[1], &[1]);
    let args = [
        ("srcs", one(&s)),
        ("dsts", one(&d)),
        ("replica_group", ranks(&[&[0, 1, 2]])),
        ("op", Arg::Name("add".into())),
    ];
    assert_eq!(run(&build("all_reduce", &args), &m, &s, &d, &values), [[258.], [258.], [258.]]);
    let (m, s, d) = tensors(Space::Hbm, DType::I8, &[1], &[1]);
    let args = [
        ("srcs", one(&s)),
        ("dsts", one(&d)),
        ("replica_group", ranks(&[&[0, 1]])),
        ("op", Arg::Name("maximum".into())),
    ];
    assert_eq!(run(&build("all_reduce", &args), &m, &s, &d, &[&[-3.], &[-5.]]), [[-3.], [-3.]]);
}

#[test]
fn parts_go_where_the_group_says() {
    let values: [&[f32]; 2] = [&[1., 2.], &[10., 20.]];
    let (m, s, d) = tensors(Space::Hbm, DType::F32, &[2], &[1]);
    let args = [
        ("srcs", one(&s)),
        ("dsts", one(&d)),
        ("replica_group", ranks(&[&[1, 0]])),
        ("collective_dim", Arg::Int(0)),
        ("op", Arg::Name("add".into())),
    ];
    // Rank 1 is first in the group.
    assert_eq!(run(&build("reduce_scatter", &args), &m, &s, &d, &values), [[22.], [11.]]);
    let (m, s, d) = tensors(Space::Hbm, DType::F32, &[2], &[2]);
    let args =
        [("srcs", one(&s)), ("dsts", one(&d)), ("replica_group", ranks(&[&[0, 1]])), ("collective_dim", Arg::Int(0))];
    assert_eq!(run(&build("all_to_all", &args), &m, &s, &d, &values), [[1., 10.], [2., 20.]]);
}

#[test]
fn permutes() {
    let values: [&[f32]; 3] = [&[1.], &[2.], &[3.]];
    let (mut m, s, d) = tensors(Space::Hbm, DType::F32, &[1], &[1]);
    m.set_f32(&d, &[-1.]);
    let args = [("srcs", one(&s)), ("dsts", one(&d)), ("source_target_pairs", ranks(&[&[0, 2], &[2, 1]]))];
    assert_eq!(run(&build("collective_permute", &args), &m, &s, &d, &values), [[-1.], [3.], [1.]]);
    let ring = ("replica_group", ranks(&[&[0, 1, 2]]));
    let args = [("srcs_by_channel", channel(&s)), ("dsts_by_channel", channel(&d)), ring.clone()];
    assert_eq!(run(&build("collective_permute_implicit", &args), &m, &s, &d, &values), [[3.], [1.], [2.]]);
    let args = [
        ("srcs0_by_channel", channel(&s)),
        ("srcs1_by_channel", channel(&s)),
        ("dsts_by_channel", channel(&d)),
        ring,
        ("op", Arg::Name("add".into())),
    ];
    assert_eq!(run(&build("collective_permute_implicit_reduce", &args), &m, &s, &d, &values), [[6.], [2.], [4.]]);
}

#[test]
fn a_ring_says_whose_data_it_has() {
    use crate::machine::Machine;
    let mut m = TestMachine::new(Target::Trn2);
    m.rank = 2;
    for (step, want) in [(0, 2), (1, 5), (2, 7), (3, 2)] {
        let args = [
            ("dst", Arg::Register(RegId(0))),
            ("iteration_id", Arg::Int(step)),
            ("replica_group", ranks(&[&[7, 5, 2], &[0, 1, 3]])),
        ];
        m.run(build("collective_permute_implicit_current_processing_rank_id", &args)).unwrap();
        assert_eq!(m.register(RegId(0)), want);
    }
    m.run(build("rank_id", &[("dst", Arg::Register(RegId(1)))])).unwrap();
    assert_eq!(m.register(RegId(1)), 2);
}

#[test]
fn variable_lengths_are_read_when_they_run() {
    let mut m = TestMachine::new(Target::Trn2);
    let s = m.tensor_f32("s", Space::Hbm, DType::F32, &[4], &[0.; 4]);
    let d = m.tensor_f32("d", Space::Hbm, DType::F32, &[4], &[-1.; 4]);
    let meta = m.tensor("m", Space::Hbm, DType::U32, &[3, 2]);
    let args = [
        ("srcs", one(&s)),
        ("dsts", one(&d)),
        ("replica_group", ranks(&[&[0, 1]])),
        ("metadata_tensor", Arg::View(meta.clone())),
    ];
    let tile = |v: &[u32]| Array2::from_shape_vec((1, v.len()), v.to_vec()).unwrap();
    let bits = |v: &[f32]| tile(&v.iter().map(|x| x.to_bits()).collect::<Vec<_>>());
    // Rank 0 sends 1 element at 3 to rank 0 and 2 at 0 to rank 1; rank 1 sends 2 at 1 to rank 0 and none to rank 1.
    m.contributions = vec![
        Contribution { member: 0, tiles: vec![bits(&[1., 2., 3., 4.]), tile(&[1, 2, 3, 0])] },
        Contribution { member: 1, tiles: vec![bits(&[5., 6., 7., 8.]), tile(&[2, 0, 1, 0])] },
    ];
    let inst = build("all_to_all_v", &args);
    for (rank, want, counts) in [(0, [4., -1., 6., 7.], [1, 2]), (1, [1., 2., -1., -1.], [2, 0])] {
        let mut m = m.clone();
        m.rank = rank;
        m.run(inst.clone()).unwrap();
        assert_eq!(m.f32s(&d), want);
        let mut row = meta.clone();
        row.offset = 4;
        row.dims[0].count = 1;
        assert_eq!(m.bits(&row), counts);
    }
    m.contributions[1].tiles[1] = tile(&[3, 0, 0, 0]);
    let e = m.run(inst).unwrap_err();
    assert!(e.contains("rank 1 sends 3 elements, `dst` has room for 2"), "{e}");
}

#[test]
fn the_rules_of_the_reference() {
    let (mut m, s, d) = tensors(Space::Hbm, DType::F32, &[4], &[4]);
    let tile = m.tensor("t", Space::Sbuf, DType::F32, &[4, 1]);
    let group = |g: &[&[i64]]| ("replica_group", ranks(g));
    let dim = |n| ("collective_dim", Arg::Int(n));
    for (name, args, want) in [
        (
            "all_gather",
            vec![("srcs", one(&s)), ("dsts", one(&d)), group(&[&[0, 1]]), dim(0)],
            "it must be 2 times as large",
        ),
        (
            "all_gather",
            vec![("srcs", one(&s)), ("dsts", one(&d)), group(&[&[0, 1]]), dim(1)],
            "for tensors in HBM it must be 0",
        ),
        (
            "all_gather",
            vec![("srcs", one(&s)), ("dsts", one(&d)), group(&[&[0, 1], &[1, 2]]), dim(0)],
            "has rank 1 twice",
        ),
        (
            "all_gather",
            vec![("srcs", one(&s)), ("dsts", one(&d)), group(&[&[0, 1], &[2]]), dim(0)],
            "groups of 2 and of 1",
        ),
        (
            "all_gather",
            vec![("srcs", one(&s)), ("dsts", one(&tile)), group(&[&[0]]), dim(0)],
            "all must be in the same memory",
        ),
        (
            "all_reduce",
            vec![("srcs", one(&s)), ("dsts", one(&d)), group(&[&[0]]), ("op", Arg::Name("multiply".into()))],
            "reduce with add, minimum or maximum",
        ),
        (
            "collective_permute",
            vec![("srcs", one(&s)), ("dsts", one(&d)), ("source_target_pairs", ranks(&[&[0, 1], &[2, 1]]))],
            "rank 1 twice as a target",
        ),
        (
            "collective_permute_implicit",
            vec![
                ("srcs_by_channel", channel(&s)),
                ("dsts_by_channel", channel(&d)),
                group(&[&[0, 1]]),
                ("channel_ids", Arg::List(vec![Arg::Int(1)])),
            ],
            "consecutive from 0",
        ),
    ] {
        let e = m.check(build(name, &args)).unwrap_err();
        assert!(e.contains(want), "{name}: {e}");
    }
}

#[test]
fn a_prepared_collective_goes_by_the_metadata_of_its_preparation() {
    let mut m = TestMachine::new(Target::Trn2);
    let src = m.tensor("s", Space::Hbm, DType::F32, &[4]);
    let dst = m.tensor("d", Space::Hbm, DType::F32, &[4]);
    let metadata = m.tensor("m", Space::Hbm, DType::U32, &[3, 2]);
    let operands = [
        ("srcs", one(&src)),
        ("dsts", one(&dst)),
        ("replica_group", ranks(&[&[0, 1]])),
        ("metadata_tensor", Arg::View(metadata.clone())),
    ];
    let prepare = build("all_to_all_v_prepare", &operands);
    let start = build("all_to_all_v_trigger", &operands);
    // Counts, then displacements. Rank 0 sends one element to itself and two to rank 1; rank 1 two and one.
    let counts: [[f32; 6]; 2] = [[1.0, 2.0, 0.0, 1.0, 7.0, 7.0], [2.0, 1.0, 0.0, 2.0, 7.0, 7.0]];
    let mut machines: Vec<TestMachine> = (0..2)
        .map(|rank| {
            let mut m = m.clone();
            m.rank = rank as u32;
            m.set_f32(&src, &[0.0, 1.0, 2.0, 3.0].map(|x| 10.0 * rank as f32 + x));
            m.set_f32(&dst, &[-1.0; 4]);
            m.set_f32(&metadata, &counts[rank]);
            m.run(prepare.clone()).unwrap();
            // Later changes of the metadata have no effect.
            m.set_f32(&metadata, &[9.0; 6]);
            m
        })
        .collect();
    let contributions: Vec<Contribution> =
        machines.iter_mut().map(|m| Contribution { member: m.rank, tiles: start.contribute(m).unwrap() }).collect();
    for (rank, m) in machines.iter_mut().enumerate() {
        m.contributions = contributions.clone();
        m.run(start.clone()).unwrap();
        let expected = [[0.0, -1.0, 10.0, 11.0], [1.0, 2.0, 12.0, -1.0]][rank];
        assert_eq!(m.f32s(&dst), expected, "rank {rank}");
        let received = [[1.0, 2.0], [2.0, 1.0]][rank];
        assert_eq!(m.f32s(&metadata)[4..], received, "rank {rank}");
    }
}
