//! A slow, simple [`Machine`] for the unit tests of instructions, and program generators for property tests.
//!
//! It addresses every element individually, by the definition of a view, so that it can be the reference for faster machines.

mod random;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use ndarray::{Array2, ArrayView2};

use crate::arch::{Arch, Target};
use crate::arg::{Arg, Imm};
use crate::dtype::DType;
use crate::ids::{Address, Loc, RegId, TensorId, TrailId};
use crate::inst::Inst;
use crate::machine::{Context, Fault, Machine, RowsF32, RowsI64, StateUpdate, Tiles};
use crate::names::{Engine, OobMode, Space};
use crate::rendezvous::Contribution;
use crate::tensor::{Declaration, Tensor};
use crate::view::{Index, View, column_group, column_position};

pub use random::{Random, program};

/// Memories, registers, printed lines, and a record of reads before writes.
#[derive(Debug, Clone)]
pub struct TestMachine {
    arch: &'static Arch,
    tensors: Vec<Tensor>,
    bytes: Vec<Vec<u8>>,
    written: Vec<Vec<bool>>,
    /// Bytes that a matmul has written, for `accumulate=None`.
    accumulated: HashSet<(u32, usize)>,
    registers: BTreeMap<RegId, i64>,
    /// Partitions that share the offsets of tensor indirection, set by the current engine.
    group: usize,
    state: BTreeMap<&'static str, Vec<u32>>,
    /// Lines that `device_print` printed.
    pub printed: Vec<String>,
    /// Tensors whose unwritten bytes were read, in order, repeats included.
    pub uninitialized: Vec<TensorId>,
    /// The contributions of the members of a rendezvous.
    pub contributions: Vec<Contribution>,
    /// This machine's rank.
    pub rank: u32,
}

impl TestMachine {
    /// An empty machine.
    pub fn new(target: Target) -> Self {
        TestMachine {
            arch: Arch::of(target),
            tensors: Vec::new(),
            bytes: Vec::new(),
            written: Vec::new(),
            accumulated: HashSet::new(),
            registers: BTreeMap::new(),
            group: column_group(Engine::Vector),
            state: BTreeMap::new(),
            printed: Vec::new(),
            uninitialized: Vec::new(),
            contributions: Vec::new(),
            rank: 0,
        }
    }

    /// Adds an unwritten tensor and returns a view of all of it.
    pub fn tensor(&mut self, name: &str, space: Space, dtype: DType, shape: &[u32]) -> View {
        let declaration = Declaration {
            name: name.into(),
            space,
            shape: shape.iter().copied().collect(),
            dtype,
            unnamed: false,
            address: None,
            core: 0,
            data: None,
            loops: 0,
            loc: Loc::default(),
        };
        let tensor = Tensor::new(declaration, TrailId::ROOT);
        let partitions = if space.is_on_chip() { shape.first().copied().unwrap_or(1) as usize } else { 1 };
        let size = partitions * tensor.bytes();
        let id = TensorId(self.tensors.len() as u32);
        let view = View::whole(id, &tensor);
        self.tensors.push(tensor);
        self.bytes.push(vec![0xEE; size]);
        self.written.push(vec![false; size]);
        view
    }

    /// Assigns an address to the tensor of a view.
    pub fn place(&mut self, view: &View, address: Address) {
        self.tensors[view.tensor.0 as usize].address = Some(address);
    }

    /// Adds a tensor with these values, row-major.
    pub fn tensor_f32(&mut self, name: &str, space: Space, dtype: DType, shape: &[u32], values: &[f32]) -> View {
        let view = self.tensor(name, space, dtype, shape);
        self.set_f32(&view, values);
        view
    }

    /// Adds a tensor with these raw element bits, row-major.
    pub fn tensor_bits(&mut self, name: &str, space: Space, dtype: DType, shape: &[u32], bits: &[u32]) -> View {
        let view = self.tensor(name, space, dtype, shape);
        self.set_bits(&view, bits);
        view
    }

