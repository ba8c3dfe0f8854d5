//! Gives each value of a tile a place of its own, as the current compiler does.

use nki_isa::inst::{Action, Footprint};
use nki_isa::program::{Node, NodeKind};
use nki_isa::{Arch, Engine, Inst, Program, Space, Tensor, TensorId, View};
use rustc_hash::FxHashMap;

use super::uses::is_whole;
use super::{ChangeKind, Changes, inst};

/// Gives each value of a tile in SBUF a tile of its own, so that an instruction that overwrites a tile need not wait for the readers of its old
/// value. That needs tiles which are only written as a whole, by instructions that do not read them, and whose values are all read. Tiles that the
/// tensor engine reads keep their place.
///
/// Evidence: the running sums of neuron-agentic-development (`cumsum`, `v1` to `v5`) load and store through two tiles in turn, and take as long as
/// their transfers: 20.51 ms with 2048 columns and 20.78 ms with 1024 (predicted: 20.4 and 21.7; if writers waited for the readers of the
/// value before the last, 24.2 and 30.2). For operands of the tensor engine, the routers of nki-moe-megakernel decide: 16 loads into one tile, each
/// followed by a product. If these values had places of their own, the 45 fused mixtures of experts with such a router would be predicted 4 to 16
/// percentage points lower, and their mean error would be 7.9% instead of 3.9%. Why the compiler treats such tiles differently is not known.
/// Confidence: low, as it is one kernel that decides in favour.
///
/// Returns the changed program; `None` if there is no such tile, in which case nothing is copied.
pub(super) fn separate(program: &Program, changes: &mut Changes) -> Option<Program> {
    let mut tiles = written_again(program);
    if tiles.is_empty() {
        return None;
    }
    find(program, &mut tiles);
    tiles.retain(|_, tile| tile.qualifies && tile.is_read && tile.values > 1);
    if tiles.is_empty() {
        return None;
    }
    let mut sorted: Vec<(TensorId, u32)> = tiles.iter().map(|(id, tile)| (*id, tile.values)).collect();
    sorted.sort_unstable_by_key(|(id, _)| *id);
    let mut changed = program.clone();
    rename(&mut changed, tiles.into_keys())?;
    for (id, values) in sorted {
        changes.add_many(ChangeKind::SeparateValue, program.tensor(id).loc, values as usize - 1, 0);
    }
    Some(changed)
}

/// What the instructions seen so far do with a tile.
#[derive(Debug, Clone, Copy)]
struct Tile {
    core: usize,
    values: u32,
    /// Whether its last value has been read.
    is_read: bool,
    qualifies: bool,
}

/// The tiles of SBUF that more than one instruction writes, without those that are constants or results.
fn written_again(program: &Program) -> FxHashMap<TensorId, Tile> {
    let visible = program.visible();
    let mut seen = vec![false; program.tensors.len()];
    let mut found = FxHashMap::default();
    let mut footprint = Footprint::default();
    for (core, stream) in program.cores.iter().enumerate() {
        for inst in stream.iter().filter_map(inst) {
            footprint.clear();
            inst.footprint(&mut footprint);
            for view in footprint.writes.iter().filter(|v| v.space == Space::Sbuf) {
                let own = program.tensor(view.tensor).data.is_none() && !visible[view.tensor.0 as usize];
                if own && std::mem::replace(&mut seen[view.tensor.0 as usize], true) {
                    found.insert(view.tensor, Tile { core, values: 0, is_read: true, qualifies: true });
                }
            }
        }
    }
    found
}

/// Follows the values of these tiles through the program.
fn find(program: &Program, tiles: &mut FxHashMap<TensorId, Tile>) {
    let arch = Arch::of(program.target);
    let mut footprint = Footprint::default();
    for (core, stream) in program.cores.iter().enumerate() {
        for inst in stream.iter().filter_map(inst) {
            footprint.clear();
            inst.footprint(&mut footprint);
            let stays = is_apart(inst, arch, &footprint);
            for view in &footprint.reads {
                let Some(tile) = tiles.get_mut(&view.tensor) else { continue };
                tile.qualifies &= !stays && tile.core == core && tile.values > 0;
                tile.is_read = true;
            }
            for view in &footprint.writes {
                let Some(tile) = tiles.get_mut(&view.tensor) else { continue };
                let overwrites = is_whole(view, program) && footprint.reads.iter().all(|v| v.tensor != view.tensor);
                tile.qualifies &= !stays && tile.core == core && tile.is_read && overwrites;
                tile.values += 1;
                tile.is_read = false;
            }
        }
    }
}

/// Whether the tiles of an instruction keep their places: it is the tensor engine's, another core takes part in it, or an index decides which
/// elements it writes.
fn is_apart(inst: &Inst, arch: &'static Arch, footprint: &Footprint<'_>) -> bool {
    let indirect = |views: &[&View]| views.iter().any(|v| v.indirect.is_some());
    inst.engine(arch) == Engine::Tensor
        || inst.participants().is_some()
        || matches!(inst.action(), Action::Orders | Action::Prepares(_))
        || indirect(&footprint.reads)
        || indirect(&footprint.writes)
}

/// Gives each value of these tiles but the first a new tile; `None` if an instruction cannot be changed.
fn rename(program: &mut Program, tiles: impl Iterator<Item = TensorId>) -> Option<()> {
    let mut current: Current = tiles.map(|id| (id, None)).collect();
    let Program { cores, tensors, .. } = program;
    for inst in cores.iter_mut().flatten().filter_map(inst_mut) {
        if begin_values(inst, &mut current, tensors) {
            *inst = inst.with_views(&mut |view| view.tensor = now(&current, view))?;
        }
    }
    Some(())
}

fn inst_mut(node: &mut Node) -> Option<&mut Inst> {
    match &mut node.kind {
        NodeKind::Inst(inst) => Some(inst),
        _ => None,
    }
}

/// By tile: the tile of its current value, once it has one.
type Current = FxHashMap<TensorId, Option<TensorId>>;

/// The tile that a view is of now.
fn now(current: &Current, view: &View) -> TensorId {
    current.get(&view.tensor).copied().flatten().unwrap_or(view.tensor)
}

/// Begins the values that an instruction writes, with a new tensor for each but the first of a tile. Whether the instruction uses a new tensor.
fn begin_values(inst: &Inst, current: &mut Current, tensors: &mut Vec<Tensor>) -> bool {
    let mut footprint = Footprint::default();
    inst.footprint(&mut footprint);
    for view in &footprint.writes {
        let Some(value) = current.get_mut(&view.tensor) else { continue };
        *value = Some(match value {
            None => view.tensor,
            Some(_) => {
                tensors.push(tensors[view.tensor.0 as usize].clone());
                TensorId(tensors.len() as u32 - 1)
            }
        });
    }
    footprint.reads.iter().chain(&footprint.writes).any(|view| now(current, view) != view.tensor)
}
