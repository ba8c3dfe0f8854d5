//! The interpreter's memory operations against the element-by-element reference machine of the ISA crate.

use nki_isa::ids::RegId;
use nki_isa::names::OobMode;
use nki_isa::testing::{Random, TestMachine};
use nki_isa::{DType, Dim, Fault, Imm, Index, Indirect, Machine, Program, Space, Target, TensorId, View};

use super::interpreter::Interpreter;
use super::*;
use crate::testing::Builder;

const DTYPES: [DType; 5] = [DType::F32, DType::BF16, DType::F16, DType::I32, DType::U8];

/// Tensors in all memories, some at explicit addresses in shared storage.
fn tensors(random: &mut Random) -> Program {
    let mut b = Builder::new();
    for i in 0..3 {
        let dtype = *random.pick(&DTYPES);
        b.tensor("hbm", Space::Hbm, &[12 + i, 40], dtype);
        let dtype = *random.pick(&DTYPES);
        b.tensor("sbuf", Space::Sbuf, &[16, 6, 8], dtype);
        let dtype = *random.pick(&DTYPES);
        b.placed("placed", Space::Sbuf, &[16, 48], dtype, (if i == 2 { 32 } else { 0 }, i * 256));
        b.tensor("psum", Space::Psum, &[16, 48], DType::F32);
    }
    b.program
}

/// A view of `rows` x `free` elements of some tensor; `None` if no attempt fits.
fn view(random: &mut Random, program: &Program, spaces: &[Space], rows: u32, free: &[u32]) -> Option<View> {
    for _ in 0..20 {
        let id = TensorId(random.below(program.tensors.len() as u64) as u32);
        let t = program.tensor(id);
        if !spaces.contains(&t.space) {
            continue;
        }
        // Reinterpreted as another type; not floats, because the bits of a NaN are unspecified.
        let other = t.dtype.is_int() && random.one_in(4);
        let dtype = if other { *random.pick(&[DType::I32, DType::U8, DType::I16]) } else { t.dtype };
        let mut view = View::whole(id, t);
        view.dtype = dtype;
        view.dims.clear();
        let on_chip = t.space.is_on_chip();
        let mut inner: Vec<Dim> = Vec::new();
        let mut stride = 1;
        for &count in free.iter().rev() {
            let stride = match random.below(8) {
                0 => stride + random.below(4) as i64,
                1 => -stride,
                2 => random.below(3) as i64,
                _ => {
                    let s = stride;
                    stride *= i64::from(count);
                    s
                }
            };
            inner.insert(0, Dim { stride, count });
        }
        let row = if on_chip { *random.pick(&[1, 1, 1, 1, 2, 0]) } else { *random.pick(&[40, 40, stride, 41, 1]) };
        view.dims.push(Dim { stride: row, count: rows });
        view.dims.extend(inner);
        let checked = if on_chip { &view.dims[1..] } else { &view.dims[..] };
        let (lo, hi) = View::span(checked);
        let room = (t.bytes() / dtype.size()) as i64 - (hi - lo);
        if room <= 0 {
            continue;
        }
        view.offset = -lo + random.below(room as u64) as i64;
        if on_chip {
            let reach = row as u32 * (rows - 1);
            let Some(room) = t.shape[0].checked_sub(reach).filter(|r| *r > 0) else { continue };
            view.partition = if random.one_in(2) { 0 } else { random.below(u64::from(room)) as u32 };
        }
        return Some(view);
    }
    None
}

/// Bits of a whole tensor; all NaNs are mapped to one.
fn contents(machine: &mut dyn Machine, program: &Program, id: TensorId) -> Vec<u32> {
    let t = program.tensor(id);
    let bits = machine.read_bits(&View::whole(id, t)).expect("in bounds");
    let nan = |b: u32| nki_isa::dtype::bits_to_f32(t.dtype, b).is_nan();
    bits.iter().map(|&b| if t.dtype.is_float() && nan(b) { u32::MAX } else { b }).collect()
}

/// Number of programs in this test; thousands more have been tried.
const SEEDS: u64 = 100;

const CHIP: [Space; 2] = [Space::Sbuf, Space::Psum];
const ALL: [Space; 3] = [Space::Sbuf, Space::Psum, Space::Hbm];

/// An operation on a machine: a description, and a function that returns a result to compare.
type Operation = (String, Box<dyn Fn(&mut dyn Machine) -> String>);

