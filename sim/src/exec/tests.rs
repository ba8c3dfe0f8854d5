use nki_isa::ids::RegId;
use nki_isa::program::{Bound, Control, NodeKind};
use nki_isa::{DType, Index, Indirect, Space, View};

use super::*;
use crate::place::place;
use crate::testing::*;
use crate::{Buffer, ForeignBytes};

fn run_program(program: &Program, inputs: Vec<HostTensor>) -> ExecResult {
    let placement = place(program).expect("fits");
    run(program, &placement, inputs, &ExecOptions::default()).expect("runs")
}

fn slugs(list: &[Diagnostic]) -> Vec<&'static str> {
    list.iter().map(|d| d.id).collect()
}

/// out = a + b on [rows, columns], through SBUF.
fn adder(rows: u32, columns: u32, dtype: DType) -> Program {
    let mut b = Builder::new();
    let x = b.input("a", &[rows, columns], DType::F32);
    let y = b.input("b", &[rows, columns], DType::F32);
    let out = b.output("out", &[rows, columns], DType::F32);
    let [ta, tb, tc] = ["ta", "tb", "tc"].map(|n| b.tensor(n, Space::Sbuf, &[rows, columns], dtype));
    b.push(dma(b.whole(ta), b.whole(x)));
    b.push(dma(b.whole(tb), b.whole(y)));
    b.push(add(b.whole(tc), b.whole(ta), b.whole(tb)));
    b.push(dma(b.whole(out), b.whole(tc)));
    b.program
}

#[test]
fn adds_two_tensors() {
    let program = adder(128, 64, DType::F32);
    let a: Vec<f32> = (0..128 * 64).map(|i| i as f32).collect();
    let b: Vec<f32> = a.iter().map(|x| x * 0.5).collect();
    let result = run_program(&program, vec![host_f32("a", &[128, 64], &a), host_f32("b", &[128, 64], &b)]);
    let want: Vec<f32> = a.iter().map(|x| x * 1.5).collect();
    assert_eq!(f32s(&result.outputs[0]), want);
    assert_eq!(result.trace.cores[0].events.len(), 4);
    assert_eq!(slugs(&result.findings), Vec::<&str>::new());
    assert_eq!(trace_only(&program).expect("static"), result.trace);
}

#[test]
fn bf16_rounds_unless_all_fp32() {
    let program = adder(4, 8, DType::BF16);
    let a = vec![1.001_f32; 32];
    let inputs = || vec![host_f32("a", &[4, 8], &a), host_f32("b", &[4, 8], &a)];
    assert_eq!(f32s(&run_program(&program, inputs()).outputs[0])[0], 2.0);
    let placement = place(&program).expect("fits");
    let options = ExecOptions { precise: false, ..ExecOptions::default() };
    let result = run(&program, &placement, inputs(), &options).expect("runs");
    assert_eq!(f32s(&result.outputs[0]), vec![2.002; 32]);
}

