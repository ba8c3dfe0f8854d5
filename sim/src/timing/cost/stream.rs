//! Laws of the vector, scalar and GpSimd engines.

use nki_isa::names::Engine;
use nki_isa::view::Space;
use nki_isa::work::{Operand, Stream, StreamClass};

use super::{Cost, CostKind, Laws, ns};
use crate::timing::params::{Confidence, Param};

/// What the operands of a stream have in common.
struct Operands {
    /// All in SBUF with 16-bit floats (8-bit too on Trn3).
    narrow: bool,
    psum: bool,
    contiguous: bool,
    /// Largest innermost stride in bytes.
    stride: u32,
}

impl Laws<'_> {
    fn operands(&self, s: &Stream) -> Operands {
        let all = || s.inputs.iter().chain(&s.outputs);
        let floats = |o: &Operand| {
            o.dtype.is_float() && (o.dtype.size() == 2 || o.dtype.size() == 1 && self.arch().fast_fp8_streams)
        };
        Operands {
            narrow: all().all(floats),
            psum: all().any(|o| o.space == Space::Psum),
            contiguous: all().all(|o| o.elements <= 1 || o.inner_stride_bytes as usize == o.dtype.size()),
            stride: all().filter(|o| o.elements > 1).map(|o| o.inner_stride_bytes).max().unwrap_or(0),
        }
    }

    /// Vector engine: a fixed part and cycles for each element, by class and performance mode.
    pub(super) fn vector(&self, s: &Stream) -> Cost {
        let v = &self.params.vector;
        let (c, f) = (&v.cycles, &v.fixed_ns);
        let o = self.operands(s);
        let n = f64::from(s.elements);
        let copy = match (o.psum, o.narrow, o.contiguous) {
            (true, true, true) => &c.copy_psum_16bit,
            (true, _, _) => &c.copy_psum,
            (false, true, true) => &c.copy_16bit,
            (false, true, false) => &c.copy_16bit_strided,
            (false, false, _) => &c.copy,
        };
        let zero16 = o.narrow && o.contiguous && s.simple_op;
        let (cycles, fixed): (&Param, &Param) = match s.class {
            StreamClass::Copy => (copy, &f.copy),
            StreamClass::TensorScalar => (copy, &f.tensor_scalar),
            StreamClass::TensorTensor | StreamClass::ScalarTensorTensor => {
                let cycles = match (o.psum, o.narrow && s.simple_op) {
                    (true, _) => &c.tensor_tensor_psum,
                    (false, true) => &c.tensor_tensor_16bit,
                    (false, false) => &c.tensor_tensor,
                };
                (cycles, &f.tensor_tensor)
            }
            StreamClass::Reduce => (&c.reduce, &f.reduce),
            StreamClass::Scan => (&c.scan, &f.scan),
            StreamClass::Reciprocal => (&c.reciprocal, &f.reciprocal),
            StreamClass::Predicated => (&c.predicated, &f.predicated),
            StreamClass::Memset => (if zero16 { &c.memset_16bit_zero } else { &c.memset }, &f.memset),
            StreamClass::Transpose => (&c.transpose, &f.transpose),
            StreamClass::TensorScalarReduce => (&c.tensor_scalar_reduce, &f.tensor_scalar),
            StreamClass::Cumulative => (&c.tensor_scalar_cumulative, &f.scan),
            StreamClass::SelectReduce => (&c.select_reduce, &f.predicated),
            StreamClass::RangeSelect => (&c.range_select, &f.typical),
            StreamClass::Exponential => (&c.exponential, &f.typical),
            StreamClass::BnStats => (&c.bn_stats, &f.typical),
            StreamClass::BnAggr => (&c.bn_aggr, &f.typical),
            StreamClass::Max8 => (&c.max8, &f.typical),
            StreamClass::FindIndex8 => (&c.nc_find_index8, &f.typical),
            StreamClass::MatchReplace8 => (&c.nc_match_replace8, &f.typical),
            StreamClass::Shuffle => (&c.nc_stream_shuffle, &f.nc_stream_shuffle),
            StreamClass::Dropout => (&c.dropout, &f.typical),
            StreamClass::Random => (&c.rng, &f.typical),
            StreamClass::RandomFloat => (&c.rand2, &f.typical),
            StreamClass::GeneratorState => (&c.generator_state, &f.typical),
            StreamClass::QuantizeMx => (&c.quantize_mx, &f.typical),
            StreamClass::Activation(_) => return self.scalar(s),
            StreamClass::AffineSelect
            | StreamClass::Iota
            | StreamClass::LocalGather
            | StreamClass::NGather
            | StreamClass::Nonzero
            | StreamClass::SequenceBounds
            | StreamClass::TopK
            | StreamClass::PartitionReduce => return self.gpsimd(s),
        };
        let mut confidence = cycles.confidence.max(fixed.confidence);
        let mut per_element = cycles.value;
        if f64::from(o.stride) > v.stride_bytes.value {
            per_element *= v.stride_factor.value;
            confidence = confidence.max(v.stride_factor.confidence);
        }
        let cycle = 1.0 / v.clock_ghz.value;
        let stream = n * per_element * cycle;
        let read_out = if s.accumulator_read { f.accumulator_read.value } else { 0.0 };
        let minimum = v.min_cycles.value * cycle;
        let occupancy = (v.issue_overhead_cycles.value * cycle + stream).max(minimum) + read_out;
        // A factor from memory for each partition is read before the first element.
        let operands = match s.class {
            StreamClass::TensorScalar => s.scalar_reads,
            _ => 0,
        };
        if operands > 0 {
            confidence = confidence.max(f.vector_operand.confidence);
        }
        let operands = f64::from(operands) * f.vector_operand.value;
        let complete = (fixed.value + operands + stream).max(minimum) + read_out;
        let port = match v.port.value.as_str() {
            "always" => !o.psum,
            "fast_modes" => per_element < 1.0 && !o.psum,
            _ => false,
        };
        compute(Engine::Vector, occupancy, complete, None, port, confidence)
    }

    /// Scalar engine: one element for each cycle; activations need a function table.
    pub(super) fn scalar(&self, s: &Stream) -> Cost {
        let p = &self.params.scalar;
        let o = self.operands(s);
        let (fixed, table) = match s.class {
            StreamClass::Activation(name) if !p.free_functions.value.iter().any(|f| f == name) => {
                (&p.activation_fixed_ns, Some(self.table(name)))
            }
            _ if o.psum => (&p.copy_psum_fixed_ns, None),
            _ => (&p.copy_fixed_ns, None),
        };
        let cycles = if o.narrow && !o.psum { &p.cycles_per_element_16bit } else { &p.cycles_per_element };
        let mut confidence = fixed.confidence.max(cycles.confidence);
        let mut per_element = cycles.value;
        if f64::from(o.stride) >= p.stride_bytes.value {
            per_element *= p.stride_factor.value;
            confidence = confidence.max(p.stride_factor.confidence);
        }
        let cycle = 1.0 / p.clock_ghz.value;
        let stream = (f64::from(s.elements) * per_element).max(p.min_cycles.value) * cycle;
        let read_out = if s.accumulator_read { p.accumulator_issue_ns.value } else { 0.0 };
        // The fixed part of a function was measured with its bias.
        let reads = s.scalar_reads.saturating_sub(u32::from(table.is_some()));
        let operands = f64::from(reads) * p.vector_operand_ns.value;
        let occupancy = p.issue_overhead_ns.value + stream + read_out;
        let complete = fixed.value + operands + f64::from(s.elements) * per_element * cycle + read_out;
        compute(Engine::Scalar, occupancy, complete, table, false, confidence)
    }

    /// The number of the set that holds a function; functions outside all sets have one each.
    fn table(&self, name: &str) -> u32 {
        let sets = &self.params.scalar.tables.value;
        match sets.iter().position(|s| s.iter().any(|f| f == name)) {
            Some(i) => i as u32,
            // FNV-1a: only equality matters, and a sum keeps the model free of state.
            None => name.bytes().fold(0x811c_9dc5, |h: u32, b| (h ^ u32::from(b)).wrapping_mul(0x0100_0193)) | 1 << 31,
        }
    }

    /// GpSimd: a fixed part and cycles for each element; what it does in its own way has its own formula.
    pub(super) fn gpsimd(&self, s: &Stream) -> Cost {
        let p = &self.params.gpsimd;
        let c = &p.cycles;
        let n = f64::from(s.elements);
        let result = s.outputs.first();
        let results = result.map_or(0.0, |o| f64::from(o.elements));
        let (cycles, used): (f64, &[&Param]) = match s.class {
            StreamClass::LocalGather => {
                // Indices, each of `run` elements. A core moves 32 bits for each partition and cycle.
                let run = results / n.max(1.0);
                let size = result.map_or(4.0, |o| o.dtype.size() as f64);
                let at_once = (4.0 / size).min(run).max(1.0);
                (p.fixed_cycles.value + n * (c.gather_index.value + run) / at_once, &[&p.fixed_cycles, &c.gather_index])
            }
            StreamClass::NGather => {
                let groups = (n / c.n_gather_group.value).ceil().max(1.0);
                let cycles = groups * p.fixed_cycles.value + n * c.n_gather.value;
                (cycles, &[&p.fixed_cycles, &c.n_gather, &c.n_gather_group])
            }
            StreamClass::Nonzero => (p.fixed_cycles.value + n * c.nonzero.value, &[&p.fixed_cycles, &c.nonzero]),
            StreamClass::SequenceBounds => {
                (p.fixed_cycles.value + n * c.sequence_bounds.value, &[&p.fixed_cycles, &c.sequence_bounds])
            }
            // The published formula has no fixed part; no instruction is shorter than that, though.
            StreamClass::TopK => (
                (n * c.topk.value + results * c.topk_result.value).max(p.fixed_cycles.value),
                &[&c.topk, &c.topk_result],
            ),
            StreamClass::PartitionReduce => {
                let elements = n * f64::from(s.partitions);
                (p.fixed_cycles.value + elements * c.partition_reduce.value, &[&p.fixed_cycles, &c.partition_reduce])
            }
            _ if s.inputs.len() > 1 => (
                p.fixed_cycles.value + n * p.cycles_per_element.value * p.two_input_factor.value,
                &[&p.fixed_cycles, &p.cycles_per_element, &p.two_input_factor],
            ),
            _ => (p.fixed_cycles.value + n * p.cycles_per_element.value, &[&p.fixed_cycles, &p.cycles_per_element]),
        };
        let occupancy = cycles / p.clock_ghz.value;
        let port = self.params.vector.port.value != "never";
        let confidence = used.iter().map(|u| u.confidence).max().unwrap_or(Confidence::Assumed);
        compute(Engine::GpSimd, occupancy, occupancy + p.completion_ns.value, None, port, confidence)
    }
}

fn compute(
    engine: Engine,
    occupancy: f64,
    complete: f64,
    table: Option<u32>,
    port: bool,
    confidence: Confidence,
) -> Cost {
    let (occupancy, complete) = (ns(occupancy).max(1), ns(complete).max(1));
    Cost { engine, kind: CostKind::Compute { occupancy, complete: complete.max(occupancy), table, port }, confidence }
}