    /// Writes values in the view's order.
    ///
    /// # Panics
    /// If the view leaves its tensor.
    pub fn set_f32(&mut self, view: &View, values: &[f32]) {
        let bits: Vec<u32> = values.iter().map(|&x| from_f32(view.dtype, x)).collect();
        self.set_bits(view, &bits);
    }

    /// Writes raw element bits in the view's order.
    ///
    /// # Panics
    /// If the view leaves its tensor or the number of values differs.
    pub fn set_bits(&mut self, view: &View, bits: &[u32]) {
        let at = self.addresses(view, OobMode::Error).expect("in bounds");
        assert_eq!(at.len(), bits.len(), "values for {:?}", view.shape());
        for (a, &b) in at.into_iter().zip(bits) {
            self.store(view, a, b);
        }
    }

    /// The values in the view's order.
    ///
    /// # Panics
    /// If the view leaves its tensor.
    pub fn f32s(&self, view: &View) -> Vec<f32> {
        self.bits(view).into_iter().map(|b| to_f32(view.dtype, b)).collect()
    }

    /// Raw element bits in the view's order, zero-extended.
    ///
    /// # Panics
    /// If the view leaves its tensor.
    pub fn bits(&self, view: &View) -> Vec<u32> {
        let at = self.addresses(view, OobMode::Error).expect("in bounds");
        at.into_iter().map(|a| self.load(view, a)).collect()
    }

    /// Checks an instruction.
    ///
    /// # Errors
    /// The message of the first broken rule, with the operand before it.
    pub fn check(&self, inst: impl Into<Inst>) -> Result<(), String> {
        inst.into().validate(&self.context()).map_err(|v| v.to_string())
    }

    /// Checks and runs an instruction.
    ///
    /// # Errors
    /// The message of the first broken rule, or of the run-time error.
    pub fn run(&mut self, inst: impl Into<Inst>) -> Result<(), String> {
        let inst = inst.into();
        self.check(inst.clone())?;
        self.group = column_group(inst.engine(self.arch));
        inst.execute(self).map_err(|f| f.message)
    }

