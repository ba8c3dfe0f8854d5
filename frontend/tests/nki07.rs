//! The language of NKI 0.7: scalars, loop functions, grids, configuration, kinds of dependencies.

use std::path::Path;

use nki_diag::Diagnostic;
use nki_frontend::{Arg, Compiled, Loader, Options, compile};
use nki_isa::program::{Control, NodeKind};
use nki_isa::{DType, Program};

struct Text(String);

impl Loader for Text {
    fn read(&self, path: &Path) -> std::io::Result<String> {
        if path == Path::new("k.py") { Ok(self.0.clone()) } else { Err(std::io::ErrorKind::NotFound.into()) }
    }
}

const HEAD: &str = "import nki\nimport nki.isa as nisa\nimport nki.language as nl\n\n@nki.jit\ndef kernel(x):\n";

/// What the statements of the bodies below see: `x` float32[256,512] in HBM, tiles `one` int32 and `wide` int64 of one element, `t` float32.
const SETUP: &str = "one = nl.ndarray((1, 1), nl.int32, nl.sbuf); nisa.memset(one, 3)\n\
                     wide = nl.ndarray((1, 1), nl.int64, nl.sbuf)\n\
                     t = nl.ndarray((128, 512), nl.float32, nl.sbuf)\n\
                     s = nisa.scalar_load(one)\n\
                     w = nisa.scalar_load(wide)\n\
                     r = nisa.register_alloc(2)\n";

fn run(source: String) -> Compiled {
    let x = Arg::Tensor { shape: vec![256, 512], dtype: DType::F32 };
    let options = Options { kernel: Some("kernel".into()), ..Options::default() };
    compile(Path::new("k.py"), &Text(source), &[("x".into(), x)], &options)
}

fn body(text: &str) -> Compiled {
    let mut source = HEAD.to_owned();
    for line in SETUP.lines().chain(text.lines()) {
        source.push_str(&format!("    {line}\n"));
    }
    source.push_str("    return x\n");
    run(source)
}

fn errors(compiled: &Compiled) -> Vec<&Diagnostic> {
    compiled.diagnostics.iter().filter(|d| d.is_error()).collect()
}

#[track_caller]
fn program(text: &str) -> Program {
    let compiled = body(text);
    assert!(errors(&compiled).is_empty(), "{text}: {:#?}", errors(&compiled));
    compiled.program.expect("a program")
}

/// The first error's slug, message, labels and advice.
fn said(compiled: &Compiled) -> String {
    let Some(d) = errors(compiled).first().copied() else { return "accepted".into() };
    let labels: Vec<&str> = d.labels.iter().map(|l| &*l.text).collect();
    format!("[{}] {}\n{}\n{}", d.id, d.message, labels.join("\n"), d.help.join("\n"))
}

#[track_caller]
fn refused(text: &str, words: &[&str]) {
    let said = said(&body(text));
    assert!(words.iter().all(|w| said.contains(w)), "{text}\n{said}");
}

fn names(program: &Program) -> Vec<String> {
    let mut out = Vec::new();
    program.visit(&mut |node| {
        out.push(match &node.kind {
            NodeKind::Inst(i) => i.schema().name.to_owned(),
            NodeKind::Control(control) => match &**control {
                Control::For { .. } => "for".into(),
                Control::While { .. } => "while".into(),
                Control::If { .. } => "if".into(),
            },
        });
    });
    // Those of the setup.
    out.drain(..4);
    out
}

#[test]
fn scalars_have_the_documented_operators() {
    assert_eq!(
        names(&program("nisa.scalar_store(one, -s * 2 + (3 - s) - +s)")),
        ["scalar_compute", "scalar_compute", "scalar_compute", "scalar_compute", "scalar_compute", "scalar_store"]
    );
    assert_eq!(names(&program("a = s < 3\nb = s == s\nassert (s == None) == False and s is not None")).len(), 2);
    refused("s + w", &["[register-arithmetic]", "one scalar is int32, the other is int64"]);
    refused("w < 3", &["[register-arithmetic]", "int64 scalars cannot be compared"]);
    refused("s // 2", &["[register-arithmetic]", "`//` on a scalar"]);
    refused("s % 2", &["`%` on a scalar"]);
    refused("s << 1", &["`<<` on a scalar"]);
    refused("~s", &["`~` on a scalar"]);
    refused("s + 1.5", &["[register-arithmetic] `+` of NkiScalar and float"]);
    refused("s + 2**31", &["2147483648 does not fit in the scalar's int32"]);
    refused("s + r", &["[register-arithmetic]"]);
    refused("(s < 3) + 1", &["does not accept the result of a scalar comparison"]);
}

