//! Closed forms as properties: chains without contention, single instructions, streams at the peak, and monotonicity in bandwidth.
//!
//! The expected times are computed here from the parameters, not by the laws.

use nki_isa::{DType, Program, Space, Target, TensorId};
use proptest::prelude::*;

use super::matmul::{blocked, nc_matmul};
use super::{check, time_with};
use crate::testing::{Builder, add, dma, dma_transpose, pattern};
use crate::timeline::Timeline;
use crate::timing::Params;

/// Parameters of Trn2 without the history-dependent part, the power limiter.
fn steady() -> Params {
    let mut params = Params::of(Target::Trn2);
    params.set("tensor.limiter_rate", 1.0).unwrap();
    params
}

fn run(program: &Program, params: &Params) -> Timeline {
    let timeline = time_with(program, params).0;
    check(&timeline);
    timeline
}

/// Whether times agree up to the rounding of each part.
fn close(got: u64, want_ns: f64, parts: usize) -> bool {
    (got as f64 - want_ns * 1e3).abs() <= 2.0 * parts as f64 + 2.0
}

fn add_ns(p: &Params, columns: u32) -> f64 {
    let v = &p.vector;
    let stream = f64::from(columns) * v.cycles.row("tensor_tensor").value / v.clock_ghz.value;
    (v.fixed_ns.row("tensor_tensor").value + stream).max(v.min_cycles.value / v.clock_ghz.value)
}

/// From the trigger to the notification: `partitions` rows of `columns` fp32, one run per row. GpSimd builds the descriptors.
fn transfer_ns(p: &Params, partitions: u32, columns: u32, store: bool) -> f64 {
    let d = &p.dma;
    let row = f64::from(columns) * 4.0;
    let packets = (row / d.packet_bytes.value).ceil();
    let packet = (d.descriptor_ns.value + row / packets / d.bytes_per_ns.value).max(d.least_packet_ns.value);
    let busiest = f64::from(partitions.min(8));
    let rest = if store {
        [&d.store_dispatch_ns, &d.store_payload_ns, &d.store_notify_ns]
    } else {
        [&d.load_dispatch_ns, &d.load_payload_ns, &d.load_notify_ns]
    };
    let tail = if store {
        0.0
    } else {
        d.load_tail_ns.value * (f64::from(partitions) * row / d.load_tail_bytes.value).min(1.0)
    };
    let trigger = d.software_trigger_ns.value + d.profile_trigger_ns.value + d.software_dispatch_ns.value;
    trigger + busiest * packets * packet + tail + rest.iter().map(|r| r.value).sum::<f64>()
}

/// Loads a tile, then in each of `steps` adds it to itself or sends it through HBM: each step depends on the previous one.
fn chain(steps: &[bool], partitions: u32, columns: u32) -> Program {
    let mut b = Builder::new();
    let shape = [partitions, columns];
    let x = b.input("x", &shape, DType::F32);
    let mut tile = b.tensor("t", Space::Sbuf, &shape, DType::F32);
    b.push(dma(b.whole(tile), b.whole(x)));
    for (i, through_hbm) in steps.iter().enumerate() {
        let next = b.tensor(&format!("t{i}"), Space::Sbuf, &shape, DType::F32);
        if *through_hbm {
            let y = b.output(&format!("y{i}"), &shape, DType::F32);
            b.push(dma(b.whole(y), b.whole(tile)));
            b.push(dma(b.whole(next), b.whole(y)));
        } else {
            b.push(add(b.whole(next), b.whole(tile), b.whole(tile)));
        }
        tile = next;
    }
    b.program
}

