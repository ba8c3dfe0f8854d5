//! Laws that hold for every instruction of the registry, on valid instances that are made from the schemas alone: a new instruction is
//! tried without a word here. An instruction that a law does not hold for is in a list, with the reason.
//!
//! - Views agree with copies: operands that are strided parts of larger tensors give what compact ones give.
//! - Tilings agree: the instruction on all partitions is the instruction on their halves.
//! - Columns agree: an element-wise instruction on all columns is the instruction on their halves.
//! - Engines agree: engines that have an instruction compute the same floats.

use std::collections::BTreeMap;

use nki_isa::arch::{Arch, Target};
use nki_isa::inst::{self, Entry};
use nki_isa::names::{Engine, Named};
use nki_isa::schema::{Kind, Role};
use nki_isa::testing::{Random, TestMachine};
use nki_isa::{Arg, DType, Dim, Space, TensorId, View};

/// A tensor of a case: what it is and what it holds.
#[derive(Debug, Clone)]
struct Made {
    space: Space,
    dtype: DType,
    shape: Vec<u32>,
    bits: Vec<u32>,
}

/// A valid instance: arguments whose views are whole tensors, numbered in order.
#[derive(Debug, Clone)]
struct Case {
    entry: &'static str,
    target: Target,
    tensors: Vec<Made>,
    args: Vec<Option<Arg>>,
}

/// Instructions that have no value to compare: registers, other cores and ranks, printing.
fn out_of_reach(entry: &Entry) -> bool {
    let others = ["core_barrier", "device_print", "sendrecv", "sendrecv_compute"];
    let registers = |k: &Kind| matches!(k, Kind::Register | Kind::RegisterOrInt);
    entry.collective || others.contains(&entry.schema.name) || entry.schema.operands.iter().any(|o| registers(&o.kind))
}

/// Makes cases.
struct Maker {
    random: Random,
    tensors: Vec<Made>,
    /// What most operands share.
    partitions: u32,
    free: Vec<u32>,
    dtype: DType,
    /// All tiles have the shape and type above.
    uniform: bool,
}

const DTYPES: &[DType] = &[
    DType::F32,
    DType::F32,
    DType::BF16,
    DType::F16,
    DType::F8E4M3,
    DType::I32,
    DType::U32,
    DType::I16,
    DType::U16,
    DType::I8,
    DType::U8,
];

impl Maker {
    fn view(&mut self, spaces: &[Space], dtypes: &[DType], column: bool) -> Arg {
        let r = &mut self.random;
        let space = if spaces.contains(&Space::Sbuf) && !r.one_in(4) { Space::Sbuf } else { *r.pick(spaces) };
        let dtype = match dtypes {
            [] if self.uniform || r.one_in(2) => self.dtype,
            [] => *r.pick(DTYPES),
            some if some.contains(&self.dtype) => self.dtype,
            some => *r.pick(some),
        };
        let (p, n) = (self.partitions, self.free.iter().product::<u32>());
        // What is float32 only is mostly a number for each partition.
        let column = column || dtypes == [DType::F32] && r.one_in(2);
        let shape = if column {
            vec![p, 1]
        } else if self.uniform || r.one_in(3) {
            [&[p], &self.free[..]].concat()
        } else {
            match r.below(13) {
                0 => vec![p, 8],
                1 => vec![p, 1],
                2 => vec![p, 6],
                3 => vec![p, 2],
                4 => vec![n.min(128), p],
                5 => vec![1, n],
                6 => vec![p, n + 1],
                7 => vec![p, 2, n],
                8 => vec![p, n / 4],
                9 => vec![p, 24],
                10 => vec![1, 2, n],
                11 => vec![1, 1],
                _ => vec![p, n],
            }
        };
        let count: u32 = shape.iter().product();
        let bits = (0..count).map(|_| value(&mut self.random, dtype)).collect();
        self.tensors.push(Made { space, dtype, shape: shape.clone(), bits });
        let id = self.tensors.len() as u32 - 1;
        Arg::View(numbered(id, space, dtype, &shape))
    }

