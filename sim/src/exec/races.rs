//! Races between the cores of a logical core in shared HBM.
//!
//! The rule: every `core_barrier` and every `sendrecv` between the cores orders all accesses of either core before it, in program
//! order, before all accesses of the other core after it. Between two such rendezvous nothing is ordered. There, a byte that one core writes
//! and the other reads or writes is a race, unless the later write does not change the bytes: both cores may write the same result.
//!
//! Cores run one after the other from rendezvous to rendezvous, so only the accesses since the last one are recorded.

use nki_isa::ids::Loc;
use nki_isa::inst::Footprint;
use nki_isa::names::OobMode;
use nki_isa::program::Node;
use nki_isa::{Fault, Inst, Program, Space, TensorId, View};
use rustc_hash::{FxHashMap, FxHashSet};

use super::findings::{Findings, Place};
use super::interpreter::Interpreter;
use crate::deps::{self, By, Hazard, Index, Partitions, Region, Subject};
use crate::place::Placement;
use crate::trace::Resolved;

/// Maximum number of reported races: more would only repeat the problem at other locations.
const MOST: usize = 50;

/// Accesses to shared memory since the last rendezvous.
#[derive(Debug, Default)]
pub(super) struct Races<'p> {
    on: bool,
    tensors: FxHashMap<TensorId, Index>,
    /// The access sites, core and statement, by the number in the index.
    sites: Vec<(u32, &'p Node)>,
    /// Pairs of locations already reported.
    seen: FxHashSet<(Loc, Loc)>,
}

/// The views of an instruction, first those that it reads: whether it is written, and its address, if that is dynamic.
pub(super) fn accesses<'v, 'r>(
    footprint: &'v Footprint<'_>,
    resolved: Option<&'r [Resolved]>,
) -> impl Iterator<Item = (bool, &'v View, Option<&'r Resolved>)> {
    let mut resolved = resolved.unwrap_or(&[]).iter();
    let views = footprint.reads.iter().map(|v| (false, *v)).chain(footprint.writes.iter().map(|v| (true, *v)));
    views.map(move |(write, view)| (write, view, view.indirect.as_ref().and_then(|_| resolved.next())))
}

/// Another core's access to the same bytes.
pub(super) struct Conflict<'p> {
    tensor: TensorId,
    core: u32,
    node: &'p Node,
    pub(super) hazard: Hazard,
    /// The number of this core's view that accesses them.
    view: usize,
    /// The region that the other core accesses.
    other: Region,
}

impl<'p> Races<'p> {
    /// Enabled for several cores.
    pub(super) fn new(program: &Program) -> Self {
        Races { on: program.cores.len() > 1, ..Races::default() }
    }

    /// Whether accesses are watched.
    pub(super) fn is_on(&self) -> bool {
        self.on
    }

    /// Drops all accesses at a rendezvous, which orders them.
    pub(super) fn forget(&mut self) {
        self.tensors.clear();
        self.sites.clear();
    }

    /// Records the accesses of an instruction of core `me`. Returns the conflicting accesses of the other core.
    pub(super) fn note(
        &mut self,
        (program, placement): (&Program, &Placement),
        (me, node): (u32, &'p Node),
        footprint: &Footprint<'_>,
        resolved: Option<&[Resolved]>,
    ) -> Vec<Conflict<'p>> {
        let mut conflicts: Vec<Conflict<'p>> = Vec::new();
        let id = self.sites.len() as u32;
        let mut noted = false;
        for (i, (write, view, dynamic)) in accesses(footprint, resolved).enumerate() {
            let tensor = program.tensor(view.tensor);
            if tensor.space != Space::SharedHbm {
                continue;
            }
            let Races { tensors, sites, seen, .. } = self;
            let index = tensors.entry(view.tensor).or_insert_with(|| Index::new(tensor.bytes() as u64));
            deps::regions(program, placement, view, dynamic, &mut |region| {
                let by = By { op: id, queue: me as u8, reach: 1, write };
                index.conflicts(&region, by, |op, queue, hazard, _, other| {
                    let known = |c: &Conflict<'_>| c.view == i && c.hazard == hazard && c.other == *other;
                    if u32::from(queue) != me
                        && let Some(&(core, by)) = sites.get(op as usize)
                        && !seen.contains(&(node.loc, by.loc))
                        && !conflicts.iter().any(|c| known(c) && c.node.loc == by.loc)
                    {
                        let other = other.clone();
                        conflicts.push(Conflict { tensor: view.tensor, core, node: by, hazard, view: i, other });
                    }
                });
                index.insert(region, by, Subject::Tensor(view.tensor));
            });
            noted = true;
        }
        if noted {
            self.sites.push((me, node));
        }
        conflicts
    }

