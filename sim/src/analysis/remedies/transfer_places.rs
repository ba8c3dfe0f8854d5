//! Trials of rearranged transfers: lines of the critical path on another queue, split, or earlier.

use std::cmp::Reverse;
use std::sync::Arc;

use nki_isa::Arch;
use nki_isa::names::{Engine, Named};
use rustc_hash::FxHashMap;

use super::rearrange::{self, Parts};
use super::{Case, Remedy, RemedyChange, Trial, rewrite};
use crate::analysis::path::critical_path;
use crate::timeline::Ps;

/// Maximum number of lines that are split.
const MOST_LINES: usize = 4;
/// Numbers of parts, in the order of trial.
const PARTS: [u32; 2] = [4, 8];

/// Adds the trials for transfers on the critical path.
pub(super) fn trials<'a>(case: &Case<'a>, trials: &mut Vec<Trial<'a>>) {
    let case = *case;
    let lines = waited_for(&case);
    if lines.is_empty() {
        return;
    }
    let taken = &case.params.dma.load_queues.value;
    let other = [Engine::Sync, Engine::Scalar].into_iter().find(|e| !taken.iter().any(|t| t == e.name()));
    let other = other.filter(|_| Arch::of(case.program.target).hwdge);
    if let Some(engine) = other {
        for line in lines.iter().take(2).copied() {
            trials.push(Trial::new("dma-queues", move || on_queue(&case, line, engine)));
        }
    }
    let cut: Arc<[Line]> = lines.iter().take(MOST_LINES).copied().collect();
    let cost = cut.len() * if other.is_some() { 3 } else { 1 } + PARTS.len() - 1;
    trials.push(Trial { cost, ..Trial::new("split-dma", move || split(&case, &cut, other)) });
    for (i, some) in [lines.len(), 1, 2].into_iter().enumerate() {
        if i > 0 && some >= lines.len() {
            continue;
        }
        let lines = lines.clone();
        trials.push(Trial::new("earlier-loads", move || earlier(&case, &lines[..some])));
    }
}

/// File and number.
type Line = (u32, u32);

/// The lines whose transfers take time on the critical path, longest first.
fn waited_for(case: &Case<'_>) -> Vec<Line> {
    let mut time: FxHashMap<Line, Ps> = FxHashMap::default();
    for step in critical_path(case.timeline) {
        let e = case.timeline.event(step.event);
        if e.origin.queue.is_some() {
            *time.entry((e.origin.loc.file, e.origin.loc.line)).or_insert(0) += step.to - step.from;
        }
    }
    let mut lines: Vec<(Reverse<Ps>, Line)> = time.into_iter().map(|(line, time)| (Reverse(time), line)).collect();
    lines.retain(|(time, _)| time.0 * 500 > case.timeline.elapsed);
    lines.sort_unstable();
    lines.into_iter().map(|(_, line)| line).collect()
}

/// All transfers of a line with hardware descriptors, triggered by `engine`.
fn on_queue(case: &Case<'_>, line: Line, engine: Engine) -> Option<Remedy> {
    let (program, lines) = rewrite::on_queue(case.program, line, engine)?;
    let elapsed = case.with_program(&program, case.trace)?;
    Some(case.outcome(RemedyChange::DmaQueueOfLine { engine: engine.name() }, lines, elapsed))
}

/// Splits the transfers of one line after another, and keeps the changes that make the kernel faster. Parts on two queues must also beat the whole
/// line on the other queue.
fn split(case: &Case<'_>, lines: &[Line], other: Option<Engine>) -> Option<Remedy> {
    let time = |cuts: &[(Line, Parts)]| -> Option<(Ps, rearrange::Split)> {
        let split = rearrange::split(case.program, case.trace, cuts)?;
        Some((case.with_program(&split.program, &split.trace)?, split))
    };
    let mut cuts: Vec<(Line, Parts)> = Vec::new();
    let mut best: Option<(Ps, rearrange::Split)> = None;
    // The result for the first line, in case no line gains.
    let mut none: Option<(Ps, rearrange::Split)> = None;
    for &line in lines {
        let mut chosen = None;
        for engine in [None, other].into_iter().take(1 + usize::from(other.is_some())) {
            let parts = Parts { most: PARTS[0], engine };
            let Some(timed) = time(&[&cuts[..], &[(line, parts)]].concat()) else { continue };
            let before = best.as_ref().map_or(case.timeline.elapsed, |b| b.0);
            let moved = || engine.and_then(|engine| on_queue(case, line, engine)).map(|moved| moved.elapsed);
            if timed.0 < before && moved().is_none_or(|moved| timed.0 < moved) {
                best = Some(timed);
                chosen = Some((line, parts));
            } else if none.is_none() {
                none = Some(timed);
            }
        }
        cuts.extend(chosen);
    }
    if let Some((elapsed, _)) = best {
        for most in &PARTS[1..] {
            cuts.iter_mut().for_each(|cut| cut.1.most = *most);
            best = match time(&cuts) {
                Some(timed) if timed.0 < elapsed => Some(timed),
                _ => best,
            };
        }
    }
    let (elapsed, split) = best.or(none)?;
    let change =
        RemedyChange::SplitDma { before: split.before, after: split.after, first: split.first, engine: split.engine };
    Some(case.outcome(change, split.lines, elapsed))
}

/// Moves the loads of these lines up to where their tiles are free.
fn earlier(case: &Case<'_>, lines: &[Line]) -> Option<Remedy> {
    let moved = rearrange::hoisted(case.program, case.trace, lines)?;
    let elapsed = case.with_program(&moved.program, &moved.trace)?;
    let (first, before) = moved.first;
    let lines = vec![first.loc];
    Some(case.outcome(RemedyChange::EarlierLoads { loads: moved.loads, first, before }, lines, elapsed))
}
