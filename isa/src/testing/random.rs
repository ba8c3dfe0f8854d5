//! Arbitrary programs from a seed, for property tests and fuzzers.

use std::sync::Arc;

use crate::arch::Target;
use crate::arg::Arg;
use crate::dtype::DType;
use crate::ids::{Address, Loc, RegId, TagId, TensorId, TrailId};
use crate::inst::{self, Inst};
use crate::names::{Named, Space};
use crate::program::{Bound, Control, Input, Node, NodeKind, Output, Program, Step, Tag, Trail};
use crate::schema::Kind;
use crate::tensor::{Declaration, Tensor};
use crate::view::{Dim, Dims, Index, Indirect, View};

/// A small, repeatable random number generator (splitmix64).
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// A generator whose sequence depends only on the seed.
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `end`, which is at least 1.
    pub fn below(&mut self, end: u64) -> u64 {
        self.bits() % end.max(1)
    }

    /// True once in `n`.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// One of the choices, which must not be empty.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len() as u64) as usize]
    }

    fn int(&mut self) -> i64 {
        match self.below(4) {
            0 => self.bits() as i64,
            1 => i64::from(self.bits() as i32),
            _ => self.below(300) as i64 - 100,
        }
    }

    /// Any float but NaN.
    fn float(&mut self) -> f64 {
        match self.below(6) {
            0 => *self.pick(&[0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::MIN_POSITIVE, f64::MAX, 5e-324, 1e21]),
            1 => f64::from(f32::from_bits(self.bits() as u32 & 0xBF7F_FFFF)),
            2 => self.below(1000) as f64 - 500.0,
            _ => f64::from_bits(self.bits() & 0xBFEF_FFFF_FFFF_FFFF),
        }
    }

    fn name(&mut self) -> Arc<str> {
        let odd = [
            "call",
            "root",
            "r1",
            "a b",
            "",
            "say \"hi\"",
            "back\\slash",
            "new\nline",
            "\u{7}",
            "größe",
            "0x",
            "é.py:3",
        ];
        if self.one_in(3) {
            (*self.pick(&odd)).into()
        } else {
            (*self.pick(&["a", "x_tile", "w.0", "_q", "B7"])).into()
        }
    }
}

/// A random program; over all seeds it covers every kind of statement, instruction and operand. It keeps structural invariants (ids
/// in range, positive loop steps), but its instructions need not be valid or meaningful.
pub fn program(seed: u64) -> Program {
    let mut g =
        Generator { random: Random::new(seed), files: 0, trails: 0, tags: 0, registers: 0, tensors: Vec::new() };
    g.program()
}

struct Generator {
    random: Random,
    files: u64,
    trails: u64,
    tags: u64,
    registers: u32,
    tensors: Vec<Tensor>,
}

impl Generator {
    fn program(&mut self) -> Program {
        let name = self.random.name();
        let target = *self.random.pick(Target::ALL);
        self.files = self.random.below(3);
        let files = (0..self.files).map(|_| self.random.name()).collect();
        let mut trails = vec![Trail { parent: None, step: Step::Root }];
        for _ in 0..self.random.below(5) {
            self.trails = trails.len() as u64;
            let parent = Some(self.trail());
            let step = if self.random.one_in(2) {
                Step::Call { function: self.random.name(), loc: self.loc() }
            } else {
                let (variable, value) = (self.random.name(), self.random.int());
                let (is_count, independent) = (self.random.one_in(2), self.random.one_in(2));
                Step::Iteration { variable, value, is_count, loc: self.loc(), independent }
            };
            trails.push(Trail { parent, step });
        }
        self.trails = trails.len() as u64;
        self.tags = self.random.below(4);
        let tags = (0..self.tags)
            .map(|_| Tag {
                name: self.random.name(),
                after: (0..self.random.below(3)).map(|_| TagId(self.random.below(self.tags) as u32)).collect(),
                issued_after: (0..self.random.below(2)).map(|_| TagId(self.random.below(self.tags) as u32)).collect(),
                block: self.random.one_in(3).then(|| self.random.below(3) as u32),
            })
            .collect();
        // One in each memory, so that every operand finds a tensor.
        for space in [Space::Sbuf, Space::Psum, Space::Hbm] {
            self.tensor(space);
        }
        for _ in 0..self.random.below(6) {
            let space = *self.random.pick(Space::ALL);
            self.tensor(space);
        }
        self.registers = 1 + self.random.below(6) as u32;
        let inputs =
            (0..self.random.below(3)).map(|_| Input { name: self.random.name(), tensor: self.hbm() }).collect();
        let outputs =
            (0..self.random.below(3)).map(|_| Output { name: self.random.name(), tensor: self.hbm() }).collect();
        let cores = (0..1 + self.random.below(2)).map(|_| self.body(0)).collect();
        Program {
            name,
            target,
            files,
            tensors: std::mem::take(&mut self.tensors),
            registers: self.registers,
            inputs,
            outputs,
            trails,
            tags,
            cores,
        }
    }