/// Elements that instructions create from numbers, registers or at random have the same values whether memory holds elements in their own
/// type or in 32 bits.
#[test]
fn made_bits_are_numbers_in_wide_memory_too() {
    use nki_isa::arg::{Imm, ScalarOperand};
    use nki_isa::inst::gpsimd::tensor_partition_reduce::{PartitionReduce, TensorPartitionReduce};
    use nki_isa::inst::sync::{register_move::RegisterMove, register_store::RegisterStore};
    use nki_isa::inst::vector::{rng::Rng, tensor_copy_predicated::TensorCopyPredicated};

    let mut b = Builder::new();
    let on = b.input("on", &[4, 8], DType::F32);
    let (mask, old) =
        (b.tensor("mask", Space::Sbuf, &[4, 8], DType::U8), b.tensor("old", Space::Sbuf, &[4, 8], DType::BF16));
    b.push(dma(b.whole(mask), b.whole(on)));
    b.push(dma(b.whole(old), b.whole(on)));
    b.push(TensorCopyPredicated {
        dst: b.whole(old),
        src: ScalarOperand::Imm(Imm::Float(0.5)),
        predicate: b.whole(mask),
        reverse_pred: false,
    });
    let random = b.tensor("random", Space::Sbuf, &[4, 8], DType::I8);
    b.push(Rng { dst: b.whole(random), engine: nki_isa::Engine::Vector });
    let least = b.tensor("least", Space::Sbuf, &[1, 8], DType::I8);
    b.push(TensorPartitionReduce { dst: b.whole(least), op: PartitionReduce::BitwiseOr, data: b.whole(random) });
    b.program.registers = 1;
    let stored = b.tensor("stored", Space::Sbuf, &[1, 1], DType::I16);
    b.push(RegisterMove { dst: RegId(0), src: nki_isa::arg::RegisterOrInt::Int(-5) });
    b.push(RegisterStore { dst: b.whole(stored), src: RegId(0) });
    for (name, tensor, shape) in
        [("a", old, [4, 8]), ("b", random, [4, 8]), ("c", least, [1, 8]), ("d", stored, [1, 1])]
    {
        let out = b.output(name, &shape, DType::F32);
        b.push(dma(b.whole(out), b.whole(tensor)));
    }
    let placement = place(&b.program).expect("fits");
    let mixed: Vec<f32> = (0..32).map(|i| (i % 3) as f32).collect();
    let outputs = |precise| {
        let options = ExecOptions { precise, ..ExecOptions::default() };
        let result = run(&b.program, &placement, vec![host_f32("on", &[4, 8], &mixed)], &options).expect("runs");
        result.outputs.iter().map(f32s).collect::<Vec<_>>()
    };
    let (narrow, wide) = (outputs(true), outputs(false));
    assert_eq!(narrow, wide);
    assert_eq!((narrow[0][..3].to_vec(), narrow[3][0]), (vec![0.0, 0.5, 0.5], -5.0));
    assert!(narrow[1].iter().any(|x| *x < 0.0));
}

#[test]
fn input_mismatch_is_told_with_both_shapes() {
    let program = adder(4, 8, DType::F32);
    let placement = place(&program).expect("fits");
    let wrong = host_f32("a", &[8, 4], &[0.0; 32]);
    let fine = host_f32("b", &[4, 8], &[0.0; 32]);
    let failure = run(&program, &placement, vec![wrong, fine], &ExecOptions::default()).expect_err("mismatch");
    assert_eq!(failure.errors.len(), 1);
    assert_eq!(failure.errors[0].message, "input `a` is float32[8, 4], the program was compiled for float32[4, 8]");
}

#[test]
fn reads_of_unwritten_bytes_are_found_exactly() {
    let mut b = Builder::new();
    let x = b.input("x", &[4, 8], DType::F32);
    let out = b.output("out", &[4, 8], DType::F32);
    let t = b.tensor("t", Space::Sbuf, &[4, 8], DType::F32);
    let u = b.tensor("u", Space::Sbuf, &[4, 8], DType::F32);
    // All but columns 3 and 4 of partition 2.
    let whole = b.whole(t);
    let part = |v: View, p, o, dims: &[(i64, u32)]| pattern(v, p, o, dims);
    b.push(dma(part(whole.clone(), 0, 0, &[(1, 2), (1, 8)]), part(b.whole(x), 0, 0, &[(8, 2), (1, 8)])));
    b.push(dma(part(whole.clone(), 3, 0, &[(1, 1), (1, 8)]), part(b.whole(x), 0, 24, &[(8, 1), (1, 8)])));
    b.push(dma(part(whole.clone(), 2, 0, &[(1, 1), (1, 3)]), part(b.whole(x), 0, 16, &[(8, 1), (1, 3)])));
    b.push(dma(part(whole.clone(), 2, 5, &[(1, 1), (1, 3)]), part(b.whole(x), 0, 21, &[(8, 1), (1, 3)])));
    let fine = part(whole.clone(), 0, 5, &[(1, 4), (1, 3)]);
    b.push(add(part(b.whole(u), 0, 5, &[(1, 4), (1, 3)]), fine.clone(), fine));
    b.push(add(b.whole(u), whole.clone(), whole));
    b.push(dma(b.whole(out), b.whole(u)));
    let values: Vec<f32> = (0..32).map(|i| i as f32).collect();
    let result = run_program(&b.program, vec![host_f32("x", &[4, 8], &values)]);
    assert_eq!(slugs(&result.findings), ["uninitialized-read", "uninitialized-output"]);
    let message = &result.findings[1].message;
    assert!(message.contains("2 of 32 elements") && message.contains("first: [2, 3]"), "{message}");
    let message = &result.findings[0].message;
    assert!(message.contains("reads 2 of 32 elements of `data1` (`t`)"), "{message}");
    assert!(message.contains("partition 2, element 3"), "{message}");
    let got = f32s(&result.outputs[0]);
    for (i, (got, x)) in got.iter().zip(&values).enumerate() {
        if i == 19 || i == 20 {
            assert!(got.is_nan());
        } else {
            assert_eq!(*got, x * 2.0);
        }
    }
}

