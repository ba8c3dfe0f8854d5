//! A hardware profile as numbers by name, and its differences from a simulated run.

use std::path::Path;

use nki_isa::inst::name_of_opcode;
use nki_isa::names::{Engine, Named};

use super::Change;
use super::profile::{Numbers, Profile};
use crate::profile::{Core, HardwareProfile, Mapped, Ns, Role};

/// The numbers of a profile, with the names of a simulated run. They cover the program only: the runtime's work is included only in the
/// total time.
pub(super) fn numbers(profile: &HardwareProfile) -> Profile {
    let mut out = Profile::default();
    for (name, value) in &profile.summary {
        // These are fractions of 1 in a profile, and counts that include the runtime's instructions.
        if name.contains("_engine_") {
            continue;
        }
        let factor = if name.ends_with("_percent") { 100.0 } else { 1.0 };
        out.metrics.insert(name.clone(), value * factor);
    }
    let total = profile.total as f64 / 1e3;
    out.metrics.insert("latency_us".into(), total);
    let mut runtime = 0;
    let mut sums: Numbers = ["bytes", "packets", "transfers", "active_us"].map(|n| (format!("dma.{n}"), 0.0)).into();
    let mut add = |name: &str, x: f64| {
        if let Some(sum) = sums.get_mut(name) {
            *sum += x;
        }
    };
    for (_, core) in profile.busy_cores() {
        let mapped = Mapped::of(core);
        runtime += core.instructions.iter().filter(|i| !i.of_kernel).count();
        for engine in Engine::QUEUES {
            let name = engine.name();
            let own = || (0..mapped.ops.len()).filter(|o| mapped.stream[*o].queue == engine);
            let spans = own().map(|o| span(core, &mapped, o)).collect();
            *out.engines.entry(name.into()).or_insert(0.0) += covered(spans) as f64 / 1e3;
            let mut count = 0.0;
            for o in own() {
                let Some(opcode) = instruction(core, &mapped, o) else { continue };
                count += 1.0;
                let (start, end) = span(core, &mapped, o);
                let key = format!("{name} {opcode}");
                *out.opcodes.entry(key.clone()).or_insert(0.0) += (end - start) as f64 / 1e3;
                *out.counts.entry(key).or_insert(0.0) += 1.0;
            }
            *out.metrics.entry(format!("instructions.{name}")).or_insert(0.0) += count;
        }
        let packets: Vec<_> = core.packets.iter().filter(|p| p.is_data()).collect();
        add("dma.bytes", packets.iter().map(|p| p.bytes as f64).sum());
        add("dma.packets", packets.len() as f64);
        add("dma.transfers", (0..mapped.ops.len()).filter(|o| mapped.is_dma(*o)).count() as f64);
        add("dma.active_us", covered(packets.iter().map(|p| (p.start, p.end)).collect()) as f64 / 1e3);
    }
    out.metrics.extend(sums);
    out.hardware = Some(format!(
        "a hardware profile ({}): times, instructions and transfers of its program; {} of the runtime around it are left out; loads and passes of one matmul count as one instruction",
        profile.instance.as_deref().unwrap_or("instance unknown"),
        crate::count(runtime, "instruction")
    ));
    out
}

/// The language's name of an operation; `None` if it is not an instruction of a simulated kernel.
pub(super) fn instruction(core: &Core, mapped: &Mapped, op: usize) -> Option<String> {
    let parts = &mapped.ops[op].parts;
    let pass = parts.iter().find(|p| matches!(p.role, Role::Pass(_))).or(parts.first())?;
    let i = &core.instructions[pass.instruction];
    if matches!(i.opcode.as_str(), "EVENT_SEMAPHORE" | "NOP" | "ACT_TABLE_LOAD") {
        return None;
    }
    Some(name_of_opcode(&i.opcode, i.transpose).map_or_else(|| i.opcode.to_ascii_lowercase(), str::to_owned))
}

/// The time of an operation on its engine, excluding weight loads, which run concurrently with passes.
pub(super) fn span(core: &Core, mapped: &Mapped, op: usize) -> (Ns, Ns) {
    let own = || {
        let parts = mapped.ops[op].parts.iter().filter(|p| !matches!(p.role, Role::Weights(_)));
        parts.map(|p| &core.instructions[p.instruction])
    };
    (own().map(|i| i.start).min().unwrap_or(0), own().map(|i| i.end).max().unwrap_or(0))
}

fn covered(mut spans: Vec<(Ns, Ns)>) -> Ns {
    spans.sort_unstable();
    let (mut sum, mut until) = (0, Ns::MIN);
    for (start, end) in spans {
        sum += (end - start.max(until)).max(0);
        until = until.max(end);
    }
    sum
}

/// Differences of bytes or instructions up to this share are not reported.
const SAME: f64 = 0.01;

/// Notes on files from hardware, and on differences in program or traffic.
pub(super) fn notes(before: &Profile, after: &Profile, metrics: &[Change], files: (&Path, &Path)) -> Vec<String> {
    let mut out = Vec::new();
    for (profile, file) in [(before, files.0), (after, files.1)] {
        if let Some(what) = &profile.hardware {
            out.push(format!("`{}` is {what}", file.display()));
        }
    }
    if out.is_empty() {
        return out;
    }
    let named = |name: &str| metrics.iter().find(|c| c.name == name && (c.before != 0.0 || c.after != 0.0));
    let apart = |c: &&Change| c.delta().abs() > SAME * c.before.abs().max(c.after.abs());
    if let Some(c) = named("dma.bytes").filter(apart) {
        let (more, less) = if c.before > c.after { (files.0, files.1) } else { (files.1, files.0) };
        out.push(format!(
            "`{}` moves {:.0} bytes by DMA, `{}` {:.0}: different traffic is one reason for different times",
            more.display(),
            c.before.max(c.after),
            less.display(),
            c.before.min(c.after)
        ));
    }
    for engine in Engine::QUEUES {
        if let Some(c) = named(&format!("instructions.{}", engine.name())).filter(apart) {
            out.push(format!(
                "the {} engine runs {} instructions in `{}` and {} in `{}`",
                engine.name(),
                c.before,
                files.0.display(),
                c.after,
                files.1.display()
            ));
        }
    }
    out
}
