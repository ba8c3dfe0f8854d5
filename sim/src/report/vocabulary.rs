//! The vocabulary of all reports: the results of the analysis in English.

use crate::analysis::error_bar::ErrorBar;
use crate::analysis::remedies::{Moved, Remedy, RemedyChange, Slice, Spot};
use crate::analysis::roofline::Roofline;
use crate::analysis::{Bound, Resource, Verdict, is_bank, waited_for};
use crate::timeline::{Cause, EventId, Release, Timeline};
use nki_isa::names::Engine;

/// A human-readable number of bytes.
pub(super) fn bytes(n: u64) -> String {
    match n {
        0..=9999 => format!("{n} B"),
        10_000..=9_999_999 => format!("{:.1} KiB", n as f64 / 1024.0),
        10_000_000..=9_999_999_999 => format!("{:.1} MiB", n as f64 / 1_048_576.0),
        _ => format!("{:.1} GiB", n as f64 / 1_073_741_824.0),
    }
}

/// An instruction with its line.
fn at(timeline: &Timeline, label: &str, id: EventId) -> String {
    let line = timeline.event(id).origin.loc.line;
    if line > 0 { format!("{label} (line {line})") } else { label.to_owned() }
}

/// A cause of a stall, including the responsible instruction.
pub(super) fn cause(timeline: &Timeline, cause: Cause) -> String {
    let at = |id: EventId| at(timeline, &timeline.label(timeline.event(id)), id);
    match cause {
        Cause::Semaphore { from, hazard, subject } => {
            format!("semaphore from {}, {} {}", at(from), hazard.name(), timeline.subject(subject))
        }
        Cause::EngineOrder(from) => format!("engine order behind {}", at(from)),
        Cause::Port(from) => format!("port taken by {}", at(from)),
        Cause::DmaBandwidth => "DMA bandwidth".to_string(),
        Cause::DmaLatency => "DMA latency".to_string(),
        Cause::StartUp => "start-up".to_string(),
        Cause::Finished => "finished".to_string(),
        Cause::Limiter => "power limiter".to_string(),
        Cause::TableLoad => "function table load".to_string(),
        Cause::Barrier => "barrier".to_string(),
        Cause::Peer(peer) => format!("waits for {peer}"),
    }
}

/// A short cause of a stall, for sums over many stalls.
pub(super) fn short_cause(timeline: &Timeline, cause: Cause) -> String {
    match cause {
        Cause::Semaphore { from, hazard, subject } => {
            let what = if is_bank(timeline, hazard, subject) { "PSUM bank held by" } else { "semaphore from" };
            format!("{what} {} ({})", waited_for(timeline, from), hazard.name())
        }
        other => other.name().to_string(),
    }
}

/// The event that released a step of the critical path.
pub(super) fn released(timeline: &Timeline, release: Release) -> String {
    let at = |id: EventId| at(timeline, timeline.event(id).origin.label, id);
    match release {
        Release::Start => "the start".into(),
        Release::Engine(p) => format!("the engine, busy with {}", at(p)),
        Release::Semaphore { from, hazard, subject } => {
            format!("{}, {} {}", at(from), hazard.name(), timeline.subject(subject))
        }
        Release::Port(p) => format!("the memory port, taken by {}", at(p)),
        Release::Barrier(_) => "a barrier".into(),
        Release::Peer(p) => format!("a rendezvous with {}", at(p)),
        Release::Transfer(p) => format!("the DMA queue, busy with {}", at(p)),
    }
}

/// A part of the machine.
pub(super) fn resource(resource: Resource) -> &'static str {
    match resource {
        Resource::Engine(Engine::Tensor) => "tensor engine",
        Resource::Engine(Engine::Vector) => "vector engine",
        Resource::Engine(Engine::Scalar) => "scalar engine",
        Resource::Engine(Engine::GpSimd) => "GpSimd engine",
        Resource::Engine(_) => "sync engine",
        Resource::Limiter => "power limiter",
        Resource::TableLoad => "function table loads",
        Resource::DmaIssue => "DMA issue",
        Resource::DmaBandwidth => "DMA bandwidth",
        Resource::DmaLatency => "DMA latency",
        Resource::Collectives => "collectives",
        Resource::Synchronisation => "synchronisation",
        Resource::Fixed => "start-up and end",
    }
}