    fn int(&mut self) -> Arg {
        let n = i64::from(self.free.iter().product::<u32>());
        Arg::Int(*self.random.pick(&[0, 0, 1, 2, 8, n, i64::from(self.partitions)]))
    }

    fn arg(&mut self, kind: Kind, members: &[&str], spaces: &[Space], dtypes: &[DType]) -> Arg {
        match kind {
            Kind::View => self.view(spaces, dtypes, false),
            Kind::Scalar if self.random.one_in(3) && !spaces.is_empty() => self.view(spaces, dtypes, true),
            Kind::Scalar | Kind::Number => {
                if self.dtype.is_int() && self.random.one_in(2) {
                    Arg::Int(1 + self.random.below(3) as i64)
                } else {
                    Arg::Float(*self.random.pick(&[0.0, 0.5, 1.0, -2.0, 3.0]))
                }
            }
            Kind::Int => self.int(),
            Kind::Bool => Arg::Bool(self.random.one_in(2)),
            Kind::Name(_) => Arg::Name((*self.random.pick(members)).into()),
            Kind::Ints => {
                let n = self.free.len() as i64;
                match self.random.below(5) {
                    0 => Arg::List(vec![Arg::Int(n)]),
                    1 => Arg::List((1..=n).map(Arg::Int).collect()),
                    2 => Arg::List((0..32).map(|i| Arg::Int((i * 5 + 3) % 32)).collect()),
                    3 => Arg::List(vec![Arg::Int(0), Arg::Int(0)]),
                    _ => Arg::List(Vec::new()),
                }
            }
            Kind::Pattern => {
                let pair = |step: i64, count: u32| Arg::List(vec![Arg::Int(step), Arg::Int(i64::from(count))]);
                Arg::List(self.free.iter().map(|&n| pair(3, n)).collect())
            }
            Kind::Views => {
                let n = 1 + self.random.below(3);
                Arg::List((0..n).map(|_| self.view(spaces, dtypes, false)).collect())
            }
            Kind::Optional(inner) if self.random.one_in(2) => self.arg(*inner, members, spaces, dtypes),
            _ => Arg::None,
        }
    }

    fn case(&mut self, entry: &Entry, target: Target) -> Option<Case> {
        let r = &mut self.random;
        self.partitions = *r.pick(&[16, 32, 64, 64, 128]);
        self.free = match r.below(4) {
            0 => vec![2, 4],
            1 => vec![16],
            2 => vec![32],
            _ => vec![4, 6],
        };
        self.dtype = *r.pick(DTYPES);
        self.uniform = !r.one_in(3);
        self.tensors.clear();
        let mut args = Vec::new();
        for o in entry.schema.operands {
            let given = o.default.is_none() || self.random.one_in(3);
            args.push(given.then(|| self.arg(o.kind, o.members, o.spaces, o.dtypes)));
        }
        let case = Case { entry: entry.schema.name, target, tensors: self.tensors.clone(), args };
        if !case.is_valid() {
            return None;
        }
        // It must run, too: an index may be out of bounds.
        case.run(&Layout::Compact, &case.args).ok().map(|_| case)
    }
}

/// The bits of a small number: sums of a few of them are exact in every order.
fn value(random: &mut Random, dtype: DType) -> u32 {
    match dtype {
        DType::F8E8M0 => 124 + random.below(6) as u32,
        d if d.is_packed() => random.bits() as u32 & if d.size() == 2 { 0x7777 } else { 0x3B3B_3B3B },
        d if d.is_float() => nki_isa::dtype::f32_to_bits(d, (random.below(13) as f32 - 4.0) * 0.5),
        DType::Bool => random.below(2) as u32,
        d => nki_isa::dtype::i64_to_bits(d, random.below(7) as i64),
    }
}

