//! Closed forms: an unloaded instruction takes the time of its law, and a stream of them runs at the peak rate.

use nki_isa::names::{DgeMode, Engine};
use nki_isa::{DType, Program, Space, Target, TensorId};

use super::matmul::nc_matmul;
use super::{check, time, time_with};
use crate::testing::{Builder, add, dma, pattern};
use crate::timeline::{Event, Timeline};
use crate::timing::Params;

/// Nanoseconds.
fn ns(ps: u64) -> f64 {
    ps as f64 / 1e3
}

fn close(got: f64, want: f64) {
    assert!((got - want).abs() <= 0.002 * want.abs() + 0.01, "{got} is not {want}");
}

fn adds(dtype: DType, space: Space, n: u32, count: u32, dependent: bool) -> Program {
    let mut b = Builder::new();
    let x = b.tensor("x", space, &[128, n], dtype);
    let y = b.tensor("y", Space::Sbuf, &[128, n], dtype);
    let outs: Vec<TensorId> = (0..4).map(|i| b.tensor(&format!("o{i}"), Space::Sbuf, &[128, n], dtype)).collect();
    for i in 0..count {
        let (dst, src) = if dependent { (y, y) } else { (outs[i as usize % 4], y) };
        let inst = add(b.whole(dst), b.whole(x), b.whole(src));
        b.push(inst);
    }
    b.program
}

fn only(t: &Timeline) -> &Event {
    assert_eq!(t.events.len(), 1);
    &t.events[0]
}

#[test]
fn an_unloaded_tensor_tensor_takes_its_law() {
    // (dtype, memory of one input, fixed ns, ns per element): the measured laws.
    for (dtype, space, fixed, slope) in [
        (DType::F32, Space::Sbuf, 158.7, 1.0 / 0.96),
        (DType::BF16, Space::Sbuf, 158.7, 0.5 / 0.96),
        (DType::F32, Space::Psum, 158.7, 1.0 / 0.96),
    ] {
        for n in [64, 128, 256, 512] {
            let t = time(&adds(dtype, space, n, 1, false));
            let e = only(&t);
            close(ns(e.complete - e.start), fixed + slope * f64::from(n));
        }
    }
}

/// An addition of two tiles of `dtype` to a third, `n` elements per partition; the first input is every `step`-th element of a longer tile.
fn add_with_step(dtype: DType, n: u32, step: u32) -> Program {
    let mut b = Builder::new();
    let x = b.tensor("x", Space::Sbuf, &[128, n * step], dtype);
    let y = b.tensor("y", Space::Sbuf, &[128, n], dtype);
    let mut every = b.whole(x);
    (every.dims[1].stride, every.dims[1].count) = (i64::from(step), n);
    let inst = add(b.whole(y), every, b.whole(y));
    b.push(inst);
    b.program
}

#[test]
fn narrow_operands_with_a_stride_have_no_fast_mode() {
    let time_of = |dtype, step| {
        let t = time(&add_with_step(dtype, 512, step));
        ns(only(&t).complete - only(&t).start)
    };
    for dtype in [DType::BF16, DType::F16] {
        close(time_of(dtype, 2), time_of(DType::F32, 1));
        assert!(time_of(dtype, 1) < 0.7 * time_of(dtype, 2));
    }
}

#[test]
fn independent_vector_instructions_overlap_their_completions_and_dependent_ones_do_not() {
    let time_of = |dependent| {
        let t = time(&adds(DType::F32, Space::Sbuf, 512, 40, dependent));
        ns(t.events[39].start - t.events[0].start) / 39.0
    };
    close(time_of(false), (60.0 + 512.0) / 0.96);
    // Each waits for the semaphore of its predecessor.
    close(time_of(true), 158.7 + 512.0 / 0.96 + 36.0);
}

