//! Published cost formulas of instructions, on the streams that they describe.

use nki_isa::inst::law_of_opcode;
use nki_isa::names::{DgeMode, Engine, Named};
use nki_isa::work::{
    Algorithm, Cycles, Dma, DmaSide, Issue, Law, Operand, Start, Stream, Term, VectorLaw, Work, WorkKind,
};
use nki_isa::{DType, Space, Target};

use crate::timing::Params;
use crate::timing::cost::{CostKind, CostModel, Laws, Place};
use crate::timing::params::Confidence;

fn operand(dtype: DType, elements: u32) -> Operand {
    Operand { space: Space::Sbuf, dtype, elements, inner_stride_bytes: dtype.size() as u32 }
}

/// A pass with the same cycles in all performance modes.
fn vector(row: &'static str) -> Law {
    Law::Vector(VectorLaw { cycles: Cycles::all(row), fixed: "typical", scalar: None, issue: Issue::Usual })
}

/// `elements` float32 in and `results` out, on 128 partitions.
fn stream(law: Law, elements: u32, results: u32) -> Stream {
    Stream {
        law,
        elements,
        partitions: 128,
        inputs: [operand(DType::F32, elements)].into_iter().collect(),
        outputs: [operand(DType::F32, results)].into_iter().collect(),
        scalar_reads: 0,
        accumulator_read: false,
    }
}

/// Cycles from one instruction to the next, and their confidence.
fn cycles(target: Target, engine: Engine, stream: Stream) -> (f64, Confidence) {
    let params = Params::of(target);
    let cost = Laws::new(&params).unwrap().cost(&Work { engine, kind: WorkKind::Stream(stream) }, Place::default());
    let CostKind::Compute { occupancy, .. } = cost.kind else { panic!("{:?}", cost.kind) };
    let clock = match engine {
        Engine::GpSimd => params.gpsimd.clock_ghz.value,
        Engine::Scalar => params.scalar.clock_ghz.value,
        _ => params.vector.clock_ghz.value,
    };
    (occupancy as f64 / 1e3 * clock, cost.confidence)
}

#[test]
fn vector_instructions_stream_as_published() {
    // Cycles per element of a partition.
    let n = 3000;
    for (row, per_element) in [
        ("bn_stats", 1.0),
        ("bn_aggr", 13.0 / 3.0),
        ("max8", 1.0),
        ("nc_find_index8", 1.0),
        ("nc_match_replace8", 1.0),
        ("range_select", 1.0),
        ("dropout", 1.0),
        ("nc_stream_shuffle", 1.0),
        ("tensor_scalar_reduce", 1.0),
    ] {
        for &target in Target::ALL {
            let (got, _) = cycles(target, Engine::Vector, stream(vector(row), n, n));
            let overhead = Params::of(target).vector.issue_overhead_cycles.value;
            let want = overhead + f64::from(n) * per_element;
            assert!((got / want - 1.0).abs() < 0.005, "{row} on {target}: {got} cycles, published {want}");
        }
    }
    let transpose = Law::Vector(VectorLaw {
        cycles: Cycles::all("transpose"),
        fixed: "transpose",
        scalar: None,
        issue: Issue::BlockTranspose,
    });
    // 1024 transposes of 32 x 32 in 207 us (neuron-agentic-development, rms_fused_qkv).
    let (block, _) = cycles(Target::Trn2, Engine::Vector, stream(transpose, 32, 32));
    assert!((block / 0.96 - 202.0).abs() < 1.0, "{block} cycles");
    for row in ["exponential", "rng", "rand2", "quantize_mx"] {
        let (long, _) = cycles(Target::Trn3, Engine::Vector, stream(vector(row), 2 * n, 2 * n));
        let (short, confidence) = cycles(Target::Trn3, Engine::Vector, stream(vector(row), n, n));
        assert!(((long - short) / f64::from(n) - 0.25).abs() < 1e-3, "{row}: four elements for each cycle");
        // The part before the first element is always assumed.
        assert_eq!(confidence.max(Confidence::Derived), Confidence::Derived, "{row}");
    }
    // Reading the accumulators: 64 cycles.
    let plain = stream(vector("tensor_scalar_reduce"), n, n);
    let (with, _) = cycles(Target::Trn2, Engine::Vector, Stream { accumulator_read: true, ..plain.clone() });
    let (without, _) = cycles(Target::Trn2, Engine::Vector, plain);
    assert!((with - without - 64.0).abs() < 0.1, "{with} {without}");
}

/// Completion of instructions that voyager-compiler measured on trn2 (operand characterization of 2026-10-10).
#[test]
fn copies_and_scans_complete_as_measured() {
    let complete = |opcode, columns: u32, scalar_reads, (from, to): (DType, DType)| {
        let law = law_of_opcode(opcode, None).expect("a streaming instruction");
        let stream = Stream {
            inputs: [operand(from, columns)].into_iter().collect(),
            outputs: [operand(to, columns)].into_iter().collect(),
            scalar_reads,
            ..stream(law, columns, columns)
        };
        let params = Params::of(Target::Trn2);
        let work = Work { engine: Engine::Vector, kind: WorkKind::Stream(stream) };
        let CostKind::Compute { complete, .. } = Laws::new(&params).unwrap().cost(&work, Place::default()).kind else {
            panic!("it computes")
        };
        complete as f64 / 1e3
    };
    let (wide, narrow) = (DType::F32, DType::BF16);
    for (opcode, columns, scalars, types, measured) in [
        ("COPY", 512, 0, (wide, wide), 427.0),
        ("COPY", 512, 0, (wide, narrow), 423.0),
        ("COPY", 512, 0, (narrow, narrow), 293.0),
        ("COPY", 128, 0, (narrow, wide), 256.0),
        ("COPY", 512, 0, (narrow, wide), 564.0),
        ("TENSOR_TENSOR_SCAN", 256, 0, (wide, wide), 691.0),
        ("TENSOR_TENSOR_SCAN", 256, 1, (wide, wide), 751.0),
        ("TENSOR_TENSOR_SCAN", 1024, 1, (wide, wide), 2351.0),
    ] {
        let got = complete(opcode, columns, scalars, types);
        assert!((got - measured).abs() < 6.0, "{opcode} of {columns}, {types:?}: {got} ns");
    }
}

