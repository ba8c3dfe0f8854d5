//! The results of a replay, compared with the recording.

use std::collections::BTreeMap;

use nki_isa::names::{Engine, Named};
use nki_sim_core::timeline::Ps;
use nki_sim_core::timing::replay::{RecordedKind, Replay, Replayed};
use serde::Serialize;

use crate::profile::{HardwareProfile, Mapped, Ns, Part, Role};

/// A number of the recording and of the replay.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Pair {
    pub(crate) recorded: f64,
    pub(crate) replayed: f64,
    pub(crate) error_percent: Option<f64>,
}

impl Pair {
    fn new(recorded: f64, replayed: f64) -> Self {
        let error = (recorded != 0.0).then(|| (replayed / recorded - 1.0) * 100.0);
        Pair { recorded, replayed, error_percent: error }
    }
}

/// Errors of the start times of instructions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Drift {
    pub(crate) instructions: usize,
    /// Median of the absolute differences, us, and in percent of the recorded total.
    pub(crate) median_us: f64,
    pub(crate) median_percent: f64,
    pub(crate) worst_us: f64,
    pub(crate) worst_percent: f64,
    /// Signed median: the replay's delay.
    pub(crate) bias_us: f64,
}

impl Drift {
    fn of(differences: &[f64], total: f64) -> Self {
        let absolute: Vec<f64> = differences.iter().map(|d| d.abs()).collect();
        let median_us = median(&absolute);
        let worst_us = absolute.iter().copied().fold(0.0, f64::max);
        let percent = |us: f64| if total > 0.0 { us * 100.0 / total } else { 0.0 };
        Drift {
            instructions: differences.len(),
            median_us,
            median_percent: percent(median_us),
            worst_us,
            worst_percent: percent(worst_us),
            bias_us: median(differences),
        }
    }
}

/// One engine of one core.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct EngineFigures {
    pub(crate) core: usize,
    pub(crate) engine: &'static str,
    /// Time in which at least one of its instructions ran, us.
    pub(crate) active_us: Pair,
    pub(crate) drift: Drift,
}

/// Operations of one kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct KindFigures {
    pub(crate) engine: &'static str,
    pub(crate) opcode: String,
    pub(crate) shape: String,
    pub(crate) count: usize,
    /// Median duration.
    pub(crate) duration_ns: Pair,
}

/// Transfers of one kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct TransferFigures {
    pub(crate) engine: &'static str,
    pub(crate) shape: String,
    pub(crate) count: usize,
    /// Total number of recorded data packets.
    pub(crate) packets: usize,
    pub(crate) bytes: u64,
    /// Medians: from the start of the trigger to the first packet; from the first packet until the data is visible;
    /// DMA engine time of a packet (recorded: from one to the next on an engine).
    pub(crate) trigger_to_packet_ns: Pair,
    pub(crate) packet_to_visible_ns: Pair,
    pub(crate) packet_ns: Pair,
}

/// The limiter of one core: the times of rate changes, and whether each is to the full rate.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct LimiterFigures {
    pub(crate) core: usize,
    pub(crate) recorded_us: Vec<(f64, bool)>,
    pub(crate) replayed_us: Vec<(f64, bool)>,
}

/// Instructions by engine and opcode.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Tally {
    pub(crate) engine: &'static str,
    pub(crate) opcode: String,
    pub(crate) count: usize,
}

/// How much of the program was timed by the machine's laws.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(crate) struct Coverage {
    /// Instructions of the program.
    pub(crate) instructions: usize,
    /// Number of instructions timed by laws.
    pub(crate) by_law: usize,
    /// Instructions that took their recorded time, because no law covers them.
    pub(crate) as_recorded: Vec<Tally>,
    /// Instructions of the runtime around the program, which the model's head and tail represent.
    pub(crate) of_runtime: usize,
    /// Waits that nothing in the profile satisfies; they are ignored.
    pub(crate) unmet_waits: usize,
}

/// An instruction, recorded and replayed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct InstructionFigures {
    pub(crate) core: usize,
    pub(crate) engine: &'static str,
    pub(crate) opcode: String,
    pub(crate) pc: i64,
    pub(crate) start_us: Pair,
}

/// All figures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Figures {
    pub(crate) total_us: Pair,
    pub(crate) drift: Drift,
    pub(crate) engines: Vec<EngineFigures>,
    pub(crate) opcodes: Vec<KindFigures>,
    pub(crate) transfers: Vec<TransferFigures>,
    pub(crate) limiter: Vec<LimiterFigures>,
    pub(crate) coverage: Coverage,
    pub(crate) notes: Vec<String>,
    pub(crate) instructions: Vec<InstructionFigures>,
}