    /// Byte address of each element; `None` for an element that is skipped.
    fn addresses(&self, view: &View, oob: OobMode) -> Result<Vec<Option<usize>>, Fault> {
        let tensor = &self.tensors[view.tensor.0 as usize];
        let on_chip = view.space.is_on_chip();
        let size = view.dtype.size() as i64;
        // (partition, element, out of bounds)
        let mut at = vec![(i64::from(view.partition), view.offset, false)];
        let mut shift = 0;
        let mut rows: Option<Vec<i64>> = None;
        let mut offsets: Option<Vec<i64>> = None;
        if let Some(indirect) = view.indirect.as_deref() {
            let check = |i: i64| -> Result<i64, Fault> {
                if i >= 0 && i < i64::from(indirect.bound) || oob == OobMode::Skip {
                    return Ok(i);
                }
                Err(Fault::new("index-out-of-bounds", format!("index {i} of {}", indirect.bound)))
            };
            match &indirect.index {
                Index::Register(r) => shift = check(self.registers.get(r).copied().unwrap_or(0))?,
                Index::Scalar(v) => shift = check(self.ints(v)?[0])?,
                Index::Columns(v) => {
                    let index = self.ints(v)?;
                    let (partitions, count) = (view.partitions() as usize, view.free_elements());
                    let at = (0..partitions).flat_map(|p| (0..count).map(move |i| (p, i)));
                    let position = |(p, i)| column_position(self.group, v.free_elements(), p, i);
                    offsets = Some(at.map(|at| check(index[position(at)])).collect::<Result<_, _>>()?);
                }
                Index::Vector(v) => rows = Some(self.ints(v)?.into_iter().map(check).collect::<Result<_, _>>()?),
            }
            let outside = shift < 0 || shift >= i64::from(indirect.bound);
            at[0].1 += shift * indirect.stride;
            at[0].2 = rows.is_none() && offsets.is_none() && outside;
        }
        for (level, d) in view.dims.iter().enumerate() {
            let mut next = Vec::with_capacity(at.len() * d.count as usize);
            for (row, (p, e, skip)) in at.into_iter().enumerate() {
                for i in 0..i64::from(d.count) {
                    next.push(match (&rows, view.indirect.as_deref()) {
                        (None, Some(ind)) if level == 1 && offsets.is_some() => {
                            let all = offsets.as_deref().unwrap_or_default();
                            (p, e + all[row * d.count as usize + i as usize] * ind.stride, skip)
                        }
                        (Some(rows), Some(ind)) if level == 0 => {
                            let row = rows[i as usize];
                            (p, e + row * ind.stride, skip || row < 0 || row >= i64::from(ind.bound))
                        }
                        _ if on_chip && level == 0 => (p + i * d.stride, e, skip),
                        _ => (p, e + i * d.stride, skip),
                    });
                }
            }
            at = next;
        }
        let row_bytes = tensor.bytes() as i64;
        if oob == OobMode::Skip && !on_chip && view.indirect.is_some() && offsets.is_none() {
            // A row or access that leaves the tensor is skipped as a whole.
            let group = at.len() / rows.as_ref().map_or(1, Vec::len).max(1);
            for row in at.chunks_mut(group.max(1)) {
                if row.iter().any(|&(_, e, _)| e < 0 || (e + 1) * size > row_bytes) {
                    row.iter_mut().for_each(|element| element.2 = true);
                }
            }
        }
        at.into_iter()
            .map(|(p, e, skip)| {
                if skip {
                    return Ok(None);
                }
                let start = p * if on_chip { row_bytes } else { 0 } + e * size;
                if e < 0 || (e + 1) * size > row_bytes || start < 0 {
                    return Err(Fault::new("out-of-bounds", format!("element {e} of `{}`", tensor.name)));
                }
                Ok(Some(start as usize))
            })
            .collect()
    }

    fn ints(&self, view: &View) -> Result<Vec<i64>, Fault> {
        let at = self.addresses(view, OobMode::Error)?;
        Ok(at.into_iter().map(|a| to_i64(view.dtype, self.load(view, a))).collect())
    }

    fn load(&self, view: &View, at: Option<usize>) -> u32 {
        let Some(at) = at else { return 0 };
        // Unwritten bytes read as the sentinel's bytes.
        let mut le = view.dtype.uninitialized_bits().to_le_bytes();
        let tensor = view.tensor.0 as usize;
        for (i, byte) in le.iter_mut().enumerate() {
            if i >= view.dtype.size() {
                *byte = 0;
            } else if self.written[tensor][at + i] {
                *byte = self.bytes[tensor][at + i];
            }
        }
        u32::from_le_bytes(le)
    }

    fn store(&mut self, view: &View, at: Option<usize>, bits: u32) {
        let Some(at) = at else { return };
        let (tensor, size) = (view.tensor.0 as usize, view.dtype.size());
        self.bytes[tensor][at..at + size].copy_from_slice(&bits.to_le_bytes()[..size]);
        self.written[tensor][at..at + size].fill(true);
    }

    /// Addresses and bits of a view that an instruction reads.
    fn read(&mut self, view: &View, oob: OobMode) -> Result<Vec<u32>, Fault> {
        let at = self.addresses(view, oob)?;
        let written = &self.written[view.tensor.0 as usize];
        if at.iter().flatten().any(|&a| !written[a..a + view.dtype.size()].iter().all(|w| *w)) {
            self.uninitialized.push(view.tensor);
        }
        Ok(at.into_iter().map(|a| self.load(view, a)).collect())
    }

