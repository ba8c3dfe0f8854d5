//! Rules of tensor indirection: on-chip operands whose elements are selected by offsets in memory (`NkiTensor.indirect`, Trn3).
//!
//! Source: the sections "Tensor indirection" of the `nki.isa` reference, and the docstring of `NkiTensor.indirect`.

use super::{Instruction, check};
use crate::arg::Arg;
use crate::dtype::DType;
use crate::machine::Context;
use crate::names::{Engine, Space};
use crate::schema::Rule;
use crate::view::{Indirect, View, column_group};
use crate::violation::Violation;

/// Rules of tensor indirection. For each rule, tests/refused/every_indirect.py has a call that breaks it.
pub const INDIRECT_RULES: &[Rule] = &[
    Rule { id: "operands", text: "the instruction's page lists the operand as one that may be indirect" },
    Rule { id: "generation", text: "the target is trn3" },
    Rule { id: "index-memory", text: "the index is in SBUF" },
    Rule { id: "index-dtype", text: "the index consists of 16-bit or 32-bit integers" },
    Rule { id: "index-partitions", text: "the index has as many partitions as the tensor" },
    Rule {
        id: "offsets",
        text: "the number of offsets is at most that of one group of partitions (16 partitions; 32 for the tensor engine)",
    },
    Rule { id: "index-start", text: "an index with an address starts at partition 0, 32, 64 or 96" },
    Rule {
        id: "gather-start",
        text: "a tensor that is read and its index, if both have addresses, start at the same partition",
    },
    Rule {
        id: "scatter-start",
        text: "the index of `dst` starts where the operand streamed from SBUF does, or, from PSUM, where that one's index does",
    },
    Rule { id: "scatter-psum", text: "the scalar engine does not scatter to PSUM" },
    Rule { id: "gpsimd", text: "GpSimd does not run tensor_copy of an indirect operand" },
    Rule { id: "address-arithmetic", text: "tensor_scalar of only 32-bit integers takes no indirect operand" },
    Rule { id: "transpose", text: "`moving` of a matmul in transpose mode is not indirect" },
    Rule { id: "matmul-dtype", text: "an indirect operand of nc_matmul is a float of 8 or 16 bits" },
    Rule { id: "matmul-tile", text: "a matmul with an indirect operand has `tile_position` (0, 0)" },
    Rule { id: "mx-pairs", text: "data and scales of nc_matmul_mx are indirect by the same index, or neither is" },
];

/// The index of a view whose columns are selected by offsets.
pub(crate) fn columns(view: &View) -> Option<(&Indirect, &View)> {
    view.indirect.as_deref().and_then(|i| Some((i, i.columns()?)))
}