/// The median; 0 for an empty list.
pub(crate) fn median(list: &[f64]) -> f64 {
    let mut list = list.to_vec();
    list.sort_by(f64::total_cmp);
    match list.len() {
        0 => 0.0,
        n if n % 2 == 1 => list[n / 2],
        n => (list[n / 2 - 1] + list[n / 2]) / 2.0,
    }
}

fn us(time: Ps) -> f64 {
    time as f64 / 1e6
}

fn ns_us(time: Ns) -> f64 {
    time as f64 / 1e3
}

/// Start of a pass in the replay, us: the model has one matmul for all passes.
fn pass_start(parts: &[Part], op: &Replayed, n: usize) -> f64 {
    us(op.start) + us(op.end - op.start) * n as f64 / passes(parts).max(1) as f64
}

fn passes(parts: &[Part]) -> usize {
    parts.iter().filter(|p| matches!(p.role, Role::Pass(_))).count()
}

/// Start of an instruction in the replay, us. `last_pass` is the start of the last pass of the previous matmul.
fn start(part: &Part, parts: &[Part], op: &Replayed, last_pass: f64) -> f64 {
    let pass = |n: usize| pass_start(parts, op, n);
    match part.role {
        // A load starts after the previous pass.
        Role::Weights(0) => us(op.issue).max(last_pass),
        // The weights of the next pass load while the previous one runs.
        Role::Weights(n) => pass(n - 1),
        Role::Pass(n) => pass(n),
        Role::Trigger | Role::Whole => us(op.start),
    }
}

/// Compares a replay with the recording. `mapped` has the busy cores in order.
pub(crate) fn figures(profile: &HardwareProfile, mapped: &[(usize, Mapped)], replay: &Replay) -> Figures {
    let total = ns_us(profile.total);
    let mut out = Figures {
        total_us: Pair::new(total, us(replay.elapsed)),
        drift: Drift::of(&[], total),
        engines: Vec::new(),
        opcodes: Vec::new(),
        transfers: Vec::new(),
        limiter: Vec::new(),
        coverage: Coverage::default(),
        notes: profile.notes.clone(),
        instructions: Vec::new(),
    };
    let mut kinds: BTreeMap<(Engine, String, String), Vec<(f64, f64)>> = BTreeMap::new();
    for (at, (core, mapped)) in mapped.iter().enumerate() {
        let recorded = &profile.cores[*core];
        out.notes.extend(mapped.notes.iter().cloned());
        for engine in Engine::QUEUES {
            let mut spans: [Vec<(f64, f64)>; 2] = Default::default();
            let mut differences = Vec::new();
            let mut last_pass = 0.0;
            for ((op, time), item) in mapped.ops.iter().zip(&replay.cores[at]).zip(&mapped.stream) {
                if item.queue != engine {
                    continue;
                }
                let trigger = matches!(op.parts[..], [Part { role: Role::Trigger, .. }]);
                spans[1].push((us(time.start), us(if trigger { time.end } else { time.complete })));
                for part in &op.parts {
                    let i = &recorded.instructions[part.instruction];
                    if !matches!(part.role, Role::Weights(_)) {
                        spans[0].push((ns_us(i.start), ns_us(i.end)));
                    }
                    let start = Pair::new(ns_us(i.start), start(part, &op.parts, time, last_pass));
                    differences.push(start.replayed - start.recorded);
                    out.instructions.push(InstructionFigures {
                        core: *core,
                        engine: engine.name(),
                        opcode: i.opcode.clone(),
                        pc: i.pc,
                        start_us: start,
                    });
                }
                if let Some(n) = passes(&op.parts).checked_sub(1) {
                    last_pass = pass_start(&op.parts, time, n);
                }
                if matches!(item.kind, RecordedKind::Known { .. }) {
                    continue;
                }
                let own: Vec<_> = op.parts.iter().filter(|p| !matches!(p.role, Role::Weights(_))).collect();
                let ran: Vec<_> = own.iter().map(|p| &recorded.instructions[p.instruction]).collect();
                let (Some(first), Some(last)) = (ran.first(), ran.last()) else { continue };
                let replayed = (if trigger { time.end } else { time.complete }) - time.start;
                let durations = ((last.end - first.start) as f64, replayed as f64 / 1e3);
                let opcode = if trigger { format!("{} (trigger)", first.opcode) } else { first.opcode.clone() };
                kinds.entry((engine, opcode, op.shape.clone())).or_default().push(durations);
            }
            if !differences.is_empty() {
                let [a, b] = spans.map(covered);
                let drift = Drift::of(&differences, total);
                out.engines.push(EngineFigures {
                    core: *core,
                    engine: engine.name(),
                    active_us: Pair::new(a, b),
                    drift,
                });
            }
        }
        transfers(recorded, mapped, &replay.cores[at], &mut out.transfers);
        let changes = recorded.limiter.iter().map(|(t, _, full)| (ns_us(*t), *full)).collect();
        let replayed = replay.limiter[at].iter().map(|(t, full)| (us(*t), *full)).collect();
        out.limiter.push(LimiterFigures { core: *core, recorded_us: changes, replayed_us: replayed });
        cover(recorded, mapped, &mut out.coverage);
    }
    let differences: Vec<f64> = out.instructions.iter().map(|i| i.start_us.replayed - i.start_us.recorded).collect();
    out.drift = Drift::of(&differences, total);
    for ((engine, opcode, shape), list) in kinds {
        let side = |f: fn(&(f64, f64)) -> f64| median(&list.iter().map(f).collect::<Vec<_>>());
        out.opcodes.push(KindFigures {
            engine: engine.name(),
            opcode,
            shape,
            count: list.len(),
            duration_ns: Pair::new(side(|x| x.0), side(|x| x.1)),
        });
    }
    out
}

