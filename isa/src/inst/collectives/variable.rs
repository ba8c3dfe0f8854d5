//! The shared part of `all_gather_v` and `all_to_all_v`: counts and displacements read at run time.
//!
//! The rows of the metadata: send counts, send displacements, receive counts (written), receive displacements. All in elements.

use ndarray::Array2;

use crate::arg::{IntLists, Views};
use crate::machine::{Fault, Machine};
use crate::view::{Dim, View};
use crate::violation::Violation;

/// How the metadata are read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Flags {
    /// Received counts are not written.
    pub(crate) counts_known: bool,
    /// Row 3 holds the receive displacements.
    pub(crate) displacements: bool,
    /// Only the first send column is used: all ranks receive the same chunk.
    pub(crate) one_chunk: bool,
    /// The preparation has already read the metadata.
    pub(crate) prepared: bool,
}

fn is_flat(view: &View) -> bool {
    view.indirect.is_none() && matches!(View::merged(&view.dims)[..], [] | [Dim { stride: 1, .. }])
}

pub(crate) fn check(
    srcs: &Views,
    dsts: &Views,
    metadata: &View,
    groups: &IntLists,
    displacements: bool,
) -> Result<(), Violation> {
    if srcs.0.len() != 1 {
        return Err(Violation::new(
            "operand-value",
            "srcs",
            format!("`srcs` has {} tensors, but must have one", srcs.0.len()),
        ));
    }
    if let Some(odd) = srcs.0.iter().chain(&dsts.0).find(|v| !is_flat(v)) {
        return Err(Violation::new(
            "shape-mismatch",
            "srcs",
            format!("a tensor of shape {:?} is not contiguous: it is taken as a flat buffer", odd.shape()),
        ));
    }
    let (rows, ranks) = (if displacements { 4 } else { 3 }, super::group_size(groups) as usize);
    // "Row 3 may be omitted": without displacements it is ignored (`all_to_all_v` reference).
    let fits = (rows..=4).any(|rows| metadata.elements() == rows * ranks);
    if !fits || metadata.space.is_on_chip() && metadata.partitions() != 1 {
        return Err(Violation::new(
            "shape-mismatch",
            "metadata_tensor",
            format!(
                "`metadata_tensor` has {:?}, but must be ({rows}, {ranks}) in HBM or (1, {rows}, {ranks}) in sbuf",
                metadata.shape()
            ),
        ));
    }
    Ok(())
}

/// The data that a member sends: the source, of which only the parts to be sent are read, then the send rows of the metadata.
pub(crate) fn contribution(
    machine: &mut dyn Machine,
    srcs: &Views,
    metadata: &View,
    ranks: u32,
    one_chunk: bool,
    prepared: bool,
) -> Result<Vec<Array2<u32>>, Fault> {
    let n = ranks as usize;
    let sends = match prepared {
        true => prepared_metadata(machine, 0, 2 * n)?,
        false => machine.read_bits(&part(metadata, 0, 2 * n))?.iter().copied().collect(),
    };
    let mut out = Vec::new();
    for src in &srcs.0 {
        let mut data = vec![0; src.elements()];
        for column in 0..if one_chunk { 1 } else { n } {
            let (count, from) = (sends[column] as usize, sends[n + column] as usize);
            // A part that exceeds the source is an error of [`execute`].
            if let Some(sent) =
                from.checked_add(count).and_then(|end| data.get_mut(from..end)).filter(|s| !s.is_empty())
            {
                let read = machine.read_bits(&part(src, from, count))?;
                sent.iter_mut().zip(&read).for_each(|(to, &bits)| *to = bits);
            }
        }
        out.push(row(data)?);
    }
    out.push(row(sends)?);
    Ok(out)
}

/// The engine state that holds a collective's metadata between its preparation and its start.
const PREPARED: &str = "prepared collective";

/// Reads the metadata rows that the collective uses: send counts, send displacements and receive displacements.
pub(crate) fn read_ahead(
    machine: &mut dyn Machine,
    metadata: &View,
    ranks: u32,
    displacements: bool,
) -> Result<(), Fault> {
    let n = ranks as usize;
    let mut rows: Vec<u32> = machine.read_bits(&part(metadata, 0, 2 * n))?.iter().copied().collect();
    if displacements {
        rows.extend(machine.read_bits(&part(metadata, 3 * n, n))?.iter());
    }
    *machine.engine_state(PREPARED) = rows;
    Ok(())
}

