//! Arrows between events: from the last writer of a tensor to its readers, and from the event that released another.

use nki_isa::inst::Footprint;
use nki_isa::program::NodeKind;
use nki_isa::{Program, TensorId};
use smallvec::SmallVec;

use crate::timeline::{Release, Timeline};
use crate::trace::index_nodes;

/// The arrows of one timeline, with unique numbers.
pub(super) struct Flows {
    /// Start and end, sorted by end; an arrow's number is its position, after `first`.
    arrows: Vec<(u32, u32)>,
    /// Positions by start.
    by_start: Vec<u32>,
    first: u64,
}

/// Tensors that a statement reads and writes, each once.
#[derive(Default)]
struct Touched {
    reads: SmallVec<[TensorId; 4]>,
    writes: SmallVec<[TensorId; 2]>,
}

impl Flows {
    /// The arrows of a timeline, numbered from `first` + 1. The last writer of a tensor is searched in the program order of the same core: accesses
    /// of two cores to shared HBM are not ordered.
    pub(super) fn of(timeline: &Timeline, program: &Program, first: u64) -> Flows {
        let nodes: Vec<Vec<Touched>> = program.cores.iter().map(|stream| touched(stream)).collect();
        let mut arrows: Vec<(u32, u32)> = Vec::new();
        let mut writer: Vec<Option<u32>> = vec![None; program.tensors.len()];
        let mut core = 0;
        for (i, e) in timeline.events.iter().enumerate() {
            if e.origin.core != core {
                core = e.origin.core;
                writer.fill(None);
            }
            let i = i as u32;
            let own = arrows.len();
            let waited = match e.released {
                Release::Semaphore { from, .. } => Some(from.0),
                _ => None,
            };
            let touched = &nodes[e.origin.core as usize][e.node.0 as usize];
            let made = touched.reads.iter().filter_map(|t| writer[t.0 as usize]);
            for from in made.chain(waited) {
                if from != i && !arrows[own..].contains(&(from, i)) {
                    arrows.push((from, i));
                }
            }
            for t in &touched.writes {
                writer[t.0 as usize] = Some(i);
            }
        }
        let mut by_start: Vec<u32> = (0..arrows.len() as u32).collect();
        by_start.sort_by_key(|a| arrows[*a as usize].0);
        Flows { arrows, by_start, first }
    }

    pub(super) fn count(&self) -> u64 {
        self.arrows.len() as u64
    }

    /// Numbers of the arrows that start at an event.
    pub(super) fn from(&self, event: u32) -> Vec<u64> {
        let at = self.by_start.partition_point(|a| self.arrows[*a as usize].0 < event);
        let mine = self.by_start[at..].iter().take_while(|a| self.arrows[**a as usize].0 == event);
        mine.map(|a| self.number(*a as usize)).collect()
    }

    /// Numbers of the arrows that end at an event.
    pub(super) fn to(&self, event: u32) -> Vec<u64> {
        let at = self.arrows.partition_point(|a| a.1 < event);
        let mine = self.arrows[at..].iter().take_while(|a| a.1 == event);
        (at..).zip(mine).map(|(a, _)| self.number(a)).collect()
    }

    fn number(&self, arrow: usize) -> u64 {
        self.first + arrow as u64 + 1
    }
}

fn touched(stream: &[nki_isa::program::Node]) -> Vec<Touched> {
    let mut footprint = Footprint::default();
    let mut out = Vec::new();
    for node in index_nodes(stream) {
        let mut touched = Touched::default();
        if let NodeKind::Inst(inst) = &node.kind {
            footprint.clear();
            inst.footprint(&mut footprint);
            for v in &footprint.reads {
                if !touched.reads.contains(&v.tensor) {
                    touched.reads.push(v.tensor);
                }
            }
            for v in &footprint.writes {
                if !touched.writes.contains(&v.tensor) {
                    touched.writes.push(v.tensor);
                }
            }
        }
        out.push(touched);
    }
    out
}
