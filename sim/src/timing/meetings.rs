//! Which operations of different cores and ranks meet: as in the run, each core comes to its meetings in program order, but leaves an exchange
//! behind where the cores come to exchanges of different pipes.

use nki_isa::program::NodeKind;

use super::lower::{Lowered, OpKind};
use crate::actors::{self, Actor, EXCHANGE};

/// All meetings of a run.
#[derive(Debug, Default)]
pub(crate) struct Meetings {
    /// By rendezvous: its members.
    pub(super) sizes: Vec<usize>,
    /// By core in the list: (operation, its meeting).
    pub(crate) of: Vec<Vec<(u32, u32)>>,
    /// By core in the list: operations that it leaves behind until the others come.
    pub(super) posted: Vec<Vec<u32>>,
}

/// Pairs the meetings of all cores. Those that never come about (a run that failed) are none.
pub(crate) fn pair(lowered: &[(Actor, Lowered<'_>)]) -> Meetings {
    if lowered.len() < 2 {
        return Meetings {
            sizes: Vec::new(),
            of: vec![Vec::new(); lowered.len()],
            posted: vec![Vec::new(); lowered.len()],
        };
    }
    let ranks = lowered.iter().map(|(a, _)| a.rank + 1).max().unwrap_or(0);
    let mut cores = vec![0; ranks];
    for (a, _) in lowered {
        cores[a.rank] += 1;
    }
    let place = |actor: Actor| lowered.iter().position(|(a, _)| *a == actor);
    type Wanted = (u32, (u8, Option<i64>), Vec<Actor>);
    let wanted: Vec<Vec<Wanted>> = lowered
        .iter()
        .map(|(actor, low)| {
            let instructions = low.ops.iter().enumerate().filter(|(_, op)| matches!(op.kind, OpKind::Inst { .. }));
            let meeting = |(i, op): (usize, &super::lower::Op)| {
                let NodeKind::Inst(inst) = &low.nodes[op.node.0 as usize].kind else { return None };
                let meeting = inst.meeting()?;
                let (members, _) = actors::members(&meeting, *actor, &cores);
                (members.len() > 1).then(|| (i as u32, actors::kind(&meeting), members))
            };
            instructions.filter_map(meeting).collect()
        })
        .collect();
    let mut out =
        Meetings { sizes: Vec::new(), of: vec![Vec::new(); lowered.len()], posted: vec![Vec::new(); lowered.len()] };
    let mut next = vec![0; lowered.len()];
    // By core: meetings left behind, by their position in `wanted`.
    let mut left: Vec<Vec<usize>> = vec![Vec::new(); lowered.len()];
    let mut work: Vec<usize> = (0..lowered.len()).rev().collect();
    loop {
        while let Some(c) = work.pop() {
            let Some((_, kind, members)) = wanted[c].get(next[c]) else { continue };
            let places: Option<Vec<usize>> = members.iter().map(|m| place(*m)).collect();
            let Some(places) = places else { continue };
            let fits = |p: usize, at: usize| wanted[p].get(at).is_some_and(|(_, k, m)| k == kind && m == members);
            let at: Option<Vec<usize>> =
                places.iter().map(|&p| left[p].iter().copied().chain([next[p]]).find(|&at| fits(p, at))).collect();
            let Some(at) = at else { continue };
            let id = out.sizes.len() as u32;
            out.sizes.push(places.len());
            for (&p, at) in places.iter().zip(at) {
                out.of[p].push((wanted[p][at].0, id));
                if at == next[p] {
                    next[p] += 1;
                } else {
                    left[p].retain(|&x| x != at);
                }
            }
            work.extend(places.into_iter().rev());
        }
        // Nobody can go on: exchanges are left behind.
        for c in 0..lowered.len() {
            if let Some((op, (EXCHANGE, _), _)) = wanted[c].get(next[c]) {
                out.posted[c].push(*op);
                left[c].push(next[c]);
                next[c] += 1;
                work.push(c);
            }
        }
        if work.is_empty() {
            return out;
        }
    }
}
