//! Outputs: the tensors that a kernel may return.

use nki_diag::{Diagnostic, FileId, Span};
use nki_isa::inst::Footprint;
use nki_isa::program::{NodeKind, Output};
use nki_isa::{Loc, Space, TensorId};

use super::Builder;
use crate::build::tensor::{Tensor, tuple_text};

fn span_of(loc: Loc) -> Span {
    Span { file: FileId(loc.file), start: loc.start, end: loc.end }
}

impl Builder {
    /// Adds a returned tensor as an output of that name, with its findings; the kernel is at `kernel`. It is not an output if one of
    /// them is an error (`kernel-output`): an output is a whole tensor in shared HBM, or in any HBM if `private` is set.
    pub(crate) fn return_tensor(&mut self, name: &str, t: &Tensor, private: bool, kernel: Span) -> Vec<Diagnostic> {
        let (made, id, tensor) = (span_of(t.storage.loc), t.storage.id, &t.storage.name);
        let is_input = self.is_input(id);
        let mut findings = Vec::new();
        if let Err(ended) = self.check_alive(id) {
            let finding = Diagnostic::error(ended.id, ended.message).at(made, "made here");
            findings.push(finding.with(kernel, "returned by this kernel").help(ended.help));
            return findings;
        }
        // Up to NKI 0.2 a kernel could return tensors in `nl.hbm` (release notes of 0.3), and tutorials still do. So do published kernels
        // with two cores, in which each core writes a part: `alloc` gives the other core the same tensor.
        let allowed = is_input || private && t.view.space == Space::Hbm;
        if t.view.space == Space::Hbm && !allowed {
            let message = format!("the kernel returns `{tensor}`, which is in private HBM");
            findings.push(
                Diagnostic::warning("kernel-output", message)
                    .at(made, "made here")
                    .with(kernel, "of this kernel")
                    .help("since NKI 0.3 the compiler accepts outputs only in shared HBM: write buffer=nl.shared_hbm"),
            );
        } else if t.view.space != Space::SharedHbm && !allowed {
            let message = format!("the kernel returns `{tensor}`, which is in {}", t.view.space);
            findings.push(
                Diagnostic::error("kernel-output", message)
                    .at(made, "made here")
                    .with(kernel, "of this kernel")
                    .help("outputs must be in shared HBM: nl.ndarray(shape, dtype, buffer=nl.shared_hbm), written with nisa.dma_copy or nl.store"),
            );
            return findings;
        }
        let whole = t.view.offset == 0 && t.is_contiguous() && t.view.bytes() == self.bytes(id);
        let (shape, dtype) = (t.view.shape(), t.view.dtype);
        // The tensor has one shape and one dtype, in the program and for the caller.
        let returned = self.reshaped.iter().find(|(at, ..)| *at == id).map(|(_, shape, dtype)| (&shape[..], *dtype));
        let stored = (&t.storage.shape[..], t.storage.dtype);
        let known = returned.or((is_input || self.is_output(id)).then_some(stored));
        let refused = if !whole || t.view.indirect.is_some() {
            Some((
                format!("the kernel returns a part of `{tensor}`"),
                "return a whole tensor: allocate one of the size of the result",
            ))
        } else {
            known.filter(|known| *known != (&shape[..], dtype)).map(|known| {
                let [here, before] = [(&shape[..], dtype), known]
                    .map(|(shape, dtype)| format!("{dtype} {}", tuple_text(shape.iter().map(|n| i64::from(*n)))));
                let message =
                    format!("the kernel returns `{tensor}` as {here}, but it is returned or passed as {before}, too");
                (message, "copy it to an output of its own: nisa.dma_copy(dst=out, src=...)")
            })
        };
        if let Some((message, help)) = refused {
            findings.push(
                Diagnostic::error("kernel-output", message)
                    .at(made, "the tensor is allocated here")
                    .with(kernel, "of this kernel")
                    .help(help),
            );
            return findings;
        }
        if (&shape[..], dtype) != stored && known.is_none() {
            // HBM is flat, so an output that is returned as a view of all its bytes is the same storage under another shape and dtype.
            self.reshaped.push((id, shape[..].into(), dtype));
        }
        self.output(name, id);
        findings
    }

    /// The arguments that instructions write, in the order of the parameters.
    pub(crate) fn written_inputs(&self) -> Vec<Tensor> {
        fn writes(nodes: &[nki_isa::Node], found: &mut Vec<TensorId>) {
            for node in nodes {
                match &node.kind {
                    NodeKind::Inst(inst) => {
                        let mut footprint = Footprint::default();
                        inst.footprint(&mut footprint);
                        found.extend(footprint.writes.iter().map(|v| v.tensor));
                    }
                    NodeKind::Control(control) => control.blocks().into_iter().for_each(|block| writes(block, found)),
                }
            }
        }
        let mut found = Vec::new();
        for body in &self.bodies {
            writes(&body.nodes, &mut found);
        }
        let inputs = self.program.inputs.iter().map(|i| i.tensor);
        inputs.filter(|id| found.contains(id)).map(|id| self.handle(id)).collect()
    }

    /// Whether the kernel returns this tensor. Known after the evaluation of core 0.
    pub(super) fn is_output(&self, id: TensorId) -> bool {
        self.program.outputs.iter().any(|output| output.tensor == id)
    }

    /// Adds an output; a duplicate name gets a number.
    fn output(&mut self, name: &str, tensor: TensorId) {
        let mut chosen = name.to_owned();
        let mut n = 1;
        while !self.output_names.insert(chosen.clone()) {
            chosen = format!("{name}_{n}");
            n += 1;
        }
        self.program.outputs.push(Output { name: chosen.into(), tensor });
    }
}
