//! Drops copies from PSUM to SBUF.

use std::collections::BTreeMap;

use nki_isa::inst::Action;
use nki_isa::machine::Context;
use nki_isa::program::NodeKind;
use nki_isa::{Arch, Inst, Program, Space, TensorId, View};

use super::uses::{Uses, is_whole};
use super::{ChangeKind, Changes, Overflows, inst, overflows_of, remove};

/// Drops each copy of a whole PSUM tile to a whole SBUF tile of the same type, if every reader of the SBUF tile can read PSUM instead and
/// the PSUM tile is not overwritten before the last read. If PSUM becomes too small, all copies are kept. Returns the memories that the
/// program exceeds afterwards, if a copy was dropped.
///
/// Evidence: in the public profile of an fp32 attention (S = 512) all four copies of the scores are gone; `tensor_reduce` and `activation`
/// read PSUM.
pub(super) fn drop_copies(program: &mut Program, changes: &mut Changes) -> Option<Overflows> {
    let mut changed = program.clone();
    let mut dropped = Changes::default();
    for core in 0..program.cores.len() {
        drop_of_core(&mut changed, core, &mut dropped);
    }
    if dropped.0.is_empty() {
        return None;
    }
    let overflows = overflows_of(&changed);
    if overflows.psum {
        return None;
    }
    *program = changed;
    changes.0.append(&mut dropped.0);
    Some(overflows)
}

fn drop_of_core(program: &mut Program, core: usize, changes: &mut Changes) {
    let uses = Uses::of(program, core);
    let stream = &program.cores[core];
    let mut replaced: BTreeMap<u32, Inst> = BTreeMap::new();
    let mut dropped: Vec<u32> = Vec::new();
    for (at, node) in (0..).zip(stream) {
        let Some((tile, bank)) = eviction(program, &uses, at, node) else { continue };
        let readers = uses.of_tensor(tile).iter().filter(|u| u.at != at);
        let Some(last) = readers.clone().map(|u| u.at).max() else { continue };
        if uses.written_between(bank, at, last + 1) {
            continue;
        }
        // A reader may read several of these tiles: it must be able to read all of them from PSUM.
        let new: Option<Vec<(u32, Inst)>> = readers
            .map(|u| {
                let old = replaced.get(&u.at).or_else(|| inst(&stream[u.at as usize]))?;
                from_psum(program, old, tile, bank).map(|new| (u.at, new))
            })
            .collect();
        if let Some(new) = new {
            replaced.extend(new);
            dropped.push(at);
            changes.add(
                ChangeKind::DroppedCopy,
                node.loc,
                program.tensor(tile).elements() * program.tensor(tile).dtype.size(),
            );
        }
    }
    for (at, new) in replaced {
        program.cores[core][at as usize].kind = NodeKind::Inst(new);
    }
    remove(&mut program.cores[core], &dropped);
}

/// The SBUF and PSUM tiles of an instruction that is a bit-exact copy of one whole tile to the other, and the only writer of
/// the SBUF tile.
fn eviction(program: &Program, uses: &Uses, at: u32, node: &nki_isa::program::Node) -> Option<(TensorId, TensorId)> {
    let Action::Copies(dst, src) = inst(node)?.action() else { return None };
    let same = program.tensor(dst.tensor).dtype == program.tensor(src.tensor).dtype
        && program.tensor(dst.tensor).bytes() == program.tensor(src.tensor).bytes()
        && program.tensor(dst.tensor).shape.first() == program.tensor(src.tensor).shape.first();
    let only = uses.of_tensor(dst.tensor).iter().all(|u| u.at == at || !u.writes);
    let whole = |view: &View, space| view.space == space && is_whole(view, program);
    let fits = whole(dst, Space::Sbuf) && whole(src, Space::Psum) && same && only && node.tag.is_none();
    fits.then_some((dst.tensor, src.tensor))
}

/// The reader with the PSUM tile in place of the SBUF tile, if its rules allow it.
fn from_psum(program: &Program, reader: &Inst, tile: TensorId, bank: TensorId) -> Option<Inst> {
    let new = reader.with_views(&mut |view| {
        if view.tensor == tile {
            (view.tensor, view.space) = (bank, Space::Psum);
        }
    })?;
    let context = Context { arch: Arch::of(program.target), tensors: &program.tensors };
    new.validate(&context).ok()?;
    Some(new)
}
