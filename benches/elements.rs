//! The numerics of each kind of instruction, per element of a [128, 512] tile, as the table of docs/performance.md:
//!
//!     cargo bench --bench elements [-- PART_OF_A_NAME]...
//!
//! An instruction runs many times: on the same tiles (in the cache), and on tiles that cycle through the
//! whole SBUF. Its time is the time of the run minus that of a run without it. The comparison is a plain
//! copy of the same number of bytes, at one place or cycling through as many bytes. Both sides have one
//! thread; RAYON_NUM_THREADS gives the simulator more. All are measured alternately, and the best of each
//! counts.

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use nki_frontend::{Arg, Loader, Options};
use nki_isa::{DType, Program, Target};
use nki_sim_core::exec::{self, ExecOptions};
use nki_sim_core::place::{self, Placement};
use nki_sim_core::{Buffer, HostTensor};

const ROWS: usize = 128;
const COLUMNS: usize = 512;
/// Instructions of a run.
const REPEAT: usize = 48;
/// Bytes of the cycling tiles: the part of SBUF that a kernel can use in addition to a few small tiles.
const SBUF: usize = 20 << 20;
/// Runs of each case; fewer for slow cases, which end after [`SECONDS`] in total.
const ROUNDS: usize = 40;
const SECONDS: f64 = 0.4;