fn matmuls(dtype: DType, n: u32, count: u32, same_weights: bool) -> Program {
    let mut b = Builder::new();
    let w: Vec<TensorId> = (0..2).map(|i| b.tensor(&format!("w{i}"), Space::Sbuf, &[128, 128], dtype)).collect();
    let x = b.tensor("x", Space::Sbuf, &[128, n], dtype);
    let p: Vec<TensorId> = (0..8).map(|i| b.tensor(&format!("p{i}"), Space::Psum, &[128, n], DType::F32)).collect();
    for i in 0..count as usize {
        let weights = w[if same_weights { 0 } else { i % 2 }];
        let inst = nc_matmul(b.whole(p[i % 8]), b.whole(weights), b.whole(x));
        b.push(inst);
    }
    b.program
}

#[test]
fn a_stream_of_matmuls_runs_at_the_peak_once_warm() {
    for (dtype, n, cycles, instructions) in
        [(DType::F32, 512, 2048.0, 2.0), (DType::F32, 128, 512.0, 2.0), (DType::BF16, 512, 512.0, 1.0)]
    {
        let t = time(&matmuls(dtype, n, 200, false));
        let interval = ns(t.events[199].start - t.events[100].start) / 99.0;
        close(interval, 3.62 * instructions + cycles / 2.4);
    }
}

#[test]
fn a_cold_matmul_runs_at_half_rate() {
    // The weights of fp32 load in two passes; those of bf16 are a separate instruction in the measured profile.
    for (dtype, fixed, cycles) in [(DType::F32, 381.0, 2048.0), (DType::BF16, 203.0 + 2.0 * 128.0 / 2.4, 512.0)] {
        let t = time(&matmuls(dtype, 512, 1, false));
        let e = only(&t);
        // The measured law of an isolated matmul: fixed + twice the columns. Its fixed part has the weights at half rate, too; pairs of weights and
        // one column (MoE kernels) show that weights keep the full rate.
        let got = ns(e.complete - e.start);
        let want = fixed + 2.0 * cycles / 2.4;
        assert!((got - want).abs() < 0.08 * want, "{got} is not {want}");
    }
}

#[test]
fn short_matmuls_with_changing_weights_are_bound_by_the_weight_load() {
    let interval = |same| {
        let t = time(&matmuls(DType::BF16, 64, 400, same));
        ns(t.events[399].start - t.events[300].start) / 99.0
    };
    close(interval(true), 3.62 + 64.0 / 2.4);
    close(interval(false), 128.0 / 2.4);
}

#[test]
fn the_limiter_engages_again_after_idling() {
    let program = matmuls(DType::F32, 512, 30, true);
    let with = time(&program);
    let mut params = Params::of(Target::Trn2);
    params.set("tensor.limiter_rate", 1.0).unwrap();
    let without = time_with(&program, &params).0;
    check(&without);
    let lost = with.elapsed - without.elapsed;
    // The half rate lasts for the rest of the period in which the first matmul starts, for the next one if that had too little work, and then for the
    // remainder of the current matmul.
    let period = (params.tensor.limiter_period_ns.value * 1e3) as u64;
    let first = period - without.head % period;
    let slow =
        if (first as f64) / 2.0 < params.tensor.limiter_release.value * period as f64 { first + period } else { first };
    assert!((slow / 2..slow / 2 + 900_000).contains(&lost), "{lost}, {slow}");
}

fn transfers(partitions: u32, columns: u32, count: u32, store: bool) -> Program {
    let mut b = Builder::new();
    let h = if store {
        b.output("h", &[count * partitions, columns], DType::F32)
    } else {
        b.input("h", &[count * partitions, columns], DType::F32)
    };
    let s: Vec<TensorId> =
        (0..count).map(|i| b.tensor(&format!("s{i}"), Space::Sbuf, &[partitions, columns], DType::F32)).collect();
    for (i, s) in s.iter().enumerate() {
        let tile = pattern(
            b.whole(h),
            0,
            i as i64 * i64::from(partitions * columns),
            &[(i64::from(columns), partitions), (1, columns)],
        );
        let s = b.whole(*s);
        b.push(if store { dma(tile, s) } else { dma(s, tile) });
    }
    b.program
}