fn matmuls(dtype: DType, columns: u32, count: u32) -> Program {
    let mut b = Builder::new();
    let weights = b.tensor("w", Space::Sbuf, &[128, 128], dtype);
    let moving = b.tensor("m", Space::Sbuf, &[128, columns], dtype);
    let out: Vec<TensorId> =
        (0..8).map(|i| b.tensor(&format!("p{i}"), Space::Psum, &[128, columns], DType::F32)).collect();
    for i in 0..count {
        b.push(nc_matmul(b.whole(out[i as usize % 8]), b.whole(weights), b.whole(moving)));
    }
    b.program
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// If each instruction depends on the previous one, there is no contention, and the kernel takes the sum of the unloaded times.
    #[test]
    fn without_contention_a_kernel_takes_its_critical_path(
        steps in prop::collection::vec(any::<bool>(), 0..12),
        partitions in 1u32..=128,
        columns in 1u32..=1024,
    ) {
        let params = steady();
        let t = run(&chain(&steps, partitions, columns), &params);
        let (load, store) = (transfer_ns(&params, partitions, columns, false), transfer_ns(&params, partitions, columns, true));
        let mut want = load;
        let mut after_add = false;
        for through_hbm in &steps {
            let semaphores = if after_add { &params.sync.engine_ns } else { &params.sync.dma_ns };
            want += if *through_hbm {
                semaphores.row("gpsimd").value + store + params.sync.dma_ns.row("gpsimd").value + load
            } else {
                semaphores.row("vector").value + add_ns(&params, columns)
            };
            after_add = !through_hbm;
        }
        let inner = t.elapsed - t.head - t.tail;
        prop_assert!(close(inner, want, 3 * steps.len() + 3), "{inner} ps, the sum is {want} ns");
        let path = crate::analysis::critical_path(&t);
        prop_assert_eq!(path.len(), t.events.len());
        prop_assert_eq!(path.iter().map(|s| s.to - s.from).sum::<u64>(), inner);
    }

    /// A single instruction takes its closed form.
    #[test]
    fn an_unloaded_instruction_takes_its_closed_form(partitions in 1u32..=128, columns in 1u32..=2048, store: bool) {
        let params = steady();
        let mut b = Builder::new();
        let shape = [partitions, columns];
        let (hbm, tile) = (b.output("y", &shape, DType::F32), b.tensor("t", Space::Sbuf, &shape, DType::F32));
        let (dst, src) = if store { (hbm, tile) } else { (tile, hbm) };
        b.push(dma(b.whole(dst), b.whole(src)));
        let e = run(&b.program, &params).events[0].clone();
        let want = transfer_ns(&params, partitions, columns, store);
        prop_assert!(close(e.complete - e.start, want, 4), "{} ps, not {want} ns", e.complete - e.start);

        let mut b = Builder::new();
        let [x, y] = ["x", "y"].map(|n| b.tensor(n, Space::Sbuf, &shape, DType::F32));
        b.push(add(b.whole(y), b.whole(x), b.whole(x)));
        let e = run(&b.program, &params).events[0].clone();
        prop_assert!(close(e.complete - e.start, add_ns(&params, columns), 2));

        let columns = columns.min(512);
        for dtype in [DType::F32, DType::BF16] {
            let e = run(&matmuls(dtype, columns, 1), &params).events[0].clone();
            let (p, fp32) = (&params.tensor, dtype == DType::F32);
            let (passes, per_row, drain) = if fp32 {
                (p.fp32_weight_loads.value, p.fp32_cycles_per_row.value, p.fp32_drain_ns.value)
            } else {
                (1.0, 1.0, p.drain_ns.value)
            };
            let cycles = p.weight_load_cycles.value * passes + f64::from(columns).max(p.min_columns.value) * per_row;
            let want = cycles / p.clock_ghz.value + p.issue_overhead_ns.value * passes + drain;
            prop_assert!(close(e.complete - e.start, want, 3), "{dtype:?}: {} ps, not {want} ns", e.complete - e.start);
        }
    }

    /// A stream of matmuls on the same weights takes one cycle per column, four in fp32; a stream of loads runs at the rate of
    /// all DMA engines, or of the engine that builds their descriptors.
    #[test]
    fn streams_run_at_the_peak(columns in 64u32..=512, fp32: bool, rows in 1024u32..=4096, trigger in 50.0f64..800.0) {
        let mut params = steady();
        params.set("dma.software_trigger_ns", trigger).unwrap();
        params.set("dma.profile_trigger_ns", 0.0).unwrap();
        let p = &params.tensor;
        let (dtype, per_row, instructions) =
            if fp32 { (DType::F32, p.fp32_cycles_per_row.value, p.fp32_weight_loads.value) } else { (DType::BF16, 1.0, 1.0) };
        let count = 64;
        let t = run(&matmuls(dtype, columns, count), &params);
        let span = t.events[count as usize - 1].end - t.events[0].end;
        let each = f64::from(columns) * per_row / p.clock_ghz.value + p.issue_overhead_ns.value * instructions;
        prop_assert!(close(span, f64::from(count - 1) * each, count as usize), "{span} ps for {count}");

        let mut b = Builder::new();
        let x = b.input("x", &[128, rows], DType::F32);
        for i in 0..48 {
            let tile = b.tensor(&format!("t{i}"), Space::Sbuf, &[128, rows / 8], DType::F32);
            let part = pattern(b.whole(x), 0, i64::from(i % 8 * (rows / 8)), &[(i64::from(rows), 128), (1, rows / 8)]);
            b.push(dma(b.whole(tile), part));
        }
        let t = run(&b.program, &params);
        let bytes = 128 * (rows / 8) * 4;
        let done = |i: usize| t.events[i].complete as f64 / 1e3;
        let rate = f64::from(bytes) * 32.0 / (done(40) - done(8));
        let row = f64::from(rows / 8 * 4);
        let packets = 16.0 * row / (params.dma.descriptor_ns.value + row / params.dma.bytes_per_ns.value);
        let peak = packets.min(f64::from(bytes) / trigger);
        prop_assert!((rate / peak - 1.0).abs() < 0.01, "{rate} GB/s of {peak}");
    }

    /// Concurrent transposes do not use the DMA bandwidth that a single one leaves idle: their slowdown over copies is that of a single one.
    #[test]
    fn a_stream_of_transposes_is_slower_than_one_of_copies(rows in 8u32..=16, fp32: bool, on_chip: bool) {
        let mut params = steady();
        for (name, value) in [("software_trigger_ns", 50.0), ("profile_trigger_ns", 0.0), ("hardware_trigger_ns", 50.0)] {
            params.set(&format!("dma.{name}"), value).unwrap();
        }
        let d = &params.dma;
        let rows = if on_chip { 128 } else { rows * 128 };
        let (dtype, size) = if fp32 { (DType::F32, 4) } else { (DType::BF16, 2) };
        let mut b = Builder::new();
        let hbm = b.input("x", &[rows, 128], dtype);
        for i in 0..8 {
            let tile = b.tensor(&format!("t{i}"), Space::Sbuf, &[128, rows], dtype);
            let source = if on_chip { b.tensor(&format!("s{i}"), Space::Sbuf, &[rows, 128], dtype) } else { hbm };
            b.push(dma_transpose(b.whole(tile), b.whole(source)));
        }
        let t = run(&b.program, &params);
        let span = (t.events[7].complete - t.events[3].complete) as f64 / 1e3;
        let bytes = f64::from(128 * size * rows);
        let packets = (bytes / d.packet_bytes.value).ceil().max(128.0);
        let packet = d.descriptor_ns.value + bytes / packets / d.bytes_per_ns.value;
        let (least, slower) = match (on_chip, fp32) {
            (true, _) => (&d.onchip_packet_ns, &d.onchip_transpose_slowdown),
            (false, true) => (&d.least_packet_ns, &d.wide_transpose_slowdown),
            (false, false) => (&d.least_packet_ns, &d.transpose_slowdown),
        };
        let each = packets * packet.max(least.value) * slower.value / 16.0;
        prop_assert!((span / (4.0 * each) - 1.0).abs() < 0.01, "{span} ns, not 4 times {each}");
    }

    /// On trn1 a store with non-contiguous rows pays its overhead per element, one with contiguous rows per row.
    #[test]
    fn strided_stores_of_trn1_take_their_time_for_each_element(rows in 1u32..=16, columns in 2u32..400) {
        let params = Params::of(Target::Trn1);
        // Eight for each DMA engine.
        let rows = rows * 8;
        let stored = |element: i64| {
            let mut b = Builder::new();
            let tile = b.tensor("t", Space::Sbuf, &[rows, columns], DType::F32);
            let out = b.input("x", &[rows, 2 * columns], DType::F32);
            let dst = pattern(b.whole(out), 0, 0, &[(2 * i64::from(columns), rows), (element, columns)]);
            b.push(dma(dst, b.whole(tile)));
            let t = run(&b.program, &params);
            (t.events[0].complete - t.events[0].start) as f64 / 1e3
        };
        let (apart, together) = (stored(2), stored(1));
        let d = &params.dma;
        let row = d.descriptor_ns.value + f64::from(columns) * 4.0 / d.bytes_per_ns.value;
        let more = 8.0 * (f64::from(columns) * d.strided_store_ns.value - row);
        prop_assert!(((apart - together) / more - 1.0).abs() < 0.02, "{apart} and {together} ns, not {more} apart");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// More bandwidth never slows a blocked matmul down, in program order. This does not hold for a greedy scheduler: other times
    /// lead to another order.
    #[test]
    fn more_bandwidth_never_slows(
        tiles in (0u32..3, 0u32..2, 0u32..3),
        bf16: bool,
        factor in 1.0f64..4.0,
        which in 0usize..3,
    ) {
        let dtype = if bf16 { DType::BF16 } else { DType::F32 };
        let program = blocked(dtype, (512, 512, 1024), (1 << tiles.0, 1 << tiles.1, 1 << tiles.2));
        let mut params = steady();
        params.set("compiler.tensor_window", 1.0).unwrap();
        let before = run(&program, &params).elapsed;
        let name = ["dma.bytes_per_ns", "tensor.clock_ghz", "vector.clock_ghz"][which];
        let value = params.get(name).and_then(|p| p.value.as_float()).unwrap();
        params.set(name, value * factor).unwrap();
        let after = run(&program, &params).elapsed;
        prop_assert!(after <= before, "{name} x {factor}: {before} to {after}");
    }
}