    fn write(&mut self, view: &View, bits: &[u32], oob: OobMode) -> Result<(), Fault> {
        for (a, &b) in self.addresses(view, oob)?.into_iter().zip(bits) {
            self.store(view, a, b);
        }
        Ok(())
    }

    fn map<T: Copy + Default>(
        &mut self,
        dsts: &[&View],
        srcs: &[&View],
        decode: fn(DType, u32) -> T,
        encode: fn(DType, T) -> u32,
        f: Rows<'_, T>,
    ) -> Result<(), Fault> {
        let mut inputs = Vec::new();
        for v in srcs {
            inputs.push(self.read(v, OobMode::Error)?.into_iter().map(|b| decode(v.dtype, b)).collect::<Vec<T>>());
        }
        let mut outputs: Vec<Vec<T>> = dsts.iter().map(|v| vec![T::default(); v.elements()]).collect();
        for p in 0..dsts.iter().chain(srcs).map(|v| v.partitions()).max().unwrap_or(0) as usize {
            let ins: Vec<&[T]> =
                inputs.iter().zip(srcs).map(|(x, v)| &x[p * v.free_elements()..][..v.free_elements()]).collect();
            let mut outs: Vec<&mut [T]> = outputs
                .iter_mut()
                .zip(dsts)
                .map(|(x, v)| &mut x[p * v.free_elements()..][..v.free_elements()])
                .collect();
            f(p, &ins, &mut outs);
        }
        for (x, v) in outputs.iter().zip(dsts) {
            let bits: Vec<u32> = x.iter().map(|&x| encode(v.dtype, x)).collect();
            self.write(v, &bits, OobMode::Error)?;
        }
        Ok(())
    }
}

/// One partition: `(partition, inputs, outputs)`.
type Rows<'f, T> = &'f dyn Fn(usize, &[&[T]], &mut [&mut [T]]);

