//! Collectives: operations of several ranks (`nki.collectives`).
//!
//! Order of a reduction: the ranks of the group in list order, each added to the running sum. Floats are summed in
//! fp32 and rounded to the element type once, at the end; integers wrap. The result is therefore the same on every rank and in every run.

pub mod all_gather;
pub mod all_gather_v;
pub mod all_gather_v_prepare;
pub mod all_gather_v_trigger;
pub mod all_reduce;
pub mod all_to_all;
pub mod all_to_all_v;
pub mod all_to_all_v_prepare;
pub mod all_to_all_v_trigger;
pub mod collective_permute;
pub mod collective_permute_implicit;
pub mod collective_permute_implicit_current_processing_rank_id;
pub mod collective_permute_implicit_reduce;
mod parts;
pub mod rank_id;
pub mod reduce_scatter;
mod ring;
#[cfg(test)]
mod tests;
mod variable;

use std::collections::BTreeSet;

use ndarray::Array2;

use crate::arg::{IntLists, Views};
use crate::dtype::{DType, bits_to_i64, i64_to_bits};
use crate::inst::dma::dma_copy::check_priority;
use crate::machine::{Context, Fault, Machine};
use crate::names::{AluOp, Engine};
use crate::rendezvous::Contribution;
use crate::schema::Rule;
use crate::view::View;
use crate::violation::Violation;
use crate::work::{Collective, CollectiveKind, RendezvousWork, Work, WorkKind};

/// Rules of every collective that moves tensors. For each rule, tests/refused/every_collective.py has a call that breaks it.
pub const COLLECTIVE_RULES: &[Rule] = &[
    Rule {
        id: "groups",
        text: "`replica_group` lists ranks, 0 to 65535, in groups of one size; no rank is listed twice",
    },
    Rule { id: "pairs", text: "there are as many destinations as sources, at least one" },
    Rule { id: "one-memory", text: "all tensors are in HBM or all in SBUF" },
    Rule { id: "coalesced", text: "several tensors in one call are in HBM" },
    Rule { id: "sbuf-dims", text: "a tile in SBUF has two dimensions" },
    Rule { id: "same-dtype", text: "a destination has the dtype of its source" },
    Rule { id: "priority", text: "`priority` is 0 to 3 and requires trn3" },
];

/// Rules of groups of ranks.
pub(crate) fn check_groups(groups: &IntLists) -> Result<(), Violation> {
    let refuse = |message: String| {
        Err(Violation::new("operand-value", "replica_group", message)
            .help("list the ranks of each group once: ReplicaGroup([[0, 1], [2, 3]])"))
    };
    let mut seen = BTreeSet::new();
    let size = groups.0.first().map_or(0, Vec::len);
    for group in &groups.0 {
        if group.len() != size {
            return refuse(format!("`replica_group` has groups of {size} and of {} ranks", group.len()));
        }
        for &rank in group {
            if !(0..=i64::from(u16::MAX)).contains(&rank) {
                return refuse(format!("`replica_group` has rank {rank}, which is not 0 to {}", u16::MAX));
            }
            if !seen.insert(rank) {
                return refuse(format!("`replica_group` has rank {rank} twice"));
            }
        }
    }
    if seen.is_empty() {
        return refuse("`replica_group` has no ranks".into());
    }
    Ok(())
}

/// Ranks of each group.
pub(crate) fn group_size(groups: &IntLists) -> u32 {
    groups.0.first().map_or(1, Vec::len).max(1) as u32
}

/// Position of `rank` in its group.
pub(crate) fn position(groups: &IntLists, rank: u32) -> Option<(usize, &[i64])> {
    groups.0.iter().find_map(|g| g.iter().position(|&r| r == i64::from(rank)).map(|i| (i, &g[..])))
}

