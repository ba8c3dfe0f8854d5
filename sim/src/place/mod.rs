//! Assigns an address to every on-chip tensor.
//!
//! A tensor occupies its bytes in all partitions from its first to its last use. Addresses rotate through free space, so that an
//! unrolled loop's iterations have different buffers as long as there is space, and overlap. Explicit addresses are honoured. If placement
//! fails, it is retried with shorter lifetimes for the tiles of dynamic loops ([`bodies`]). In PSUM, where a tensor occupies whole banks, small tiles
//! then share banks; in SBUF tensors reuse each other's bytes ([`reuse`]), tiles with few partitions are packed into halves of the partitions
//! ([`packing`]), or both.

mod bodies;
mod lifetimes;
mod packing;
mod report;
mod reuse;
mod space;
mod spill;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use nki_diag::Diagnostic;
use nki_isa::ids::Address;
use nki_isa::{Arch, Program, Space, TensorId, View};
use rustc_hash::FxHashMap;

pub use lifetimes::Lifetime;
use packing::Halves;
use reuse::Shared;
use space::Order;
pub(crate) use space::{Free, Order as Rule};

/// Automatic addresses are multiples of this, in SBUF and in PSUM banks that tiles share.
pub(crate) const ALIGN: u32 = 32;

/// The addresses of tensors.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Placement {
    /// By tensor id: the physical address of on-chip tensors, `None` for HBM tensors (each has separate storage).
    pub addresses: Vec<Option<Address>>,
    /// By tensor id: its lifetime, in positions of its core's stream; `None` if no instruction uses it.
    pub lifetimes: Vec<Option<Lifetime>>,
    /// Peak SBUF bytes per partition, over cores.
    pub sbuf_peak_bytes: u32,
    /// Peak number of PSUM banks, over cores.
    pub psum_peak_banks: u32,
    /// Explicitly placed tensors that share bytes while both are alive. Whether one is read after the other has overwritten it is determined at
    /// run time.
    pub overlaps: Vec<(TensorId, TensorId)>,
    /// The same as diagnostics, if program order interleaves their uses: for callers that do not run the program.
    pub findings: Vec<Diagnostic>,
    /// Memories that are too small, as warnings: tensors extend beyond their ends, and times are meaningless. Also part of `findings`.
    pub over_capacity: Vec<Diagnostic>,
    /// Bytes at the end of each partition of SBUF that the compiler reserves.
    pub reserved: u32,
    /// Tensors whose parts are placed separately.
    pub(crate) parts: FxHashMap<TensorId, Vec<Part>>,
}

/// Bytes of a tensor in each partition that are never accessed together with its other bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    /// Its first byte and the byte after its last, in the tensor.
    pub(crate) start: i64,
    pub(crate) end: i64,
    /// The address of its first byte.
    pub(crate) at: u32,
}

/// Handling of a memory that is too small.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Capacity {
    /// It is an error of the kernel.
    #[default]
    Error,
    /// The kernel runs with tensors beyond the end of the memory; its time is not valid.
    Warn,
}

impl std::str::FromStr for Capacity {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim() {
            "error" => Ok(Capacity::Error),
            "warn" => Ok(Capacity::Warn),
            other => Err(format!("`{other}` is neither error nor warn")),
        }
    }
}

impl std::fmt::Display for Capacity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Capacity::Error => "error",
            Capacity::Warn => "warn",
        })
    }
}

impl Placement {
    /// The start of the tensor if its parts were contiguous with the one that contains `view`.
    pub(crate) fn base(&self, view: &View, address: Address) -> i64 {
        let Some(parts) = self.parts.get(&view.tensor) else { return i64::from(address.byte) };
        let (low, _) = view.byte_span();
        let part = parts.iter().find(|p| p.start <= low && low < p.end);
        part.map_or(i64::from(address.byte), |p| i64::from(p.at) - p.start)
    }

    /// The address of an on-chip tensor.
    pub fn address(&self, tensor: TensorId) -> Option<Address> {
        self.addresses.get(tensor.0 as usize).copied().flatten()
    }
}

/// A tensor to be placed in one memory of one core.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Item {
    id: TensorId,
    /// Bytes per partition.
    bytes: u32,
    /// Bytes occupied: a multiple of the alignment.
    taken: u32,
    life: Lifetime,
    address: Option<Address>,
}

/// One memory of one core.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Region {
    space: Space,
    core: u32,
    capacity: u32,
    align: u32,
    /// Bytes of a PSUM bank; no limit in SBUF.
    bank: u32,
}

impl Region {
    /// Bytes that an item of this size occupies.
    fn taken(&self, bytes: u32) -> u32 {
        bytes.max(1).next_multiple_of(if bytes > self.bank { self.bank } else { self.align })
    }