    fn trail(&mut self) -> TrailId {
        TrailId(self.random.below(self.trails.max(1)) as u32)
    }

    fn loc(&mut self) -> Loc {
        if self.files == 0 || self.random.one_in(3) {
            return Loc::default();
        }
        let r = &mut self.random;
        Loc {
            file: r.below(self.files) as u32,
            line: r.below(2000) as u32,
            column: r.below(120) as u32,
            start: r.bits() as u32,
            end: r.bits() as u32,
        }
    }

    fn tensor(&mut self, space: Space) {
        let dtype = *self.random.pick(DType::ALL);
        let dims = 1 + u64::from(space.is_on_chip()) + self.random.below(3);
        let shape = (0..dims).map(|_| 1 + self.random.below(9) as u32).collect();
        let r = &mut self.random;
        let address = (space.is_on_chip() && r.one_in(3))
            .then(|| Address { partition: r.below(128) as u32, byte: r.below(200_000) as u32 });
        let declaration = Declaration {
            name: r.name(),
            space,
            shape,
            dtype,
            unnamed: r.one_in(4),
            address,
            core: u32::from(r.one_in(4)),
            data: None,
            loops: r.below(3) as u32,
            loc: self.loc(),
        };
        let mut tensor = Tensor::new(declaration, self.trail());
        if self.random.one_in(4) {
            tensor.data = Some((0..tensor.elements() * dtype.size()).map(|_| self.random.bits() as u8).collect());
        }
        self.tensors.push(tensor);
    }

    fn hbm(&mut self) -> TensorId {
        self.tensor_in(&[Space::Hbm, Space::SharedHbm])
    }

    fn tensor_in(&mut self, spaces: &[Space]) -> TensorId {
        let fits =
            |t: &Tensor| spaces.is_empty() || spaces.iter().any(|s| *s == t.space || (s.is_hbm() && t.space.is_hbm()));
        let ids: Vec<u32> = (0..self.tensors.len() as u32).filter(|&i| fits(&self.tensors[i as usize])).collect();
        TensorId(*self.random.pick(&ids))
    }

    fn register(&mut self) -> RegId {
        RegId(self.random.below(u64::from(self.registers)) as u32)
    }

    fn bound(&mut self) -> Bound {
        if self.random.one_in(2) {
            Bound::Register(self.register())
        } else {
            Bound::Static(i64::from(self.random.int() as i32))
        }
    }

    fn body(&mut self, depth: u32) -> Vec<Node> {
        let count = self.random.below(6);
        (0..count).map(|_| self.node(depth)).collect()
    }

    fn node(&mut self, depth: u32) -> Node {
        let kind = match self.random.below(if depth < 3 { 8 } else { 5 }) {
            5 => Control::For {
                variable: self.register(),
                lower: self.bound(),
                upper: self.bound(),
                step: 1 + self.random.below(4) as i64,
                body: self.body(depth + 1),
            }
            .into(),
            6 => Control::While { condition: self.register(), body: self.body(depth + 1) }.into(),
            7 => {
                let condition = self.register();
                Control::If { condition, then: self.body(depth + 1), otherwise: self.body(depth + 1) }.into()
            }
            _ => NodeKind::Inst(self.inst()),
        };
        let tagged = self.tags > 0 && matches!(kind, NodeKind::Inst(_)) && self.random.one_in(3);
        let tag = tagged.then(|| TagId(self.random.below(self.tags) as u32));
        Node { kind, loc: self.loc(), trail: self.trail(), tag }
    }