#[test]
fn scalars_have_no_value_when_the_kernel_is_specialised() {
    refused("if s:\n    pass", &["[register-arithmetic] the value of a scalar is not known"]);
    refused("if s > 0:\n    pass", &["[register-arithmetic] the value of a scalar is not known"]);
    refused("while s:\n    pass", &["[register-arithmetic]"]);
    refused("bool(s)", &["[register-arithmetic]"]);
    refused("x = int(s)", &["[type-error]"]);
    refused("range(s)", &["[type-error]", "nl.fori_loop"]);
    refused("for i in s:\n    pass", &["[register-arithmetic] `for` on a scalar"]);
    refused("t[:, ::-1]", &["the step of a slice of `t` must be a positive int", "[-1, n]"]);
    refused("t[:, s:4]", &["a bound of a slice of `t` is known only at run time"]);
    // Python's exception is TypeError.
    assert!(errors(&body("try:\n    bool(s)\nexcept TypeError:\n    pass")).is_empty());
}

#[test]
fn scalars_are_stored_as_they_are() {
    refused("nisa.scalar_store(wide, s)", &["[dtype-mismatch]", "`wide` is int64, but the scalar is int32"]);
    refused("nisa.scalar_store(one, 3)", &["takes a scalar", "nisa.memset"]);
    refused("nisa.scalar_store(one, r)", &["takes a scalar"]);
    refused("nisa.scalar_store(one, s < 3)", &["does not accept the result of a scalar comparison"]);
    refused("nisa.scalar_load(t[0:1, 0:1])", &["[operand-dtype]", "it must be int32 or int64"]);
    refused("nisa.scalar_load(3)", &["a tensor"]);
    refused("nisa.register_move(s, 1)", &["[frozen-register]", "writes a scalar"]);
    assert_eq!(names(&program("nisa.register_move(r, s)")), ["register_move"]);
    refused("nisa.register_move(r, w)", &["[operand-kind]", "NkiScalar"]);
}

#[test]
fn scalars_are_offsets() {
    program(
        "u = nl.ndarray((1, 512), nl.float32, nl.sbuf)\nnisa.dma_copy(u, x.ap([[512, 1], [1, 512]], 0, scalar_offset=w))",
    );
    program(
        "u = nl.ndarray((1, 512), nl.float32, nl.sbuf)\nnisa.dma_copy(u, x.ap([[512, 1], [1, 512]], 0, scalar_offset=s * 2))",
    );
    program("u = nl.ndarray((128, 2), nl.float32, nl.sbuf)\nnisa.tensor_copy(u, t[:, nl.ds(s, 2)])");
    refused(
        "t[:, nl.ds(w, 2)]",
        &["[register-arithmetic]", "an int64 scalar cannot be an offset into `t`, which is in sbuf"],
    );
    refused("t[:, s < 3]", &["does not accept the result of a scalar comparison"]);
}