#[test]
fn gpsimd_instructions_take_their_formulas() {
    let take = |law, elements, results| cycles(Target::Trn2, Engine::GpSimd, stream(law, elements, results));
    let once = |terms| Law::Algorithm(Algorithm { start: Start::Once, terms });
    let topk = Law::Algorithm(Algorithm {
        start: Start::AtLeast,
        terms: &[Term::Elements("topk"), Term::Results("topk_result")],
    });
    let gather = once(&[Term::Runs("gather_index")]);
    let n_gather =
        Law::Algorithm(Algorithm { start: Start::EachGroup("n_gather_group"), terms: &[Term::Elements("n_gather")] });
    let is = |(got, confidence): (f64, Confidence), want: f64, founded| {
        assert!((got - want).abs() < 1.0, "{got} cycles, {want} expected");
        assert_eq!(confidence, founded);
    };
    is(take(Law::GpSimd, 512, 512), 150.0 + 512.0, Confidence::Documented);
    is(take(topk, 1024, 64), 4.0 * 1024.0 + 64.0, Confidence::Documented);
    is(take(topk, 8, 1), 150.0, Confidence::Documented);
    // 150 + indices (7 + e) / min(4 / bytes, e).
    is(take(gather, 100, 100), 150.0 + 100.0 * 8.0, Confidence::Derived);
    is(take(gather, 100, 800), 150.0 + 100.0 * 15.0, Confidence::Derived);
    let narrow = Stream { outputs: [operand(DType::BF16, 800)].into_iter().collect(), ..stream(gather, 100, 800) };
    is(cycles(Target::Trn2, Engine::GpSimd, narrow), 150.0 + 100.0 * 15.0 / 2.0, Confidence::Derived);
    is(take(n_gather, 1000, 1000), 2.0 * 150.0 + 8.0 * 1000.0, Confidence::Derived);
    is(
        take(once(&[Term::AllPartitions("partition_reduce")]), 100, 100),
        150.0 + 0.71 * 128.0 * 100.0,
        Confidence::Measured,
    );
}

/// Transfers of 128 runs on trn1: 17 B/ns per engine in packets of 4 KiB (NKI DMA overview); slow if the distance of the runs is a multiple of a
/// large power of two (silu of NKIBench), but not if it is odd or shorter (bmm of NKIBench, gemm of autocomp); never slow on trn2.
#[test]
fn runs_at_powers_of_two_meet_in_few_banks() {
    let busiest = |target, run_bytes: u32, stride_bytes| {
        let params = Params::of(target);
        let src = DmaSide { space: Space::Hbm, partitions: (0, 128), run_bytes, runs: 128, stride_bytes };
        let dst = DmaSide { space: Space::Sbuf, stride_bytes: 0, ..src };
        let bytes = 128 * u64::from(run_bytes);
        let (elements, dge) = (bytes / 2, DgeMode::Unknown);
        let dma = Dma {
            src,
            dst,
            bytes,
            elements,
            dge,
            dynamic: false,
            indexed: false,
            indirect: false,
            transpose: false,
            cast: false,
        };
        let work = Work { engine: Engine::Sync, kind: WorkKind::Dma(dma) };
        let cost = Laws::new(&params).unwrap().cost(&work, Place { partition: Some(0), ..Place::default() });
        let CostKind::Dma(dma) = cost.kind else { panic!("{:?}", cost.kind) };
        (dma.longest() as f64 / 1e3, cost.confidence)
    };
    let fast = busiest(Target::Trn1, 4096, 4096).0;
    assert!((8.0 * 4096.0 / fast - 17.0).abs() < 0.1, "{fast}");
    let (slow, confidence) = busiest(Target::Trn1, 4096, 7 << 17);
    assert!((slow / 8.0 - 368.0).abs() < 2.0, "{slow}");
    assert_eq!(confidence, Confidence::Derived.max(busiest(Target::Trn1, 4096, 4096).1));
    for stride in [4096, 8192, 16384, 3 << 14, (7 << 17) + 512] {
        assert_eq!(busiest(Target::Trn1, 4096, stride).0, fast, "{stride}");
    }
    let row = busiest(Target::Trn1, 1024, 16384).0 / 8.0;
    assert!((row / 78.0 - 1.0).abs() < 0.05, "{row}");
    // A contiguous block does not consist of separate runs.
    let block = busiest(Target::Trn1, 1 << 17, 1 << 17).0;
    assert!((block / (32.0 * fast) - 1.0).abs() < 1e-6, "{block}");
    assert_eq!(busiest(Target::Trn2, 4096, 7 << 17), busiest(Target::Trn2, 4096, 4096));
}