/// Name and call: from tiles `a` and `b` of the measured type to `d`, all [128, 512]. Further
/// operands are the fp32 columns `c` and `e`, and the tiles of [`SMALL`].
const INSTRUCTIONS: &[(&str, &str)] = &[
    ("tensor_copy", "nisa.tensor_copy(dst=d, src=a)"),
    ("tensor_copy from every 2nd", "nisa.tensor_copy(dst=d[:, 0:256], src=a[:, 0:512:2])"),
    ("tensor_copy to every 2nd", "nisa.tensor_copy(dst=d[:, 0:512:2], src=a[:, 0:256])"),
    ("tensor_copy from every 4th", "nisa.tensor_copy(dst=d[:, 0:128], src=a[:, 0:512:4])"),
    ("tensor_copy to every 4th", "nisa.tensor_copy(dst=d[:, 0:512:4], src=a[:, 0:128])"),
    ("tensor_copy reversed", "nisa.tensor_copy(dst=d, src=a.ap(pattern=[[512, 128], [-1, 512]], offset=511))"),
    (
        "tensor_copy transposed 16 x 32",
        "nisa.tensor_copy(dst=d, src=a.ap(pattern=[[512, 128], [1, 32], [32, 16]], offset=0))",
    ),
    (
        "tensor_copy pairs swapped",
        "nisa.tensor_copy(dst=d, src=a.ap(pattern=[[512, 128], [2, 256], [-1, 2]], offset=1))",
    ),
    (
        "tensor_tensor add from every 2nd",
        "nisa.tensor_tensor(dst=d[:, 0:256], data1=a[:, 0:512:2], data2=b[:, 1:512:2], op=nl.add)",
    ),
    ("memset", "nisa.memset(dst=d, value=1.0)"),
    ("tensor_tensor add", "nisa.tensor_tensor(dst=d, data1=a, data2=b, op=nl.add)"),
    ("tensor_tensor divide", "nisa.tensor_tensor(dst=d, data1=a, data2=b, op=nl.divide)"),
    ("tensor_tensor maximum", "nisa.tensor_tensor(dst=d, data1=a, data2=b, op=nl.maximum)"),
    ("tensor_tensor less", "nisa.tensor_tensor(dst=d, data1=a, data2=b, op=nl.less)"),
    ("tensor_scalar one", "nisa.tensor_scalar(dst=d, data=a, op0=nl.multiply, operand0=2.0)"),
    (
        "tensor_scalar two",
        "nisa.tensor_scalar(dst=d, data=a, op0=nl.subtract, operand0=c, op1=nl.multiply, operand1=c)",
    ),
    (
        "scalar_tensor_tensor",
        "nisa.scalar_tensor_tensor(dst=d, data=a, op0=nl.multiply, operand0=2.0, op1=nl.add, operand1=b)",
    ),
    ("tensor_copy_predicated", "nisa.tensor_copy_predicated(dst=d, src=a, predicate=mask)"),
    ("reciprocal", "nisa.reciprocal(dst=d, data=a)"),
    ("activation copy", "nisa.activation(dst=d, op=nl.copy, data=a)"),
    ("activation relu", "nisa.activation(dst=d, op=nl.relu, data=a)"),
    ("activation exp", "nisa.activation(dst=d, op=nl.exp, data=a)"),
    ("activation tanh", "nisa.activation(dst=d, op=nl.tanh, data=a)"),
    ("activation sigmoid", "nisa.activation(dst=d, op=nl.sigmoid, data=a)"),
    ("activation rsqrt", "nisa.activation(dst=d, op=nl.rsqrt, data=a)"),
    ("activation gelu", "nisa.activation(dst=d, op=nl.gelu, data=a)"),
    ("activation gelu_apprx_tanh", "nisa.activation(dst=d, op=nl.gelu_apprx_tanh, data=a)"),
    ("activation mish", "nisa.activation(dst=d, op=nl.mish, data=a)"),
    ("activation_reduce exp add", "nisa.activation_reduce(dst=d, op=nl.exp, data=a, reduce_op=nl.add, reduce_res=e)"),
    ("tensor_reduce add", "nisa.tensor_reduce(dst=e, op=nl.add, data=a, axis=1)"),
    ("tensor_reduce maximum", "nisa.tensor_reduce(dst=e, op=nl.maximum, data=a, axis=1)"),
    (
        "tensor_scalar_reduce",
        "nisa.tensor_scalar_reduce(dst=d, data=a, op0=nl.multiply, operand0=2.0, reduce_op=nl.add, reduce_res=e)",
    ),
    (
        "select_reduce",
        "nisa.select_reduce(dst=d, predicate=mask, on_true=a, on_false=0.0, reduce_res=e, reduce_cmd=nisa.reduce_cmd.reset_reduce)",
    ),
    (
        "range_select",
        "nisa.range_select(dst=d, on_true_tile=a, comp_op0=nl.greater_equal, comp_op1=nl.less, bound0=c, bound1=high, reduce_res=e)",
    ),
    (
        "affine_select",
        "nisa.affine_select(dst=d, pattern=[[-1, 512]], channel_multiplier=4, on_true_tile=a, on_false_value=0.0, cmp_op=nl.greater_equal)",
    ),
    ("iota", "nisa.iota(dst=whole, pattern=[[1, 512]], channel_multiplier=512)"),
    ("dropout", "nisa.dropout(dst=d, data=a, prob=0.25)"),
    ("rng", "nisa.rng(dst=random)"),
    ("rng gpsimd", "nisa.rng(dst=random, engine=nisa.gpsimd_engine)"),
    ("bn_stats", "nisa.bn_stats(dst=stats, data=a)"),
    (
        "tensor_tensor_scan",
        "nisa.tensor_tensor_scan(dst=d, data0=a, data1=b, initial=0.0, op0=nl.multiply, op1=nl.add)",
    ),
    (
        "tensor_tensor_scan maximum",
        "nisa.tensor_tensor_scan(dst=d, data0=a, data1=b, initial=0.0, op0=nl.subtract, op1=nl.maximum)",
    ),
    (
        "tensor_tensor_scan divide",
        "nisa.tensor_tensor_scan(dst=d, data0=a, data1=b, initial=1.0, op0=nl.divide, op1=nl.greater)",
    ),
    ("tensor_scalar_cumulative", "nisa.tensor_scalar_cumulative(dst=d, src=a, op0=nl.multiply, op1=nl.add, imm0=0.5)"),
    ("max8", "nisa.max8(dst=eight, src=a)"),
    ("nc_find_index8", "nisa.nc_find_index8(dst=index, data=a, vals=searched)"),
    ("nc_match_replace8", "nisa.nc_match_replace8(dst=d, data=a, vals=searched, imm=0.0)"),
    ("tensor_partition_reduce", "nisa.tensor_partition_reduce(dst=d[0:1, :], op=nl.add, data=a)"),
    ("nc_stream_shuffle", "nisa.nc_stream_shuffle(dst=d, src=a, shuffle_mask=[31 - i for i in range(32)])"),
    ("nc_n_gather", "nisa.nc_n_gather(dst=d, data=a, indices=whole)"),
    ("local_gather", "nisa.local_gather(dst=d, src_buffer=a, index=few)"),
    ("nc_transpose", "nisa.nc_transpose(dst=square, data=a[:, 0:128])"),
    ("quantize_mx", "nisa.quantize_mx(dst=packed, src=d, dst_scale=scale)"),
    ("dma_copy", "nisa.dma_copy(dst=d, src=a)"),
    ("dma_copy from every 2nd", "nisa.dma_copy(dst=d[:, 0:256], src=a[:, 0:512:2])"),
    ("dma_copy to every 2nd", "nisa.dma_copy(dst=d[:, 0:512:2], src=a[:, 0:256])"),
    ("dma_copy across partitions", "nisa.dma_copy(dst=d[0:64, :], src=a[64:128, :])"),
    ("dma_transpose", "nisa.dma_transpose(dst=crossed, src=a[:, 0:128])"),
];