#[test]
fn an_unloaded_transfer_goes_through_its_phases() {
    // A tiny load and a tiny store with software descriptors, recorded by the profiler.
    let trigger = 670.0 + 90.0 + 650.0;
    let t = time(&transfers(128, 1, 1, false));
    close(ns(only(&t).complete - only(&t).start), trigger + 751.0 + 8.0 * 13.0 + 293.1 + 314.5);
    let t = time(&transfers(128, 1, 1, true));
    close(ns(only(&t).complete - only(&t).start), trigger + 565.5 + 8.0 * 13.0 + 162.3 + 355.0);
}

#[test]
fn an_isolated_hardware_transfer_takes_what_profiles_show() {
    // Sync, 64 KiB as 128 rows of 512 bytes: 1333 ns to the first packet; at least 2085 ns and 2313 in the median until the semaphore.
    let mut program = transfers(128, 128, 1, false);
    for node in &mut program.cores[0] {
        if let nki_isa::program::NodeKind::Inst(nki_isa::Inst::DmaCopy(d)) = &mut node.kind {
            (d.engine, d.dge_mode) = (Engine::Sync, DgeMode::HwDge);
        }
    }
    let t = time(&program);
    let e = only(&t);
    let first = e.phases().iter().find(|p| p.kind == crate::timeline::PhaseKind::Payload).unwrap().start - e.start;
    assert!((ns(first) - 1333.0).abs() < 0.03 * 1333.0, "{first}");
    assert!((2085.0..2313.0).contains(&ns(e.complete - e.start)), "{}", e.complete - e.start);
}

#[test]
fn four_partitions_use_one_engine() {
    // Eight packets of 4 KiB, 156 ns apart in profiles. (The DMA overview has 1416 ns for 32 KiB over one engine.)
    let t = time(&transfers(4, 2048, 1, false));
    // Without the latency of the first byte, and the tail of 32 KiB.
    let payload = t.dma.active as f64 / 1e3 - 293.1 - 500.0 / 8.0;
    assert!((payload - 8.0 * 156.0).abs() < 5.0, "{payload}");
}

#[test]
fn large_transfers_reach_the_peak_and_small_ones_do_not() {
    // Bytes per partition, GB/s of sixteen engines; the peak is that of packets of 4 KiB.
    let rate = |columns: u32| {
        let count = 24;
        let t = time(&transfers(128, columns, count, false));
        f64::from(count * columns * 128 * 4) / ns(t.dma.active)
    };
    let peak = 421.0;
    let rates: Vec<f64> = [16, 64, 256, 1024, 2048].into_iter().map(rate).collect();
    assert!(rates.windows(2).all(|w| w[0] < w[1]), "{rates:?}");
    assert!(rates[4] > 0.93 * peak && rates[4] <= 1.001 * peak, "{rates:?}");
    assert!(rates[0] < 0.1 * peak, "{rates:?}");
}

#[test]
fn engines_of_the_program_are_honoured() {
    let mut program = transfers(128, 512, 2, false);
    for (node, engine) in program.cores[0].iter_mut().zip([Engine::Scalar, Engine::GpSimd]) {
        if let nki_isa::program::NodeKind::Inst(nki_isa::Inst::DmaCopy(d)) = &mut node.kind {
            d.engine = engine;
        }
    }
    let t = time(&program);
    let rows: Vec<&str> = t.events.iter().map(|e| t.rows[e.origin.row.0 as usize].kind.name()).collect();
    assert_eq!(rows, ["scalar", "gpsimd"]);
}

