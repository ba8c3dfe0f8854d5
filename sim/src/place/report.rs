//! Reports of the placement: peaks, overlaps, and the reason why something does not fit.

use std::collections::BTreeMap;

use nki_diag::Diagnostic;
use nki_isa::ids::Loc;
use nki_isa::{Arch, Program, Space, TensorId};
use rustc_hash::FxHashMap;

use crate::labels::Labels;

use super::{Item, Lifetime, Placement, Region, share_banks};

/// Maximum number of findings about overlaps.
const MOST_FINDINGS: usize = 20;

fn memory(space: Space) -> &'static str {
    if space == Space::Psum { "PSUM" } else { "SBUF" }
}

/// An invalid explicit address.
pub(super) fn bad_address(program: &Program, arch: &Arch, region: Region, item: &Item) -> Option<Diagnostic> {
    let address = item.address?;
    let tensor = program.tensor(item.id);
    let partitions = tensor.shape.first().copied().unwrap_or(1);
    let name = &tensor.name;
    let place = memory(region.space);
    let (id, message, label) = if address.partition.saturating_add(partitions) > arch.partitions {
        (
            "bad-address",
            format!(
                "`{name}` has {partitions} partitions from partition {}, {place} has {}",
                address.partition, arch.partitions
            ),
            "ends beyond the last partition",
        )
    } else if address.byte.saturating_add(item.bytes) > region.capacity {
        (
            "bad-address",
            format!(
                "`{name}` has {} bytes per partition from byte {}, {place} has {} bytes per partition",
                item.bytes, address.byte, region.capacity
            ),
            "ends beyond the memory",
        )
    } else if region.space == Space::Psum && address.byte % arch.psum_bank_bytes != 0 {
        (
            "psum-alignment",
            format!(
                "`{name}` starts at byte {} of PSUM, which is not the start of a bank (a multiple of {})",
                address.byte, arch.psum_bank_bytes
            ),
            "not on a bank",
        )
    } else {
        return None;
    };
    Some(Diagnostic::error(id, message).at_source(tensor.loc, label))
}

/// Peak bytes in use, and the item that starts at that time.
/// Explicit tensors that share bytes count once.
pub(super) fn peak(explicit: &[Item], automatic: &[Item]) -> (u32, Option<Item>) {
    let mut bounds: Vec<u32> =
        explicit.iter().filter_map(|i| i.address.map(|a| [a.byte, a.byte + i.bytes])).flatten().collect();
    bounds.sort_unstable();
    bounds.dedup();
    let mut users = vec![0_u32; bounds.len()];
    let mut now: i64 = 0;
    let mut best = (0, None);
    each_change([automatic, explicit], |start, item| {
        match item.address {
            None => now += if start { i64::from(item.bytes) } else { -i64::from(item.bytes) },
            Some(a) => {
                let from = bounds.partition_point(|&b| b < a.byte);
                let to = bounds.partition_point(|&b| b < a.byte + item.bytes);
                for s in from..to {
                    let length = i64::from(bounds[s + 1] - bounds[s]);
                    if start {
                        users[s] += 1;
                        now += if users[s] == 1 { length } else { 0 };
                    } else {
                        users[s] -= 1;
                        now -= if users[s] == 0 { length } else { 0 };
                    }
                }
            }
        }
        if start && now > best.0 {
            best = (now, Some(*item));
        }
    });
    (u32::try_from(best.0).unwrap_or(u32::MAX), best.1)
}

/// Peak number of PSUM banks.
pub(super) fn peak_banks(region: Region, items: &[Item], placement: &Placement) -> u32 {
    let mut users = vec![0_u32; (region.capacity / region.bank) as usize];
    let mut best = 0;
    each_change([items, &[]], |start, item| {
        let Some(address) = placement.address(item.id) else { return };
        let first = (address.byte / region.bank) as usize;
        let end = ((address.byte + item.bytes.max(1)).div_ceil(region.bank) as usize).min(users.len());
        for bank in &mut users[first.min(end)..end] {
            if start {
                *bank += 1;
            } else {
                *bank -= 1;
            }
        }
        best = best.max(users.iter().filter(|&&u| u > 0).count() as u32);
    });
    best
}