#[test]
fn integers_and_outputs_that_nothing_wrote() {
    let mut b = Builder::new();
    let out = b.output("out", &[2, 4], DType::I32);
    let t = b.tensor("t", Space::Sbuf, &[2, 4], DType::I32);
    let half = pattern(b.whole(t), 0, 0, &[(1, 2), (1, 2)]);
    b.push(dma(pattern(b.whole(out), 0, 0, &[(4, 2), (1, 2)]), half));
    let result = run_program(&b.program, Vec::new());
    assert_eq!(slugs(&result.findings), ["uninitialized-read", "uninitialized-output", "output-partly-written"]);
    let message = &result.findings[2].message;
    assert!(message.contains("4 of 8 elements") && message.contains("first: [0, 2]"), "{message}");
    let got = result.outputs[0].data.to_vec();
    assert_eq!(got, [4, 0, 0, 0].repeat(8));
}

/// A loop over a register that copies row by row with a dynamic offset.
fn row_loop(rows: u32, upper: Bound) -> Program {
    let mut b = Builder::new();
    let x = b.input("x", &[rows, 8], DType::F32);
    let out = b.output("out", &[rows, 8], DType::F32);
    let t = b.tensor("t", Space::Sbuf, &[1, 8], DType::F32);
    b.program.registers = 2;
    let i = RegId(0);
    let row = |v: View| {
        let mut v = pattern(v, 0, 0, &[(8, 1), (1, 8)]);
        v.indirect = Some(Box::new(Indirect { index: Index::Register(i), stride: 8, bound: rows }));
        v
    };
    let load = dma(b.whole(t), row(b.whole(x)));
    let store = dma(row(b.whole(out)), b.whole(t));
    let body = vec![b.node(NodeKind::Inst(load)), b.node(NodeKind::Inst(store))];
    b.push_node(Control::For { variable: i, lower: Bound::Static(0), upper, step: 1, body }.into());
    b.program
}

#[test]
fn dynamic_loops_and_offsets() {
    let program = row_loop(5, Bound::Static(5));
    let values: Vec<f32> = (0..40).map(|i| i as f32).collect();
    let result = run_program(&program, vec![host_f32("x", &[5, 8], &values)]);
    assert_eq!(f32s(&result.outputs[0]), values);
    assert_eq!(result.trace.cores[0].events.len(), 2 + 5 * 3);
    assert_eq!(trace_only(&program).expect("register only"), result.trace);
    let core = &result.trace.cores[0];
    assert_eq!(core.resolved(&core.events[6]), Some(&[crate::trace::Resolved::Offset(8)][..]));
}