/// The view of all of tensor `id`.
fn numbered(id: u32, space: Space, dtype: DType, shape: &[u32]) -> View {
    let mut stride = 1;
    let mut dims: Vec<Dim> = shape
        .iter()
        .rev()
        .map(|&count| {
            let dim = Dim { stride, count };
            stride *= i64::from(count);
            dim
        })
        .collect();
    dims.reverse();
    if space.is_on_chip() {
        dims[0].stride = 1;
    }
    let dims = dims.into_iter().collect();
    View { tensor: TensorId(id), space, dtype, partition: 0, offset: 0, dims, indirect: None }
}

/// The layout of the tensors of a case.
enum Layout {
    Compact,
    /// Elements two apart, from the second on, in tiles that begin before them.
    Apart,
}

impl Case {
    /// Runs instances of the case one after the other in a machine of its own; gives what all tensors hold.
    fn run_all(&self, layout: &Layout, instances: &[Vec<Option<Arg>>]) -> Result<Vec<Vec<u32>>, String> {
        let mut m = TestMachine::new(self.target);
        let mut views = Vec::new();
        for t in &self.tensors {
            let view = match layout {
                Layout::Compact => m.tensor("t", t.space, t.dtype, &t.shape),
                Layout::Apart => {
                    let chip = t.space.is_on_chip();
                    let inner: u32 = t.shape.iter().skip(usize::from(chip)).product();
                    let shape = if chip { vec![t.shape[0], 2 * inner + 3] } else { vec![2 * inner + 3] };
                    let mut view = m.tensor("t", t.space, t.dtype, &shape);
                    let plain = numbered(view.tensor.0, t.space, t.dtype, &t.shape);
                    view.dims = plain.dims;
                    let free = if chip { &mut view.dims[1..] } else { &mut view.dims[..] };
                    free.iter_mut().for_each(|d| d.stride *= 2);
                    view.offset = 1;
                    view
                }
            };
            m.set_bits(&view, &t.bits);
            views.push(view);
        }
        let entry = inst::find(self.entry).expect("registered");
        for args in instances {
            let mut args: Vec<Option<Arg>> = args.iter().map(|a| a.as_ref().map(|a| placed(a, &views))).collect();
            let built = (entry.build)(&mut args).map_err(|v| v.to_string())?;
            m.run(built)?;
        }
        Ok(views.iter().map(|v| m.bits(v)).collect())
    }

    fn run(&self, layout: &Layout, args: &[Option<Arg>]) -> Result<Vec<Vec<u32>>, String> {
        self.run_all(layout, &[args.to_vec()])
    }

    /// Whether its rules hold.
    fn is_valid(&self) -> bool {
        let mut m = TestMachine::new(self.target);
        for t in &self.tensors {
            m.tensor("t", t.space, t.dtype, &t.shape);
        }
        let entry = inst::find(self.entry).expect("registered");
        (entry.build)(&mut self.args.clone()).is_ok_and(|inst| m.check(inst).is_ok())
    }

    /// The argument called `name`.
    fn arg(&self, name: &str) -> Option<&Arg> {
        let at = inst::find(self.entry)?.schema.position(name)?;
        self.args[at].as_ref()
    }
}

/// A view of a numbered tensor as a view of the tensor's storage: same dimensions, its strides.
fn placed(arg: &Arg, views: &[View]) -> Arg {
    match arg {
        Arg::View(v) => {
            let base = &views[v.tensor.0 as usize];
            // Views of cases are whole tensors or parts of them along one dimension: `offset` counts steps of that dimension.
            let mut out = base.clone();
            for (i, d) in v.dims.iter().enumerate() {
                out.dims[i].count = d.count;
            }
            out.partition = v.partition;
            if v.offset != 0 {
                let last = base.dims.len() - 1;
                let at =
                    if v.space.is_on_chip() { last } else { usize::from(v.dims[0].count == base.dims[0].count) * last };
                out.offset += v.offset * base.dims[at].stride;
            }
            Arg::View(out)
        }
        Arg::List(items) => Arg::List(items.iter().map(|i| placed(i, views)).collect()),
        other => other.clone(),
    }
}

