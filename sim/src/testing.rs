//! Small programs for tests.

use std::sync::Arc;

use nki_isa::ids::{Address, TrailId};
use nki_isa::names::{AluOp, DgeMode, Engine, OobMode};
use nki_isa::program::{Input, Node, NodeKind, Output, Step, Trail};
use nki_isa::{DType, Declaration, Dim, Inst, Loc, Program, Space, Target, Tensor, TensorId, View};
use smallvec::SmallVec;

use crate::HostTensor;

/// Builds a one-core program statement by statement; each statement and tensor is on a separate line.
pub(crate) struct Builder {
    pub(crate) program: Program,
    line: u32,
}

impl Builder {
    pub(crate) fn new() -> Self {
        Builder {
            program: Program {
                name: Arc::from("kernel"),
                target: Target::Trn2,
                files: vec![Arc::from("kernel.py")],
                tensors: Vec::new(),
                registers: 0,
                inputs: Vec::new(),
                outputs: Vec::new(),
                trails: vec![Trail { parent: None, step: Step::Root }],
                tags: Vec::new(),
                cores: vec![Vec::new()],
            },
            line: 0,
        }
    }

    pub(crate) fn loc(&mut self) -> Loc {
        self.line += 1;
        Loc { file: 0, line: self.line, column: 1, start: 0, end: 0 }
    }

    pub(crate) fn tensor(&mut self, name: &str, space: Space, shape: &[u32], dtype: DType) -> TensorId {
        let loc = self.loc();
        let declaration = Declaration {
            name: Arc::from(name),
            space,
            shape: SmallVec::from_slice(shape),
            dtype,
            unnamed: false,
            address: None,
            core: 0,
            data: None,
            loops: 0,
            loc,
        };
        self.program.tensors.push(Tensor::new(declaration, TrailId::ROOT));
        TensorId(self.program.tensors.len() as u32 - 1)
    }

    pub(crate) fn placed(&mut self, name: &str, space: Space, shape: &[u32], dtype: DType, at: (u32, u32)) -> TensorId {
        let id = self.tensor(name, space, shape, dtype);
        self.program.tensors[id.0 as usize].address = Some(Address { partition: at.0, byte: at.1 });
        id
    }

    pub(crate) fn input(&mut self, name: &str, shape: &[u32], dtype: DType) -> TensorId {
        let tensor = self.tensor(name, Space::Hbm, shape, dtype);
        self.program.inputs.push(Input { name: Arc::from(name), tensor });
        tensor
    }

    pub(crate) fn output(&mut self, name: &str, shape: &[u32], dtype: DType) -> TensorId {
        let tensor = self.tensor(name, Space::SharedHbm, shape, dtype);
        self.program.outputs.push(Output { name: Arc::from(name), tensor });
        tensor
    }

    pub(crate) fn whole(&self, id: TensorId) -> View {
        View::whole(id, self.program.tensor(id))
    }

    pub(crate) fn node(&mut self, kind: NodeKind) -> Node {
        Node { kind, loc: self.loc(), trail: TrailId::ROOT, tag: None }
    }

    pub(crate) fn push(&mut self, inst: impl Into<Inst>) {
        let node = self.node(NodeKind::Inst(inst.into()));
        self.program.cores[0].push(node);
    }

    pub(crate) fn push_node(&mut self, kind: NodeKind) {
        let node = self.node(kind);
        self.program.cores[0].push(node);
    }
}

pub(crate) fn dma(dst: View, src: View) -> Inst {
    dma_oob(dst, src, OobMode::Error)
}

pub(crate) fn dma_oob(dst: View, src: View, oob_mode: OobMode) -> Inst {
    nki_isa::inst::dma::dma_copy::DmaCopy {
        dst,
        src,
        priority: None,
        oob_mode,
        dge_mode: DgeMode::Unknown,
        engine: Engine::Unknown,
    }
    .into()
}

pub(crate) fn dma_transpose(dst: View, src: View) -> Inst {
    nki_isa::inst::dma::dma_transpose::DmaTranspose {
        dst,
        src,
        axes: nki_isa::arg::Ints(Vec::new()),
        priority: None,
        dge_mode: DgeMode::Unknown,
        oob_mode: OobMode::Error,
    }
    .into()
}

/// On the tensor engine or on the vector engine.
pub(crate) fn nc_transpose(dst: View, data: View, on_tensor: bool) -> Inst {
    let engine = if on_tensor { Engine::Tensor } else { Engine::Vector };
    nki_isa::inst::tensor::nc_transpose::NcTranspose { dst, data, engine }.into()
}

pub(crate) fn add(dst: View, data1: View, data2: View) -> Inst {
    nki_isa::inst::vector::tensor_tensor::TensorTensor { dst, data1, data2, op: AluOp::Add, engine: Engine::Unknown }
        .into()
}

pub(crate) fn copy(dst: View, src: View) -> Inst {
    use nki_isa::arg::Arg;
    let entry = nki_isa::inst::find("tensor_copy").expect("registered");
    let mut args: Vec<Option<Arg>> = vec![None; entry.schema.operands.len()];
    args[entry.schema.position("dst").expect("an operand")] = Some(Arg::View(dst));
    args[entry.schema.position("src").expect("an operand")] = Some(Arg::View(src));
    (entry.build)(&mut args).expect("valid")
}

/// A view with other dimensions `(stride, count)`.
pub(crate) fn pattern(mut view: View, partition: u32, offset: i64, dims: &[(i64, u32)]) -> View {
    view.partition = partition;
    view.offset = offset;
    view.dims = dims.iter().map(|&(stride, count)| Dim { stride, count }).collect();
    view
}

pub(crate) fn host_f32(name: &str, shape: &[usize], values: &[f32]) -> HostTensor {
    HostTensor {
        name: Arc::from(name),
        shape: shape.to_vec(),
        dtype: DType::F32,
        data: bytemuck::cast_slice(values).to_vec().into(),
    }
}

pub(crate) fn f32s(host: &HostTensor) -> Vec<f32> {
    host.data.chunks_exact(4).map(|c| f32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect()
}

pub(crate) fn matmul(dst: View, stationary: View, moving: View, accumulate: Option<bool>) -> Inst {
    use nki_isa::arg::Arg;
    let entry = nki_isa::inst::find("nc_matmul").expect("registered");
    let mut args: Vec<Option<Arg>> = vec![None; entry.schema.operands.len()];
    let mut set = |name: &str, arg: Arg| args[entry.schema.position(name).expect("an operand")] = Some(arg);
    set("dst", Arg::View(dst));
    set("stationary", Arg::View(stationary));
    set("moving", Arg::View(moving));
    set("accumulate", accumulate.map_or(Arg::None, Arg::Bool));
    (entry.build)(&mut args).expect("valid")
}
