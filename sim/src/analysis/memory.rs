//! On-chip memory over time: the lifetime of each tensor, and the occupancy of SBUF and PSUM.

use nki_isa::inst::Footprint;
use nki_isa::program::{NodeKind, Statements};
use nki_isa::{Program, Space, TensorId};

use crate::place::Placement;
use crate::timeline::{EventId, Ps, Timeline};

/// The lifetime of a tensor in on-chip memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allocation {
    /// The tensor.
    pub tensor: TensorId,
    /// The core that owns it.
    pub core: u32,
    /// SBUF or PSUM.
    pub space: Space,
    /// First partition.
    pub partition: u32,
    /// Partitions.
    pub partitions: u32,
    /// First byte in each partition.
    pub byte: u32,
    /// Bytes in each partition.
    pub bytes: u32,
    /// Start of the first instruction that accesses it.
    pub start: Ps,
    /// Completion of the last.
    pub end: Ps,
    /// The first instruction.
    pub first: EventId,
}

/// From the start of the first instruction that accesses a tensor to the completion of the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Life {
    /// Start of the first.
    pub start: Ps,
    /// Completion of the last.
    pub end: Ps,
    /// The first instruction.
    pub first: EventId,
}

/// The lifetime of each tensor; `None` if no executed instruction accesses it, and outside SBUF and PSUM.
pub fn lives(timeline: &Timeline, program: &Program) -> Vec<Option<Life>> {
    let nodes: Vec<Statements<'_>> = program.cores.iter().map(|stream| Statements::of(stream)).collect();
    let mut footprint = Footprint::default();
    let mut lives: Vec<Option<Life>> = vec![None; program.tensors.len()];
    for (i, e) in timeline.events.iter().enumerate() {
        let first = EventId(i as u32);
        let node = nodes[e.origin.core as usize].node(e.node.0);
        let Some(NodeKind::Inst(inst)) = node.map(|n| &n.kind) else { continue };
        footprint.clear();
        inst.footprint(&mut footprint);
        for view in footprint.reads.iter().chain(&footprint.writes).filter(|v| v.space.is_on_chip()) {
            let life = lives[view.tensor.0 as usize].get_or_insert(Life { start: e.start, end: e.complete, first });
            if e.start < life.start {
                (life.start, life.first) = (e.start, first);
            }
            life.end = life.end.max(e.complete);
        }
    }
    lives
}

/// All on-chip tensors that an executed instruction accesses, by start.
pub fn allocations(timeline: &Timeline, program: &Program, placement: &Placement) -> Vec<Allocation> {
    let mut out: Vec<Allocation> = lives(timeline, program)
        .into_iter()
        .enumerate()
        .filter_map(|(i, life)| {
            let Life { start, end, first } = life?;
            let tensor = &program.tensors[i];
            let address = placement.address(TensorId(i as u32))?;
            Some(Allocation {
                tensor: TensorId(i as u32),
                core: tensor.core,
                space: tensor.space,
                partition: address.partition,
                partitions: tensor.shape.first().copied().unwrap_or(1),
                byte: address.byte,
                bytes: tensor.bytes() as u32,
                start,
                end,
                first,
            })
        })
        .collect();
    out.sort_by_key(|a| (a.start, a.tensor));
    out
}

/// Bytes per partition in use over time in one memory of one core: `(time, bytes)` at each change. Bytes shared by two tensors
/// count twice while both are alive.
pub fn occupancy(program: &Program, lives: &[Option<Life>], core: u32, space: Space) -> Vec<(Ps, u64)> {
    let mut edges: Vec<(Ps, i64)> = Vec::new();
    for (tensor, life) in program.tensors.iter().zip(lives) {
        let Some(life) = life.filter(|_| tensor.core == core && tensor.space == space) else { continue };
        edges.push((life.start, tensor.bytes() as i64));
        edges.push((life.end, -(tensor.bytes() as i64)));
    }
    edges.sort_unstable();
    let mut out: Vec<(Ps, u64)> = vec![(0, 0)];
    let mut now = 0i64;
    for (time, change) in edges {
        now += change;
        match out.last_mut() {
            Some(last) if last.0 == time => last.1 = now as u64,
            _ => out.push((time, now as u64)),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::place;
    use crate::timing::tests::{tensor_add, time};

    #[test]
    fn memory_fills_and_empties() {
        let program = tensor_add();
        let t = time(&program);
        let all = allocations(&t, &program, &place(&program).unwrap());
        assert_eq!(all.len(), 3);
        let use_of = occupancy(&program, &lives(&t, &program), 0, Space::Sbuf);
        assert_eq!(use_of.last().map(|p| p.1), Some(0));
        assert_eq!(use_of.iter().map(|p| p.1).max(), Some(3 * 512 * 4));
        assert!(use_of.windows(2).all(|w| w[0].0 < w[1].0));
    }
}