/// All views of some arguments.
fn views<'a>(args: impl Iterator<Item = &'a Arg>) -> Vec<&'a View> {
    fn walk<'a>(arg: &'a Arg, out: &mut Vec<&'a View>) {
        match arg {
            Arg::View(v) => out.push(v),
            Arg::List(items) => items.iter().for_each(|i| walk(i, out)),
            _ => {}
        }
    }
    let mut out = Vec::new();
    args.for_each(|a| walk(a, &mut out));
    out
}

fn change(arg: &Arg, of: &dyn Fn(&View) -> View) -> Arg {
    match arg {
        Arg::View(v) => Arg::View(of(v)),
        Arg::List(items) => Arg::List(items.iter().map(|i| change(i, of)).collect()),
        other => other.clone(),
    }
}

/// Cases of each instruction within reach.
fn cases(seed: u64, each: usize) -> BTreeMap<&'static str, Vec<Case>> {
    let mut maker = Maker {
        random: Random::new(seed),
        tensors: Vec::new(),
        partitions: 0,
        free: Vec::new(),
        dtype: DType::F32,
        uniform: true,
    };
    let mut out = BTreeMap::new();
    for entry in inst::REGISTRY.iter().filter(|e| !out_of_reach(e)) {
        let mut found = Vec::new();
        for attempt in 0..30_000 {
            let target = if attempt % 2 == 0 { Target::Trn3 } else { Target::Trn2 };
            found.extend(maker.case(entry, target));
            if found.len() == each {
                break;
            }
        }
        out.insert(entry.schema.name, found);
    }
    out
}

/// Bits as they are compared: a NaN is a NaN.
fn comparable(case: &Case, bits: Vec<Vec<u32>>) -> Vec<Vec<u32>> {
    let nan = |d: DType, b: u32| d.is_float() && !d.is_packed() && nki_isa::dtype::bits_to_f32(d, b).is_nan();
    let one =
        |(t, bits): (&Made, Vec<u32>)| bits.into_iter().map(|b| if nan(t.dtype, b) { u32::MAX } else { b }).collect();
    case.tensors.iter().zip(bits).map(one).collect()
}

/// Runs a case in two ways and says where they differ.
fn differ(case: &Case, a: Result<Vec<Vec<u32>>, String>, b: Result<Vec<Vec<u32>>, String>) -> Option<String> {
    let (a, b) = match (a, b) {
        (Ok(a), Ok(b)) => (comparable(case, a), comparable(case, b)),
        (a, b) => return Some(format!("{a:?} {b:?}").chars().take(600).collect()),
    };
    let at = (0..a.len()).find_map(|t| Some((t, (0..a[t].len()).find(|&i| a[t][i] != b[t][i])?)));
    at.map(|(t, i)| format!("tensor {t} {:?}, element {i}: {:#x} or {:#x}", case.tensors[t].shape, a[t][i], b[t][i]))
}

/// Most instructions are found; those that random operands rarely fit are named.
fn check(name: &str, tried: &BTreeMap<&'static str, usize>, problems: &[String], rare: &[&str]) {
    assert!(problems.is_empty(), "{name}: {} problems\n{}", problems.len(), problems.join("\n"));
    for (inst, n) in tried {
        assert!(
            *n > 0 || rare.contains(inst),
            "{name}: no instance of {inst} was found: make operands that fit it, or list it"
        );
    }
}

#[test]
fn views_agree_with_copies() {
    let mut problems = Vec::new();
    let mut tried = BTreeMap::new();
    for (name, cases) in cases(1, 6) {
        for case in cases {
            let apart = case.run(&Layout::Apart, &case.args);
            // Some layouts are not for all: block scales have one layout, transfers want contiguous rows.
            if let Err(refused) = &apart {
                assert!(!refused.contains("internal"), "{name}: {refused}");
                continue;
            }
            *tried.entry(name).or_insert(0) += 1;
            if let Some(what) = differ(&case, case.run(&Layout::Compact, &case.args), apart) {
                problems.push(format!("{name}: {what}\n    {:?}", case.args));
            }
        }
        tried.entry(name).or_insert(0);
    }
    check("views", &tried, &problems, &[]);
}