#[test]
fn dynamic_index_out_of_bounds_stops_with_the_iteration() {
    let program = row_loop(5, Bound::Static(6));
    let placement = place(&program).expect("fits");
    let inputs = vec![host_f32("x", &[5, 8], &[1.0; 40])];
    let failure = run(&program, &placement, inputs, &ExecOptions::default()).expect_err("out of bounds");
    assert_eq!(failure.errors[0].id, "out-of-bounds");
    assert!(failure.errors[0].message.contains("dynamic index 5 of `x`"), "{}", failure.errors[0].message);
    assert!(failure.errors[0].notes[0].contains("iteration 5"), "{:?}", failure.errors[0].notes);
    assert_eq!(failure.trace.cores[0].events.len(), 1 + 5 * 3 + 1);
}

#[test]
fn endless_loop_ends() {
    let mut b = Builder::new();
    b.program.registers = 1;
    b.push_node(
        Control::For {
            variable: RegId(0),
            lower: Bound::Static(0),
            upper: Bound::Static(1 << 60),
            step: 1,
            body: Vec::new(),
        }
        .into(),
    );
    let placement = place(&b.program).expect("fits");
    let options = ExecOptions { step_limit: 1000, ..ExecOptions::default() };
    let failure = run(&b.program, &placement, Vec::new(), &options).expect_err("endless");
    assert_eq!(failure.errors[0].id, "step-limit");
}

/// Two matmuls of ones into a PSUM tensor with `accumulate=None`; inside a dynamic loop or not.
fn accumulating(in_loop: bool) -> Program {
    let mut b = Builder::new();
    let x = b.input("x", &[4, 4], DType::F32);
    let out = b.output("out", &[4, 4], DType::F32);
    let [t, u] = ["t", "u"].map(|n| b.tensor(n, Space::Sbuf, &[4, 4], DType::F32));
    let p = b.tensor("p", Space::Psum, &[4, 4], DType::F32);
    b.program.registers = 1;
    b.push(dma(b.whole(t), b.whole(x)));
    let insts = [
        matmul(b.whole(p), b.whole(t), b.whole(t), None),
        matmul(b.whole(p), b.whole(t), b.whole(t), None),
        dma(b.whole(u), b.whole(p)),
        dma(b.whole(out), b.whole(u)),
    ];
    let body: Vec<_> = insts.into_iter().map(|i| b.node(NodeKind::Inst(i))).collect();
    if in_loop {
        let (lower, upper) = (Bound::Static(0), Bound::Static(3));
        b.push_node(Control::For { variable: RegId(0), lower, upper, step: 1, body }.into());
    } else {
        b.program.cores[0].extend(body);
    }
    b.program
}

#[test]
fn first_matmul_overwrites_and_each_dynamic_iteration_begins_anew() {
    for in_loop in [false, true] {
        let program = accumulating(in_loop);
        let result = run_program(&program, vec![host_f32("x", &[4, 4], &[1.0; 16])]);
        // Two sums of four ones.
        assert_eq!(f32s(&result.outputs[0]), [8.0; 16], "in a loop: {in_loop}");
        assert!(result.findings.is_empty());
    }
}

