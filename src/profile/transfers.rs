//! Assigns packets to transfers.
//!
//! A DMA queue moves its transfers in order, and on each DMA engine a transfer ends with a packet that writes the semaphore.

use std::collections::BTreeMap;

use nki_isa::names::{Engine, Named};

use super::{Core, Ns, PacketKind, SEMAPHORE_BYTES};

/// The packets of one transfer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Transfer {
    /// Data packets in chronological order: start, end, DMA engine, bytes.
    pub(crate) packets: Vec<(Ns, Ns, u32, u64)>,
}

impl Transfer {
    /// Bytes of its data.
    pub(crate) fn bytes(&self) -> u64 {
        self.packets.iter().map(|p| p.3).sum()
    }

    /// Times from the start of one packet to that of the next on the same DMA engine, ns.
    pub(crate) fn spacings(&self) -> Vec<f64> {
        let mut last: BTreeMap<u32, Ns> = BTreeMap::new();
        let step = |p: &(Ns, Ns, u32, u64)| Some((p.0 - last.insert(p.2, p.0)?) as f64);
        self.packets.iter().filter_map(step).collect()
    }

    /// From the start of its first packet to the end of its last.
    pub(crate) fn span(&self) -> Option<(Ns, Ns)> {
        Some((self.packets.first()?.0, self.packets.iter().map(|p| p.1).max()?))
    }
}

impl Core {
    /// The transfers that `engine` triggered, in order; empty if no queue has its name.
    pub(crate) fn transfers(&self, engine: Engine) -> Vec<Transfer> {
        // `qSyncDynamicHW`, `qGpSimdDynamic`.
        let is_its = |name: &str| {
            let name = name.strip_prefix('q').unwrap_or(name).to_ascii_lowercase();
            name.starts_with(engine.name()) && name.contains("dynamic")
        };
        let queues: Vec<u32> = self.queues.iter().filter(|(_, name)| is_its(name)).map(|(i, _)| *i).collect();
        let mut out: BTreeMap<(u32, usize), Transfer> = BTreeMap::new();
        let mut ended: BTreeMap<(u32, u32), usize> = BTreeMap::new();
        for p in &self.packets {
            if !queues.contains(&p.queue) || !matches!(p.kind, PacketKind::Software | PacketKind::Hardware) {
                continue;
            }
            let number = ended.entry((p.queue, p.engine)).or_insert(0);
            if p.bytes == SEMAPHORE_BYTES {
                *number += 1;
                continue;
            }
            let transfer = out.entry((p.queue, *number)).or_insert_with(|| Transfer { packets: Vec::new() });
            transfer.packets.push((p.start, p.end, p.engine, p.bytes));
        }
        let mut out: Vec<Transfer> = out.into_values().collect();
        // Transfers of one queue are already in chronological order.
        out.sort_by_key(|t| t.packets.first().map(|p| p.0));
        out
    }
}
