//! Golden timelines: each example on a small input, every row of its timeline as text in traces/golden.
//!
//! `BLESS=1 cargo test --test golden` rewrites them; review the difference before committing it.

use std::path::{Path, PathBuf};

use nki_frontend::{Arg, Loader, Options};
use nki_isa::DType;
use nki_sim::session::{Compilation, Launch, Session};
use nki_sim_core::{HostTensor, report};

struct Disk;

impl Loader for Disk {
    fn read(&self, path: &Path) -> std::io::Result<String> {
        std::fs::read_to_string(path)
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A tensor argument and its bytes; 32-bit integers are `fill`, all other types zero.
fn tensor(shape: &[usize], dtype: DType, fill: i32) -> (Arg, Vec<u8>) {
    let count: usize = shape.iter().product();
    let data = match dtype {
        DType::I32 => std::iter::repeat_n(fill.to_le_bytes(), count).flatten().collect(),
        _ => vec![0; count * dtype.size()],
    };
    (Arg::Tensor { shape: shape.to_vec(), dtype }, data)
}

/// Physical cores of a logical core, and ranks.
type Grid = (u32, usize);

/// Compiles, places, runs and times a kernel; the text has all rows of all ranks.
fn timeline_of(
    file: &str,
    kernel: Option<&str>,
    (lnc, ranks): Grid,
    args: &[(&str, (Arg, Vec<u8>))],
    literals: &[(&str, Arg)],
) -> String {
    let mut arguments: Vec<(String, Arg)> = args.iter().map(|(n, (a, _))| (n.to_string(), a.clone())).collect();
    arguments.extend(literals.iter().map(|(n, a)| (n.to_string(), a.clone())));
    let options = Options { kernel: kernel.map(String::from), lnc, ..Options::default() };
    // The path is relative, so that the text is the same on every machine.
    let path = PathBuf::from(file);
    let compiled = nki_frontend::compile(&path, &Disk, &arguments, &options);
    let program = compiled.program.unwrap_or_else(|| panic!("{file}: {:#?}", compiled.diagnostics));
    let session = Session::default();
    let kernel = session.place(&mut Compilation::of(program)).unwrap_or_else(|e| panic!("{file}: {e:#?}"));
    let program = &kernel.program;
    let inputs: Vec<HostTensor> = program
        .inputs
        .iter()
        .map(|i| {
            let t = program.tensor(i.tensor);
            let (_, (_, data)) = args.iter().find(|(n, _)| *n == &*i.name).expect("an input is an argument");
            HostTensor {
                name: i.name.clone(),
                shape: t.shape.iter().map(|&d| d as usize).collect(),
                dtype: t.dtype,
                data: data.clone().into(),
            }
        })
        .collect();
    let rank = || Launch::new(&kernel, inputs.iter().cloned().map(Into::into).collect());
    let all = (0..ranks).map(|_| rank()).collect();
    let (_, timelines) = session.run_timed(all, &mut |_| ()).unwrap_or_else(|e| panic!("{file}: {e:?}"));
    let text = |timeline| {
        format!("{}\n{}\n{}", report::table(timeline, None), report::timeline(timeline), report::events(timeline))
    };
    let texts: Vec<String> = timelines.iter().map(text).collect();
    texts.join("\n")
}

fn golden(name: &str, text: &str) {
    let path = root().join("traces/golden").join(format!("{name}.txt"));
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, text).expect("writable");
        return;
    }
    let want = std::fs::read_to_string(&path).unwrap_or_default();
    if want != *text {
        let differs = want.lines().zip(text.lines()).enumerate().find(|(_, (w, t))| w != t);
        panic!(
            "the timeline of {name} differs from {} (BLESS=1 rewrites it); first difference: {differs:#?}",
            path.display()
        );
    }
}

const F32: DType = DType::F32;
const BF16: DType = DType::BF16;