    /// The start of the next bank, if an item at this address neither starts at a bank boundary nor lies within a bank.
    fn next_bank(&self, item: &Item, at: u32) -> Option<u32> {
        let within = at % self.bank;
        (within != 0 && within.saturating_add(item.taken) > self.bank).then(|| at - within + self.bank)
    }
}

/// Places all tensors.
///
/// # Errors
/// If the live tensors exceed a memory, or an explicit address is outside of it or misaligned.
pub fn place(program: &Program) -> Result<Placement, Vec<Diagnostic>> {
    place_with(program, Capacity::Error, 0)
}

/// Places all tensors; `capacity` selects the handling of a memory that is too small. The last `reserved` bytes of each partition of SBUF belong
/// to the compiler.
///
/// # Errors
/// As [`place`].
pub fn place_with(program: &Program, capacity: Capacity, reserved: u32) -> Result<Placement, Vec<Diagnostic>> {
    let arch = Arch::of(program.target);
    let mut lives = lifetimes::lifetimes(program);
    let mut placement = Placement { addresses: vec![None; program.tensors.len()], reserved, ..Placement::default() };
    let mut errors = Vec::new();
    for core in 0..program.cores.len().max(1) as u32 {
        for region in [
            Region { space: Space::Sbuf, core, capacity: arch.sbuf_bytes - reserved, align: ALIGN, bank: u32::MAX },
            Region {
                space: Space::Psum,
                core,
                capacity: arch.psum_bytes(),
                align: arch.psum_bank_bytes,
                bank: arch.psum_bank_bytes,
            },
        ] {
            let items = items(program, region, &lives.alive);
            if items.is_empty() {
                continue;
            }
            let wrong = errors.len();
            errors.extend(items.iter().filter_map(|i| report::bad_address(program, arch, region, i)));
            if errors.len() > wrong {
                continue;
            }
            // The lifetimes before a remedy shortens them.
            let whole = if region.space == Space::Psum { items.clone() } else { Vec::new() };
            let mut automatic = items;
            let explicit: Vec<Item> = automatic.extract_if(.., |i| i.address.is_some()).collect();
            let mut spilled = false;
            let found = arrange(program, core, region, &explicit, &mut automatic).or_else(|failed| {
                let finding = report::does_not_fit(program, region, &explicit, &automatic, failed);
                if capacity == Capacity::Error {
                    return Err(finding);
                }
                spilled = true;
                placement.over_capacity.push(report::times_nothing(finding));
                let addresses = spill::beyond(region, &explicit, &automatic);
                Ok(RegionLayout::at_bytes(addresses, report::peak(&explicit, &automatic).0))
            });
            match found {
                Ok(found) => {
                    for (item, address) in automatic.iter().zip(found.addresses()) {
                        placement.addresses[item.id.0 as usize] = Some(address);
                        lives.alive[item.id.0 as usize] = Some(item.life);
                    }
                    for item in &explicit {
                        placement.addresses[item.id.0 as usize] = item.address;
                    }
                    report::overlaps(program, &explicit, &lives.used, &mut placement.findings);
                    placement.overlaps.extend(report::sharing(program, &explicit));
                    match region.space {
                        Space::Psum => {
                            let banks = if spilled {
                                report::peak(&explicit, &report::whole_banks(&automatic)).0.div_ceil(region.bank)
                            } else {
                                report::peak_banks(region, &whole, &placement)
                            };
                            placement.psum_peak_banks = placement.psum_peak_banks.max(banks);
                        }
                        _ => placement.sbuf_peak_bytes = placement.sbuf_peak_bytes.max(found.peak),
                    }
                }
                Err(finding) => errors.push(finding),
            }
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    // A tensor that no instruction uses occupies no space.
    for (tensor, address) in program.tensors.iter().zip(&mut placement.addresses) {
        if tensor.space.is_on_chip() && address.is_none() {
            *address = Some(tensor.address.unwrap_or(Address { partition: 0, byte: 0 }));
        }
    }
    placement.lifetimes = lives.alive;
    placement.findings.extend(placement.over_capacity.iter().cloned());
    Ok(placement)
}

/// The used tensors of a region, by first use.
fn items(program: &Program, region: Region, lives: &[Option<Lifetime>]) -> Vec<Item> {
    let here = || {
        let all = program.tensors.iter().zip(lives).enumerate();
        all.filter(|(_, (t, _))| t.space == region.space && t.core == region.core)
            .filter_map(|(i, (t, life))| Some((TensorId(i as u32), t, (*life)?)))
    };
    // The exact capacity: in long programs, this is the largest list of the placement.
    let mut items = Vec::with_capacity(here().count());
    items.extend(here().map(|(id, t, life)| {
        let bytes = u32::try_from(t.bytes()).unwrap_or(u32::MAX / 2);
        Item { id, bytes, taken: region.taken(bytes), life, address: t.address }
    }));
    items.sort_unstable_by_key(|i| (i.life.first, i.id));
    items
}

/// Addresses of the automatic tensors of a region, in their order.
struct RegionLayout {
    /// First byte in each partition.
    bytes: Vec<u32>,
    /// First partition of each tensor; empty if all start at partition 0.
    partitions: Vec<u32>,
    /// Peak bytes per partition, explicit tensors included.
    peak: u32,
}

impl RegionLayout {
    /// Tensors that start at partition 0 and at these bytes.
    fn at_bytes(bytes: Vec<u32>, peak: u32) -> Self {
        RegionLayout { bytes, partitions: Vec::new(), peak }
    }

    fn addresses(&self) -> impl Iterator<Item = Address> {
        let partitions = self.partitions.iter().copied().chain(std::iter::repeat(0));
        self.bytes.iter().zip(partitions).map(|(&byte, partition)| Address { partition, byte })
    }
}

/// Places the automatic tensors, trying one remedy after the other if they do not fit. May shorten lifetimes.
///
/// # Errors
/// The index of a tensor that found no room.
fn arrange(
    program: &Program,
    core: u32,
    region: Region,
    explicit: &[Item],
    automatic: &mut [Item],
) -> Result<RegionLayout, usize> {
    let plain =
        |addresses: Vec<u32>, counted: &[Item]| RegionLayout::at_bytes(addresses, report::peak(explicit, counted).0);
    let mut found = fit(region, explicit, automatic);
    if found.is_err() && bodies::shorten(program, core, automatic) {
        found = fit(region, explicit, automatic);
    }
    let failed = match found {
        Ok(addresses) => return Ok(plain(addresses, automatic)),
        Err(_) if region.space != Space::Sbuf => {
            let (region, small) = share_banks(region, automatic);
            return fit(region, explicit, &small).map(|addresses| plain(addresses, &small));
        }
        Err(failed) => failed,
    };
    let shared = reuse::share(program, core, automatic);
    if let Some(shared) = &shared
        && let Ok(addresses) = fit(region, explicit, &shared.items)
    {
        return Ok(plain(shared.place.iter().map(|&p| addresses[p]).collect(), &shared.items));
    }
    let apart = Shared { items: automatic.to_vec(), place: (0..automatic.len()).collect() };
    [Some(apart), shared]
        .iter()
        .flatten()
        .find_map(|f| pack(program, core, region, explicit, automatic, f))
        .ok_or(failed)
}

/// The items with small tiles that may share a bank, and the region for them.
///
/// Kernels that ran on hardware keep sixteen tiles of 512 bytes and some smaller ones in PSUM (nki-moe-megakernel, `moe_tkg/agents/v5`). Tiles
/// of one bank differ only in their bytes: whether a matmul accumulates or overwrites is tracked per element.
fn share_banks(region: Region, items: &[Item]) -> (Region, Vec<Item>) {
    let region = Region { align: ALIGN, ..region };
    (region, items.iter().map(|i| Item { taken: region.taken(i.bytes), ..*i }).collect())
}

/// Places tiles with few partitions in halves of the partitions; tensors that share an address form one tile.
fn pack(
    program: &Program,
    core: u32,
    region: Region,
    explicit: &[Item],
    automatic: &[Item],
    shared: &Shared,
) -> Option<RegionLayout> {
    let halves = packing::choose_halves(program, core, automatic, shared)?;
    let bytes = offline(region, &shared.items, |i| halves[i], |item, at| beside(explicit, item, at))?;
    let peak = shared.items.iter().zip(&bytes).map(|(item, at)| at + item.taken).max().unwrap_or(0);
    let partition = |&p: &usize| if halves[p] == packing::UPPER { packing::HALF } else { 0 };
    let partitions = shared.place.iter().map(partition).collect();
    Some(RegionLayout { bytes: shared.place.iter().map(|&p| bytes[p]).collect(), partitions, peak })
}

/// Addresses for the automatic tensors, or the index of one that does not fit.
fn fit(region: Region, explicit: &[Item], automatic: &[Item]) -> Result<Vec<u32>, usize> {
    if automatic.is_empty() {
        return Ok(Vec::new());
    }
    let mut taken: Vec<(u32, u32)> =
        explicit.iter().filter_map(|i| i.address.map(|a| (a.byte, a.byte.saturating_add(i.bytes)))).collect();
    taken.sort_unstable();
    let anywhere = |item: &Item, at: u32| region.next_bank(item, at);
    let beside = |item: &Item, at: u32| beside(explicit, item, at).max(region.next_bank(item, at));
    let mut result = online(region, automatic, &taken, Order::NextFit, anywhere);
    // Around the lifetime of an explicit tensor, its bytes are available to others.
    let again = [Order::NextFit, Order::LongLivedHigh, Order::LongestFree, Order::BestFit];
    for &order in &again[usize::from(explicit.is_empty())..] {
        if result.is_err() {
            result = online(region, automatic, &[], order, beside);
        }
    }
    result.or_else(|failed| offline(region, automatic, |_| packing::BOTH, beside).ok_or(failed))
}

/// The next address after `at` without a conflict with an explicit tensor that is alive with the item.
fn beside(explicit: &[Item], item: &Item, at: u32) -> Option<u32> {
    explicit
        .iter()
        .filter(|e| e.life.overlaps(&item.life))
        .filter_map(|e| e.address.map(|a| (a.byte, a.byte + e.bytes)))
        .filter(|&(start, end)| start < at + item.taken && at < end)
        .map(|(_, end)| end)
        .max()
}

/// Places in order of first use, and frees dead tensors.
fn online(
    region: Region,
    items: &[Item],
    reserved: &[(u32, u32)],
    order: Order,
    avoid: impl Fn(&Item, u32) -> Option<u32>,
) -> Result<Vec<u32>, usize> {
    let mut free = Free::new(region.capacity, reserved, order);
    let mut dying: BinaryHeap<Reverse<(u32, u32, u32)>> = BinaryHeap::new();
    let mut out = Vec::with_capacity(items.len());
    let stays = if order == Order::LongLivedHigh { outliving(region, items) } else { vec![false; items.len()] };
    for (index, (item, stays)) in items.iter().zip(stays).enumerate() {
        while let Some(&Reverse((last, at, length))) = dying.peek()
            && last < item.life.first
        {
            dying.pop();
            free.give(at, length);
        }
        let avoid = |at| avoid(item, at);
        let at = if stays {
            free.take_last(item.taken, region.align, avoid)
        } else {
            free.take(item.taken, region.align, avoid)
        };
        let at = at.ok_or(index)?;
        dying.push(Reverse((item.life.last, at, item.taken)));
        out.push(at);
    }
    Ok(out)
}

/// By item: whether the total of the items that start during its lifetime exceeds the memory. Items are in the order of their first use.
fn outliving(region: Region, items: &[Item]) -> Vec<bool> {
    let mut sum = 0;
    let taken: Vec<u64> = std::iter::once(0)
        .chain(items.iter().map(|item| {
            sum += u64::from(item.taken);
            sum
        }))
        .collect();
    let is_long = |(index, item): (usize, &Item)| {
        let end = items.partition_point(|other| other.life.first <= item.life.last);
        taken[end].saturating_sub(taken[index]) > u64::from(region.capacity)
    };
    items.iter().enumerate().map(is_long).collect()
}

/// Places the largest first, each at the lowest possible address: for programs so tight that order of use leaves holes. Items in different
/// halves of the partitions may have the same bytes.
fn offline(
    region: Region,
    items: &[Item],
    half: impl Fn(usize) -> Halves,
    avoid: impl Fn(&Item, u32) -> Option<u32>,
) -> Option<Vec<u32>> {
    /// Quadratic, so limited to programs of hand-written size.
    const MOST: usize = 4000;
    if items.len() > MOST {
        return None;
    }
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by_key(|&i| (Reverse(items[i].taken), items[i].life.first, i));
    let mut placed: Vec<(u32, usize)> = Vec::new();
    let mut out = vec![0; items.len()];
    for i in order {
        let item = &items[i];
        let mut at = 0;
        let mut beside: Vec<(u32, u32)> = placed
            .iter()
            .filter(|(_, other)| half(*other) & half(i) != 0 && items[*other].life.overlaps(&item.life))
            .map(|&(start, other)| (start, start + items[other].taken))
            .collect();
        beside.sort_unstable();
        loop {
            let hit = beside.iter().filter(|&&(s, e)| s < at + item.taken && at < e).map(|&(_, e)| e).max();
            match hit.max(avoid(item, at)) {
                Some(later) if later > at => at = later.next_multiple_of(region.align),
                _ => break,
            }
            if at.checked_add(item.taken)? > region.capacity {
                return None;
            }
        }
        if at.checked_add(item.taken)? > region.capacity {
            return None;
        }
        placed.push((at, i));
        out[i] = at;
    }
    Some(out)
}

#[cfg(test)]
mod tests;