/// The views of an instruction, by keyword.
fn operands<'a>(args: &'a [(&'static str, Arg)]) -> impl Iterator<Item = (&'static str, &'a View)> {
    args.iter().filter_map(|(name, arg)| match arg {
        Arg::View(v) => Some((*name, v)),
        _ => None,
    })
}

/// Checks all operands of an instruction.
///
/// # Errors
/// `indirect-view`, `unsupported-on-target`, `operand-memory`, `operand-dtype`, `shape-mismatch`, `partition-start`.
pub(crate) fn check<I: Instruction>(inst: &I, context: &Context<'_>) -> Result<(), Violation> {
    let mut any = false;
    inst.each_view(&mut |_, view| any |= columns(view).is_some());
    if !any {
        return Ok(());
    }
    let names = I::SCHEMA.operands.iter().map(|o| o.name);
    let args: Vec<_> = names.zip(inst.args()).collect();
    for (name, view) in operands(&args) {
        let Some((_, index)) = columns(view) else { continue };
        if !I::INDIRECT.contains(&name) {
            let message = format!("`{name}` of {} does not take tensor indirection", I::SCHEMA.name);
            let takes = match I::INDIRECT {
                [] => "copy the elements together with nisa.tensor_copy first".to_owned(),
                names => format!("only {} can be `.indirect()`; copy the elements together first", names.join(", ")),
            };
            return Err(Violation::new("indirect-view", name, message).help(takes));
        }
        if !context.arch.on_chip_indirect {
            return Err(Violation::new(
                "unsupported-on-target",
                name,
                format!("an indirect `{name}` needs trn3 (target is {})", context.arch.target),
            ));
        }
        let engine = inst.engine(context.arch);
        one(name, view, index, engine)?;
        starts(I::INDIRECT, name, view, index, &args, context)?;
        if name == "dst" && engine == Engine::Scalar && view.space == Space::Psum {
            return Err(Violation::new(
                "indirect-view",
                name,
                "the scalar engine does not scatter to PSUM, where `dst` is",
            )
            .help("run it on the vector engine, or scatter to SBUF"));
        }
    }
    Ok(())
}

/// Checks an index against its view.
fn one(name: &'static str, view: &View, index: &View, engine: Engine) -> Result<(), Violation> {
    if index.space != Space::Sbuf {
        return Err(Violation::new(
            "operand-memory",
            name,
            format!("the index of `{name}` is in {}, but must be in sbuf", index.space),
        ));
    }
    if !matches!(index.dtype, DType::I16 | DType::U16 | DType::I32 | DType::U32) {
        return Err(Violation::new(
            "operand-dtype",
            name,
            format!("the index of `{name}` is {}, but must be an integer of 16 or 32 bits", index.dtype),
        ));
    }
    check::same_partitions((name, view), ("index", index)).map_err(|v| Violation { operand: name, ..v })?;
    // Each group of partitions has its own offsets, stored down its rows first.
    let group = column_group(engine);
    let (offsets, columns) = (view.free_elements(), index.free_elements());
    let last = (view.partitions() as usize - 1) % group + 1;
    let rows = last.min(group);
    if offsets > group * columns || rows < offsets.min(group) {
        return Err(Violation::new(
            "shape-mismatch",
            name,
            format!(
                "`{name}` picks {offsets} columns, but a group of {rows} partitions has {rows} x {columns} offsets of its own in \
                 the index {:?} (the {engine} engine reads them in groups of {group})",
                index.shape()
            ),
        )
        .help("give `.indirect(index, num_elem)` the number of offsets of one group"));
    }
    Ok(())
}

/// Common start rules of allocated operands. Tensors without an address are placed so that these hold.
fn starts(
    indirect: &[&'static str],
    name: &'static str,
    view: &View,
    index: &View,
    args: &[(&'static str, Arg)],
    context: &Context<'_>,
) -> Result<(), Violation> {
    let start = |v: &View| context.tensors[v.tensor.0 as usize].address.map(|a| a.partition + v.partition);
    let refuse = |message: String| Err(Violation::new("partition-start", name, message));
    let Some(at) = start(index) else { return Ok(()) };
    if !at.is_multiple_of(32) {
        return refuse(format!("the index of `{name}` starts at partition {at}; it must start at a multiple of 32"));
    }
    if name != "dst" {
        return match start(view) {
            Some(own) if own != at => refuse(format!(
                "`{name}` starts at partition {own}, its index at {at}; they must start at the same partition"
            )),
            _ => Ok(()),
        };
    }
    // The streamed operand.
    let main = indirect.get(1).and_then(|main| operands(args).find(|(n, _)| n == main));
    let Some((main, source)) = main else { return Ok(()) };
    let (what, other) = match columns(source) {
        Some((_, theirs)) if source.space == Space::Psum => ("the index of ", start(theirs)),
        _ if source.space == Space::Sbuf => ("", start(source)),
        _ => return Ok(()),
    };
    match other {
        Some(other) if other != at => refuse(format!(
            "the index of `dst` starts at partition {at}, {what}`{main}` at {other}; they must start at the same partition"
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Target;
    use crate::arg::Ints;
    use crate::ids::Address;
    use crate::inst::tensor::nc_matmul::NcMatmul;
    use crate::inst::vector::tensor_copy::TensorCopy;
    use crate::inst::vector::tensor_tensor::TensorTensor;
    use crate::names::{AluOp, PerfMode};
    use crate::testing::TestMachine;
    use crate::view::{Dim, Index};

    fn indirect(view: &View, index: &View, count: u32) -> View {
        let mut v = view.clone();
        let Dim { stride, count: bound } = v.dims[1];
        v.dims[1] = Dim { stride: 1, count };
        v.indirect = Some(Box::new(Indirect { index: Index::Columns(index.clone()), stride, bound }));
        v
    }

    fn copy(dst: &View, src: &View, engine: Engine) -> TensorCopy {
        TensorCopy { dst: dst.clone(), src: src.clone(), engine }
    }

    /// 32 partitions of 8 elements, each 100 * partition + position, and an index of two columns.
    fn tiles(m: &mut TestMachine, index: impl Fn(u32, u32) -> u32) -> (View, View) {
        let values: Vec<f32> = (0..256).map(|i| (100 * (i / 8) + i % 8) as f32).collect();
        let x = m.tensor_f32("x", Space::Sbuf, DType::F32, &[32, 8], &values);
        let offsets: Vec<u32> = (0..64).map(|i| index(i / 2, i % 2)).collect();
        let i = m.tensor_bits("i", Space::Sbuf, DType::U16, &[32, 2], &offsets);
        (x, i)
    }

    #[test]
    fn a_group_of_16_partitions_has_its_own_offsets_down_its_rows() {
        let mut m = TestMachine::new(Target::Trn3);
        // Offsets 0 to 15 of the first group, in the first column: 7 - row % 8; the second group: row % 3.
        let (x, i) = tiles(&mut m, |row, column| match (row, column) {
            (0..16, 0) => 7 - row % 8,
            (_, 0) => row % 3,
            _ => 5,
        });
        let d = m.tensor("d", Space::Sbuf, DType::F32, &[32, 18]);
        m.run(copy(&d, &indirect(&x, &i, 18), Engine::Vector)).unwrap();
        let got = m.f32s(&d);
        for p in 0..32 {
            for k in 0..18 {
                let offset = match (p, k) {
                    (_, 16..) => 5,
                    (0..16, _) => 7 - k % 8,
                    _ => (16 + k) % 3,
                };
                assert_eq!(got[p * 18 + k], (100 * p + offset) as f32, "{p} {k}");
            }
        }
    }

    #[test]
    fn scatters_and_leaves_the_rest() {
        let mut m = TestMachine::new(Target::Trn3);
        let (x, i) = tiles(&mut m, |row, _| 6 - 2 * (row % 4));
        let d = m.tensor_f32("d", Space::Sbuf, DType::F32, &[32, 8], &[-1.0; 256]);
        let mut four = x;
        four.dims[1].count = 4;
        m.run(copy(&indirect(&d, &i, 4), &four, Engine::Scalar)).unwrap();
        assert_eq!(m.f32s(&d)[8..16], [103.0, -1.0, 102.0, -1.0, 101.0, -1.0, 100.0, -1.0]);
        let (_, bad) = tiles(&mut m, |_, _| 8);
        let e = m.run(copy(&indirect(&d, &bad, 4), &four, Engine::Scalar)).unwrap_err();
        assert!(e.contains("index 8 of 8"), "{e}");
    }

    #[test]
    fn the_tensor_engine_reads_groups_of_32() {
        let mut m = TestMachine::new(Target::Trn3);
        let eye: Vec<f32> = (0..32 * 32).map(|i| f32::from(u8::from(i / 32 == i % 32))).collect();
        let s = m.tensor_f32("s", Space::Sbuf, DType::BF16, &[32, 32], &eye);
        let (x, i) = tiles(&mut m, |row, _| row % 8);
        let narrow = m.tensor("n", Space::Sbuf, DType::BF16, &[32, 8]);
        m.run(copy(&narrow, &x, Engine::Vector)).unwrap();
        let d = m.tensor("d", Space::Psum, DType::F32, &[32, 32]);
        let mm = NcMatmul {
            dst: d.clone(),
            stationary: s,
            moving: indirect(&narrow, &i, 32),
            is_stationary_onezero: false,
            is_moving_onezero: false,
            is_transpose: false,
            accumulate: None,
            tile_position: Ints::default(),
            tile_size: Ints::default(),
            perf_mode: PerfMode::None,
        };
        m.run(mm.clone()).unwrap();
        assert_eq!(m.f32s(&d)[32..48], [0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7].map(|k| (100 + k) as f32));
        let tiled = NcMatmul { tile_position: Ints(vec![32, 0]), tile_size: Ints(vec![32, 128]), ..mm.clone() };
        assert!(m.check(tiled).unwrap_err().contains("(32, 0) with an indirect `moving`, but must be (0, 0)"));
        let e = m.check(NcMatmul { is_transpose: true, ..mm.clone() }).unwrap_err();
        assert!(e.contains("transpose mode does not take"), "{e}");
        let wide = NcMatmul { moving: indirect(&x, &i, 32), ..mm };
        assert!(m.check(wide).unwrap_err().contains("an indirect `moving` is float32"));
    }

    #[test]
    fn broken_rules_quote_the_numbers() {
        let mut m = TestMachine::new(Target::Trn3);
        let (x, i) = tiles(&mut m, |_, _| 0);
        let d = m.tensor("d", Space::Sbuf, DType::F32, &[32, 33]);
        let e = m.check(copy(&d, &indirect(&x, &i, 33), Engine::Vector)).unwrap_err();
        assert!(e.contains("picks 33 columns") && e.contains("16 x 2 offsets"), "{e}");
        let one = m.tensor("one", Space::Sbuf, DType::F32, &[32, 1]);
        let gathered = indirect(&x, &i, 1);
        assert_eq!(m.check(copy(&one, &gathered, Engine::Unknown)), Ok(()));
        assert!(m.check(copy(&one, &gathered, Engine::GpSimd)).unwrap_err().contains("not on gpsimd"));
        let float = m.tensor("f", Space::Sbuf, DType::F32, &[32, 2]);
        assert!(m.check(copy(&one, &indirect(&x, &float, 1), Engine::Vector)).unwrap_err().contains("is float32"));
        let half = m.tensor("h", Space::Sbuf, DType::U16, &[16, 2]);
        assert!(m.check(copy(&one, &indirect(&x, &half, 1), Engine::Vector)).unwrap_err().contains("16 partitions"));
        let add = |data1: &View, data2: &View| TensorTensor {
            dst: one.clone(),
            data1: data1.clone(),
            data2: data2.clone(),
            op: AluOp::Add,
            engine: Engine::Unknown,
        };
        assert_eq!(m.check(add(&gathered, &one)), Ok(()));
        let e = m.check(add(&one, &gathered)).unwrap_err();
        assert!(e.contains("`data2` of tensor_tensor does not take tensor indirection"), "{e}");
        let psum = m.tensor("p", Space::Psum, DType::F32, &[32, 8]);
        let e = m.check(copy(&indirect(&psum, &i, 1), &one, Engine::Scalar)).unwrap_err();
        assert!(e.contains("does not scatter to PSUM"), "{e}");
        let mut old = TestMachine::new(Target::Trn2);
        let (x, i) = tiles(&mut old, |_, _| 0);
        let one = old.tensor("one", Space::Sbuf, DType::F32, &[32, 1]);
        let e = old.check(copy(&one, &indirect(&x, &i, 1), Engine::Vector)).unwrap_err();
        assert!(e.contains("needs trn3 (target is trn2)"), "{e}");
    }

    #[test]
    fn allocated_operands_start_together() {
        let mut m = TestMachine::new(Target::Trn3);
        let (x, i) = tiles(&mut m, |_, _| 0);
        let one = m.tensor("one", Space::Sbuf, DType::F32, &[32, 1]);
        let check = |m: &mut TestMachine, places: &[(&View, u32)], inst: TensorCopy| {
            for (view, partition) in places {
                m.place(view, Address { partition: *partition, byte: 0 });
            }
            m.check(inst).err().unwrap_or_default()
        };
        let gather = copy(&one, &indirect(&x, &i, 1), Engine::Vector);
        assert_eq!(check(&mut m, &[(&x, 32), (&i, 32)], gather.clone()), "");
        assert!(check(&mut m, &[(&i, 64)], gather).contains("`src` starts at partition 32, its index at 64"));
        let scatter = copy(&indirect(&x, &i, 1), &one, Engine::Vector);
        let e = check(&mut m, &[(&one, 0)], scatter);
        assert!(e.contains("the index of `dst` starts at partition 64, `src` at 0"), "{e}");
    }
}
