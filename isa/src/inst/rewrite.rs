//! Copies of instructions with other operands, for passes that rewrite programs.

use super::dma::dma_copy::DmaCopy;
use super::vector::tensor_copy::TensorCopy;
use super::{Inst, find};
use crate::arg::Arg;
use crate::names::{DgeMode, Engine, Named, OobMode};
use crate::view::{Index, View};

/// The operand that selects the descriptor generator of a transfer.
const DGE_MODE: &str = "dge_mode";
/// The operand that chooses an engine.
const ENGINE: &str = "engine";

impl Inst {
    /// A DMA transfer; engine and descriptor mode are left to the compiler.
    pub fn transfer(dst: View, src: View) -> Inst {
        let (dge_mode, engine) = (DgeMode::Unknown, Engine::Unknown);
        DmaCopy { dst, src, priority: None, oob_mode: OobMode::Error, dge_mode, engine }.into()
    }

    /// A copy by a compute engine, which is left to the compiler.
    pub fn copy(dst: View, src: View) -> Inst {
        TensorCopy { dst, src, engine: Engine::Unknown }.into()
    }

    /// The transfer with descriptor mode `dge_mode` and triggered by `engine`, if the program leaves both open; else `None`. Its
    /// rules are not checked (see [`Inst::validate`]).
    pub fn with_descriptors(&self, dge_mode: DgeMode, engine: Engine) -> Option<Inst> {
        let mode = (DGE_MODE, DgeMode::Unknown.name(), dge_mode.name());
        match engine {
            Engine::Unknown => self.with_names(&[mode]),
            engine => self.with_names(&[mode, (ENGINE, Engine::Unknown.name(), engine.name())]),
        }
    }

    /// The instruction on `engine`, if it runs there on some generation and the program leaves the engine open; else `None`. Its rules are
    /// not checked.
    pub fn with_engine(&self, engine: Engine) -> Option<Inst> {
        let runs = self.schema().runs_on(engine);
        runs.then(|| self.with_names(&[(ENGINE, Engine::Unknown.name(), engine.name())]))?
    }

    /// The instruction with vocabulary operands replaced; `names` has `(operand, expected name, new name)`.
    fn with_names(&self, names: &[(&str, &str, &str)]) -> Option<Inst> {
        let schema = self.schema();
        let mut args: Vec<Option<Arg>> = self.args().into_iter().map(Some).collect();
        for (operand, old, new) in names {
            let arg = args.get_mut(schema.position(operand)?)?;
            matches!(arg, Some(Arg::Name(name)) if **name == **old).then(|| *arg = Some(Arg::Name((*new).into())))?;
        }
        (find(schema.name)?.build)(&mut args).ok()
    }

    /// The instruction with each of its views changed by `change`, index tensors included; `None` if the schema does not allow the memory of
    /// a new view. Its other rules are not checked (see [`Inst::validate`]).
    pub fn with_views(&self, change: &mut dyn FnMut(&mut View)) -> Option<Inst> {
        let entry = find(self.schema().name)?;
        let mut args: Vec<Option<Arg>> = self.args().into_iter().map(Some).collect();
        args.iter_mut().flatten().for_each(|arg| each_view(arg, change));
        (entry.build)(&mut args).ok()
    }
}

fn each_view(arg: &mut Arg, change: &mut dyn FnMut(&mut View)) {
    match arg {
        Arg::View(view) => with_index(view, change),
        Arg::List(items) => items.iter_mut().for_each(|item| each_view(item, change)),
        _ => {}
    }
}

fn with_index(view: &mut View, change: &mut dyn FnMut(&mut View)) {
    change(view);
    if let Some(indirect) = &mut view.indirect
        && let Index::Scalar(index) | Index::Vector(index) | Index::Columns(index) = &mut indirect.index
    {
        with_index(index, change);
    }
}
