//! Which of several instructions that can start the compiler starts first.

use crate::deps::Hazard;
use crate::timeline::Ps;
use crate::timing::cost::CostKind;
use crate::timing::lower::Lowered;

/// By operation: smaller is more urgent. That is program order, with two exceptions. A transfer is as urgent as the first instruction that reads what
/// it brings. And where a burst of transfers replaces what matmuls read, and the tensor engine has too little to do until it needs the burst, those
/// matmuls are interleaved: first comes the one with the longest way to the end, over what waits for it. So accumulation groups advance together, and
/// their operands become free one after the other.
pub(super) fn urgency(low: &Lowered<'_>, window: u32) -> Vec<u32> {
    let n = low.ops.len();
    let cost = |i: usize| low.cost(i as u32).map(|c| &c.kind);
    let is_dma = |i: usize| matches!(cost(i), Some(CostKind::Dma(_)));
    let matmul = |i: usize| match cost(i) {
        Some(CostKind::Matmul { moving, .. }) => Some(*moving),
        _ => None,
    };
    // What matmuls before an operation take, and what the transfers up to it take that follow each other without computation.
    let mut work: Vec<Ps> = vec![0; n + 1];
    let mut burst: Vec<Ps> = vec![0; n];
    for i in 0..n {
        work[i + 1] = work[i] + matmul(i).unwrap_or(0);
        if let Some(CostKind::Dma(d)) = cost(i) {
            burst[i] = d.longest() + if i > 0 { burst[i - 1] } else { 0 };
        }
    }
    let mut urgency: Vec<u32> = (0..n as u32).collect();
    let mut way: Vec<Ps> = vec![0; n];
    let mut interleaved = vec![false; n];
    for i in (0..n).rev() {
        if i + 1 < n && is_dma(i + 1) {
            // All of the burst.
            burst[i] = burst[i].max(if is_dma(i) { burst[i + 1] } else { 0 });
        }
        way[i] += match cost(i) {
            Some(CostKind::Dma(d)) => d.alone(d.hardware.1),
            Some(CostKind::Matmul { moving, .. }) => *moving,
            Some(CostKind::Compute { complete, .. }) => *complete,
            Some(CostKind::Free) | None => 0,
        };
        let deps = low.deps.of(i);
        for dep in deps {
            let on = dep.on as usize;
            way[on] = way[on].max(way[i]);
            if dep.hazard == Hazard::Raw && is_dma(on) {
                urgency[on] = i as u32;
            }
        }
        if is_dma(i) {
            let readers = || deps.iter().filter(|d| d.hazard == Hazard::War && matmul(d.on as usize).is_some());
            let needed = work[urgency[i] as usize];
            if let Some(last) = readers().map(|d| d.on as usize).max()
                && needed.saturating_sub(work[last + 1]) < burst[i]
            {
                for dep in readers().filter(|d| i - d.on as usize <= window as usize) {
                    interleaved[dep.on as usize] = true;
                }
            }
        }
    }
    interleave(&mut urgency, &interleaved, &way);
    urgency
}

/// The interleaved operations share the places that they have in program order: the longest way to the end takes the first.
fn interleave(urgency: &mut [u32], interleaved: &[bool], way: &[Ps]) {
    let places: Vec<u32> = (0..interleaved.len() as u32).filter(|i| interleaved[*i as usize]).collect();
    let mut ops = places.clone();
    ops.sort_by_key(|i| (std::cmp::Reverse(way[*i as usize]), *i));
    for (i, place) in ops.into_iter().zip(places) {
        urgency[i as usize] = place;
    }
}