fn prepared_metadata(machine: &mut dyn Machine, from: usize, count: usize) -> Result<Vec<u32>, Fault> {
    let kept = machine.engine_state(PREPARED);
    let rows = from.checked_add(count).and_then(|end| kept.get(from..end)).map(<[u32]>::to_vec);
    rows.ok_or_else(|| Fault::new("internal", "a collective is started that was not prepared"))
}

fn row(values: Vec<u32>) -> Result<Array2<u32>, Fault> {
    Array2::from_shape_vec((1, values.len()), values).map_err(|e| Fault::new("internal", e.to_string()))
}

/// `count` elements of a flat view from `start` on.
fn part(view: &View, start: usize, count: usize) -> View {
    let mut view = view.clone();
    view.offset += start as i64;
    let run = Dim { stride: 1, count: count as u32 };
    view.dims = if view.space.is_on_chip() {
        [Dim { stride: 1, count: 1 }, run].into_iter().collect()
    } else {
        [run].into_iter().collect()
    };
    view
}

pub(crate) fn execute(
    machine: &mut dyn Machine,
    dsts: &Views,
    metadata: &View,
    groups: &IntLists,
    flags: Flags,
) -> Result<(), Fault> {
    let Some((me, group)) = super::own_group(machine, groups) else { return Ok(()) };
    let all = machine.contributions();
    let Some(dst) = dsts.0.first() else { return Ok(()) };
    let n = group.len();
    let room = dst.elements();
    let displacements = if flags.displacements && flags.prepared {
        prepared_metadata(machine, 2 * n, n)?.iter().map(|&d| d as usize).collect()
    } else if flags.displacements {
        machine.read_bits(&part(metadata, 3 * n, n))?.iter().map(|&d| d as usize).collect()
    } else {
        (0..n).map(|s| room / n * s).collect::<Vec<_>>()
    };
    let mut counts = Vec::with_capacity(n);
    for (s, &rank) in group.iter().enumerate() {
        let data = super::contributed(&all, rank, 0)?;
        let sends = super::contributed(&all, rank, 1)?;
        let column = if flags.one_chunk { 0 } else { me };
        let (count, from) = (sends[column] as usize, sends[n + column] as usize);
        let slot = if flags.displacements { room.saturating_sub(displacements[s]) } else { room / n };
        let sent = from.checked_add(count).and_then(|end| data.get(from..end));
        let Some(sent) = sent else {
            return Err(Fault::new(
                "index-out-of-bounds",
                format!(
                    "rank {rank} sends elements {from} to {} of `src`, which has {}",
                    from.saturating_add(count),
                    data.len()
                ),
            ));
        };
        if count > slot {
            return Err(Fault::new(
                "index-out-of-bounds",
                format!("rank {rank} sends {count} elements, `dst` has room for {slot} of it"),
            ));
        }
        if count > 0 {
            super::put(machine, &part(dst, displacements[s], count), sent.to_vec(), false)?;
        }
        counts.push(count as u32);
    }
    if !flags.counts_known {
        super::put(machine, &part(metadata, 2 * n, n), counts, false)?;
    }
    Ok(())
}