    fn inst(&mut self) -> Inst {
        loop {
            let entry = self.random.pick(inst::REGISTRY);
            let mut args: Vec<Option<Arg>> = Vec::new();
            for operand in entry.schema.operands {
                let given = operand.default.is_none() || self.random.one_in(2);
                args.push(given.then(|| self.arg(operand.kind, operand.members, operand.spaces)));
            }
            // An operand may reject values that its kind allows: then try another.
            if let Ok(inst) = (entry.build)(&mut args) {
                return inst;
            }
        }
    }

    fn arg(&mut self, kind: Kind, members: &[&str], spaces: &[Space]) -> Arg {
        match kind {
            Kind::View => Arg::View(self.view(spaces, 0)),
            Kind::Scalar => match self.random.below(3) {
                0 => Arg::View(self.view(spaces, 0)),
                1 => Arg::Register(self.register()),
                _ => self.arg(Kind::Number, members, spaces),
            },
            Kind::Number if self.random.one_in(2) => Arg::Float(self.random.float()),
            Kind::Number | Kind::Int => Arg::Int(self.random.int()),
            Kind::Bool => Arg::Bool(self.random.one_in(2)),
            Kind::Name(_) => Arg::Name((*self.random.pick(members)).into()),
            Kind::Register => Arg::Register(self.register()),
            Kind::RegisterOrInt if self.random.one_in(2) => Arg::Register(self.register()),
            Kind::RegisterOrInt => Arg::Int(self.random.int()),
            Kind::Ints => Arg::List((0..self.random.below(4)).map(|_| Arg::Int(self.random.int())).collect()),
            Kind::Pattern => {
                let pair = |r: &mut Random| Arg::List(vec![Arg::Int(r.int()), Arg::Int(1 + r.below(64) as i64)]);
                Arg::List((0..1 + self.random.below(4)).map(|_| pair(&mut self.random)).collect())
            }
            Kind::IntLists => {
                let list = |r: &mut Random| Arg::List((0..r.below(4)).map(|_| Arg::Int(r.int())).collect());
                Arg::List((0..self.random.below(3)).map(|_| list(&mut self.random)).collect())
            }
            Kind::Views => Arg::List((0..self.random.below(4)).map(|_| Arg::View(self.view(spaces, 0))).collect()),
            Kind::Numbers => {
                Arg::List((0..self.random.below(4)).map(|_| self.arg(Kind::Number, members, spaces)).collect())
            }
            Kind::Text => Arg::Text((*self.random.name()).into()),
            Kind::Optional(_) if self.random.one_in(3) => Arg::None,
            Kind::Optional(kind) => self.arg(*kind, members, spaces),
        }
    }

    fn view(&mut self, spaces: &[Space], depth: u32) -> View {
        let id = self.tensor_in(spaces);
        let tensor = &self.tensors[id.0 as usize];
        let mut view = View::whole(id, tensor);
        if self.random.one_in(5) {
            view.dtype = *self.random.pick(DType::ALL);
        }
        if self.random.one_in(2) {
            return view;
        }
        let least = if view.space.is_on_chip() { 2 } else { 1 };
        let count = least + self.random.below(4);
        let mut dims = Dims::new();
        for level in 0..count {
            let stride = match self.random.below(3) {
                0 if level == 0 => 1,
                _ => self.random.below(200) as i64 - 50,
            };
            dims.push(Dim { stride, count: 1 + self.random.below(130) as u32 });
        }
        view.dims = dims;
        view.offset = self.random.below(5000) as i64 - 10;
        if view.space.is_on_chip() {
            view.partition = self.random.below(128) as u32;
        }
        if depth < 2 && self.random.one_in(3) {
            let index = match self.random.below(3) {
                0 => Index::Register(self.register()),
                1 => Index::Scalar(self.view(&[], depth + 1)),
                _ => Index::Vector(self.view(&[Space::Sbuf], depth + 1)),
            };
            view.indirect = Some(Box::new(Indirect {
                index,
                stride: self.random.below(5000) as i64 - 100,
                bound: self.random.bits() as u32,
            }));
        }
        view
    }
}