impl Machine for TestMachine {
    fn context(&self) -> Context<'_> {
        Context { arch: self.arch, tensors: &self.tensors }
    }

    fn map_f32(
        &mut self,
        dsts: &[&View],
        srcs: &[&View],
        f: RowsF32,
        update: Option<StateUpdate>,
    ) -> Result<(), Fault> {
        self.map(dsts, srcs, to_f32, from_f32, &|p, i, o| f(p, i, o))?;
        if let Some((name, change)) = update {
            change(self.engine_state(name));
        }
        Ok(())
    }

    fn map_i64(&mut self, dsts: &[&View], srcs: &[&View], f: RowsI64<'_>) -> Result<(), Fault> {
        self.map(dsts, srcs, to_i64, |_, x| x as u32, &|p, i, o| f(p, i, o))
    }

    fn is_outside(&mut self, view: &View) -> Result<bool, Fault> {
        Ok(self.addresses(view, OobMode::Skip)?.iter().any(Option::is_none))
    }

    fn copy(&mut self, dst: &View, src: &View, oob: OobMode) -> Result<(), Fault> {
        let kept = self.addresses(src, oob)?;
        let bits = self.read(src, oob)?;
        let to = self.addresses(dst, oob)?;
        for ((from, at), b) in kept.into_iter().zip(to).zip(bits) {
            if from.is_some() {
                let b = if src.dtype == dst.dtype { b } else { from_f32(dst.dtype, to_f32(src.dtype, b)) };
                self.store(dst, at, b);
            }
        }
        Ok(())
    }

    fn fill(&mut self, dst: &View, value: Imm) -> Result<(), Fault> {
        let bits = match value {
            Imm::Int(i) if dst.dtype.is_int() => i as u32,
            _ => from_f32(dst.dtype, value.as_f32()),
        };
        self.write(dst, &vec![bits; dst.elements()], OobMode::Error)
    }

    fn begin_accumulate(&mut self, dst: &View, mode: Option<bool>) -> Result<bool, Fault> {
        let at: Vec<usize> = self.addresses(dst, OobMode::Error)?.into_iter().flatten().collect();
        let fresh: Vec<usize> =
            at.iter().copied().filter(|&a| !self.accumulated.contains(&(dst.tensor.0, a))).collect();
        self.accumulated.extend(at.iter().map(|&a| (dst.tensor.0, a)));
        Ok(match mode {
            Some(add) => add,
            None if fresh.len() == at.len() => false,
            None => {
                for a in fresh {
                    self.store(dst, Some(a), 0);
                }
                true
            }
        })
    }

    fn contract(&mut self, dst: &View, stationary: &View, moving: &View, f: Tiles<'_>) -> Result<(), Fault> {
        let s = self.read_tile(stationary)?;
        let m = self.read_tile(moving)?;
        let old: Vec<f32> = self.f32s(dst);
        let mut out = tile(dst, old)?;
        f(s.view(), m.view(), out.view_mut());
        self.write_tile(dst, out.view())
    }

    fn read_tile(&mut self, src: &View) -> Result<Array2<f32>, Fault> {
        let bits = self.read(src, OobMode::Error)?;
        tile(src, bits.into_iter().map(|b| to_f32(src.dtype, b)).collect())
    }

    fn write_tile(&mut self, dst: &View, tile: ArrayView2<'_, f32>) -> Result<(), Fault> {
        let bits: Vec<u32> = tile.iter().map(|&x| from_f32(dst.dtype, x)).collect();
        self.write(dst, &bits, OobMode::Error)
    }

    fn read_bits(&mut self, src: &View) -> Result<Array2<u32>, Fault> {
        let bits = self.read(src, OobMode::Error)?;
        tile(src, bits)
    }

    fn write_bits(&mut self, dst: &View, tile: ArrayView2<'_, u32>) -> Result<(), Fault> {
        let bits: Vec<u32> = tile.iter().copied().collect();
        self.write(dst, &bits, OobMode::Error)
    }

    fn register(&mut self, register: RegId) -> i64 {
        self.registers.get(&register).copied().unwrap_or(0)
    }

    fn set_register(&mut self, register: RegId, value: i64) {
        self.registers.insert(register, value);
    }

    fn print(&mut self, line: String) {
        self.printed.push(line);
    }

    fn engine_state(&mut self, name: &'static str) -> &mut Vec<u32> {
        self.state.entry(name).or_default()
    }

    fn contributions(&self) -> Arc<[Contribution]> {
        self.contributions.clone().into()
    }

    fn rank(&self) -> u32 {
        self.rank
    }
}

/// Values of a view as partitions x free elements.
fn tile<T>(view: &View, values: Vec<T>) -> Result<Array2<T>, Fault> {
    Array2::from_shape_vec((view.partitions() as usize, view.free_elements()), values)
        .map_err(|e| Fault::new("bug", e.to_string()))
}

/// An element's value in fp32.
fn to_f32(dtype: DType, bits: u32) -> f32 {
    match dtype {
        DType::F32 | DType::TF32 => f32::from_bits(bits),
        DType::BF16 => f32::from_bits(bits << 16),
        DType::F16 => half::f16::from_bits(bits as u16).to_f32(),
        DType::F8E4M3 => small_float(bits, 4, 3, true),
        DType::F8E4M3FN => small_float(bits, 4, 3, false),
        DType::F8E5M2 => small_float(bits, 5, 2, true),
        DType::F8E8M0 => {
            if bits == 255 {
                f32::NAN
            } else {
                (bits as f32 - 127.0).exp2()
            }
        }
        _ => to_i64(dtype, bits) as f32,
    }
}