#[test]
fn loop_functions_keep_their_contract() {
    let kinds = "def f(i):\n    print(type(i))\n    assert isinstance(i, nisa.CLASS)\nnl.fori_loop(BOUNDS, f)";
    for (bounds, class) in [
        ("0, 4", "NkiScalar"),
        ("0, s", "NkiScalar"),
        ("s, s + 2", "NkiScalar"),
        ("0, r", "VirtualRegister"),
        ("r, s", "VirtualRegister"),
    ] {
        program(&kinds.replace("BOUNDS", bounds).replace("CLASS", class));
    }
    refused(
        "nl.fori_loop(0, w, lambda i: None)",
        &["[register-arithmetic]", "takes 32 bits, but this scalar is int64"],
    );
    refused("nl.fori_loop(0, s < 3, lambda i: None)", &["does not accept the result of a scalar comparison"]);
    refused("nl.fori_loop(0, 4, lambda i: None, step=s)", &["[dynamic-loop]", "the step is a NkiScalar"]);
    refused("nl.fori_loop(0, 4, lambda i: None, step=0)", &["the step must be a positive int"]);
    refused("nl.fori_loop(0, 4, lambda i: 1)", &["[dynamic-loop] the body of nl.fori_loop returned a value"]);
    program("nl.fori_loop(0, 4, lambda i: nisa.scalar_store(one, i))");
    refused("nl.while_loop(s, lambda c: c)", &["nl.while_loop: init", "register_move"]);
    refused("nl.while_loop(r, lambda c: None)", &["a body that returns the next condition"]);
    refused("def f(i):\n    nisa.register_move(i, 1)\nnl.fori_loop(0, 4, f)", &["[frozen-register]"]);
    refused("with nl.no_reorder():\n    nl.fori_loop(0, 4, lambda i: None)", &["[dynamic-loop]", "nl.no_reorder()"]);
    // The body is evaluated once; the loop variable computes.
    let once = "calls = []\ndef f(i):\n    calls.append(1)\n    nisa.scalar_store(one, i * 2)\nnl.fori_loop(0, 9, f)\nassert len(calls) == 1";
    assert_eq!(names(&program(once)), ["for", "scalar_compute", "scalar_store"]);
}

#[test]
fn what_a_loop_body_allocates_ends_with_it() {
    let made = "made = []\ndef f(i):\n    u = nl.ndarray((128, 512), nl.float32, nl.sbuf)\n    nisa.memset(u, 0.0)\n    made.append(u)\n";
    let lines =
        ["[dynamic-loop]", "`u` was allocated on line 15 in the body of nl.fori_loop (line 18), which has ended"];
    refused(&format!("{made}nl.fori_loop(0, 4, f)\nnisa.tensor_copy(t, made[0])"), &lines);
    refused(&format!("{made}nl.fori_loop(0, 4, f)\nnisa.memset(made[0][0:32], 1.0)"), &lines);
    let inner = "made = []\ndef g(j):\n    made.append(nl.ndarray((128, 512), nl.float32, nl.sbuf))\ndef f(i):\n    nl.fori_loop(0, 2, g)\n    nisa.memset(made[0], 0.0)\nnl.fori_loop(0, 4, f)";
    refused(inner, &["in the body of nl.fori_loop (line 17), which has ended"]);
    let condition = "made = []\ndef f(c):\n    made.append(nl.ndarray((128, 512), nl.float32, nl.sbuf))\n    return c\nnl.while_loop(r, f)\nnisa.memset(made[0], 0.0)";
    refused(condition, &["in the body of nl.while_loop"]);
    // Inside of the body, before it, and equal constants after it are fine.
    program(&format!("{made}    nisa.tensor_copy(t, u)\nnl.fori_loop(0, 4, f)\nnisa.memset(t, 0.0)"));
    program(
        "def f(i):\n    nisa.dma_copy(t[0:1, 0:2], nl.shared_constant([[1.0, 2.0]]))\nnl.fori_loop(0, 4, f)\nnisa.dma_copy(t[0:1, 0:2], nl.shared_constant([[1.0, 2.0]]))",
    );
    let source = format!(
        "{HEAD}    made = []\n    def f(i):\n        made.append(nl.ndarray((4, 4), nl.float32, buffer=nl.shared_hbm))\n    nl.fori_loop(0, 4, f)\n    return made[0]\n"
    );
    assert!(said(&run(source)).contains("in the body of nl.fori_loop"));
}