/// Rules of a collective's tensors: their number, one kind of memory, matching dtypes.
pub(crate) fn check_tensors(
    context: &Context<'_>,
    srcs: &Views,
    dsts: &Views,
    priority: Option<i64>,
    on_chip: bool,
) -> Result<(), Violation> {
    check_priority(context.arch, priority)?;
    if srcs.0.is_empty() || srcs.0.len() != dsts.0.len() {
        return Err(Violation::new(
            "operand-value",
            "dsts",
            format!(
                "`srcs` has {} tensors, but `dsts` has {}: each source needs one destination",
                srcs.0.len(),
                dsts.0.len()
            ),
        ));
    }
    let all = || srcs.0.iter().chain(&dsts.0);
    let chip = all().filter(|v| v.space.is_on_chip()).count();
    if chip > 0 && !on_chip {
        return Err(Violation::new("operand-memory", "srcs", "this collective works on HBM tensors only")
            .help("copy the tile to HBM with nisa.dma_copy first"));
    }
    if chip > 0 && chip < srcs.0.len() * 2 {
        return Err(Violation::new(
            "operand-memory",
            "srcs",
            "some tensors are in sbuf, some in HBM: all must be in the same memory",
        ));
    }
    if chip > 0 && srcs.0.len() > 1 {
        return Err(Violation::new(
            "operand-value",
            "srcs",
            format!("`srcs` has {} tensors in sbuf: a collective takes several only in HBM", srcs.0.len()),
        ));
    }
    if let Some(odd) = all().find(|v| v.space.is_on_chip() && v.dims.len() != 2) {
        return Err(Violation::new(
            "shape-mismatch",
            "srcs",
            format!("a tile in sbuf has {:?}: collectives on SBUF take tiles of two dimensions", odd.shape()),
        )
        .help("join its free dimensions with .reshape or .flatten_dims"));
    }
    for (s, d) in srcs.0.iter().zip(&dsts.0) {
        if s.dtype != d.dtype {
            return Err(Violation::new(
                "dtype-mismatch",
                "dsts",
                format!("a source is {}, its destination {}: they must have the same dtype", s.dtype, d.dtype),
            ));
        }
    }
    Ok(())
}

/// `dst` has the shape of `src`, except that dimension `dim` is scaled by `times / over`.
pub(crate) fn check_shapes(srcs: &Views, dsts: &Views, dim: i64, times: u32, over: u32) -> Result<(), Violation> {
    for (s, d) in srcs.0.iter().zip(&dsts.0) {
        let (from, to) = (s.shape(), d.shape());
        let at = dim.max(0) as usize;
        let extent = from.get(at).copied().unwrap_or(0);
        let ok = from.len() == to.len()
            && from.iter().zip(&to).enumerate().all(|(i, (a, b))| if i == at { a * times == b * over } else { a == b });
        if !ok || extent == 0 {
            let want = if times > 1 {
                format!("{times} times as large in dimension {dim}")
            } else if over > 1 {
                format!("{over} times smaller in dimension {dim}")
            } else {
                "of the same shape".to_owned()
            };
            let size = times.max(over);
            let group = if size > 1 { format!("for a group of {size} ") } else { String::new() };
            return Err(Violation::new(
                "shape-mismatch",
                "dsts",
                format!("a source has {from:?}, its destination {to:?}: {group}it must be {want}"),
            ));
        }
    }
    Ok(())
}

/// Rules of the dimension along which a collective splits or joins.
pub(crate) fn check_dim(dim: i64, srcs: &Views, on_chip_max: i64) -> Result<(), Violation> {
    let on_chip = srcs.0.iter().any(|v| v.space.is_on_chip());
    let most = if on_chip { on_chip_max } else { 0 };
    if (0..=most).contains(&dim) {
        return Ok(());
    }
    let allowed = if most == 0 { "0".to_owned() } else { format!("0 to {most}") };
    let memory = if on_chip { "sbuf" } else { "HBM" };
    Err(Violation::new(
        "operand-value",
        "collective_dim",
        format!("`collective_dim` is {dim}, for tensors in {memory} it must be {allowed}"),
    ))
}

/// Operators of a reduction.
pub(crate) fn check_op(op: AluOp) -> Result<(), Violation> {
    match op {
        AluOp::Add | AluOp::Min | AluOp::Max => Ok(()),
        _ => Err(Violation::new(
            "op-unsupported",
            "op",
            format!("`op` is {op}: collectives reduce with add, minimum or maximum"),
        )),
    }
}

/// Whether all tensors are in HBM: then the collective is one operation of the whole logical core.
pub(crate) fn whole(srcs: &Views) -> bool {
    srcs.0.iter().all(|v| v.space.is_hbm())
}

/// Two members move the same number of tensors, of the same dtypes and shapes.
pub(crate) fn same_tensors(a: &Views, b: &Views) -> Result<(), String> {
    if a.0.len() != b.0.len() {
        return Err(format!("one has {} tensors, the other {}", a.0.len(), b.0.len()));
    }
    for (x, y) in a.0.iter().zip(&b.0) {
        if x.dtype != y.dtype || x.shape() != y.shape() {
            return Err(format!("one sends {} {:?}, the other {} {:?}", x.dtype, x.shape(), y.dtype, y.shape()));
        }
    }
    Ok(())
}