/// Decodes an 8-bit float from its fields. If `ieee`, the largest exponent encodes infinities and NaN.
fn small_float(bits: u32, exponent_bits: u32, mantissa_bits: u32, ieee: bool) -> f32 {
    let sign = if bits & 0x80 == 0 { 1.0 } else { -1.0 };
    let top = (1 << exponent_bits) - 1;
    let exponent = (bits >> mantissa_bits) & top;
    let mantissa = bits & ((1 << mantissa_bits) - 1);
    let bias = (top >> 1) as i32;
    let unit = (-(mantissa_bits as f32)).exp2();
    match exponent {
        0 => sign * mantissa as f32 * unit * ((1 - bias) as f32).exp2(),
        e if e == top && ieee => sign * if mantissa == 0 { f32::INFINITY } else { f32::NAN },
        e if e == top && mantissa == (1 << mantissa_bits) - 1 => f32::NAN * sign,
        e => sign * (1.0 + mantissa as f32 * unit) * ((e as i32 - bias) as f32).exp2(),
    }
}

/// The element bits nearest to a value, ties to even; integers saturate.
fn from_f32(dtype: DType, value: f32) -> u32 {
    let whole = |lo: f64, hi: f64| (f64::from(value).round_ties_even().clamp(lo, hi)) as i64 as u32;
    match dtype {
        DType::F32 | DType::TF32 => value.to_bits(),
        DType::BF16 => u32::from(half::bf16::from_f32(value).to_bits()),
        DType::F16 => u32::from(half::f16::from_f32(value).to_bits()),
        DType::F8E4M3 | DType::F8E4M3FN | DType::F8E5M2 => nearest_small(dtype, value),
        DType::F8E8M0 => u32::from(crate::dtype::mx_scale_bits(value)),
        DType::Bool => u32::from(value != 0.0),
        DType::I8 => whole(-128.0, 127.0),
        DType::U8 => whole(0.0, 255.0),
        DType::I16 => whole(-32768.0, 32767.0),
        DType::U16 | DType::F4E2M1FNX4 => whole(0.0, 65535.0),
        DType::I32 => whole(f64::from(i32::MIN), f64::from(i32::MAX)),
        DType::U32 | DType::F8E4M3FNX4 | DType::F8E5M2X4 => whole(0.0, f64::from(u32::MAX)),
        DType::I64 => (f64::from(value).round_ties_even() as i64) as u32,
    }
}

/// The nearest of the 256 values, by exhaustive search; values that are too large become the largest.
fn nearest_small(dtype: DType, value: f32) -> u32 {
    let sign = if value.is_sign_negative() { 0x80 } else { 0 };
    let distance = |b: u32| (f64::from(to_f32(dtype, b)) - f64::from(value.abs())).abs();
    let finite = (0..128).filter(|&b| to_f32(dtype, b).is_finite());
    let best = finite.min_by(|&a, &b| distance(a).total_cmp(&distance(b)).then((a & 1).cmp(&(b & 1))));
    sign | if value.is_nan() { 0x7F } else { best.unwrap_or(0) }
}

/// An integer element, extended.
fn to_i64(dtype: DType, bits: u32) -> i64 {
    match dtype {
        DType::I8 => i64::from(bits as u8 as i8),
        DType::I16 => i64::from(bits as u16 as i16),
        DType::I32 => i64::from(bits as i32),
        _ => i64::from(bits),
    }
}

/// An instruction from keyword arguments, defaults for the rest: `build("iota", &[("dst", dst.into_arg()), ...])`.
///
/// # Errors
/// If there is no such instruction or operand, or the arguments do not fit.
pub fn build(name: &str, args: &[(&str, Arg)]) -> Result<Inst, String> {
    let entry = crate::inst::find(name).ok_or_else(|| format!("no instruction {name}"))?;
    let mut slots: Vec<Option<Arg>> = entry.schema.operands.iter().map(|_| None).collect();
    for (keyword, value) in args {
        let at = entry.schema.position(keyword).ok_or_else(|| format!("{name} has no operand {keyword}"))?;
        slots[at] = Some(value.clone());
    }
    (entry.build)(&mut slots).map_err(|v| v.to_string())
}