/// Elements that an instruction processes, if not a full tile.
const ELEMENTS: &[(&str, usize)] = &[
    ("nc_transpose", 128 * 128),
    ("dma_transpose", 128 * 128),
    ("tensor_copy from every 2nd", 128 * 256),
    ("tensor_copy to every 2nd", 128 * 256),
    ("tensor_copy from every 4th", 128 * 128),
    ("tensor_copy to every 4th", 128 * 128),
    ("tensor_tensor add from every 2nd", 128 * 256),
    ("dma_copy from every 2nd", 128 * 256),
    ("dma_copy to every 2nd", 128 * 256),
    ("dma_copy across partitions", 64 * 512),
];

/// Tiles that only some instructions use: a word in the call, and the code that creates the tile.
const SMALL: &[(&str, &str)] = &[
    ("high", "high = filled((128, 1), nl.float32, 300.0)"),
    (
        "mask",
        "mask = nl.ndarray((128, 512), dtype=nl.uint8, buffer=nl.sbuf)\n    nisa.iota(dst=mask, pattern=[[0, 256], [1, 2]])",
    ),
    ("whole", "whole = filled((128, 512), nl.uint32, 17)"),
    ("random", "random = filled((128, 512), nl.uint32, 0)"),
    ("stats", "stats = filled((128, 6), nl.float32, 0.0)"),
    ("eight", "eight = filled((128, 8), x.dtype, 0.0)"),
    ("index", "index = filled((128, 8), nl.uint32, 0)"),
    ("searched", "searched = filled((128, 8), x.dtype, 0.0)\n    nisa.max8(dst=searched, src=tiles[0])"),
    ("few", "few = filled((128, 32), nl.uint16, 17)"),
    ("square", "square = filled((128, 128), x.dtype, 0.0, nl.psum)"),
    ("crossed", "crossed = filled((128, 128), x.dtype, 0.0)"),
    ("packed", "packed = filled((128, 128), nl.float8_e4m3fn_x4, 0)"),
    ("scale", "scale = filled((128, 128), nl.uint8, 0)"),
];

/// A source in memory.
struct Text(String);

impl Loader for Text {
    fn read(&self, _: &Path) -> std::io::Result<String> {
        Ok(self.0.clone())
    }
}

/// A kernel that loads `tiles` tiles and calls `call` `repeat` times.
fn kernel(call: &str, tiles: usize, repeat: usize) -> Text {
    let words: Vec<&str> = call.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    let small: Vec<&str> = SMALL.iter().filter(|(name, _)| words.contains(name)).map(|(_, made)| *made).collect();
    let small = small.join("\n    ");
    Text(format!(
        "
import nki
import nki.isa as nisa
import nki.language as nl

def filled(shape, dtype, value, buffer=nl.sbuf):
    tile = nl.ndarray(shape, dtype=dtype, buffer=buffer)
    nisa.memset(dst=tile, value=value)
    return tile

@nki.jit
def kernel(x):
    tiles = [nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf) for _ in range({tiles})]
    for tile in tiles:
        nisa.dma_copy(dst=tile, src=x)
    c = filled(({ROWS}, 1), nl.float32, 1.5)
    e = filled(({ROWS}, 1), nl.float32, 0.0)
    {small}
    for i in range({repeat}):
        a, b, d = tiles[3 * i % {tiles}], tiles[(3 * i + 1) % {tiles}], tiles[(3 * i + 2) % {tiles}]
        {call}
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tiles[2])
    return out
"
    ))
}

/// Numbers from 0.5 to 1.5 in irregular order, without special values.
fn input(dtype: DType) -> HostTensor {
    let values: Vec<f32> = (0..ROWS * COLUMNS).map(|i| 0.5 + (i * 7919 % 1021) as f32 / 1021.0).collect();
    let mut data = Buffer::zeroed(values.len() * dtype.size());
    nki_isa::dtype::encode_f32(dtype, &values, data.bytes_mut());
    HostTensor { name: "x".into(), shape: vec![ROWS, COLUMNS], dtype, data }
}

fn compiled(name: &str, dtype: DType, source: &Text) -> (Program, Placement) {
    let args = [("x".to_owned(), Arg::Tensor { shape: vec![ROWS, COLUMNS], dtype })];
    let target = if name == "quantize_mx" { Target::Trn3 } else { Target::Trn2 };
    let compiled = nki_frontend::compile(Path::new("k.py"), source, &args, &Options { target, ..Options::default() });
    let program = compiled.program.unwrap_or_else(|| panic!("{name}: {:#?}", compiled.diagnostics));
    let placement = place::place(&program).expect("fits");
    (program, placement)
}