#[expect(clippy::too_many_lines, reason = "one arm for each operation of a machine")]
fn operation(random: &mut Random, program: &Program) -> Option<Operation> {
    let most = *random.pick(&[4, 16]);
    let rows = 1 + random.below(most) as u32;
    let free: Vec<u32> = (0..1 + random.below(3)).map(|_| 1 + random.below(6) as u32).collect();
    Some(match random.below(12) {
        0..=2 => {
            let srcs =
                (0..random.below(4)).map(|_| view(random, program, &CHIP, rows, &free)).collect::<Option<Vec<_>>>()?;
            let mut dsts = vec![view(random, program, &CHIP, rows, &free)?];
            if random.one_in(4) {
                dsts.push(view(random, program, &CHIP, rows, &[1])?);
            }
            // Unwritten bytes read as two types have no consistent value.
            if srcs.iter().any(|a| srcs.iter().any(|b| a.tensor == b.tensor && a.dtype != b.dtype)) {
                return None;
            }
            let as_int = random.one_in(3) && dsts.iter().chain(&srcs).all(|v| v.dtype.is_int());
            let what = format!("map {as_int} {srcs:?} -> {dsts:?}");
            (
                what,
                Box::new(move |m| {
                    let (d, s): (Vec<&View>, Vec<&View>) = (dsts.iter().collect(), srcs.iter().collect());
                    let result = if as_int {
                        m.map_i64(&d, &s, &|p, ins, outs| {
                            for out in outs {
                                for (i, o) in out.iter_mut().enumerate() {
                                    *o = (p * 100 + i) as i64 - ins.iter().map(|s| s[i % s.len()] * 3).sum::<i64>();
                                }
                            }
                        })
                    } else {
                        let row = |p: usize, ins: &[&[f32]], outs: &mut [&mut [f32]]| {
                            for out in outs {
                                for (i, o) in out.iter_mut().enumerate() {
                                    *o = (p * 8 + i) as f32 + ins.iter().map(|s| s[i % s.len()] * 0.5).sum::<f32>();
                                }
                            }
                        };
                        m.map_f32(&d, &s, Box::new(row), None)
                    };
                    format!("{result:?}")
                }),
            )
        }
        3..=5 => {
            let src = view(random, program, &ALL, rows, &free)?;
            let mut shape = vec![rows];
            shape.extend(&free);
            // The same number of elements in another shape.
            if random.one_in(3) {
                shape = vec![1, shape.iter().product()];
            } else if random.one_in(3) {
                shape.swap(0, 1);
            }
            let dst = view(random, program, &ALL, shape[0], &shape[1..])?;
            let (mut src, mut dst) = (src, dst);
            let oob = if random.one_in(2) { OobMode::Skip } else { OobMode::Error };
            for v in [&mut src, &mut dst] {
                if v.space.is_hbm() && random.one_in(3) {
                    let index = if random.one_in(2) {
                        Index::Register(RegId(random.below(2) as u32))
                    } else {
                        let id = TensorId(
                            program.tensors.iter().position(|t| t.dtype == DType::I32 && t.space == Space::Sbuf)?
                                as u32,
                        );
                        let mut index = View::whole(id, program.tensor(id));
                        index.dims[0].count = v.dims[0].count;
                        index.dims.truncate(1);
                        index.dims.push(Dim { stride: 1, count: 1 });
                        index.offset = random.below(40) as i64;
                        if index.dims[0].count > 16 {
                            return None;
                        }
                        Index::Vector(index)
                    };
                    v.indirect = Some(Box::new(Indirect { index, stride: random.below(9) as i64, bound: 12 }));
                }
            }
            let what = format!("copy {src:?} -> {dst:?}");
            (
                what,
                Box::new(move |m| match m.copy(&dst, &src, oob) {
                    Ok(()) => "copied".into(),
                    Err(f) => f.id.trim_start_matches("index-").into(),
                }),
            )
        }
        6 => {
            let dst = view(random, program, &ALL, rows, &free)?;
            let value = if dst.dtype.is_int() { Imm::Int(random.below(100) as i64) } else { Imm::Float(0.25) };
            (format!("fill {dst:?}"), Box::new(move |m| format!("{:?}", m.fill(&dst, value))))
        }
        7 => {
            let (k, n) = (rows, free.iter().product::<u32>());
            let floats = |v: &View| v.dtype.is_float();
            let left = view(random, program, &[Space::Sbuf], k, &[rows]).filter(floats)?;
            let right = view(random, program, &[Space::Sbuf], k, &free).filter(floats)?;
            let dst = view(random, program, &[Space::Psum], rows, &[n])?;
            let distinct = dst.dims[0].stride == 1 && dst.dims[1].stride.unsigned_abs() == 1 && dst.dtype == DType::F32;
            if !distinct {
                return None;
            }
            let mode = *random.pick(&[None, None, Some(true), Some(false)]);
            let what = format!("contract {mode:?} {left:?} {right:?} -> {dst:?}");
            (
                what,
                Box::new(move |m| {
                    let add = m.begin_accumulate(&dst, mode);
                    let Ok(add) = add else { return format!("{add:?}") };
                    let done = m.contract(&dst, &left, &right, &mut |l, r, mut out| {
                        let product = l.t().dot(&r);
                        if add {
                            out += &product;
                        } else {
                            out.assign(&product);
                        }
                    });
                    format!("{add} {done:?}")
                }),
            )
        }
        8 | 9 => {
            let dst = view(random, program, &CHIP, rows, &free)?;
            let wide: Vec<u32> = free.iter().copied().chain([1 + random.below(3) as u32]).collect();
            let srcs = (0..random.below(4))
                .map(|_| view(random, program, &CHIP, rows, &wide).filter(|s| s.dtype == dst.dtype))
                .collect::<Option<Vec<_>>>()?;
            let fails = random.one_in(8);
            let what = format!("map_bits {srcs:?} -> {dst:?}");
            (
                what,
                Box::new(move |m| {
                    let result = m.map_bits(&[&dst], &srcs.iter().collect::<Vec<_>>(), &mut |block| {
                        for row in block {
                            let p = row.partition;
                            if fails && p == 0 {
                                return Err(Fault::new("internal", "fails"));
                            }
                            for (i, o) in row.outs[0].iter_mut().enumerate() {
                                let source = row.ins.get((p + i) % row.ins.len().max(1));
                                *o = source.map_or((p * 100 + i) as u32, |s| s[(i * 7 + p) % s.len()]);
                            }
                        }
                        Ok(())
                    });
                    format!("{result:?}")
                }),
            )
        }
        10 => {
            let columns = 1 + random.below(most) as u32;
            let dst = view(random, program, &ALL, columns, &[rows])?;
            let src = view(random, program, &ALL, rows, &[columns]).filter(|s| s.dtype == dst.dtype)?;
            let what = format!("transpose {src:?} -> {dst:?}");
            (what, Box::new(move |m| format!("{:?}", m.transpose(&dst, &src))))
        }
        _ => {
            let dst = view(random, program, &CHIP, rows, &free)?;
            let src = view(random, program, &CHIP, rows, &free).filter(|s| s.dtype == dst.dtype)?;
            let what = format!("bits {src:?} -> {dst:?}");
            (
                what,
                Box::new(move |m| {
                    let bits = m.read_bits(&src).expect("in bounds");
                    format!("{:?}", m.write_bits(&dst, bits.view()))
                }),
            )
        }
    })
}