/// Instructions whose partitions are not alike or not on their own.
const ACROSS_PARTITIONS: &[(&str, &str)] = &[
    ("nc_matmul", "contracts over the partitions"),
    ("nc_matmul_mx", "contracts over the partitions"),
    ("nc_transpose", "exchanges partitions and elements"),
    ("dma_transpose", "exchanges partitions and elements"),
    ("tensor_partition_reduce", "reduces over the partitions"),
    ("nc_stream_shuffle", "moves partitions within 32"),
    ("local_gather", "16 partitions share their indices"),
    ("nonzero_with_count", "looks at each 16th partition"),
    ("topk", "16 partitions are one source"),
    ("quantize_mx", "8 partitions share a scale"),
    ("affine_select", "counts partitions from the operand's first"),
    ("iota", "counts partitions from the operand's first"),
    ("dropout", "draws numbers: the second half draws other ones"),
    ("rng", "draws numbers: the second half draws other ones"),
    ("rand2", "draws numbers: the second half draws other ones"),
    ("rand_get_state", "each lane has a state of its own"),
    ("rand_set_state", "sets a state, no memory"),
    ("set_rng_seed", "sets a state, no memory"),
    ("sequence_bounds", "has one partition"),
];

/// Accumulators go on from the state before: halves see the other half's.
fn goes_on(case: &Case) -> bool {
    matches!(case.arg("reduce_cmd"), Some(Arg::Name(n)) if matches!(&**n, "reduce" | "idle" | "reset"))
}

#[test]
fn tilings_agree() {
    let mut problems = Vec::new();
    let mut tried = BTreeMap::new();
    for (name, cases) in cases(2, 12) {
        if ACROSS_PARTITIONS.iter().any(|(n, _)| *n == name) {
            continue;
        }
        tried.insert(name, 0);
        for case in cases.iter().filter(|c| !goes_on(c)) {
            let all = views(case.args.iter().flatten());
            let p = all.iter().map(|v| v.dims[0].count).max().unwrap_or(0);
            if p < 64 || all.iter().any(|v| v.dims[0].count != p) {
                continue;
            }
            let half = |at: u32| -> Vec<Option<Arg>> {
                let of = |v: &View| {
                    let mut v = v.clone();
                    v.dims[0].count = p / 2;
                    if v.space.is_on_chip() {
                        v.partition = at * p / 2;
                    } else {
                        v.offset = i64::from(at * p / 2);
                    }
                    v
                };
                case.args.iter().map(|a| a.as_ref().map(|a| change(a, &of))).collect()
            };
            *tried.entry(name).or_insert(0) += 1;
            let whole = case.run(&Layout::Compact, &case.args);
            if let Some(what) = differ(case, whole, case.run_all(&Layout::Compact, &[half(0), half(1)])) {
                problems.push(format!("{name}: {what}\n    {:?}", case.args));
            }
        }
    }
    check("tilings", &tried, &problems, &[]);
}

/// Instructions whose columns are not on their own, though all tiles have as many.
const ACROSS_COLUMNS: &[(&str, &str)] = &[
    ("tensor_tensor_scan", "goes on from column to column"),
    ("tensor_scalar_cumulative", "goes on from column to column"),
    ("nc_match_replace8", "replaces the first of a row"),
    ("nc_n_gather", "gathers from the whole row"),
    ("local_gather", "gathers from the whole row"),
    ("range_select", "counts columns from the operand's first"),
    ("dropout", "draws numbers: the second half draws other ones"),
    ("rng", "draws numbers: the second half draws other ones"),
    ("rand2", "draws numbers: the second half draws other ones"),
    ("nc_transpose", "exchanges partitions and columns"),
    ("dma_transpose", "exchanges partitions and columns"),
    ("nc_matmul", "its operands' columns are the result's rows and columns"),
    ("topk", "has k results of 16 rows"),
    ("max8", "has eight results of a row"),
    ("nc_find_index8", "has eight results of a row"),
    ("bn_stats", "has six results of a row"),
    ("tensor_reduce", "has one result of a row"),
];