const COPY: &str = "a plain copy";

/// A program or loop to time, which returns seconds.
type Timed = Box<dyn FnMut() -> f64>;

/// A row and a column of the table.
struct Case {
    name: &'static str,
    dtype: DType,
    /// Whether tiles cycle through SBUF.
    round: bool,
    /// Elements of a run.
    elements: usize,
    /// Seconds for a run, and for one without the instructions.
    run: Timed,
    rest: Timed,
    /// Minimum seconds of both.
    best: (f64, f64),
    /// Total seconds of all runs.
    taken: f64,
}

impl Case {
    fn ns(&self) -> f64 {
        (self.best.0 - self.best.1) * 1e9 / self.elements as f64
    }
}

fn seconds(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}

/// Copies of the bytes of a tile, between two places or cycling through the bytes of `tiles` tiles.
fn copies(dtype: DType, tiles: usize) -> Timed {
    let tile = ROWS * COLUMNS * dtype.size();
    let pairs = tiles / 2;
    let mut memory = vec![1_u8; tile * 2 * pairs];
    Box::new(move || {
        seconds(|| {
            for i in 0..REPEAT {
                let (from, to) = memory[i % pairs * 2 * tile..][..2 * tile].split_at_mut(tile);
                to.copy_from_slice(black_box(from));
            }
        })
    })
}

/// Runs of a kernel.
fn runs(name: &str, dtype: DType, source: &Text) -> Timed {
    let (program, placement) = compiled(name, dtype, source);
    let host = input(dtype);
    Box::new(move || {
        let inputs = vec![host.clone()];
        let mut result = None;
        let time = seconds(|| result = exec::run(&program, &placement, inputs, &ExecOptions::default()).ok());
        assert!(result.is_some_and(|r| r.findings.is_empty()), "the kernel is sound");
        time
    })
}

fn cases(dtype: DType, round: bool, is_wanted: impl Fn(&str) -> bool) -> Vec<Case> {
    let tiles = if round { SBUF / (ROWS * COLUMNS * dtype.size()) } else { 3 };
    let new = |name, elements: usize, run, rest| Case {
        name,
        dtype,
        round,
        elements,
        run,
        rest,
        best: (f64::MAX, f64::MAX),
        taken: 0.0,
    };
    let mut cases = vec![new(COPY, ROWS * COLUMNS * REPEAT, copies(dtype, tiles), Box::new(|| 0.0))];
    for &(name, call) in INSTRUCTIONS.iter().filter(|(name, _)| is_wanted(name)) {
        // quantize_mx supports 16-bit floats only.
        if name == "quantize_mx" && dtype == DType::F32 {
            continue;
        }
        let elements = ELEMENTS.iter().find(|(n, _)| *n == name).map_or(ROWS * COLUMNS, |(_, n)| *n);
        let kernel = |repeat| runs(name, dtype, &kernel(call, tiles, repeat));
        cases.push(new(name, elements * REPEAT, kernel(REPEAT), kernel(0)));
    }
    cases
}

#[allow(clippy::print_stdout, reason = "a benchmark")]
fn main() {
    if std::env::var_os("RAYON_NUM_THREADS").is_none() {
        rayon::ThreadPoolBuilder::new().num_threads(1).build_global().expect("no pool yet");
    }
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|w| name.contains(w.as_str()));
    let columns = [(DType::F32, false), (DType::F32, true), (DType::BF16, false), (DType::BF16, true)];
    let mut all: Vec<Case> = columns.iter().flat_map(|&(dtype, round)| cases(dtype, round, is_wanted)).collect();
    for _ in 0..ROUNDS {
        for case in all.iter_mut().filter(|c| c.taken < SECONDS) {
            let (run, rest) = ((case.run)(), (case.rest)());
            case.best = (case.best.0.min(run), case.best.1.min(rest));
            case.taken += run + rest;
        }
    }
    print!("| instruction |");
    for (dtype, round) in columns {
        print!(" {dtype}{} ns | of a copy |", if round { " round SBUF" } else { "" });
    }
    println!("\n| --- |{}", " --- | --- |".repeat(columns.len()));
    for name in [COPY].into_iter().chain(INSTRUCTIONS.iter().map(|i| i.0)).filter(|n| *n == COPY || is_wanted(n)) {
        print!("| {name} |");
        for (dtype, round) in columns {
            let find = |name: &str| all.iter().find(|c| (c.name, c.dtype, c.round) == (name, dtype, round));
            match (find(name), find(COPY)) {
                (Some(case), Some(copy)) => print!(" {:.3} | {:.1}x |", case.ns(), case.ns() / copy.ns()),
                _ => print!(" | |"),
            }
        }
        println!();
    }
}