#[test]
fn grids_are_refused_where_a_tensor_is_needed() {
    let grid = "g = nl.tiles(x, tile_shape=(128, 256))\n";
    refused(&format!("{grid}nisa.dma_copy(t[:, 0:256], g[0, 0])"), &["[operand-kind]", "NkiTileGrid", "write `.data`"]);
    program(&format!("{grid}nisa.dma_copy(t[:, 0:256], g[0, 0].data)"));
    refused(
        &format!("{grid}nisa.dma_copy(t, g[2, 0].data)"),
        &["[index-out-of-range] index 2 is out of range of a grid of shape (2, 2)"],
    );
    refused(&format!("{grid}g[0, 0, 0]"), &["[bad-index] 3 indices into a grid of shape (2, 2)"]);
    refused(&format!("{grid}g[s, 0]"), &["an index of a grid", "selected when the kernel is specialised"]);
    refused(&format!("{grid}g[0:2:-1]"), &["[bad-index] the step of a slice"]);
    refused(&format!("{grid}g.tiles"), &["[unknown-attribute] a NkiTileGrid has no attribute `tiles`"]);
    refused(&format!("{grid}g.block_shape"), &["has no attribute `block_shape`"]);
    refused("g = nl.tiles(x, tile_shape=(64, 512))[::2, 0]\ng.data", &["[not-contiguous]", "is_data_representable"]);
    let attributes = "g = nl.tiles(x, tile_shape=(100, 300))\n\
        assert (g.shape, g.tile_shape, g.element_shape) == ((3, 2), (100, 300), (256, 512))\n\
        assert g.is_remainder and g.is_data_representable and g.index_step_elements == (100, 300)\n\
        assert g[2, 1].element_shape == (56, 212) and g[2, 1].is_remainder and not g[0, 0].is_remainder\n\
        assert g[0].shape == (2,) and g[:, -1].shape == (3,) and g[..., 1].shape == (3,)\n\
        assert g.dtype == nl.float32 and g.buffer == nl.shared_hbm and g[0:2, 0].data.shape == (200, 300)\n\
        b = nl.blocks(g, block_shape=(2, 1))\n\
        assert b.shape == (2, 2) and b.block_shape == (2, 1) and b[1, 0].element_shape == (56, 300)\n\
        assert isinstance(b, nl.NkiBlockGrid) and isinstance(b, nl.NkiGrid) and isinstance(b[0, 0], nl.NkiBlockGrid)\n\
        assert nl.tiles(b[0, 0]).shape == (2, 1) and not isinstance(nl.tiles(b), nl.NkiBlockGrid)\n\
        assert t.data.shape == t.shape";
    program(attributes);
}

#[test]
fn grids_are_made_as_the_manual_says() {
    refused("nl.tiles(x)", &["[arguments]", "is missing `tile_shape`"]);
    refused("nl.tiles(x, (128, 256))", &["[arguments]", "by name"]);
    refused("nl.tiles(x, tile_shape=128)", &["[type-error]", "takes a tuple of ints"]);
    refused("nl.tiles(x, tile_shape=[128, 256])", &["[type-error]"]);
    refused("nl.tiles(x, tile_shape=(128, 256.0))", &["[type-error]"]);
    refused("nl.tiles(x, tile_shape=(128, 0))", &["[value-error]", "must be a positive int"]);
    refused("nl.tiles(3, tile_shape=(128, 256))", &["nl.tiles: source"]);
    refused("nl.tiles(nl.tiles(x, tile_shape=(64, 64)), tile_shape=(32, 64))", &["[value-error]", "leave it out"]);
    refused(
        "nl.blocks(x, tile_shape=(64, 64), block_shape=(2,))",
        &["[value-error]", "differ in their number of dimensions"],
    );
    refused("nl.blocks(x, block_shape=(2, 2))", &["is missing `tile_shape`"]);
    let alloc = "nl.alloc_tiles(tile_shape=TILE, element_shape=(256, 512), buffer=BUFFER, dtype=nl.float32)";
    let with = |tile: &str, buffer: &str| alloc.replace("TILE", tile).replace("BUFFER", buffer);
    refused(&with("(128,)", "nl.sbuf"), &["[value-error]"]);
    refused(&with("(256, 128)", "nl.sbuf"), &["[partition-size]"]);
    refused(&with("(128, 128)", "'sbuf'"), &["[type-error]", "buffer takes"]);
    refused(&with("(True, 128)", "nl.sbuf"), &["[type-error]"]);
    refused(&with("(128, 128)", "nl.psum").replace("(256, 512)", "(256, 8192)"), &["[psum-capacity]"]);
    let side_by_side = format!(
        "g = {}\nassert g.shape == (2, 4)\nassert g[1, 3].data.offset == 7 * 128\nassert g.data.shape == (128, 1024)",
        with("(128, 128)", "nl.sbuf")
    );
    program(&side_by_side);
    refused("nl.ndarray((256, 512), nl.float32, nl.sbuf)", &["[partition-size]", "nl.alloc_tiles"]);
    let like = "g = nl.tiles(x, tile_shape=(128, 256))\nl = nl.empty_like(g[:, 1], buffer=nl.sbuf, dtype=nl.bfloat16)\n\
        assert l.shape == (2,) and l.element_shape == (256, 256) and l.dtype == nl.bfloat16 and l[1].data.shape == (128, 256)\n\
        u = nl.empty_like(t[:, 0:64], transpose_axes=(1, 0))\nassert u.shape == (64, 128) and u.buffer == nl.sbuf";
    program(like);
    refused("nl.empty_like(t, transpose_axes=(0, 1))", &["[value-error]", "(1, 0), (2, 1, 0) and (3, 1, 2, 0)"]);
    refused("nl.empty_like(t, transpose_axes=(2, 1, 0))", &["must permute the 2 dimensions"]);
    refused("nl.empty_like(t, transpose_axes=(1, 0))", &["[partition-size]"]);
    refused("nl.empty_like(t, buffer=nl.psum, transpose_axes=(1, 0))", &["makes a tensor in sbuf"]);
}