/// The total time covered by possibly overlapping spans.
fn covered(mut spans: Vec<(f64, f64)>) -> f64 {
    spans.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut sum = 0.0;
    let mut until = f64::NEG_INFINITY;
    for (start, end) in spans {
        sum += (end - start.max(until)).max(0.0);
        until = until.max(end);
    }
    sum
}

fn cover(core: &crate::profile::Core, mapped: &Mapped, out: &mut Coverage) {
    let tally = |map: &BTreeMap<(Engine, String), usize>| -> Vec<Tally> {
        map.iter()
            .map(|((engine, opcode), n)| Tally { engine: engine.name(), opcode: opcode.clone(), count: *n })
            .collect()
    };
    let of_kernel = core.instructions.iter().filter(|i| i.of_kernel).count();
    out.instructions += of_kernel;
    out.of_runtime += core.instructions.len() - of_kernel;
    out.by_law += of_kernel - mapped.unmapped.values().sum::<usize>();
    out.as_recorded.extend(tally(&mapped.unmapped));
    out.unmet_waits += mapped.unmet;
}

/// Transfers by triggering engine and shape.
fn transfers(core: &crate::profile::Core, mapped: &Mapped, replay: &[Replayed], out: &mut Vec<TransferFigures>) {
    #[derive(Default)]
    struct Group {
        count: usize,
        packets: usize,
        bytes: u64,
        trigger: [Vec<f64>; 2],
        visible: [Vec<f64>; 2],
        packet: [Vec<f64>; 2],
    }
    let mut groups: BTreeMap<(Engine, String), Group> = BTreeMap::new();
    for ((op, time), item) in mapped.ops.iter().zip(replay).zip(&mapped.stream) {
        let (Some(number), Some((arrive, left))) = (op.transfer, time.payload) else { continue };
        let transfer = &mapped.transfers[number];
        let Some((first, _)) = transfer.span() else { continue };
        let group = groups.entry((item.queue, op.shape.clone())).or_default();
        group.count += 1;
        group.packets += transfer.packets.len();
        group.bytes += transfer.bytes();
        let trigger = core.instructions[op.first_instruction()].start;
        group.trigger[0].push((first - trigger) as f64);
        group.trigger[1].push((arrive - time.start) as f64 / 1e3);
        group.visible[0].push((op.complete - first) as f64);
        group.visible[1].push((time.complete - arrive) as f64 / 1e3);
        group.packet[0].extend(transfer.spacings());
        let engines = transfer.packets.iter().map(|p| p.2).collect::<std::collections::BTreeSet<_>>().len().max(1);
        let each = transfer.packets.len() as f64 / engines as f64;
        group.packet[1].push((left - arrive) as f64 / 1e3 / each.max(1.0));
    }
    for ((engine, shape), g) in groups {
        let pair = |[a, b]: &[Vec<f64>; 2]| Pair::new(median(a), median(b));
        out.push(TransferFigures {
            engine: engine.name(),
            shape,
            count: g.count,
            packets: g.packets,
            bytes: g.bytes,
            trigger_to_packet_ns: pair(&g.trigger),
            packet_to_visible_ns: pair(&g.visible),
            packet_ns: pair(&g.packet),
        });
    }
}