/// Calls `change` when an item's lifetime begins (true) or ends (false), in order of position, then id. Lifetimes that end at a position end before
/// those that begin at the next one. Both lists are in order of first use.
fn each_change<'i>(lists: [&'i [Item]; 2], mut change: impl FnMut(bool, &'i Item)) {
    let start = |i: &Item| (i.life.first, i.id);
    debug_assert!(lists.iter().all(|list| list.is_sorted_by_key(start)));
    let [mut one, mut other] = lists.map(|list| list.iter().peekable());
    let starts = std::iter::from_fn(|| match (one.peek(), other.peek()) {
        (Some(a), Some(b)) if start(b) < start(a) => other.next(),
        (Some(_), _) => one.next(),
        (None, _) => other.next(),
    });
    // By the end of their lifetimes.
    let mut alive: BTreeMap<(u32, TensorId), &Item> = BTreeMap::new();
    for item in starts {
        while let Some(ended) = alive.first_entry()
            && ended.key().0 < item.life.first
        {
            change(false, ended.remove());
        }
        alive.insert((item.life.last, item.id), item);
        change(true, item);
    }
    alive.into_values().for_each(|ended| change(false, ended));
}

/// Tensors in the same bytes whose uses alternate.
pub(super) fn overlaps(
    program: &Program,
    explicit: &[Item],
    used: &FxHashMap<TensorId, Lifetime>,
    findings: &mut Vec<Diagnostic>,
) {
    let mut active: Vec<(&Item, Lifetime)> = Vec::new();
    let mut reported: Vec<(Loc, Loc)> = Vec::new();
    let mut order: Vec<(&Item, Lifetime)> = explicit.iter().filter_map(|i| Some((i, *used.get(&i.id)?))).collect();
    order.sort_by_key(|(i, life)| (life.first, i.id));
    for (item, life) in order {
        active.retain(|(_, other)| other.last >= life.first);
        for (other, _) in &active {
            let (Some(a), Some(b)) = (item.address, other.address) else { continue };
            let (t, o) = (program.tensor(item.id), program.tensor(other.id));
            let rows = |x: &nki_isa::Tensor, p: u32| (p, p + x.shape.first().copied().unwrap_or(1));
            let overlap = |x: (u32, u32), y: (u32, u32)| x.0 < y.1 && y.0 < x.1;
            let bytes = ((a.byte, a.byte + item.bytes), (b.byte, b.byte + other.bytes));
            if !overlap(bytes.0, bytes.1) || !overlap(rows(t, a.partition), rows(o, b.partition)) {
                continue;
            }
            if reported.contains(&(t.loc, o.loc)) || reported.len() >= MOST_FINDINGS {
                continue;
            }
            reported.push((t.loc, o.loc));
            findings.push(
                Diagnostic::warning(
                    "overlapping-tensors",
                    format!(
                        "`{}` (bytes {} to {}) and `{}` (bytes {} to {}) share bytes of {} while both are in use",
                        t.name,
                        bytes.0.0,
                        bytes.0.1,
                        o.name,
                        bytes.1.0,
                        bytes.1.1,
                        memory(t.space)
                    ),
                )
                .at_source(t.loc, format!("`{}` is placed here", t.name))
                .with_source(o.loc, format!("`{}` is placed here", o.name))
                .help("give one of them an address that is free from its first to its last use"),
            );
        }
        active.push((item, life));
    }
}

/// Pairs of tensors that share bytes while both are alive.
pub(super) fn sharing(program: &Program, explicit: &[Item]) -> Vec<(TensorId, TensorId)> {
    let mut out = Vec::new();
    let mut active: Vec<&Item> = Vec::new();
    for item in explicit {
        active.retain(|other| other.life.last >= item.life.first);
        for other in &active {
            let (Some(a), Some(b)) = (item.address, other.address) else { continue };
            let rows = |i: &Item| program.tensor(i.id).shape.first().copied().unwrap_or(1);
            let overlap = |x: (u32, u32), y: (u32, u32)| x.0 < y.1 && y.0 < x.1;
            if overlap((a.byte, a.byte + item.bytes), (b.byte, b.byte + other.bytes))
                && overlap((a.partition, a.partition + rows(item)), (b.partition, b.partition + rows(other)))
            {
                out.push((other.id, item.id));
            }
        }
        active.push(item);
    }
    out
}