/// Both members have the same value of `what`.
pub(crate) fn same<T: PartialEq>(what: &str, a: &T, b: &T) -> Result<(), String> {
    if a == b { Ok(()) } else { Err(format!("`{what}` differs")) }
}

/// The data to send: all elements, as bits.
pub(crate) fn contribution(machine: &mut dyn Machine, srcs: &Views) -> Result<Vec<Array2<u32>>, Fault> {
    srcs.0.iter().map(|v| machine.read_bits(v)).collect()
}

/// The data to send for a reduction: floats as fp32 bits, integers as bits.
pub(crate) fn contribution_values(machine: &mut dyn Machine, srcs: &Views) -> Result<Vec<Array2<u32>>, Fault> {
    srcs.0
        .iter()
        .map(|v| if v.dtype.is_float() { Ok(machine.read_tile(v)?.mapv(f32::to_bits)) } else { machine.read_bits(v) })
        .collect()
}

/// Reduces element by element, in the order of the parts.
pub(crate) fn reduce(op: AluOp, dtype: DType, parts: &[&[u32]]) -> Vec<u32> {
    let Some((first, rest)) = parts.split_first() else { return Vec::new() };
    let mut out = first.to_vec();
    for part in rest {
        for (o, &x) in out.iter_mut().zip(*part) {
            *o = if dtype.is_float() {
                let (a, b) = (f32::from_bits(*o), f32::from_bits(x));
                crate::inst::math::alu::scalar(op, a, b).to_bits()
            } else {
                let (a, b) = (bits_to_i64(dtype, *o), bits_to_i64(dtype, x));
                let value = match op {
                    AluOp::Min => a.min(b),
                    AluOp::Max => a.max(b),
                    _ => a.wrapping_add(b),
                };
                i64_to_bits(dtype, value)
            };
        }
    }
    out
}

/// Writes elements in the view's order: as bits, or as results of [`reduce`] if `values`.
pub(crate) fn put(machine: &mut dyn Machine, dst: &View, elements: Vec<u32>, values: bool) -> Result<(), Fault> {
    let rows = dst.dims.first().map_or(1, |d| d.count as usize).max(1);
    let shape = (rows, elements.len() / rows);
    let tile = Array2::from_shape_vec(shape, elements).map_err(|e| Fault::new("internal", e.to_string()))?;
    if values && dst.dtype.is_float() {
        machine.write_tile(dst, tile.mapv(f32::from_bits).view())
    } else if values {
        let representation = machine.representation();
        machine.write_bits(dst, tile.mapv(|bits| representation.bits(dst.dtype, bits)).view())
    } else {
        machine.write_bits(dst, tile.view())
    }
}

/// All elements that a member contributes for tensor `i`, in order.
pub(crate) fn contributed(contributions: &[Contribution], rank: i64, i: usize) -> Result<Vec<u32>, Fault> {
    let member = contributions.iter().find(|c| i64::from(c.member) == rank);
    match member.and_then(|c| c.tiles.get(i)) {
        Some(tile) => Ok(tile.iter().copied().collect()),
        None => Err(Fault::new("internal", format!("rank {rank} has contributed nothing"))),
    }
}

/// This rank's position in its group, and the group's ranks. `None` if it is in no group and has nothing to do.
pub(crate) fn own_group<'g>(machine: &dyn Machine, groups: &'g IntLists) -> Option<(usize, &'g [i64])> {
    position(groups, machine.rank())
}

/// The work of a collective. The engine only starts it: dedicated cores move the bytes (compute-comm-overlap).
pub(crate) fn work(kind: CollectiveKind, dsts: &Views, srcs: &Views, ranks: u32) -> Work {
    let bytes = |v: &Views| v.0.iter().map(|v| v.bytes() as u64).sum::<u64>();
    let chunk = match kind {
        CollectiveKind::AllGather | CollectiveKind::Permute => bytes(srcs),
        CollectiveKind::ReduceScatter => bytes(dsts),
        CollectiveKind::AllReduce | CollectiveKind::AllToAll => bytes(dsts) / u64::from(ranks.max(1)),
    };
    Work {
        engine: Engine::Sync,
        kind: WorkKind::Rendezvous(RendezvousWork::Collective(Collective { kind, chunk_bytes: chunk, ranks })),
    }
}
