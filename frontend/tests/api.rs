//! The API bindings, from source text to programs and diagnostics.

use std::path::Path;

use nki_diag::Diagnostic;
use nki_frontend::{Arg, Compiled, Loader, Options, Returned, compile};
use nki_isa::program::{Bound, Control, NodeKind};
use nki_isa::{DType, Index, Node, Program, Space, Target};

struct Text(String);

impl Loader for Text {
    fn read(&self, path: &Path) -> std::io::Result<String> {
        if path == Path::new("k.py") { Ok(self.0.clone()) } else { Err(std::io::ErrorKind::NotFound.into()) }
    }
}

const HEAD: &str = "import nki\nimport nki.isa as nisa\nimport nki.language as nl\n\n";

fn f32s(shape: &[usize]) -> Arg {
    Arg::Tensor { shape: shape.to_vec(), dtype: DType::F32 }
}

fn run_with(source: &str, args: &[(&str, Arg)], options: &Options) -> Compiled {
    let args: Vec<(String, Arg)> = args.iter().map(|(n, a)| ((*n).to_owned(), a.clone())).collect();
    compile(Path::new("k.py"), &Text(source.to_owned()), &args, options)
}

/// Compiles a kernel body with the parameter `x`, float32 of shape `[256, 512]`.
fn body(text: &str) -> Compiled {
    let mut source = format!("{HEAD}@nki.jit\ndef kernel(x):\n");
    for line in text.lines() {
        source.push_str(&format!("    {line}\n"));
    }
    run_with(&source, &[("x", f32s(&[256, 512]))], &Options::default())
}

fn program(compiled: Compiled) -> Program {
    let errors: Vec<&Diagnostic> = compiled.diagnostics.iter().filter(|d| d.is_error()).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    compiled.program.expect("a program")
}

/// The first error's slug and text with its advice.
fn error(compiled: Compiled) -> (&'static str, String) {
    let d = compiled.diagnostics.iter().find(|d| d.is_error()).expect("an error");
    let labels: Vec<&str> = d.labels.iter().map(|l| &*l.text).collect();
    (d.id, format!("{}\n{}\n{}\n{}", d.message, labels.join("\n"), d.notes.join("\n"), d.help.join("\n")))
}

fn names(nodes: &[Node]) -> Vec<String> {
    nodes
        .iter()
        .map(|n| match &n.kind {
            NodeKind::Inst(i) => i.schema().name.to_owned(),
            NodeKind::Control(control) => match &**control {
                Control::For { body, .. } => format!("for({})", names(body).join(" ")),
                Control::While { body, .. } => format!("while({})", names(body).join(" ")),
                Control::If { then, otherwise, .. } => {
                    format!("if({} | {})", names(then).join(" "), names(otherwise).join(" "))
                }
            },
        })
        .collect()
}

const OUT: &str = "out = nl.ndarray((128, 512), nl.float32, buffer=nl.shared_hbm)\n";