#[test]
fn hardware_descriptors_take_no_time_of_gpsimd() {
    let mut program = transfers(128, 128, 6, false);
    for node in &mut program.cores[0] {
        if let nki_isa::program::NodeKind::Inst(nki_isa::Inst::DmaCopy(d)) = &mut node.kind {
            d.dge_mode = DgeMode::HwDge;
        }
    }
    let rows =
        |t: &Timeline| -> Vec<&str> { t.events.iter().map(|e| t.rows[e.origin.row.0 as usize].kind.name()).collect() };
    let t = time(&program);
    assert_eq!(rows(&t), ["sync"; 6]);
    // Sync is busy for one trigger from one transfer to the next.
    close(ns(t.events[5].start - t.events[0].start), 5.0 * 565.0);

    let mut params = Params::of(Target::Trn2);
    params.set_text("dma.hardware_queues", "[\"scalar\", \"sync\"]").unwrap();
    assert_eq!(rows(&time_with(&program, &params).0), ["scalar", "sync", "scalar", "sync", "scalar", "sync"]);
}

#[test]
fn both_cores_of_a_logical_core_start_later_than_one() {
    let one = adds(DType::F32, Space::Sbuf, 512, 3, true);
    let mut two = one.clone();
    two.cores.push(one.cores[0].clone());
    for measure in ["profile", "device"] {
        let mut params = Params::of(Target::Trn2);
        params.set_text("kernel.measure", measure).unwrap();
        let of = |program| time_with(program, &params).0;
        let (one, two) = (of(&one), of(&two));
        close(ns(two.head - one.head), 2600.0);
        close(ns(two.elapsed - one.elapsed), 2600.0);
    }
}

/// A copy from HBM to HBM reads and writes: a core cannot move more bytes than the stack's bandwidth.
#[test]
fn copies_between_places_in_hbm_are_bounded_by_the_stack() {
    let mut b = Builder::new();
    let shape = [512, 8192];
    let (x, out) = (b.input("x", &shape, DType::F32), b.output("out", &shape, DType::F32));
    b.push(dma(b.whole(out), b.whole(x)));
    let t = time(&b.program);
    let bytes = 2.0 * 512.0 * 8192.0 * 4.0;
    let rate = bytes / ns(t.dma.active);
    let stack = Params::of(Target::Trn2).cores.hbm_bytes_per_ns.value;
    assert!(rate <= stack && rate > 0.9 * stack, "{rate}");
}

/// Copies inside SBUF use the bandwidth shared by two cores; a single core is bounded by its DMA engines.
#[test]
fn copies_inside_sbuf_count_to_what_two_cores_share() {
    let mut b = Builder::new();
    let shape = [128, 8192];
    let rounds = 3;
    for _ in 0..rounds {
        let [from, to] = ["from", "to"].map(|name| b.tensor(name, Space::Sbuf, &shape, DType::F32));
        b.push(dma(b.whole(to), b.whole(from)));
    }
    let one = b.program;
    let mut two = one.clone();
    two.cores.push(one.cores[0].clone());
    let rate = |program: &Program| {
        let bytes = program.cores.len() as f64 * f64::from(rounds) * 128.0 * 8192.0 * 4.0;
        bytes / ns(time(program).dma.active)
    };
    let (alone, together) = (rate(&one), rate(&two));
    let shared = Params::of(Target::Trn2).cores.hbm_bytes_per_ns.value;
    assert!((0.9 * 435.0..435.0).contains(&alone), "{alone}");
    assert!((0.95 * shared..=shared).contains(&together), "{together}");
}

/// Public profiles of trn2 (trainium-kernel-fusion), medians of 3 and 4 loads with rows of 2 and 4 KiB: from the first packet to
/// the semaphore.
#[test]
fn a_load_ends_with_its_slowest_engine() {
    let moved = |columns: u32| {
        let t = time(&transfers(128, columns, 1, false));
        let e = only(&t);
        let first = e.phases().iter().find(|p| p.kind == crate::timeline::PhaseKind::Payload).unwrap().start;
        ns(e.complete - first)
    };
    for (columns, recorded) in [(512, 1705.0), (1024, 2345.0)] {
        let got = moved(columns);
        assert!((got / recorded - 1.0).abs() < 0.04, "{columns}: {got} for {recorded}");
    }
}