macro_rules! goldens {
    ($($name:ident: $file:literal $($kernel:literal)? $(on $grid:expr)?, [$($arg:ident = $shape:expr, $dtype:expr);*], [$($lit:ident = $value:expr),*];)*) => {
        $(#[test]
        fn $name() {
            let args = [$((stringify!($arg), tensor(&$shape, $dtype, 3))),*];
            let literals: &[(&str, Arg)] = &[$((stringify!($lit), $value)),*];
            let kernel: Option<&str> = [$($kernel,)?].first().copied();
            let grid: Grid = [$($grid,)? (1, 1)][0];
            golden(stringify!($name), &timeline_of($file, kernel, grid, &args, literals));
        })*
    };
}

goldens! {
    elementwise: "examples/elementwise.py", [a = [256, 1024], F32; b = [256, 1024], F32], [];
    matmul_tiled: "examples/matmul_tiled.py", [a_t = [256, 128], BF16; b = [256, 1024], BF16], [];
    matmul_blocked: "examples/matmul_blocked.py", [a_t = [256, 256], F32; b = [256, 512], F32],
        [block_m = Arg::Int(2), block_n = Arg::Int(1)];
    softmax: "examples/softmax.py", [x = [384, 512], F32], [];
    rmsnorm: "examples/rmsnorm.py", [x = [200, 768], BF16; weight = [1, 768], BF16], [];
    flash_attention: "examples/flash_attention.py", [q_t = [64, 128], BF16; k_t = [64, 512], BF16; v = [512, 64], BF16],
        [scale = Arg::Float(0.125)];
    gather: "examples/gather.py", [table = [1000, 256], F32; indices = [256, 1], DType::I32], [];
    dynamic_loop: "examples/dynamic_loop.py", [x = [8, 128, 256], F32; count = [1, 1], DType::I32], [];
    direct_allocation: "examples/direct_allocation.py", [a_t = [128, 256], F32; b = [128, 2048], F32], [];
    arena: "examples/arena.py", [x = [384, 256], F32], [];
    row_norms: "examples/two_cores.py" "row_norms" on (2, 1), [x = [64, 256], F32], [];
    matmul_two_cores: "examples/two_cores.py" "matmul_two_cores" on (2, 1), [a_t = [64, 128], F32; b = [64, 512], F32], [];
    crossing_pipes: "tests/kernels/pipes.py" "crossing_pipes" on (2, 1), [x = [2, 2, 64, 96], F32], [];
    opposite_uses: "tests/kernels/pipes.py" "opposite_uses" on (2, 1), [x = [2, 2, 64, 96], F32], [];
    ring_gather: "examples/collectives.py" "ring_gather" on (1, 2), [x = [64, 128], BF16], [ranks = Arg::Int(2)];
    exchange: "examples/collectives.py" "exchange" on (2, 2), [x = [8, 32], F32], [ranks = Arg::Int(2)];
    panels_tile_of_its_own: "tests/kernels/panels.py" "tile_of_its_own", [x = [10, 112, 384], F32], [];
    panels_tile_in_common: "tests/kernels/panels.py" "tile_in_common", [x = [10, 112, 384], F32], [];
}

/// With one tile per iteration, iterations overlap; with one tile for all, they serialise, and the
/// report gives the reason.
#[test]
fn a_tile_for_all_iterations_serialises() {
    let run = |kernel| {
        let x = [("x", tensor(&[10, 112, 384], F32, 0))];
        timeline_of("tests/kernels/panels.py", Some(kernel), (1, 1), &x, &[])
    };
    let latency = |text: &str| -> f64 {
        let words: Vec<&str> = text.split_whitespace().collect();
        let at = words.iter().position(|w| *w == "us;").expect("a latency in us");
        words[at - 1].parse().expect("a number")
    };
    let (overlapped, serial) = (run("tile_of_its_own"), run("tile_in_common"));
    assert!(latency(&serial) > 2.0 * latency(&overlapped), "{} {}", latency(&serial), latency(&overlapped));
    assert!(serial.contains("panel"), "the stall names the tile");
}