#[test]
fn tensor_add() {
    let source = format!(
        "{HEAD}@nki.jit
def add(a, b):
    c = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range(a.shape[0] // nl.tile_size.pmax):
        rows = nl.ds(i * 128, 128)
        x = nl.ndarray((128, a.shape[1]), a.dtype, nl.sbuf)
        nisa.dma_copy(dst=x, src=a[rows, :])
        y = nl.ndarray((128, a.shape[1]), a.dtype, nl.sbuf)
        nisa.dma_copy(dst=y, src=b[rows])
        nisa.tensor_tensor(dst=x, data1=x, data2=y, op=nl.add)
        nisa.dma_copy(dst=c[rows, :], src=x, name='last')
    return c
"
    );
    let p = program(run_with(&source, &[("a", f32s(&[256, 1024])), ("b", f32s(&[256, 1024]))], &Options::default()));
    assert_eq!(&*p.name, "add");
    assert_eq!(p.inputs.iter().map(|i| &*i.name).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(p.outputs.iter().map(|o| &*o.name).collect::<Vec<_>>(), ["c"]);
    assert_eq!(names(&p.cores[0]).len(), 8);
    assert_eq!(p.tensors.iter().map(|t| &*t.name).collect::<Vec<_>>(), ["a", "b", "c", "x", "y", "x", "y"]);
    let last = p.cores[0].last().unwrap();
    assert_eq!(p.iterations(last.trail), [("i", 1)]);
    assert_eq!(last.loc.line, 15);
    let NodeKind::Inst(inst) = &last.kind else { panic!() };
    let nki_isa::Arg::View(dst) = &inst.args()[0] else { panic!() };
    assert_eq!(dst.offset, 128 * 1024);
}

#[test]
fn ragged_tiles_with_min_and_slice_objects() {
    let source = format!(
        "{HEAD}@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    rows = [slice(r, min(r + 96, x.shape[0])) for r in range(0, x.shape[0], 96)]
    for r in rows:
        for start in range(0, x.shape[1], 256):
            c = slice(start, min(start + 256, x.shape[1]))
            tile = nl.ndarray((r.stop - r.start, c.stop - c.start), x.dtype, nl.sbuf)
            nisa.dma_copy(tile, x[r, c])
            nisa.dma_copy(out[r, start:c.stop], tile)
    return out
"
    );
    let p = program(run_with(&source, &[("x", f32s(&[100, 300]))], &Options::default()));
    let shapes: Vec<Vec<u32>> = p.tensors[2..].iter().map(|t| t.shape.to_vec()).collect();
    assert_eq!(shapes, [vec![96, 256], vec![96, 44], vec![4, 256], vec![4, 44]]);
}

#[test]
fn dynamic_access_by_scalar_and_vector() {
    let p = program(body(&format!(
        "{OUT}index = nl.ndarray((1, 1), nl.int32, nl.sbuf)
nisa.memset(dst=index, value=3)
tile = nl.ndarray((128, 512), nl.float32, nl.sbuf)
nisa.dma_copy(dst=tile, src=x.ap(pattern=[[512, 128], [1, 512]], offset=0, scalar_offset=index, indirect_dim=0))
rows = nl.ndarray((128, 1), nl.int32, nl.sbuf)
nisa.iota(rows, [[1, 1]], 0, 2)
nisa.dma_copy(dst=tile, src=x.ap([[512, 128], [1, 512]], 0, vector_offset=rows, indirect_dim=0))
nisa.dma_copy(dst=tile, src=x.vector_select(0, rows))
nisa.dma_copy(dst=tile[0:1, :], src=x.select(0, index))
nisa.dma_copy(dst=tile[0:1, :], src=x[index, :])
nisa.dma_copy(dst=tile, src=x[nl.ds(index, 128), :])
nisa.dma_copy(dst=out, src=tile)
return out"
    )));
    let indirect: Vec<_> = p.cores[0]
        .iter()
        .filter_map(|n| match &n.kind {
            NodeKind::Inst(i) if i.schema().name == "dma_copy" => match &i.args()[1] {
                nki_isa::Arg::View(v) => v.indirect.clone(),
                _ => None,
            },
            _ => None,
        })
        .collect();
    assert_eq!(indirect.len(), 6);
    assert!(indirect.iter().all(|i| i.stride == 512));
    assert_eq!(indirect.iter().map(|i| i.bound).collect::<Vec<_>>(), [256, 256, 256, 256, 256, 129]);
    assert_eq!(indirect.iter().filter(|i| matches!(i.index, Index::Vector(_))).count(), 2);
}

#[test]
fn dynamic_loops_stay_loops() {
    let p = program(body(&format!(
        "{OUT}tile = nl.ndarray((128, 512), nl.float32, nl.sbuf)
count = nl.ndarray((1, 1), nl.int32, nl.sbuf)
nisa.memset(dst=count, value=5)
n = nisa.register_alloc()
nisa.register_load(n, count)
for i in nl.dynamic_range(0, n, 2):
    nisa.dma_copy(dst=tile, src=x.ap([[512, 128], [1, 512]], scalar_offset=i))
for j in nl.dynamic_range(3):
    with nl.no_reorder():
        nisa.memset(dst=tile, value=0.0)
reg = nisa.register_alloc(1)
while reg:
    nisa.register_store(count, reg)
    nisa.tensor_scalar(count, count, nl.add, -1)
    nisa.register_load(reg, count)
if reg:
    nisa.memset(dst=tile, value=1.0)
else:
    nisa.memset(dst=tile, value=2.0)
def step(i):
    nisa.memset(dst=tile, value=3.0)
nl.fori_loop(0, n, step)
def again(r):
    nisa.register_load(r, count)
    return r
nl.while_loop(reg, again)
nisa.dma_copy(dst=out, src=tile)
return out"
    )));
    assert_eq!(
        names(&p.cores[0]),
        [
            "memset",
            "register_load",
            "for(dma_copy)",
            "for(memset)",
            "register_move",
            "while(register_store tensor_scalar register_load)",
            "if(memset | memset)",
            "for(memset)",
            "register_move",
            "while(register_load)",
            "dma_copy"
        ]
    );
    let NodeKind::Control(control) = &p.cores[0][2].kind else { panic!() };
    let Control::For { lower, upper, step, variable, .. } = &**control else { panic!() };
    assert_eq!((*lower, *step), (Bound::Static(0), 2));
    assert!(matches!(upper, Bound::Register(r) if r != variable));
}

#[test]
fn both_cores_share_what_is_shared() {
    let source = format!(
        "{HEAD}@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    core = nl.program_id(0)
    assert nl.num_programs() == 2
    tile = nl.ndarray((128, 512), x.dtype, nl.sbuf)
    nisa.dma_copy(dst=tile, src=x[core * 128:(core + 1) * 128, :])
    nisa.dma_copy(dst=out[core * 128:(core + 1) * 128, :], src=tile)
    return out
"
    );
    let p = program(run_with(&source, &[("x", f32s(&[256, 512]))], &Options { lnc: 2, ..Options::default() }));
    assert_eq!(p.cores.len(), 2);
    assert_eq!(p.tensors.iter().filter(|t| t.space == Space::SharedHbm).count(), 2);
    assert_eq!(p.tensors.iter().filter(|t| t.space == Space::Sbuf).map(|t| t.core).collect::<Vec<_>>(), [0, 1]);
    let offsets: Vec<i64> = p
        .cores
        .iter()
        .map(|c| match &c[1].kind {
            NodeKind::Inst(i) => match &i.args()[0] {
                nki_isa::Arg::View(v) => v.offset,
                _ => -1,
            },
            _ => -1,
        })
        .collect();
    assert_eq!(offsets, [0, 128 * 512]);
}

#[test]
fn a_core_cannot_use_a_tile_of_the_other() {
    let source = format!(
        "{HEAD}kept = {{}}

@nki.jit
def kernel(x):
    if 'tile' not in kept:
        kept['tile'] = nl.ndarray(x.shape, x.dtype, nl.sbuf)
    nisa.dma_copy(dst=kept['tile'], src=x)
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=kept['tile'])
    return out
"
    );
    let of = |lnc| run_with(&source, &[("x", f32s(&[4, 4]))], &Options { lnc, ..Options::default() });
    program(of(1));
    let refused = of(2);
    assert!(refused.program.is_none());
    let message = &refused.diagnostics[0].message;
    assert!(message.contains("in the sbuf of core 0, but core 1 uses it here"), "{message}");
}

#[test]
fn attributes_and_constants() {
    for target in [Target::Trn1, Target::Trn2, Target::Trn3] {
        let source = format!(
            "{HEAD}import numpy as np
@nki.jit
def kernel(x):
    t = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    assert t.shape == (128, 64)
    assert t.strides == (64, 1)
    assert t.offset == 0 and t.ndim == 2 and t.size == 128 * 64
    assert t.dtype == nl.float32 and t.dtype == 'float32' and t.dtype != nl.bfloat16
    assert t.buffer == nl.sbuf and t.buffer != nl.psum and nl.is_on_chip(t.buffer)
    u = t.slice(dim=1, start=8, end=24)
    assert u.get_pattern() == [[64, 128], [1, 16]] and u.offset == 8
    v = t.ap(pattern=[[64, 128], [1, 16]], offset=8)
    assert v.get_pattern() == u.get_pattern() and v.offset == u.offset
    assert t.name == 't' and not t.is_indirect() and t.is_contiguous() and u.is_contiguous()
    assert t.permute((0, 1)).shape == t.shape and t.reshape((128, 8, 8))[0:64].shape == (64, 8, 8)
    w = nl.ndarray((128, 4, 16), dtype=nl.float32, buffer=nl.sbuf)
    assert w[0:64, :, :].permute((0, 2, 1))[:, 0, :].shape == (64, 4)
    assert t.view(nl.uint8).shape == (128, 256) and t.rearrange(('b', ('h', 'w')), ('b', 'w', 'h'), {{'h': 4}}).shape == (128, 16, 4)
    assert nl.tile_size.pmax == 128 and nl.tile_size.psum_fmax == 512
    assert nisa.get_nc_version() >= nisa.nc_version.gen2
    assert nisa.engine.vector.name == 'vector' and nisa.vector_engine == nisa.engine.vector
    assert (t is x) == False and t == t and t != x
    seen = {{}}
    seen[str(t.dtype)] = 1
    assert seen['float32'] == 1
    print(f'{{t.dtype}} {{t.shape}}')
    return x
"
        );
        let c = run_with(&source, &[("x", f32s(&[4, 4]))], &Options { target, ..Options::default() });
        assert_eq!(c.prints, ["float32 (128, 64)"], "{:#?}", c.diagnostics);
        program(c);
    }
}

#[test]
fn nl_operations_make_tiles() {
    let p = program(body(&format!(
        "{OUT}tile = nl.load(x[0:128, :])
y = nl.add(nl.exp(tile), 1.0)
z = nl.softmax(y, axis=1)
nl.store(out, z)
return out"
    )));
    assert_eq!(
        names(&p.cores[0]),
        [
            "dma_copy",
            "activation",
            "tensor_scalar",
            "tensor_reduce",
            "activation_reduce",
            "reciprocal",
            "tensor_scalar",
            "dma_copy"
        ]
    );
    assert!(p.tensors.iter().any(|t| &*t.name == "tile"));
}

#[test]
fn what_is_wrong_is_said_once_and_clearly() {
    let tile = "t = nl.ndarray((128, 512), nl.float32, nl.sbuf)\n";
    let mut bad = Vec::new();
    for (text, slug, words) in [
        ("t = nl.ndarray((256, 512), nl.float32, nl.sbuf)", "partition-size", &["`t`", "256", "128"][..]),
        ("p = nl.ndarray((128, 8192), nl.float32, nl.psum)", "psum-capacity", &["32768", "16384"]),
        ("p = nl.ndarray((128, 512), nl.float32, nl.psum, address=(0, 100))", "psum-alignment", &["100", "2048"]),
        ("p = nl.ndarray((128, 512), nl.float99, nl.psum)", "", &["float99"]),
        // `x` is taken as dst: a missing operand is reported before a wrong one.
        ("y = nisa.reciprocal(x)", "missing-dst", &["data", "first argument"]),
        ("y = nisa.reciprocal(data=t)", "missing-dst", &["dst", "first argument"]),
        ("y = nisa.tensor_tensor(t, t, op=nl.add)", "missing-dst", &["data2", "dst"]),
        ("nisa.tensor_copy(dst=t, src=t, mask=None)", "removed-mask", &["mask", "min("]),
        ("nisa.tensor_copy(dst=t, scr=t)", "arguments", &["`scr`", "did you mean `src`"]),
        ("nisa.tensor_copy(t, t, t, t, t)", "arguments", &["at most 3", "nisa.tensor_copy(dst, src, engine=unknown"]),
        ("nisa.tensor_copy(dst=t, src=3)", "operand-kind", &["`src`", "tensor", "3"]),
        ("nisa.tensor_copy(dst=t, src=x[0:128, :])", "operand-memory", &["`src`", "shared_hbm"]),
        ("nisa.tensor_tensor(dst=t, data1=t, data2=t[:, 0:10], op=nl.add)", "shape-mismatch", &["data2"]),
        ("y = nl.add(t, t[0:1, 0:9])", "shape-mismatch", &["nl.add", "(1, 9)", "1 in one of the tiles"]),
        ("y = nl.add(t[0:2], t[0:4])", "shape-mismatch", &["(2, ", "(4, "]),
        ("i = nl.arange(128)", "removed-beta1", &["nl.arange", "slices"]),
        ("i, j = nl.mgrid[0:128, 0:512]", "removed-beta1", &["nl.mgrid", "slices"]),
        ("b = nl.ndarray((8, nl.par_dim(128), 512), nl.float32)", "removed-beta1", &["par_dim", "list"]),
        ("u = t[:, 0:600]", "out-of-bounds", &["600", "min("]),
        ("u = t[:, 5:5]", "empty-slice", &["5:5"]),
        ("u = t[200, 0]", "out-of-bounds", &["200"]),
        ("u = t[[0, 1], :]", "bad-index", &["list"]),
        ("u = t[:, ::-1]", "bad-index", &["positive"]),
        ("u = t + t", "tensor-operator", &["nl.add"]),
        ("t[0:64, :] = 0.0", "tensor-assignment", &["memset"]),
        ("t[...] = nisa.reciprocal(t, t)", "missing-dst", &["dst"]),
        ("r = nisa.register_alloc(1)\nu = r + 1", "register-arithmetic", &["register_store"]),
        ("for i in nl.dynamic_range(4):\n    nisa.register_move(i, 3)", "frozen-register", &["loop"]),
        ("for i in nl.dynamic_range(4, 0, -1):\n    pass", "dynamic-loop", &["positive"]),
        ("with nl.no_reorder():\n    for i in nl.dynamic_range(4):\n        pass", "dynamic-loop", &["no_reorder"]),
        ("u = t.reshape((64, 1024))", "partition-dimension", &["dimension 0"]),
        ("u = t.reshape((128, 500))", "shape-mismatch", &["65536"]),
        ("u = t.permute((1, 0))", "partition-dimension", &["partition"]),
        ("u = t.reshap((128, 512))", "unknown-attribute", &["did you mean `reshape`"]),
        ("nl.laod(t)", "no-attribute", &["did you mean `load`"]),
        ("nl.tensor_copy(dst=t, src=t)", "no-attribute", &["did you mean `nki.isa.tensor_copy`"]),
        ("nisa.store(t, t)", "no-attribute", &["did you mean `nki.language.store`"]),
        ("from nki.language import dma_copy", "import-error", &["did you mean `nki.isa.dma_copy`"]),
        ("u = nl.exp(x)", "operand-memory", &["nl.load"]),
        ("nisa.dma_transpose(dst=t, src=t)", "tile-size", &["dma_transpose"]),
        ("nisa.nc_matmul_mx(t, t, t, t, t)", "operand-memory", &["nc_matmul_mx"]),
        ("return t", "kernel-output", &["shared_hbm", "`t`"]),
        ("return 3", "kernel-output", &["int"]),
        ("nisa.activation(dst=t, op=nl.ezp, data=t)", "", &["ezp"]),
        ("nisa.activation(dst=t, op=nl.where, data=t)", "operand-kind", &["op"]),
    ] {
        let c = body(&format!("{tile}{text}\nreturn x"));
        let count = c.diagnostics.iter().filter(|d| d.is_error()).count();
        if count != 1 {
            bad.push(format!("{text}: {count} errors"));
            continue;
        }
        let (id, message) = error(c);
        if !slug.is_empty() && id != slug {
            bad.push(format!("{text}: {id}: {message}"));
        }
        for word in words.iter().filter(|w| !message.contains(**w)) {
            bad.push(format!("{text}: no {word:?} in: {message}"));
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

#[test]
fn an_error_points_at_the_operand_and_at_its_making() {
    let c = body(
        "t = nl.ndarray((128, 512), nl.float32, nl.sbuf)\nnisa.tensor_tensor(dst=t, data1=t,\n    data2=t[:, 0:10], op=nl.add)\nreturn x",
    );
    let d = c.diagnostics.iter().find(|d| d.is_error()).unwrap();
    let (_, line, column) = d.primary().unwrap().place.resolve(&c.sources);
    assert_eq!((line, column), (9, 15), "{d:#?}");
    assert!(d.labels.iter().any(|l| l.text.contains("allocated here") && l.place.resolve(&c.sources).1 == 7), "{d:#?}");
}

#[test]
fn outputs_are_named_and_may_be_reshaped() {
    let p = program(body(
        "a = nl.ndarray((128, 512), nl.float32, buffer=nl.shared_hbm)
b = nl.ndarray((128, 512), nl.float32, buffer=nl.shared_hbm)
t = nl.load(x[0:128, :])
nl.store(a, t)
nl.store(b, t)
return a, b.reshape((512, 128))",
    ));
    assert_eq!(&*p.outputs[0].name, "a");
    assert_eq!(p.tensor(p.outputs[1].tensor).shape[..], [512, 128]);
}

#[test]
fn a_named_tuple_of_outputs_is_a_tuple() {
    let source = format!(
        "from typing import NamedTuple
{HEAD}class Two(NamedTuple):
    a: object
    b: object = None

@nki.jit
def kernel(x):
    out = nl.ndarray((128, 512), nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=x[0:128, :])
    return Two(out, Two(x))
"
    );
    let c = run_with(&source, &[("x", f32s(&[256, 512]))], &Options::default());
    let inner = Returned::Tuple(vec![Returned::Output(1), Returned::None]);
    assert_eq!(c.returned, Returned::Tuple(vec![Returned::Output(0), inner]), "{:#?}", c.diagnostics);
}

#[test]
fn strict_reports_what_the_compiler_refuses() {
    let source = format!(
        "{HEAD}@nki.jit
def kernel(x):
    t = nl.ndarray((128, 512), nl.float32, buffer='sbuf')
    nisa.dma_copy(dst=t, src=x[0:128, :], dge_mode=2)
    u = nl.ndarray((16, 512), nl.float32, nl.sbuf, address=(16, 0))
    return x
"
    );
    let options = Options { strict: true, ..Options::default() };
    let c = run_with(&source, &[("x", f32s(&[256, 512]))], &options);
    assert_eq!(c.diagnostics.iter().map(|d| d.id).collect::<Vec<_>>(), ["strict-language"; 3], "{:#?}", c.diagnostics);
    let c = run_with(&source, &[("x", f32s(&[256, 512]))], &Options::default());
    assert!(c.diagnostics.is_empty(), "{:#?}", c.diagnostics);
}

#[test]
fn a_row_is_broadcast_to_all_partitions() {
    let p = program(body(&format!(
        "{OUT}row = nl.load(x[0:1, :])
nl.store(out, nl.broadcast_to(row, (128, 512)))
return out"
    )));
    let shuffles = ["nc_stream_shuffle"; 4];
    assert_eq!(names(&p.cores[0]), [&["dma_copy"][..], &shuffles, &["dma_copy"]].concat());
}

#[test]
fn hostile_numbers_are_errors_not_panics() {
    let tile = "t = nl.ndarray((128, 512), nl.float32, nl.sbuf)\n";
    let big = "9223372036854775807";
    for text in [
        format!("u = nl.ndarray(({big}, {big}), nl.float32)"),
        "u = nl.ndarray((4294967295, 4294967295, 4294967295), nl.float32, nl.hbm)".to_owned(),
        "u = nl.ndarray((128, 4), nl.float32, nl.sbuf, address=(4294967295, 4294967295))".to_owned(),
        format!("u = nl.ndarray((128, 4), nl.float32, nl.sbuf, address=({big}, -{big}))"),
        format!("u = t[{big}]"),
        format!("u = t[-{big} - 1, :]"),
        format!("u = t[:, 0:{big}]"),
        format!("u = t[:, {big}:{big}:{big}]"),
        format!("u = t[nl.ds({big}, {big})]"),
        "u = t[nl.ds(0, -1)]".to_owned(),
        format!("u = t.slice(1, 0, 512, -{big})"),
        format!("u = t.select({big}, {big})"),
        format!("u = t.reshape((128, {big}, {big}))"),
        "u = t.reshape((128, -1, -1))".to_owned(),
        "u = t.reshape((128, 0, -1))".to_owned(),
        format!("u = t.reshape_dim(1, ({big}, 2))"),
        format!("u = t.expand_dim(1).broadcast(1, {big})"),
        "u = t.expand_dim(1).expand_dim(1).broadcast(1, 4294967295).broadcast(2, 4294967295)".to_owned(),
        format!("u = t.ap([[512, 128], [{big}, {big}]])"),
        format!("u = t.ap([[512, 128], [1, 512]], offset={big})"),
        format!("u = t.ap([[512, 128], [1, 512]], offset=-{big})"),
        "u = x.ap([[4294967295, 4294967295], [4294967295, 4294967295]])".to_owned(),
        format!("u = t.permute(({big}, -{big}))"),
        format!("u = nl.sum(t, axis={big})"),
        format!("u = nl.shared_identity_matrix({big})"),
        format!("u = nl.zeros(({big},), nl.float32, nl.hbm)"),
    ] {
        let c = body(&format!("{tile}{text}\nreturn x"));
        assert_eq!(c.diagnostics.iter().filter(|d| d.is_error()).count(), 1, "{text}");
    }
    // A huge step is fine where one element is left.
    program(body(&format!("{tile}u = t[:, 0:512:{big}]\nassert u.shape == (128, 1)\nreturn x")));
}

#[test]
fn a_file_is_written_in_the_language_that_it_imports() {
    let kernel = "
@nki.jit
def kernel(x):
    t = nl.load(x)
    return x
";
    let old = "import neuronxcc.nki as nki\nimport neuronxcc.nki.language as nl\nfrom neuronxcc.nki.language import par_dim\n";
    assert!(run_with(&format!("{old}{kernel}"), &[("x", f32s(&[128, 512]))], &Options::default()).program.is_some());
    // The branch that Python takes: both packages are installed.
    for (first, second, has) in [("neuronxcc.nki", "nki", true), ("nki", "neuronxcc.nki", false)] {
        let import = |package: &str| format!("    import {package}.language as nl\n    import {package} as nki\n");
        let either = format!("try:\n{}except ImportError:\n{}", import(first), import(second));
        let asked =
            format!("{either}{kernel}    assert hasattr(nl, 'fp32') == {}\n", if has { "True" } else { "False" });
        let asked = asked.replace("    return x\n    assert", "    assert") + "    return x\n";
        let done = run_with(&asked, &[("x", f32s(&[128, 512]))], &Options::default());
        assert!(done.program.is_some(), "{first}: {:?}", done.diagnostics);
    }
    let both = format!("import nki\nimport neuronxcc.nki.language as nl\n{kernel}");
    let (id, message) = error(run_with(&both, &[("x", f32s(&[128, 512]))], &Options::default()));
    assert_eq!(id, "removed-beta1", "{message}");
    assert!(message.contains("import nki"), "{message}");
}

#[test]
fn names_and_order_of_instructions_reach_the_program() {
    let p = program(body(
        "t = nl.ndarray((128, 512), nl.float32)
u = nl.ndarray((128, 512), nl.float32)
first = nisa.memset(dst=t, value=0.0)
second = nisa.memset(dst=u, value=1.0, name='ones').depends_on(first)
third = nisa.memset(dst=t, value=2.0).depends_on(first, [second])
fourth = nisa.memset(dst=u, value=2.0)",
    ));
    let nodes = &p.cores[0];
    assert_eq!(nodes.iter().map(|n| p.name_of(n)).collect::<Vec<_>>(), ["", "ones", "", ""]);
    let after = |i: usize| {
        let tags = &p.tags[nodes[i].tag.unwrap().0 as usize].after;
        tags.iter().map(|t| nodes.iter().position(|n| n.tag == Some(*t)).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!((after(0), after(1), after(2)), (vec![], vec![0], vec![0, 1]));
    assert_eq!(nodes[3].tag, None);
    // The text form keeps both.
    let text = nki_isa::text::print(&p);
    assert_eq!(nki_isa::text::parse(&text).unwrap(), p);
}

#[test]
fn blocks_without_reordering_reach_the_program() {
    let p = program(body(
        "t = nl.ndarray((128, 512), nl.float32)
nisa.memset(dst=t, value=0.0)
with nl.no_reorder():
    for i in range(2):
        nisa.memset(dst=t, value=1.0)
    with nl.no_reorder():
        nisa.memset(dst=t, value=2.0, name='third')
    nisa.memset(dst=t, value=3.0).depends_on()
nisa.memset(dst=t, value=4.0)
with nl.no_reorder():
    nisa.memset(dst=t, value=5.0)
with nl.no_reorder():
    pass
for i in range(2):
    with nl.no_reorder():
        nisa.memset(dst=t, value=6.0)
        nisa.memset(dst=t, value=7.0)",
    ));
    let block = |n: &nki_isa::program::Node| n.tag.and_then(|tag| p.tags[tag.0 as usize].block);
    let blocks: Vec<_> = p.cores[0].iter().map(block).collect();
    let [first, second, third] = [Some(0), Some(1), Some(2)];
    // One instruction alone has no order to keep.
    assert_eq!(blocks, [None, first, first, first, first, None, None, second, second, third, third]);
    assert_eq!(p.name_of(&p.cores[0][3]), "third");
    let text = nki_isa::text::print(&p);
    assert_eq!(nki_isa::text::parse(&text).unwrap(), p);
}

#[test]
fn an_order_that_cannot_be_kept_is_refused() {
    let two = "t = nl.ndarray((128, 512), nl.float32)\na = nisa.memset(dst=t, value=0.0)\nb = nisa.memset(dst=t, value=1.0)\n";
    let inside = "t = nl.ndarray((128, 512), nl.float32)
kept = []
for i in nl.dynamic_range(4):
    kept.append(nisa.memset(dst=t, value=0.0))
b = nisa.memset(dst=t, value=1.0)
";
    for (text, fragment) in [
        (format!("{two}a.depends_on(b)"), "does not precede"),
        (format!("{two}a.depends_on(a)"), "does not precede"),
        (format!("{two}a.depends_on(t)"), "what instructions return"),
        (format!("{inside}b.depends_on(kept[0])"), "has ended"),
    ] {
        let (_, message) = error(body(&text));
        assert!(message.contains(fragment), "{text}: {message}");
    }
    // From a loop to what runs before it.
    program(body(
        "t = nl.ndarray((128, 512), nl.float32)
a = nisa.memset(dst=t, value=0.0)
for i in nl.dynamic_range(4):
    nisa.memset(dst=t, value=1.0).depends_on(a)",
    ));
}

#[test]
fn views_of_tiles_that_turn_out_not_to_exist() {
    // As libraries do: make the pattern first, check whether the tile exists afterwards.
    program(body(
        "t = nl.ndarray((128, 64), nl.float32)
for i in range(3):
    part = t.ap([[64, 128], [1, 32]], offset=i * 32)
    rows = nl.ds(i * 64, 64 if i < 1 else 0)
    if i < 2:
        nisa.memset(dst=part, value=0.0)
    if i < 1:
        nisa.memset(dst=t[:, rows], value=0.0)",
    ));
    let (id, _) = error(body(
        "t = nl.ndarray((128, 64), nl.float32)\nnisa.memset(dst=t.ap([[64, 128], [1, 32]], offset=40), value=0.0)",
    ));
    assert_eq!(id, "out-of-bounds");
    // A view without elements may be made, but not used.
    program(body("t = nl.ndarray((128, 64), nl.float32)\nu = t[:, nl.ds(3, 0)]\nassert u.shape == (128, 0)"));
    for wrong in ["nisa.memset(dst=u, value=0.0)", "v = u[0:1]", "v = u.reshape((0, 128))", "v = nl.copy(u)"] {
        let text = format!("t = nl.ndarray((128, 64), nl.float32)\nu = t[:, nl.ds(3, 0)]\n{wrong}");
        let (id, message) = error(body(&text));
        assert_eq!(id, "empty-slice", "{wrong}: {message}");
    }
}

#[test]
fn none_in_an_index_is_a_new_dimension() {
    let p = program(body(
        "t = nl.ndarray((128, 4, 8), nl.float32)
assert t[:, None].shape == (128, 1, 4, 8)
assert t[..., None].shape == (128, 4, 8, 1)
assert t[:, 2, None, 1:5].shape == (128, 1, 4)
assert x[None, 3].shape == (1, 512)
assert x[3, None].shape == (1, 512)",
    ));
    assert!(p.cores[0].is_empty());
}

#[test]
fn an_int_is_a_scalar_offset_too() {
    let p = program(body(
        "t = nl.ndarray((128, 512), nl.float32)
nisa.dma_copy(dst=t, src=x.ap([[512, 128], [1, 512]], scalar_offset=3, indirect_dim=0))",
    ));
    let NodeKind::Inst(inst) = &p.cores[0][0].kind else { panic!() };
    assert!(inst.args().iter().any(|a| matches!(a, nki_isa::Arg::View(v) if v.offset == 3 * 512)), "{inst:?}");
}

#[test]
fn a_program_for_klr_is_read_by_klr_s_rules() {
    let source = |import: &str| {
        format!(
            "{import}\nclass Point:\n    x: int = 1\n    y: bool = True\n\ndef kernel():\n    items = [2, 5, 2]\n    items.remove(2)\n    assert items == [5]\n    \
             assert f'{{[1, (2, 3)]}}' == '[1,(2,3)]'\n    assert f'{{Point()}}' == 'Point(x:1,y:True)'\n    assert dict()\n    \
             assert {{}}.pop('a') == None\n    assert items.index(9) == None\n    assert items.count() == 1\n"
        )
    };
    program(run_with(&source("from klr.frontend import Kernel"), &[], &Options::default()));
    // Everything else is Python.
    let (id, _) = error(run_with(&source("import math"), &[], &Options::default()));
    assert_eq!(id, "assertion-failed");
}

#[test]
fn a_module_that_fails_matters_only_where_it_is_used() {
    struct Two(&'static str);
    impl Loader for Two {
        fn read(&self, path: &Path) -> std::io::Result<String> {
            match path.to_str() {
                Some("k.py") => Ok(self.0.into()),
                Some("helper.py") => Ok("size = 4\nbroken = size / 0\nfine = 5\n".into()),
                _ => Err(std::io::ErrorKind::NotFound.into()),
            }
        }
    }
    let run = |text| compile(Path::new("k.py"), &Two(text), &[], &Options::default());
    program(run("from helper import fine\ndef kernel():\n    assert fine == 5\n"));
    let (id, message) = error(run("from helper import broken\ndef kernel():\n    assert broken == 5\n"));
    assert!(id == "host-value" && message.contains("division by zero"), "{message}");
}

#[test]
fn base_tensor_is_the_whole_of_what_a_view_is_of() {
    let text = "assert x.base_tensor.shape == (256, 512)
part = x[0:128, 256:512].view(nl.bfloat16)
assert part.base_tensor.shape == (256, 512)
assert part.base_tensor.dtype == nl.float32
assert part.base_tensor.offset == 0
t = nl.ndarray(x.base_tensor[0:128, :].shape, dtype=nl.float32, buffer=nl.sbuf)
nisa.dma_copy(dst=t, src=part.base_tensor[128:256, :])";
    assert_eq!(names(&program(body(text)).cores[0]), ["dma_copy"]);
}

#[test]
fn repeated_elements_of_psum_count_once() {
    let text = "p = nl.ndarray((128, 320), dtype=nl.float32, buffer=nl.psum)
nisa.memset(p, 0.0)
s = nl.ndarray((128, 320, 24), dtype=nl.float32, buffer=nl.sbuf)
nisa.tensor_copy(dst=s, src=p.expand_dim(2).broadcast(dim=2, size=24))";
    assert_eq!(names(&program(body(text)).cores[0]), ["memset", "tensor_copy"]);
}

#[test]
fn enum_members_by_their_values() {
    let source = "\
assert nl.MemoryRegion('sbuf') == nl.sbuf and nl.MemoryRegion('hbm') == nl.hbm and nl.MemoryRegion(nl.psum) == nl.psum
assert nisa.matmul_perf_mode('double_row') == nisa.matmul_perf_mode.double_row
assert nisa.matmul_perf_mode.none.value == 'none' and nisa.engine(5) == nisa.engine.vector
t = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.MemoryRegion('sbuf'))
nisa.dma_copy(dst=t, src=x[0:128])
return x";
    assert_eq!(names(&program(body(source)).cores[0]), ["dma_copy"]);
    let (slug, text) = error(body("nl.MemoryRegion('sram')"));
    assert_eq!(slug, "operand-kind");
    assert!(text.contains("\"sram\" is not a member of MemoryRegion"), "{text}");
}

#[test]
fn a_name_may_be_the_last_positional_argument() {
    let source = "\
t = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
nisa.memset(t, 0.0, nisa.engine.vector, 'zero')
return x";
    assert_eq!(names(&program(body(source)).cores[0]), ["memset"]);
    let (slug, text) = error(body(&source.replace("'zero'", "5")));
    assert!(slug == "arguments" && text.contains("takes at most 3 arguments, 4 given"), "{text}");
    let unnamed = source.replace("'zero'", "None");
    assert_eq!(names(&program(body(&unnamed)).cores[0]), ["memset"]);
    let (slug, text) = error(body(&unnamed.replace("None)", "None, name='zero')")));
    assert!(slug == "arguments" && text.contains("got `name` twice"), "{text}");
    let scalars = "\
t = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
nisa.memset(t, 0, nisa.engine.unknown, None)
s = nisa.scalar_load(t, 'load')
nisa.scalar_store(t, s, 'store')
return x";
    assert_eq!(names(&program(body(scalars)).cores[0]).len(), 3);
}

#[test]
fn types_of_ml_dtypes() {
    let source = "\
import ml_dtypes
t = nl.ndarray((128, 512), dtype=ml_dtypes.bfloat16, buffer=nl.sbuf)
assert t.dtype == nl.bfloat16 and ml_dtypes.float8_e4m3fn == nl.float8_e4m3fn
nisa.memset(t, 0.0)
return x";
    let program = program(body(source));
    assert!(program.tensors.iter().any(|t| t.dtype == DType::BF16));
}

#[test]
fn errors_name_what_the_kernel_wrote() {
    let tile = "t = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)\nnisa.dma_copy(t, x[0:128])\n";
    let (_, text) = error(body(&format!("import numpy as np\n{tile}nisa.tensor_tensor(t, t, t, np.add)")));
    assert!(text.contains("write nl.add"), "{text}");
    let weights = "w = nl.ndarray((128, 100), dtype=nl.float32, buffer=nl.sbuf)\nnisa.memset(w, 1.0)\n";
    let (_, text) = error(body(&format!("{tile}{weights}nl.rms_norm(t, w, 1, 512)")));
    assert!(text.contains("nl.rms_norm of `t` of shape (128, 512) and `w` of shape (128, 100)"), "{text}");
}

#[test]
fn removed_names_are_not_there() {
    let source = "\
assert not hasattr(nl, 'static_cast') and hasattr(nl, 'copy')
assert getattr(nl, 'par_dim', None) is None
return x";
    program(body(source));
}

#[test]
fn elements_of_an_array_can_be_assigned() {
    let source = "\
import numpy as np
a = np.zeros((3, 4), np.float32)
for i in range(3):
    a[i, i] = 2.0
a[0, 1:3] = [5, 6]
a[:, 3] = 1
a[2] += np.arange(4)
a[-1, 0] -= 0.5
assert a.tolist() == [[2, 5, 6, 1], [0, 2, 0, 1], [-0.5, 1, 4, 4]], a.tolist()
n = np.zeros(2, np.int8)
n[...] = 3.9
assert n.tolist() == [3, 3]
w = a.copy()
w[0] = a[1]
assert w[0].tolist() == [0, 2, 0, 1] and a[0, 0] == 2
a[a == 1] = 9
a[[0, 2]] = a[[2, 0]]
assert a.tolist() == [[-0.5, 9, 4, 4], [0, 2, 0, 9], [2, 5, 6, 9]], a.tolist()
assert a[a > 8].tolist() == [9, 9, 9] and a[[True, False, True]].shape == (2, 4)
a[1:] = a[:-1]
assert a[1:].tolist() == [[-0.5, 9, 4, 4], [0, 2, 0, 9]], a.tolist()
return nl.shared_constant(w)";
    program(body(source));
}

#[test]
fn views_of_an_array_share_its_elements() {
    let source = "\
import numpy as np
a = np.zeros(4)
same, asked, made = a, np.asarray(a), np.array(a)
a += 1
a[0] = 7
assert same is a and asked is a and made.tolist() == [0, 0, 0, 0]
part = a[1:3]
part[0] = 9
part *= 2
assert a.tolist() == [7, 18, 2, 1] and part.tolist() == [18, 2]
def double(q):
    q[3] = -1
    q *= 2
double(a)
assert same.tolist() == [14, 36, 4, -2]
held = [a, a[::-1]]
held[1][0] = 5
assert a[3] == 5
square = a.reshape(2, 2)
square.T[0, 1] = 8
assert a.tolist() == [14, 36, 8, 5]
np.ravel(square)[1] = 3
a.flatten()[0] = 100
np.transpose(square)[1, 1] += 1
assert a.tolist() == [14, 3, 8, 6]
for row in square:
    row[:] = row[0]
assert a.tolist() == [14, 14, 8, 8]
m = np.arange(12).reshape(3, 4)
m[:, ::2].reshape(-1)[0] = 77
m[:, :3].reshape(-1)[1] = 66
split = m.T.reshape(2, 2, 3)
split[1, 0, 2] = -5
assert m.tolist() == [[77, 1, 2, 3], [4, 5, 6, 7], [8, 9, -5, 11]], m.tolist()
h = np.ones(2, np.float16)
h += np.float32(2048)
assert h.dtype == np.float16 and h.tolist() == [2048, 2048]
assert (np.array([True, False]) + 1).tolist() == [2, 1]
assert (np.array([1, 255], np.uint8) < 300).tolist() == [True, True]
assert (np.array([1, 2], np.uint8) + [300, 1]).tolist() == [301, 3]
return x";
    program(body(source));
}

#[test]
fn arrays_do_not_become_wider_in_place() {
    let with =
        |line: &str| error(body(&format!("import numpy as np\na = np.zeros((2, 3), np.int8)\n{line}\nreturn x")));
    assert_eq!(with("a[0, 0] = 300").0, "integer-overflow");
    assert_eq!(with("a[0] = [1, 2]").0, "value-error");
    assert_eq!(with("a[2] = 0").0, "index-out-of-range");
    assert_eq!(with("a[[0, 5]] = 0").0, "index-out-of-range");
    assert_eq!(with("a[a[0] == 0] = 0").0, "index-out-of-range");
    assert_eq!(with("a[0] = float('nan')").0, "value-error");
    // Too large.
    let long = "r = np.arange(100000)\nq = ";
    for large in ["r[:, None] * r", "r.reshape(1 << 40, 1 << 40)", "np.zeros((2, 100000))[[0] * 100000]"] {
        assert_eq!(with(&format!("{long}{large}")).0, "value-error", "{large}");
    }
    for large in ["np.array([[0] * 100000] * 100000)", "np.concatenate([r] * 100000)", "np.where(r[:, None] > r, 1, 0)"]
    {
        assert_eq!(with(&format!("{long}{large}")).0, "value-error", "{large}");
    }
    assert_eq!(with("a += 1.5").0, "type-error");
    assert_eq!(with("a /= 2").0, "type-error");
    assert_eq!(with("a[0] += 300").0, "integer-overflow");
    assert_eq!(with("a + 300").0, "integer-overflow");
    assert_eq!(with("b = a[0]\nb += a").0, "value-error");
}