#[test]
fn hbm_tensors_have_addresses_of_one_number() {
    let make = |address: &str| format!("a = nl.ndarray((4, 4), nl.float32, buffer=nl.private_hbm, address={address})");
    program(&make("(64,)"));
    refused(&make("(0, 64)"), &["[bad-address]", "an address is one number"]);
    refused(&make("(-4,)"), &["[bad-address]", "0 or more"]);
    refused(&make("64"), &["a tuple (partition, byte), in HBM (byte,)"]);
    refused(
        &format!("{}\n{}", make("(64,)"), make("(100,)").replace("a =", "b =")),
        &["`a` occupies 64 to 128", "not simulated"],
    );
    refused("nl.ndarray((4, 4), nl.float32, buffer=nl.sbuf, address=(64,))", &["[bad-address]", "two numbers"]);
}

#[test]
fn dependencies_have_a_kind() {
    let two = "a = nisa.memset(t, 0.0)\nb = nisa.memset(t, 1.0)\n";
    for (kind, after, issued) in [
        ("", 1, 0),
        (", kind=None", 1, 0),
        (", kind=nisa.dependency.runtime", 1, 0),
        (", kind=nisa.dependency.schedule", 0, 1),
    ] {
        let p = program(&format!("{two}assert b.depends_on(a{kind}) is b"));
        let counts = p.tags.iter().fold((0, 0), |n, t| (n.0 + t.after.len(), n.1 + t.issued_after.len()));
        assert_eq!(counts, (after, issued), "{kind}");
        // The text form keeps both.
        let text = nki_isa::text::print(&p);
        assert_eq!(nki_isa::text::parse(&text).expect("parses"), p);
    }
    refused(&format!("{two}b.depends_on(a, kind='runtime')"), &["depends_on: kind", "nisa.dependency.runtime"]);
    refused(&format!("{two}b.depends_on(a, how=1)"), &["no keyword argument `how`"]);
    refused(&format!("{two}a.depends_on(b, kind=nisa.dependency.schedule)"), &["[depends-on]", "does not precede"]);
}

#[test]
fn configurations_are_checked() {
    let with = |decorator: &str| {
        run(format!(
            "from nki.compiler import AddressRotation, CompileConfig, SpecializationConfig\n{}",
            HEAD.replace("@nki.jit", decorator) + "    return x\n"
        ))
    };
    for accepted in [
        "@nki.jit(compile_config=CompileConfig())",
        "@nki.jit(compile_config=CompileConfig(prefetch_auto=True, barrier_check=False), platform_target='trn2')",
        "@nki.jit(compile_config=CompileConfig(address_rotation=AddressRotation.NONE))",
        "@nki.jit(compile_config=None, specialization_config=SpecializationConfig(allow_nested_config_override=True))",
    ] {
        assert_eq!(said(&with(accepted)), "accepted", "{accepted}");
    }
    for (decorator, words) in [
        ("@nki.jit(compile_config=CompileConfig(prefetch=True))", "CompileConfig has no option `prefetch`"),
        ("@nki.jit(compile_config=CompileConfig(prefetch_auto=1))", "prefetch_auto takes a bool"),
        ("@nki.jit(compile_config=CompileConfig(address_rotation=True))", "takes a member of AddressRotation"),
        ("@nki.jit(compile_config=SpecializationConfig())", "compile_config takes a CompileConfig"),
        ("@nki.jit(compile_config={})", "compile_config takes a CompileConfig"),
    ] {
        let said = said(&with(decorator));
        assert!(said.contains(words), "{decorator}: {said}");
    }
}

