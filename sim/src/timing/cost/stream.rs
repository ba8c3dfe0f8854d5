//! Laws of the vector, scalar and GpSimd engines.

use nki_isa::names::{Engine, Space};
use nki_isa::work::{Algorithm, Issue, Law, Operand, Start, Stream, Term};
use smallvec::SmallVec;

use super::laws::PortUse;
use super::{Cost, CostKind, Laws, Ports, ns};
use crate::timing::params::{Confidence, Param, Rows};

/// Common properties of a stream's operands.
struct Operands {
    /// All in SBUF with 16-bit floats (8-bit too on Trn3).
    narrow: bool,
    /// Some are in SBUF, some in PSUM.
    sbuf: bool,
    psum: bool,
    contiguous: bool,
    /// The inputs are 16-bit floats, and the outputs are wider.
    widening: bool,
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
            sbuf: all().any(|o| o.space == Space::Sbuf),
            psum: all().any(|o| o.space == Space::Psum),
            contiguous: all().all(|o| o.elements <= 1 || o.inner_stride_bytes as usize == o.dtype.size()),
            widening: s.inputs.iter().all(floats) && s.outputs.iter().all(|o| o.dtype.size() > 2),
            stride: all().filter(|o| o.elements > 1).map(|o| o.inner_stride_bytes).max().unwrap_or(0),
        }
    }

    /// Vector engine: a fixed part and cycles per element, by performance mode.
    pub(super) fn vector(&self, s: &Stream) -> Cost {
        let law = match &s.law {
            Law::Vector(law) => law,
            Law::Function(_) => return self.scalar(s),
            Law::GpSimd | Law::Algorithm(_) => return self.gpsimd(s),
        };
        let v = &self.params.vector;
        let f = &v.fixed_ns;
        let o = self.operands(s);
        let n = f64::from(s.elements);
        let mode = match (o.psum, o.narrow, o.contiguous) {
            (true, true, true) => law.cycles.psum_narrow,
            (true, _, _) => law.cycles.psum,
            (false, true, true) => law.cycles.narrow,
            (false, true, false) => law.cycles.narrow_strided,
            (false, false, _) if o.widening => law.cycles.widening,
            (false, false, _) => law.cycles.general,
        };
        let (cycles, fixed) = (v.cycles.row(mode), f.row(law.fixed));
        let mut confidence = cycles.confidence.max(fixed.confidence);
        let mut per_element = cycles.value;
        if f64::from(o.stride) > v.stride_bytes.value {
            per_element *= v.stride_factor.value;
            confidence = confidence.max(v.stride_factor.confidence);
        }
        let cycle = 1.0 / v.clock_ghz.value;
        let stream = n * per_element * cycle;
        let read_out = if s.accumulator_read { f.row("accumulator_read").value } else { 0.0 };
        let minimum = v.min_cycles.value * cycle;
        // The engine reads the scalar columns one after another before it streams.
        let (reading, operands) = match law.scalar {
            Some(row) if s.scalar_reads > 0 => {
                let each = f.row(row);
                confidence = confidence.max(each.confidence).max(v.operand_cycles.confidence);
                let reads = f64::from(s.scalar_reads);
                (reads * v.operand_cycles.value * cycle, reads * each.value)
            }
            _ => (0.0, 0.0),
        };
        let start = match law.issue {
            Issue::Usual => &v.issue_overhead_cycles,
            Issue::BlockTranspose => &v.transpose_issue_cycles,
        };
        let occupancy = reading + (start.value * cycle + stream).max(minimum) + read_out;
        let complete = (fixed.value + operands + stream).max(minimum) + read_out;
        let sbuf = match self.sbuf_port {
            PortUse::Always => o.sbuf,
            PortUse::FastModes => per_element < 1.0 && !o.psum,
            PortUse::Never => false,
        };
        let ports = Ports { sbuf, psum: o.psum && self.psum_is_shared };
        compute(Engine::Vector, occupancy, complete, None, ports, confidence)
    }

    /// Scalar engine: one element per cycle; activations need a function table.
    pub(super) fn scalar(&self, s: &Stream) -> Cost {
        let p = &self.params.scalar;
        let o = self.operands(s);
        let (fixed, table) = match s.law {
            Law::Function(name) if !p.free_functions.value.iter().any(|f| f == name) => {
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
        // A function reads a column of biases, which are zeros by default. The measured fixed part includes this read.
        let bias = u32::from(table.is_some());
        let columns = |reads: u32| f64::from(reads) * p.vector_operand_ns.value;
        let start = if o.psum { &p.issue_overhead_psum_ns } else { &p.issue_overhead_ns };
        confidence = confidence.max(start.confidence);
        let occupancy = start.value + columns(s.scalar_reads.max(bias)) + stream + read_out;
        let reads = s.scalar_reads.saturating_sub(bias);
        let complete = fixed.value + columns(reads) + f64::from(s.elements) * per_element * cycle + read_out;
        let ports = Ports { sbuf: false, psum: o.psum && self.psum_is_shared };
        compute(Engine::Scalar, occupancy, complete, table, ports, confidence)
    }

    /// The number of the set that contains a function; a function outside all sets has its own number.
    fn table(&self, name: &str) -> u32 {
        let sets = &self.params.scalar.tables.value;
        match sets.iter().position(|s| s.iter().any(|f| f == name)) {
            Some(i) => i as u32,
            // FNV-1a: only equality matters, and a hash keeps the model stateless.
            None => name.bytes().fold(0x811c_9dc5, |h: u32, b| (h ^ u32::from(b)).wrapping_mul(0x0100_0193)) | 1 << 31,
        }
    }

    /// GpSimd: a fixed part and cycles per element; algorithms have their own formulas.
    pub(super) fn gpsimd(&self, s: &Stream) -> Cost {
        let p = &self.params.gpsimd;
        let n = f64::from(s.elements);
        let mut used: SmallVec<[&Param; 4]> = SmallVec::new();
        let cycles = match &s.law {
            Law::Algorithm(algorithm) => self.algorithm(algorithm, s, &mut used),
            _ if s.inputs.len() > 1 => {
                used.extend([&p.fixed_cycles, &p.cycles_per_element, &p.two_input_factor]);
                p.fixed_cycles.value + n * p.cycles_per_element.value * p.two_input_factor.value
            }
            _ => {
                used.extend([&p.fixed_cycles, &p.cycles_per_element]);
                p.fixed_cycles.value + n * p.cycles_per_element.value
            }
        };
        let occupancy = cycles / p.clock_ghz.value;
        // A program of the engine's processors accesses SBUF from time to time, and lets the vector engine access it in between: the copies of
        // a convolution of neuron-agentic-development (`conv2d_scaling_min`, `v5`) and its reductions over partitions overlap.
        let streams = !matches!(s.law, Law::Algorithm(_));
        let ports = Ports { sbuf: streams && self.sbuf_port != PortUse::Never, psum: false };
        let confidence = used.iter().map(|u| u.confidence).max().unwrap_or(Confidence::Assumed);
        compute(Engine::GpSimd, occupancy, occupancy + p.completion_ns.value, None, ports, confidence)
    }

    /// The cycles of an algorithm, and the parameters used.
    fn algorithm<'a>(&'a self, algorithm: &Algorithm, s: &Stream, used: &mut SmallVec<[&'a Param; 4]>) -> f64 {
        let fixed = &self.params.gpsimd.fixed_cycles;
        let rows = &self.params.gpsimd.cycles;
        let start = match algorithm.start {
            Start::Once => fixed.value,
            Start::EachGroup(row) => {
                let group = rows.row(row);
                used.push(group);
                (f64::from(s.elements) / group.value).ceil().max(1.0) * fixed.value
            }
            Start::AtLeast => 0.0,
        };
        let mut cycles = start;
        for &each in algorithm.terms {
            let (more, param) = term(each, s, rows);
            used.push(param);
            cycles += more;
        }
        if algorithm.start == Start::AtLeast {
            return cycles.max(fixed.value);
        }
        used.push(fixed);
        cycles
    }
}

/// The number of times a stream uses a term of an algorithm, and the term's parameter.
fn term<'p>(term: Term, s: &Stream, rows: &'p Rows) -> (f64, &'p Param) {
    let n = f64::from(s.elements);
    let result = s.outputs.first();
    let results = result.map_or(0.0, |o| f64::from(o.elements));
    let (Term::Elements(row) | Term::AllPartitions(row) | Term::Results(row) | Term::Runs(row)) = term;
    let param = rows.row(row);
    let cycles = match term {
        Term::Elements(_) => n * param.value,
        Term::AllPartitions(_) => n * f64::from(s.partitions) * param.value,
        Term::Results(_) => results * param.value,
        Term::Runs(_) => {
            let run = results / n.max(1.0);
            let size = result.map_or(4.0, |o| o.dtype.size() as f64);
            let at_once = (4.0 / size).min(run).max(1.0);
            n * (param.value + run) / at_once
        }
    };
    (cycles, param)
}

fn compute(
    engine: Engine,
    occupancy: f64,
    complete: f64,
    table: Option<u32>,
    ports: Ports,
    confidence: Confidence,
) -> Cost {
    let (occupancy, complete) = (ns(occupancy).max(1), ns(complete).max(1));
    Cost { engine, kind: CostKind::Compute { occupancy, complete: complete.max(occupancy), table, ports }, confidence }
}
