//! The published and measured laws as a [`CostModel`].

use nki_isa::arch::Arch;
use nki_isa::names::{Engine, Named};
use nki_isa::work::{RegisterWork, Work, WorkKind};

use super::{Cost, CostKind, CostModel, Limiter, MachineConstants, Place, Ports, ns};
use crate::timing::fixed::{Millionths, Thousandths};
use crate::timing::params::{MOST_ENGINES, Param, ParamError, Params};

/// The definition of the reported latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Measure {
    /// The total time of a profiler. It includes the start of the profile, and the recording of each software descriptor.
    Profile,
    /// The time of the runtime's device benchmark.
    Device,
}

impl Measure {
    fn of(params: &Params) -> Result<Self, ParamError> {
        let choices = [("profile", Measure::Profile), ("device", Measure::Device)];
        choice("kernel.measure", &params.kernel.measure, &choices)
    }
}

/// When the vector engine uses the port to SBUF that it shares with GpSimd.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PortUse {
    Always,
    /// Only in the modes that take less than a cycle for each element.
    FastModes,
    Never,
}

/// The laws of the parameter files.
#[derive(Debug, Clone)]
pub struct Laws<'p> {
    pub(super) params: &'p Params,
    pub(super) measure: Measure,
    /// Cycles per row of an fp32 transpose.
    pub(super) fp32_transpose: &'p Param,
    pub(super) sbuf_port: PortUse,
    /// Whether the vector and the scalar engine share a port to PSUM.
    pub(super) psum_is_shared: bool,
    machine: MachineConstants,
}

impl<'p> Laws<'p> {
    /// From parameters.
    ///
    /// # Errors
    /// If a list of queues names an engine that cannot trigger a DMA.
    pub fn new(params: &'p Params) -> Result<Self, ParamError> {
        let queues = |name: &str, list: &Param<Vec<String>>| {
            let engines: Vec<Engine> = list
                .value
                .iter()
                .map(|q| Engine::from_name(q).filter(|e| Engine::QUEUES.contains(e)))
                .collect::<Option<_>>()
                .unwrap_or_default();
            if engines.is_empty() {
                return Err(ParamError::Value {
                    name: format!("dma.{name}"),
                    value: format!("{:?}", list.value),
                    reason: "it must list engines: tensor, vector, scalar, gpsimd, sync".into(),
                });
            }
            Ok(engines)
        };
        let uses = [("always", PortUse::Always), ("fast_modes", PortUse::FastModes), ("never", PortUse::Never)];
        let sbuf_port = choice("vector.port", &params.vector.port, &uses)?;
        let psum_is_shared =
            choice("vector.psum_port", &params.vector.psum_port, &[("always", true), ("never", false)])?;
        let measure = Measure::of(params)?;
        let head = match measure {
            Measure::Profile => &params.kernel.head_us,
            Measure::Device => &params.kernel.device_head_us,
        };
        let (t, d) = (&params.tensor, &params.dma);
        let machine = MachineConstants {
            head: ns(head.value * 1e3),
            pair: ns(params.kernel.pair_us.value * 1e3),
            tail: ns(params.kernel.tail_us.value * 1e3),
            fixed: head.confidence.max(params.kernel.tail_us.confidence),
            semaphore: Engine::QUEUES.map(|e| ns(params.sync.engine_ns.row(e.name()).value)),
            dma_semaphore: Engine::QUEUES.map(|e| ns(params.sync.dma_ns.row(e.name()).value)),
            loop_iteration: ns(params.control.loop_iteration_us.value * 1e3),
            branch: ns(params.control.branch_ns.value),
            table_load: ns(params.scalar.table_load_ns.value),
            matmul_issue: ns(params.tensor.issue_overhead_ns.value),
            limiter: Limiter {
                rate: Millionths::new(t.limiter_rate.value).clamped(),
                period: ns(t.limiter_period_ns.value).max(1),
                release: Thousandths::new(t.limiter_release.value),
                engage: Thousandths::new(t.limiter_engage.value),
            },
            queues: [
                queues("load_queues", &d.load_queues)?,
                queues("store_queues", &d.store_queues)?,
                queues("onchip_queues", &d.onchip_queues)?,
                queues("hardware_queues", &d.hardware_queues)?,
            ],
            dma_engines: d.engines.value.clamp(1.0, MOST_ENGINES) as u32,
            shared: (params.cores.hbm_bytes_per_ns.value * 1e3).max(1.0) as u64,
        };
        let fp32_transpose = &params.tensor.fp32_transpose_cycles_per_row;
        Ok(Laws { params, measure, fp32_transpose, sbuf_port, psum_is_shared, machine })
    }

    /// The laws that the older compiler assumes when it selects engines.
    pub fn expected_by_compiler(self) -> Self {
        Laws { fp32_transpose: &self.params.compiler.fp32_transpose_cycles_per_row, ..self }
    }

    pub(super) fn arch(&self) -> &'static Arch {
        Arch::of(self.params.target())
    }
}

/// Checks that a parameter has one of the allowed words.
/// The meaning of a parameter that is one of these words.
fn choice<T: Copy>(name: &str, param: &Param<String>, choices: &[(&str, T)]) -> Result<T, ParamError> {
    if let Some((_, chosen)) = choices.iter().find(|(word, _)| *word == param.value) {
        return Ok(*chosen);
    }
    let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
    let (last, others) = words.split_last().unwrap_or((&"", &[]));
    let reason = format!("it must be {} or {last}", others.join(", "));
    Err(ParamError::Value { name: name.into(), value: param.value.clone(), reason })
}

impl CostModel for Laws<'_> {
    fn cost(&self, work: &Work, place: Place) -> Cost {
        let engine = work.engine;
        match &work.kind {
            WorkKind::Stream(stream) => match engine {
                Engine::Scalar => self.scalar(stream),
                Engine::GpSimd => self.gpsimd(stream),
                _ => self.vector(stream),
            },
            WorkKind::Matmul(matmul) => self.matmul(matmul),
            WorkKind::Dma(dma) => self.dma(engine, dma, place),
            WorkKind::Register(work) => {
                let c = &self.params.control;
                let p = match work {
                    RegisterWork::Move => &c.register_move_ns,
                    RegisterWork::Load => &c.register_load_ns,
                    RegisterWork::LoadFromHbm => &c.register_load_hbm_ns,
                    RegisterWork::Store => &c.register_store_ns,
                };
                let time = ns(p.value);
                Cost {
                    engine: if Engine::QUEUES.contains(&engine) { engine } else { Engine::Sync },
                    kind: CostKind::Compute { occupancy: time, complete: time, table: None, ports: Ports::default() },
                    confidence: p.confidence,
                }
            }
            WorkKind::Rendezvous(meet) => self.rendezvous(engine, *meet),
            WorkKind::Free => {
                Cost { engine, kind: CostKind::Free, confidence: crate::timing::params::Confidence::Documented }
            }
        }
    }

    fn machine(&self) -> &MachineConstants {
        &self.machine
    }
}
