//! The DMA engines: how concurrent transfers share them.
//!
//! On each engine the queues with something to move share its time equally (it goes round-robin between queues packet by packet). Within a
//! queue transfers go in order; what the first cannot use, because one transfer alone does not fill an engine, the second gets.
//! Engines whose load is equal in every transfer of the kernel are simulated once.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::cost::DmaCost;
use crate::timeline::Ps;

/// Millionths of a DMA engine.
const WHOLE: u64 = 1_000_000;

#[derive(Debug)]
struct Job {
    op: u32,
    /// Engine time left, in millionths of a picosecond.
    left: u64,
    rate: u64,
}

#[derive(Debug, Default)]
struct Class {
    queues: Vec<VecDeque<Job>>,
    last: Ps,
    version: u32,
}

/// All DMA engines of a core, one entry for each class of engines with equal loads.
#[derive(Debug)]
pub(crate) struct Engines {
    classes: Vec<Class>,
    /// The first engine of each class.
    first: Vec<u8>,
}

impl Engines {
    pub(crate) fn new<'a>(engines: u32, queues: usize, costs: impl Iterator<Item = &'a DmaCost>) -> Self {
        let mut class = vec![0u32; engines as usize];
        let mut count = 1;
        let mut loads = vec![0u64; engines as usize];
        for cost in costs {
            if count == engines {
                break;
            }
            loads.fill(0);
            for &(e, t) in &cost.engines {
                loads[e as usize] = t;
            }
            let mut seen: FxHashMap<(u32, u64), u32> = FxHashMap::default();
            for (c, load) in class.iter_mut().zip(&loads) {
                let next = seen.len() as u32;
                *c = *seen.entry((*c, *load)).or_insert(next);
            }
            count = seen.len() as u32;
        }
        let first: Vec<u8> = (0..count).map(|c| class.iter().position(|x| *x == c).unwrap_or_default() as u8).collect();
        let classes = (0..count)
            .map(|_| Class { queues: (0..queues).map(|_| VecDeque::new()).collect(), ..Class::default() })
            .collect();
        Engines { classes, first }
    }

    /// Adds the parts of a transfer; returns how many there are. Calls `tick(time, class, version)` for the next completion on each class.
    pub(crate) fn add(
        &mut self,
        op: u32,
        queue: usize,
        cost: &DmaCost,
        now: Ps,
        tick: &mut impl FnMut(Ps, u32, u32),
    ) -> u32 {
        let mut parts = 0;
        for (c, class) in self.classes.iter_mut().enumerate() {
            let Some(&(_, time)) = cost.engines.iter().find(|(e, t)| *e == self.first[c] && *t > 0) else { continue };
            class.advance(now);
            class.queues[queue].push_back(Job { op, left: time.saturating_mul(WHOLE), rate: cost.rate });
            class.schedule(now, c as u32, tick);
            parts += 1;
        }
        parts
    }

    /// Handles a completion foreseen by `tick`; calls `done(op)` for each part that ended.
    pub(crate) fn tick(
        &mut self,
        index: u32,
        version: u32,
        now: Ps,
        tick: &mut impl FnMut(Ps, u32, u32),
        done: &mut impl FnMut(u32),
    ) {
        let class = &mut self.classes[index as usize];
        if class.version != version {
            return;
        }
        class.advance(now);
        for queue in &mut class.queues {
            queue.retain(|job| {
                if job.left == 0 {
                    done(job.op);
                }
                job.left > 0
            });
        }
        class.schedule(now, index, tick);
    }
}

impl Class {
    /// Calls `f(job, rate)` for the jobs that make progress.
    fn running(queues: &mut [VecDeque<Job>], mut f: impl FnMut(&mut Job, u64)) {
        let active = queues.iter().filter(|q| !q.is_empty()).count() as u64;
        if active == 0 {
            return;
        }
        for queue in queues {
            let mut share = WHOLE / active;
            for job in queue {
                let rate = job.rate.min(share);
                if rate == 0 {
                    break;
                }
                f(job, rate);
                share -= rate;
            }
        }
    }

    fn advance(&mut self, now: Ps) {
        let elapsed = now - self.last;
        self.last = now;
        if elapsed > 0 {
            Self::running(&mut self.queues, |job, rate| {
                job.left = job.left.saturating_sub(elapsed.saturating_mul(rate));
            });
        }
    }

    fn schedule(&mut self, now: Ps, index: u32, tick: &mut impl FnMut(Ps, u32, u32)) {
        self.version = self.version.wrapping_add(1);
        let mut next: Option<Ps> = None;
        Self::running(&mut self.queues, |job, rate| {
            let t = job.left.div_ceil(rate);
            next = Some(next.map_or(t, |n| n.min(t)));
        });
        if let Some(t) = next {
            tick(now + t, index, self.version);
        }
    }
}