/// [`crate::Instruction`] for a collective that reads its counts at run time. The type's `limits` function checks its restrictions.
macro_rules! collective {
    ($Name:ident, $Kind:ident, one_chunk: $one_chunk:literal, prepared: $prepared:literal) => {
        impl $crate::inst::Instruction for $Name {
            const PLACING: $crate::inst::Placing = $crate::inst::Placing::Fixed;
            // A prepared collective is started by another call.
            const PUBLIC: bool = !$prepared;
            fn engine(&self, _arch: &Arch) -> $crate::names::Engine {
                $crate::names::Engine::Sync
            }

            fn validate(&self, context: &$crate::machine::Context<'_>) -> Result<(), Violation> {
                super::check_groups(&self.replica_group)?;
                super::check_tensors(context, &self.srcs, &self.dsts, self.priority, false)?;
                Self::limits(&self.replica_group, self.has_rdispls, context.arch)?;
                super::variable::check(
                    &self.srcs,
                    &self.dsts,
                    &self.metadata_tensor,
                    &self.replica_group,
                    self.has_rdispls,
                )
            }

            fn footprint<'a>(&'a self, footprint: &mut $crate::inst::Footprint<'a>) {
                $crate::inst::Operands::operand_footprint(self, footprint);
            }

            fn execute(&self, machine: &mut dyn $crate::machine::Machine) -> Result<(), $crate::machine::Fault> {
                let flags = super::variable::Flags {
                    counts_known: self.recv_counts_known,
                    displacements: self.has_rdispls,
                    one_chunk: $one_chunk,
                    prepared: $prepared,
                };
                super::variable::execute(machine, &self.dsts, &self.metadata_tensor, &self.replica_group, flags)
            }

            fn values(&self) -> $crate::inst::values::Values<'_> {
                $crate::inst::values::Values::moved($crate::inst::values::Feeds::Row)
            }

            fn work(&self, _context: &$crate::machine::Context<'_>) -> $crate::work::Work {
                let ranks = super::group_size(&self.replica_group);
                super::work($crate::work::CollectiveKind::$Kind, &self.dsts, &self.srcs, ranks)
            }

            fn participants(&self) -> Option<$crate::rendezvous::Participants<'_>> {
                Some($crate::rendezvous::Participants::Group {
                    groups: &self.replica_group,
                    whole: super::whole(&self.srcs),
                })
            }

            fn contribute(
                &self,
                machine: &mut dyn $crate::machine::Machine,
            ) -> Result<Vec<ndarray::Array2<u32>>, $crate::machine::Fault> {
                let ranks = super::group_size(&self.replica_group);
                super::variable::contribution(machine, &self.srcs, &self.metadata_tensor, ranks, $one_chunk, $prepared)
            }

            /// The counts may differ between members.
            fn agrees(&self, other: &Self, _context: &$crate::machine::Context<'_>) -> Result<(), String> {
                super::same("replica_group", &self.replica_group, &other.replica_group)?;
                let dtype = |v: &Views| v.0.first().map(|v| v.dtype);
                super::same("dtype of srcs", &dtype(&self.srcs), &dtype(&other.srcs))
            }
        }
    };
}
pub(crate) use collective;

/// [`crate::Instruction`] for the preparation of a collective.
macro_rules! prepare {
    ($Name:ident, $Whole:ident, $trigger:literal) => {
        impl $crate::inst::Instruction for $Name {
            const PLACING: $crate::inst::Placing = $crate::inst::Placing::Fixed;
            fn engine(&self, _arch: &$crate::arch::Arch) -> $crate::names::Engine {
                $crate::names::Engine::Sync
            }

            fn validate(&self, context: &$crate::machine::Context<'_>) -> Result<(), $crate::violation::Violation> {
                let whole = $Whole {
                    srcs: self.srcs.clone(),
                    dsts: self.dsts.clone(),
                    replica_group: self.replica_group.clone(),
                    metadata_tensor: self.metadata_tensor.clone(),
                    recv_counts_known: self.recv_counts_known,
                    has_rdispls: self.has_rdispls,
                    priority: self.priority,
                };
                $crate::inst::Instruction::validate(&whole, context)
            }

            fn footprint<'a>(&'a self, footprint: &mut $crate::inst::Footprint<'a>) {
                footprint.read(&self.metadata_tensor);
            }

            fn execute(&self, machine: &mut dyn $crate::machine::Machine) -> Result<(), $crate::machine::Fault> {
                let ranks = super::group_size(&self.replica_group);
                super::variable::read_ahead(machine, &self.metadata_tensor, ranks, self.has_rdispls)
            }

            fn sets_engine_state(&self) -> bool {
                true
            }

            fn action(&self) -> $crate::inst::Action<'_> {
                $crate::inst::Action::Prepares($trigger)
            }

            fn values(&self) -> $crate::inst::values::Values<'_> {
                $crate::inst::values::Values::moved($crate::inst::values::Feeds::Row)
            }

            fn work(&self, _context: &$crate::machine::Context<'_>) -> $crate::work::Work {
                $crate::work::Work {
                    engine: $crate::names::Engine::Sync,
                    kind: $crate::work::WorkKind::Register($crate::work::RegisterWork::load(
                        self.metadata_tensor.space,
                    )),
                }
            }
        }
    };
}
pub(crate) use prepare;