#[test]
fn columns_agree() {
    let mut problems = Vec::new();
    let mut tried = BTreeMap::new();
    for (name, cases) in cases(3, 12) {
        if ACROSS_COLUMNS.iter().any(|(n, _)| *n == name) {
            continue;
        }
        for case in &cases {
            let all = views(case.args.iter().flatten());
            let Some(columns) = all.iter().map(|v| v.dims[v.dims.len() - 1].count).max().filter(|n| n % 2 == 0) else {
                continue;
            };
            let schema = inst::find(name).expect("registered").schema;
            let reduced = schema
                .operands
                .iter()
                .zip(&case.args)
                .any(|(o, a)| o.role == Role::Out && views(a.iter()).iter().any(|v| v.free_elements() == 1));
            let two = |v: &&View| v.dims.len() == 2 && (v.dims[1].count == columns || v.free_elements() == 1);
            if reduced || columns < 4 || !all.iter().all(two) {
                continue;
            }
            let half = |at: u32| -> Vec<Option<Arg>> {
                let of = |v: &View| {
                    let mut v = v.clone();
                    if v.dims[1].count == columns {
                        v.dims[1].count = columns / 2;
                        v.offset = i64::from(at * columns / 2);
                    }
                    v
                };
                case.args.iter().map(|a| a.as_ref().map(|a| change(a, &of))).collect()
            };
            let halves = case.run_all(&Layout::Compact, &[half(0), half(1)]);
            // A pattern or a count in the arguments says how many columns there are.
            if halves.is_err() {
                continue;
            }
            *tried.entry(name).or_insert(0) += 1;
            if let Some(what) = differ(case, case.run(&Layout::Compact, &case.args), halves) {
                problems.push(format!("{name}: {what}\n    {:?}", case.args));
            }
        }
    }
    check("columns", &tried, &problems, &[]);
    assert!(tried.len() >= 10, "{tried:?}");
}

#[test]
fn engines_agree_on_floats() {
    let generators = ["rng", "rand_get_state", "rand_set_state"];
    let mut problems = Vec::new();
    let mut tried = BTreeMap::new();
    for (name, cases) in cases(4, 40) {
        let schema = inst::find(name).expect("registered").schema;
        let Some(at) = schema.position("engine").filter(|_| !generators.contains(&name)) else { continue };
        tried.insert(name, 0);
        for case in &cases {
            // Integers of 32 bits go through fp32 on some engines, and are exact on others (docs/numerics.md).
            if case.tensors.iter().any(|t| t.dtype.is_int() && t.dtype.size() == 4) {
                continue;
            }
            let with = |engine: Engine| {
                let mut args = case.args.clone();
                args[at] = Some(Arg::Name(engine.name().into()));
                case.run(&Layout::Compact, &args)
            };
            let arch = Arch::of(case.target);
            let able = schema.engines.iter().filter(|e| e.since <= arch.target).map(|e| e.on);
            let runs: Vec<(Engine, Vec<Vec<u32>>)> = able.filter_map(|e| Some((e, with(e).ok()?))).collect();
            for pair in runs.windows(2) {
                *tried.entry(name).or_insert(0) += 1;
                if let Some(what) = differ(case, Ok(pair[0].1.clone()), Ok(pair[1].1.clone())) {
                    problems.push(format!("{name} on {} and {}: {what}\n    {:?}", pair[0].0, pair[1].0, case.args));
                }
            }
        }
    }
    // DMA is triggered by engines, not computed by them.
    check("engines", &tried, &problems, &["dma_copy"]);
}

/// What cannot be tried must be known: a new instruction is in reach, or of a kind that is not.
#[test]
fn every_instruction_is_in_reach() {
    let missing: Vec<_> = cases(5, 1).into_iter().filter(|(_, c)| c.is_empty()).map(|(n, _)| n).collect();
    assert!(missing.is_empty(), "no valid instance was found of {missing:?}");
    let lists = ACROSS_PARTITIONS.iter().chain(ACROSS_COLUMNS).filter(|(n, _)| inst::find(n).is_none());
    assert_eq!(lists.count(), 0, "a list names an instruction that is not there");
}
