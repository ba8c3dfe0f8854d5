//! The DMA engines: bandwidth sharing between concurrent transfers.
//!
//! On each engine, the non-empty queues share its time equally (round-robin, packet by packet). Each queue moves one transfer at a
//! time.
//! Engines with equal loads in every transfer of the kernel are simulated once.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::cost::DmaCost;
use super::fixed::Millionths;
use crate::timeline::Ps;

/// Parts of a DMA engine's time.
const WHOLE: u64 = Millionths::FULL.parts();

#[derive(Debug)]
struct Job {
    op: u32,
    /// Remaining engine time, in millionths of a picosecond.
    left: u64,
    /// Shared bytes per engine and microsecond at the full rate.
    shared: u64,
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
    /// Engines in each class.
    members: Vec<u64>,
    /// The share of the full rate that the traffic of all cores leaves them.
    scale: Millionths,
    /// Whether a transfer has begun or ended since the last reset.
    pub(crate) touched: bool,
}

/// The DMA engines grouped by equal loads in every transfer of a kernel.
#[derive(Debug)]
pub(crate) struct Classes {
    /// By engine: its class.
    class: Vec<u32>,
    count: u32,
}

impl Classes {
    pub(crate) fn new<'a>(engines: u32, costs: impl Iterator<Item = &'a DmaCost>) -> Self {
        let mut class = vec![0u32; engines as usize];
        let mut count = 1;
        let mut loads = vec![0u64; engines as usize];
        let mut before: &[(u8, Ps)] = &[];
        for cost in costs {
            if count == engines {
                break;
            }
            // Kernels repeat few transfers, and a repeated one does not split a class.
            if *cost.engines == *before {
                continue;
            }
            before = &cost.engines;
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
        Classes { class, count }
    }
}

impl Engines {
    pub(crate) fn new(classes: &Classes, queues: usize) -> Self {
        let Classes { class, count } = classes;
        let count = *count;
        let first: Vec<u8> = (0..count).map(|c| class.iter().position(|x| *x == c).unwrap_or_default() as u8).collect();
        let classes = (0..count)
            .map(|_| Class { queues: (0..queues).map(|_| VecDeque::new()).collect(), ..Class::default() })
            .collect();
        let members = (0..count).map(|c| class.iter().filter(|x| **x == c).count() as u64).collect();
        Engines { classes, first, members, scale: Millionths::FULL, touched: false }
    }

    /// Adds the parts of a transfer and returns their number. Calls `tick(time, class, version)` for the next completion on each class.
    pub(crate) fn add(
        &mut self,
        op: u32,
        queue: usize,
        cost: &DmaCost,
        now: Ps,
        tick: &mut impl FnMut(Ps, u32, u32),
    ) -> u32 {
        let mut parts = 0;
        self.touched = true;
        let scale = self.scale;
        let time: u128 = cost.engines.iter().map(|(_, t)| u128::from(*t)).sum();
        let shared = (u128::from(cost.shared_load) * u128::from(WHOLE) / time.max(1)) as u64;
        for (c, class) in self.classes.iter_mut().enumerate() {
            let Some(&(_, time)) = cost.engines.iter().find(|(e, t)| *e == self.first[c] && *t > 0) else { continue };
            class.advance(now, scale);
            class.queues[queue].push_back(Job { op, left: time.saturating_mul(WHOLE), shared });
            class.schedule(now, scale, c as u32, tick);
            parts += 1;
        }
        parts
    }

    /// Handles a completion scheduled by `tick`; calls `done(op)` for each completed part.
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
        self.touched = true;
        class.advance(now, self.scale);
        for queue in &mut class.queues {
            queue.retain(|job| {
                if job.left == 0 {
                    done(job.op);
                }
                job.left > 0
            });
        }
        class.schedule(now, self.scale, index, tick);
    }

    /// Shared bytes per microsecond that the transfers in flight would move if only the DMA engines limited them.
    pub(crate) fn demand(&mut self) -> u128 {
        let mut total = 0;
        for (class, members) in self.classes.iter_mut().zip(&self.members) {
            Class::running(&mut class.queues, Millionths::FULL, |job, rate| {
                total += u128::from(job.shared) * u128::from(rate) * u128::from(*members) / u128::from(WHOLE);
            });
        }
        total
    }

    /// Transfers move at `scale` of their rates from now on.
    pub(crate) fn rescale(&mut self, scale: Millionths, now: Ps, tick: &mut impl FnMut(Ps, u32, u32)) {
        let before = std::mem::replace(&mut self.scale, scale);
        if before != scale {
            for (c, class) in self.classes.iter_mut().enumerate() {
                class.advance(now, before);
                class.schedule(now, scale, c as u32, tick);
            }
        }
    }
}

impl Class {
    /// Calls `f(job, rate)` for the jobs that make progress: the first of each queue, at `scale` of their rates.
    fn running(queues: &mut [VecDeque<Job>], scale: Millionths, mut f: impl FnMut(&mut Job, u64)) {
        let active = queues.iter().filter(|q| !q.is_empty()).count() as u64;
        if active == 0 {
            return;
        }
        let share = (WHOLE / active).max(1);
        let scaled = if scale == Millionths::FULL { share } else { scale.done_in(share).max(1) };
        for job in queues.iter_mut().filter_map(VecDeque::front_mut) {
            f(job, scaled);
        }
    }

    fn advance(&mut self, now: Ps, scale: Millionths) {
        let elapsed = now - self.last;
        self.last = now;
        if elapsed > 0 {
            Self::running(&mut self.queues, scale, |job, rate| {
                job.left = job.left.saturating_sub(elapsed.saturating_mul(rate));
            });
        }
    }

    fn schedule(&mut self, now: Ps, scale: Millionths, index: u32, tick: &mut impl FnMut(Ps, u32, u32)) {
        self.version = self.version.wrapping_add(1);
        let mut next: Option<Ps> = None;
        Self::running(&mut self.queues, scale, |job, rate| {
            let t = job.left.div_ceil(rate);
            next = Some(next.map_or(t, |n| n.min(t)));
        });
        if let Some(t) = next {
            tick(now + t, index, self.version);
        }
    }
}