    /// Reports a race between an instruction of core `me` and a conflicting access.
    pub(super) fn report(&mut self, findings: &mut Findings, me: u32, at: Place<'_, '_>, c: &Conflict<'_>) {
        if self.seen.len() < MOST && self.seen.insert((at.node.loc, c.node.loc)) {
            findings.race((me, at), (c.core, c.node), c.tensor, c.hazard);
        }
    }
}

impl<'p> Interpreter<'p> {
    /// Executes an instruction and reports its races.
    pub(super) fn execute_watched(
        &mut self,
        node: &'p Node,
        inst: &'p Inst,
        footprint: &Footprint<'p>,
        resolved: Option<&[Resolved]>,
    ) -> Result<(), Fault> {
        let (program, placement) = (self.program, self.deferred.placement());
        let me = self.core.number;
        let conflicts = self.races.note((program, placement), (me, node), footprint, resolved);
        if let Some(crossing) = self.unlinked.note((program, placement), (me, node), footprint, resolved) {
            let at = Place { program, node, loops: &self.core.loops };
            self.findings.unlinked((me, at), &crossing);
        }
        if conflicts.is_empty() {
            return inst.execute(self);
        }
        let views: Vec<&View> = footprint.reads.iter().chain(&footprint.writes).copied().collect();
        let mut before: FxHashMap<usize, Vec<u8>> = FxHashMap::default();
        for c in conflicts.iter().filter(|c| c.hazard != Hazard::Raw) {
            let bytes = self.bytes_of(views[c.view])?;
            before.insert(c.view, bytes);
        }
        inst.execute(self)?;
        for c in conflicts {
            let races = match before.get(&c.view) {
                Some(old) => changes(views[c.view], &c.other, old, &self.bytes_of(views[c.view])?),
                None => true,
            };
            if races {
                let at = Place { program, node, loops: &self.core.loops };
                self.races.report(&mut self.findings, me, at, &c);
            }
        }
        Ok(())
    }

    /// The bytes that a view names, for indices within bounds.
    fn bytes_of(&mut self, view: &View) -> Result<Vec<u8>, Fault> {
        self.flush();
        let Some(access) = self.locate(view, OobMode::Skip)? else { return Ok(Vec::new()) };
        let mut bytes = vec![0; access.elements() * access.codec.size()];
        self.memory().gather(&access, &mut bytes);
        Ok(bytes)
    }
}

/// Whether a write through a view of shared memory, from bytes `old` to `new`, has changed a byte that another core accesses.
fn changes(view: &View, other: &Region, old: &[u8], new: &[u8]) -> bool {
    let size = view.dtype.size();
    if view.indirect.is_some() || old.len() != new.len() || old.len() != view.elements() * size {
        return old != new;
    }
    let changed = old.chunks_exact(size).zip(new.chunks_exact(size)).enumerate().filter(|(_, (old, new))| old != new);
    changed.map(|(element, _)| element).any(|element| {
        let (mut rest, mut offset) = (element as i64, view.offset);
        for dim in view.dims.iter().rev() {
            offset += rest % i64::from(dim.count) * dim.stride;
            rest /= i64::from(dim.count);
        }
        let one = Partitions { start: 0, stride: 1, count: 1 };
        Region::of(one, &[], offset, size as i64, 0).overlaps(other)
    })
}