#[test]
fn gather_skips_rows_out_of_bounds() {
    use nki_isa::names::OobMode;
    let build = |oob, shape: [u32; 2]| {
        let mut b = Builder::new();
        let x = b.input("x", &[5, 2], DType::F32);
        let index = b.input("index", &[3, 1], DType::I32);
        let out = b.output("out", &shape, DType::F32);
        let i = b.tensor("i", Space::Sbuf, &[3, 1], DType::I32);
        let t = b.tensor("t", Space::Sbuf, &shape, DType::F32);
        b.push(dma(b.whole(i), b.whole(index)));
        let mut rows = pattern(b.whole(x), 0, 0, &[(2, 3), (1, 2)]);
        let index = Index::Vector(b.whole(i));
        rows.indirect = Some(Box::new(Indirect { index, stride: 2, bound: 5 }));
        b.push(dma_oob(b.whole(t), rows, oob));
        b.push(dma(b.whole(out), b.whole(t)));
        b.program
    };
    let inputs = || {
        let x: Vec<f32> = (0..10).map(|i| i as f32).collect();
        let index: Vec<u8> = [4_i32, 7, 1].iter().flat_map(|i| i.to_le_bytes()).collect();
        let index = HostTensor { name: "index".into(), shape: vec![3, 1], dtype: DType::I32, data: index.into() };
        vec![host_f32("x", &[5, 2], &x), index]
    };
    // Tiles with the shape of the index, and with others.
    for shape in [[3, 2], [2, 3], [1, 6], [6, 1]] {
        let program = build(OobMode::Skip, shape);
        let result = run_program(&program, inputs());
        let got = f32s(&result.outputs[0]);
        assert_eq!((&got[..2], &got[4..]), (&[8.0, 9.0][..], &[2.0, 3.0][..]));
        assert!(got[2].is_nan() && got[3].is_nan());
        // The skipped row was never written.
        assert_eq!(slugs(&result.findings), ["uninitialized-read", "uninitialized-output"], "{shape:?}");
        assert!(trace_only(&program).expect_err("needs data").what.contains("`i`"));
    }

    let program = build(OobMode::Error, [3, 2]);
    let placement = place(&program).expect("fits");
    let failure = run(&program, &placement, inputs(), &ExecOptions::default()).expect_err("out of bounds");
    let message = &failure.errors[0].message;
    assert!(message.contains("dynamic index 7 (entry 1 of the index vector) of `x`"), "{message}");
    assert!(message.contains("valid are 0 to 4"), "{message}");
}

/// A caller's memory that records its release.
struct Watched {
    bytes: Vec<u8>,
    writable: bool,
    freed_as: std::sync::mpsc::Sender<Vec<u8>>,
}

impl ForeignBytes for Watched {
    fn bytes(&self) -> &[u8] {
        &self.bytes
    }
    fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        self.writable.then_some(&mut self.bytes[..])
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let _ = self.freed_as.send(std::mem::take(&mut self.bytes));
    }
}

#[test]
fn inputs_stay_where_they_are() {
    // x becomes x + x and is also an output.
    let mut b = Builder::new();
    let x = b.input("x", &[4, 8], DType::F32);
    let t = b.tensor("t", Space::Sbuf, &[4, 8], DType::F32);
    b.push(dma(b.whole(t), b.whole(x)));
    b.push(add(b.whole(t), b.whole(t), b.whole(t)));
    b.push(dma(b.whole(x), b.whole(t)));
    b.program.outputs.push(nki_isa::program::Output { name: "x".into(), tensor: x });
    let three = bytemuck::cast_slice::<f32, u8>(&[3.0; 32]).to_vec();
    let six = bytemuck::cast_slice::<f32, u8>(&[6.0; 32]).to_vec();
    for writable in [true, false] {
        let (sender, freed) = std::sync::mpsc::channel();
        let data = Buffer::foreign(Box::new(Watched { bytes: three.clone(), writable, freed_as: sender }));
        let address = data.as_ptr();
        let input = HostTensor { name: "x".into(), shape: vec![4, 8], dtype: DType::F32, data };
        let result = run_program(&b.program, vec![input]);
        assert_eq!(*result.outputs[0].data, six);
        assert_eq!(result.outputs[0].data.as_ptr() == address, writable);
        drop(result);
        assert_eq!(freed.recv().expect("freed"), if writable { six.clone() } else { three.clone() });
    }
    // A read-only input is never copied, even if others may write to it.
    let program = adder(4, 8, DType::F32);
    let (sender, freed) = std::sync::mpsc::channel();
    let input = |name: &str| HostTensor {
        name: name.into(),
        shape: vec![4, 8],
        dtype: DType::F32,
        data: Buffer::foreign(Box::new(Watched { bytes: three.clone(), writable: false, freed_as: sender.clone() })),
    };
    let result = run_program(&program, vec![input("a"), input("b")]);
    assert_eq!(*result.outputs[0].data, six);
    assert_eq!((freed.recv().expect("a"), freed.recv().expect("b")), (three.clone(), three));
}
