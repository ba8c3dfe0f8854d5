//! SBUF usage of a program's tiles over time.

use nki_isa::{Program, Space, TensorId};

use super::uses::Uses;

/// Bytes per partition of the live tiles at each position of a core's stream: a tree over the positions that adds to a range and
/// returns the maximum of a range.
pub(super) struct Room {
    /// Number of positions, rounded up to a power of two.
    size: usize,
    /// By node of the tree: the maximum of its range, without its ancestors' additions.
    most: Vec<i64>,
    /// By node: the addition to its whole range.
    add: Vec<i64>,
}

impl Room {
    pub(super) fn of(program: &Program, core: usize, uses: &Uses) -> Self {
        let size = program.cores[core].len().max(1).next_power_of_two();
        let mut room = Room { size, most: vec![0; 2 * size], add: vec![0; 2 * size] };
        for id in (0..program.tensors.len() as u32).map(TensorId) {
            let tensor = program.tensor(id);
            if let (Space::Sbuf, [first, .., last] | [first @ last]) = (tensor.space, uses.of_tensor(id)) {
                room.change(first.at, last.at + 1, tensor.bytes() as i64);
            }
        }
        room
    }

    /// Adds bytes to a half-open range of positions.
    pub(super) fn change(&mut self, from: u32, to: u32, bytes: i64) {
        if from < to {
            self.walk(1, 0, self.size, (from as usize, to as usize), bytes);
        }
    }

    /// The maximum over a half-open range of positions; 0 if it is empty.
    pub(super) fn most(&mut self, from: u32, to: u32) -> i64 {
        if from < to { self.walk(1, 0, self.size, (from as usize, to as usize), 0) } else { 0 }
    }

    /// Adds to the part of a range below a node, which covers `[low, high)`; returns the new maximum there.
    fn walk(&mut self, node: usize, low: usize, high: usize, range: (usize, usize), bytes: i64) -> i64 {
        if range.0 >= high || range.1 <= low {
            return 0;
        }
        if range.0 <= low && high <= range.1 {
            self.add[node] += bytes;
            self.most[node] += bytes;
            return self.most[node];
        }
        let middle = low.midpoint(high);
        let most =
            self.walk(2 * node, low, middle, range, bytes).max(self.walk(2 * node + 1, middle, high, range, bytes));
        self.most[node] = self.most[2 * node].max(self.most[2 * node + 1]) + self.add[node];
        most + self.add[node]
    }
}