/// The word before `-bound`.
fn bound(bound: Bound) -> &'static str {
    match bound {
        Bound::Tensor => "tensor",
        Bound::Vector => "vector",
        Bound::Scalar => "scalar",
        Bound::GpSimd => "GpSimd",
        Bound::Sync => "sync",
        Bound::Dma => "DMA",
        Bound::Collectives => "collective",
        Bound::Synchronisation => "synchronisation",
        Bound::StartUp => "start-up",
    }
}

/// The bottleneck of a kernel, in one sentence.
pub fn verdict_sentence(timeline: &Timeline, verdict: &Verdict) -> String {
    let percent = |time: u64| (time * 100 + timeline.elapsed / 2) / timeline.elapsed.max(1);
    let name = bound(verdict.bound);
    let mut sentence = format!("{name}-bound: {}% of the time on the critical path is ", percent(verdict.time));
    let of_bound = || verdict.shares.iter().filter(|s| s.resource.bound() == verdict.bound);
    let parts: Vec<String> = of_bound()
        .filter(|s| percent(s.time) > 0)
        .map(|s| format!("{} {}%", resource(s.resource), percent(s.time)))
        .collect();
    match &parts[..] {
        [_] | [] => sentence += of_bound().next().map_or("start-up", |s| resource(s.resource)),
        many => sentence += &format!("{name} ({})", many.join(", ")),
    }
    if let Some(line) = verdict.lines.first() {
        let place = timeline.place(line.loc);
        let at = if place.is_empty() { String::new() } else { format!(" at {place}") };
        sentence += &format!("; {}{at} costs most, {}%", line.label, percent(line.critical));
    }
    sentence.push('.');
    if let Some(first) = sentence.get_mut(0..1) {
        first.make_ascii_uppercase();
    }
    sentence
}

/// The error bar of a latency, in one sentence.
pub(super) fn error_sentence(bar: &ErrorBar) -> String {
    error_words(bar, &format!("{} to {} us", figures(bar.low_us, f64::floor), figures(bar.high_us, f64::ceil)))
}

/// The same with times in a suitable unit: ns, us, ms or s.
pub(super) fn error_sentence_readable(bar: &ErrorBar) -> String {
    let (unit, name) = match bar.high_us {
        x if x >= 1e6 => (1e6, "s"),
        x if x >= 1e3 => (1e3, "ms"),
        x if x >= 1.0 => (1.0, "\u{b5}s"),
        _ => (1e-3, "ns"),
    };
    let [low, high] = [(bar.low_us, f64::floor as fn(f64) -> f64), (bar.high_us, f64::ceil)]
        .map(|(us, round)| figures(us / unit, round));
    error_words(bar, &format!("{low} to {high} {name}"))
}

fn error_words(bar: &ErrorBar, interval: &str) -> String {
    let runs = if bar.rows == 1 { "1 measured run".to_owned() } else { format!("{} measured runs", bar.rows) };
    match &bar.group {
        Some(group) => format!("On hardware: 90% within {interval} (the errors for similar kernels: {group}, {runs})."),
        None => {
            let collectives = if bar.features.ranks > 0 {
                " On hardware, collectives of few ranks took up to ten times as long as predicted."
            } else {
                ""
            };
            format!(
                "On hardware: no measured kernel is similar. The error is unknown; expect at least {interval} (the widest error bar of all kernels, {runs}).{collectives}"
            )
        }
    }
}

/// A positive number with three significant figures, or all its digits before the point, rounded by `round`.
fn figures(x: f64, round: fn(f64) -> f64) -> String {
    let decimals = (2 - x.log10().floor() as i32).clamp(0, 3);
    let unit = 10f64.powi(decimals);
    format!("{:.*}", decimals as usize, round(x * unit) / unit)
}

/// The position of a kernel under its roofline, in one or two sentences.
pub(super) fn roofline(r: &Roofline) -> String {
    let traffic = format!(
        "HBM traffic {} for {} needed ({:.2}x), {:.0} of {:.0} GB/s ({:.1}%; MBU {:.1}% of an HBM stack)",
        bytes(r.bytes),
        bytes(r.minimum_read + r.minimum_write),
        r.excess(),
        r.achieved_bytes,
        r.peak_bytes,
        r.bandwidth_percent,
        r.mbu_percent
    );
    if r.flops == 0 {
        return format!("no matrix multiplication; {traffic}");
    }
    let side = if r.intensity < r.ridge { "memory" } else { "compute" };
    format!(
        "{:.1} flop/byte, on the {side} side of the ridge at {:.0}; {:.2} of {:.2} attainable TFLOP/s, MFU {:.1}%; {traffic}",
        r.intensity,
        r.ridge,
        r.achieved_flops / 1e3,
        r.attainable_flops / 1e3,
        r.mfu_percent
    )
}