#[test]
fn memory_operations_agree_with_the_reference() {
    let mut operations = 0;
    for seed in 0..SEEDS {
        let mut random = Random::new(seed);
        let program = tensors(&mut random);
        let placement = Placement::default();
        let options = ExecOptions::default();
        let mut memory = Memory::new(&program, &placement, true);
        let mut reference = TestMachine::new(Target::Trn2);
        for t in &program.tensors {
            let view = reference.tensor(&t.name, t.space, t.dtype, &t.shape);
            if random.one_in(2) && t.space.is_hbm() {
                let bits: Vec<u32> = (0..view.elements()).map(|_| random.below(12) as u32).collect();
                reference.set_bits(&view, &bits);
                let size = t.dtype.size();
                memory.load(
                    view.tensor,
                    bits.iter().flat_map(|b| b.to_le_bytes()[..size].to_vec()).collect::<Vec<u8>>().into(),
                );
            }
        }
        let mut machine = Interpreter::new(&program, memory, 0, &options);
        for step in 0..60 {
            let Some(operation) = operation(&mut random, &program) else { continue };
            operations += 1;
            for r in 0..2 {
                let value = random.below(14) as i64 - 1;
                machine.set(RegId(r), value);
                Machine::set_register(&mut reference, RegId(r), value);
            }
            let mine = (operation.1)(&mut machine);
            let theirs = (operation.1)(&mut reference);
            assert_eq!(mine, theirs, "seed {seed}, step {step}");
            for i in 0..if step % 6 == 5 { program.tensors.len() } else { 0 } {
                let id = TensorId(i as u32);
                let (a, b) = (contents(&mut machine, &program, id), contents(&mut reference, &program, id));
                let at = (0..a.len()).find(|&k| a[k] != b[k]);
                assert!(
                    at.is_none(),
                    "seed {seed}, step {step}, {}, tensor {i}, element {at:?}: got {}, want {}",
                    operation.0,
                    a[at.unwrap_or(0)],
                    b[at.unwrap_or(0)]
                );
            }
        }
    }
    assert!(operations > SEEDS * 20, "{operations}");
}