/// The items with all bytes that they occupy.
pub(super) fn whole_banks(items: &[Item]) -> Vec<Item> {
    items.iter().map(|i| Item { bytes: i.taken, ..*i }).collect()
}

/// A memory that is too small, as a warning.
pub(super) fn times_nothing(mut finding: Diagnostic) -> Diagnostic {
    finding.severity = nki_diag::Severity::Warning;
    finding.note("the kernel runs as if the memory were larger: its values are right, its latency is not valid")
}

/// The error for a failed placement.
pub(super) fn does_not_fit(
    program: &Program,
    region: Region,
    explicit: &[Item],
    automatic: &[Item],
    failed: usize,
) -> Diagnostic {
    let place = memory(region.space);
    // In PSUM, shared banks have been tried for small tiles, whose sizes are rounded up to the alignment.
    let counted = |items: &[Item]| {
        if region.space == Space::Psum { whole_banks(&share_banks(region, items).1) } else { items.to_vec() }
    };
    let (explicit, automatic) = (counted(explicit), counted(automatic));
    let (peak, at) = peak(&explicit, &automatic);
    let full = peak > region.capacity;
    let item = if full { at.unwrap_or(automatic[failed]) } else { automatic[failed] };
    let tensor = program.tensor(item.id);
    let mut groups: Vec<(u64, u32, &nki_isa::Tensor)> = Vec::new();
    let mut index = rustc_hash::FxHashMap::default();
    for i in explicit.iter().chain(&automatic) {
        if i.life.first > item.life.first
            || i.life.last < item.life.first
            || (!full && i.life.first == item.life.first && i.id > item.id)
        {
            continue;
        }
        let t = program.tensor(i.id);
        let slot = *index.entry((t.loc, i.bytes, &t.name)).or_insert_with(|| {
            groups.push((u64::from(i.bytes), 0, t));
            groups.len() - 1
        });
        groups[slot].1 += 1;
    }
    groups.sort_by_key(|(bytes, n, t)| (std::cmp::Reverse(bytes * u64::from(*n)), t.loc.line));
    let sum: u64 = groups.iter().map(|(b, n, _)| b * u64::from(*n)).sum();
    let unit = |bytes: u64| {
        if region.space == Space::Psum {
            let banks = bytes.div_ceil(u64::from(region.bank));
            format!("{bytes} bytes ({banks} bank{})", if banks == 1 { "" } else { "s" })
        } else {
            format!("{bytes} bytes")
        }
    };
    let message = if full {
        format!(
            "{place} is too small: {} per partition are live at line {}, but {} has {}",
            unit(u64::from(peak)),
            tensor.loc.line,
            program.target,
            unit(u64::from(region.capacity))
        )
    } else {
        format!(
            "{place} has no contiguous {} for `{}`: {} of {} are live, but the rest is fragmented",
            unit(u64::from(item.taken)),
            tensor.name,
            unit(sum),
            unit(u64::from(region.capacity))
        )
    };
    let slug = if region.space == Space::Psum { "psum-overflow" } else { "sbuf-overflow" };
    let label = format!("`{}` needs {} per partition", tensor.name, unit(u64::from(item.bytes)));
    let mut out = Diagnostic::error(slug, message).at_source(tensor.loc, label);
    const SHOWN: usize = 8;
    for (bytes, n, t) in groups.iter().take(SHOWN) {
        let many = if *n > 1 { format!("{n} x ") } else { String::new() };
        let shape: Vec<String> = t.shape.iter().map(u32::to_string).collect();
        out = out.note(format!(
            "live: `{}` [{}] {}, line {}: {many}{}",
            t.name,
            shape.join(", "),
            t.dtype,
            t.loc.line,
            unit(*bytes)
        ));
    }
    if groups.len() > SHOWN {
        let rest: u64 = groups[SHOWN..].iter().map(|(b, n, _)| b * u64::from(*n)).sum();
        out = out.note(format!("live: {} more, {}", groups.len() - SHOWN, unit(rest)));
    }
    out.help("use smaller tiles, or use a tensor for the last time before the next is first used: a tensor is live from its first to its last use")
}