/// Part `i` of one side of a transfer in kernel syntax: `w[:, nl.ds(2 * i, 2)]`. An access that currently covers only part of the tensor is `w[...]`.
fn slice(s: &Slice) -> String {
    let rest = if s.whole { "" } else { "[...]" };
    let start = if s.step == 1 { "i".to_owned() } else { format!("{} * i", s.step) };
    format!("{}{rest}[{}nl.ds({start}, {})]", s.tensor, ":, ".repeat(s.axis), s.step)
}

/// A place with its iteration: `k.py:12 [i=3]`.
fn spot(timeline: &Timeline, spot: &Spot) -> String {
    let iterations: Vec<String> =
        spot.iterations.iter().map(|(variable, value)| format!("{variable}={value}")).collect();
    let within = if iterations.is_empty() { String::new() } else { format!(" [{}]", iterations.join(", ")) };
    format!("{}{within}", timeline.place(spot.loc))
}

/// The recommendation, with its numbers.
pub(super) fn remedy(timeline: &Timeline, remedy: &Remedy) -> String {
    match &remedy.change {
        RemedyChange::LargerDma { before, after } => format!("larger DMA: {after} transfers in place of {before}"),
        RemedyChange::RedundantLoads { loads, bytes: size, kept } => {
            let size = bytes(*size);
            format!("redundant loads: {loads} loads of the same {size} kept in SBUF ({kept} more bytes per partition)")
        }
        RemedyChange::FewerDescriptors { shortest } => format!(
            "fewer descriptors: data laid out so that each partition is one run (now runs of {shortest} bytes and more)"
        ),
        RemedyChange::DmaQueue { engine } => format!(
            "one more DMA queue: every other load with hardware descriptors, triggered by the {engine} engine (dge_mode=nki.isa.dge_mode.hwdge, engine=nki.isa.engine.{engine})"
        ),
        RemedyChange::DmaQueueOfLine { engine } => {
            let place = remedy.lines.first().map(|l| timeline.place(*l)).unwrap_or_default();
            format!(
                "another DMA queue: the transfers at {place} with hardware descriptors, triggered by the {engine} engine (dge_mode=nki.isa.dge_mode.hwdge, engine=nki.isa.engine.{engine})"
            )
        }
        RemedyChange::SplitDma { before, after, first, engine } => {
            let queue = engine.map_or(String::new(), |engine| {
                format!(", every other one with dge_mode=nki.isa.dge_mode.hwdge, engine=nki.isa.engine.{engine}")
            });
            format!(
                "split DMA: {after} transfers in place of {before}{queue}; at {}: for i in range({}): nisa.dma_copy(dst={}, src={})",
                timeline.place(first.loc),
                first.parts,
                slice(&first.dst),
                slice(&first.src)
            )
        }
        RemedyChange::EarlierLoads { loads, first, before } => {
            let many = if *loads == 1 {
                "1 load".to_owned()
            } else {
                format!("{loads} loads, each as soon as its tile is free")
            };
            format!(
                "earlier loads: {many}; that at {} before {} at {}",
                spot(timeline, first),
                before.label,
                spot(timeline, before)
            )
        }
        RemedyChange::DoubleBuffering { tensors, sbuf, psum } => {
            let tensors: Vec<String> = tensors.iter().map(|t| format!("`{t}`")).collect();
            format!(
                "overlap by double buffering: two buffers in turn for {} ({sbuf} more bytes of SBUF, {psum} of PSUM per partition)",
                tensors.join(", ")
            )
        }
        RemedyChange::IdleEngine { moved, label, from, to } => {
            let part = match moved {
                Moved::All => "the".to_string(),
                Moved::EveryOther(moved) => format!("every other ({moved})"),
            };
            let place = remedy.lines.first().map(|l| timeline.place(*l)).unwrap_or_default();
            format!("idle engine: {part} {label} at {place} on the {to} engine instead of the {from} engine")
        }
        RemedyChange::FullMatmuls { merged } => format!(
            "better tile shape: the same multiplications in full tiles (128 x 128 x 512), {merged} fewer matmuls"
        ),
        RemedyChange::FullRows { merged } => format!(
            "better tile shape: all 128 partitions and longer rows in each instruction, {merged} fewer instructions"
        ),
        RemedyChange::LowerPrecision { percent } => format!(
            "lower precision: bfloat16 for float32 in HBM, SBUF and the tensor engine ({percent}% of the instructions)"
        ),
    }
}