#[test]
fn ranks_are_grouped_by_an_operator() {
    let of = |call: &str| {
        format!(
            "import nki.collectives as ncc\na = nl.ndarray((64, 4), nl.float32, buffer=nl.private_hbm)\n\
            b = nl.ndarray((64, 4), nl.float32, buffer=nl.private_hbm)\n\
            g = ncc.ReplicaGroup.from_partition_op({call})\nassert isinstance(g, ncc.ReplicaGroup)\n\
            ncc.all_reduce([a], [b], g, nl.add)\n"
        )
    };
    for (call, groups) in [
        ("8, ncc.rg_partition_op.bitwise_and, 0", "[[0, 1, 2, 3, 4, 5, 6, 7]]"),
        ("8, ncc.rg_partition_op.bitwise_and, 5", "[[0, 2], [1, 3], [4, 6], [5, 7]]"),
        ("8, ncc.rg_partition_op.div, 4", "[[0, 1, 2, 3], [4, 5, 6, 7]]"),
        ("world_size=8, op=ncc.rg_partition_op.mod, operand=4", "[[0, 4], [1, 5], [2, 6], [3, 7]]"),
    ] {
        let text = nki_isa::text::print(&program(&of(call)));
        assert!(text.contains(groups), "{call}: {text}");
    }
    for (call, words) in [
        ("8, ncc.rg_partition_op.div, 0", "`operand` is 0; for div it must be at least 1"),
        ("8, ncc.rg_partition_op.bitwise_and, -1", "`operand` is -1; for bitwise_and it must be at least 0"),
        ("0, ncc.rg_partition_op.mod, 2", "`world_size` is 0; it must be 1 to 65536"),
        ("8, nl.bitwise_and, 2", "`op` takes a member of rg_partition_op"),
        ("8, ncc.rg_partition_op.mod, 2.5", "`operand` takes an int, got 2.5"),
    ] {
        refused(&of(call), &[words]);
    }
}

#[test]
fn collectives_are_prepared_and_started_once() {
    let setup = "import nki.collectives as ncc\ng = ncc.ReplicaGroup([[0, 1, 2, 3]])\nm = nl.ndarray((3, 4), nl.uint32, buffer=nl.private_hbm)\n\
        a = nl.ndarray((64, 4), nl.float32, buffer=nl.private_hbm)\nb = nl.ndarray((64, 4), nl.float32, buffer=nl.private_hbm)\n";
    let two = format!("{setup}p = ncc.all_to_all_v_prepare([a], [b], g, m)\n");
    let p = program(&format!(
        "{two}assert isinstance(p, nisa.NkiInstruction)\nq = ncc.all_to_all_v_trigger(p, name='go')\nassert isinstance(q, nisa.NkiInstruction)"
    ));
    let kinds = names(&p);
    assert_eq!(kinds, ["all_to_all_v_prepare", "all_to_all_v_trigger"]);
    refused(&two, &["[operand-value] the preparation on line 18 is never started"]);
    refused(
        &format!("{two}ncc.all_to_all_v_prepare([a], [b], g, m)"),
        &["the preparation on line 18 still waits for all_to_all_v_trigger"],
    );
    refused(&format!("{two}ncc.all_gather_v_prepare([a], [b], g, m)"), &["still waits for all_to_all_v_trigger"]);
    refused(&format!("{two}ncc.all_gather_v_trigger(p)"), &["start it with all_to_all_v_trigger"]);
    refused(
        &format!("{two}ncc.all_to_all_v_trigger(p)\nncc.all_to_all_v_trigger(p)"),
        &["is not a pending preparation"],
    );
    refused(&format!("{two}ncc.all_to_all_v_trigger(3)"), &["prepare_instr"]);
    refused(
        &format!("{two}nl.fori_loop(0, 2, lambda i: ncc.all_to_all_v_trigger(p) and None)"),
        &["is not in the same dynamic loop or branch as"],
    );
}
