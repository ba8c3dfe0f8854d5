//! The command line's grammar. docs/cli.md explains it at length.

mod values;

use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand};
use nki_diag::levels::Source;
use nki_frontend::GridAxis;
use nki_isa::arch::Target;
use nki_sim_core::place::Capacity;

use crate::expected::Tolerances;
use crate::findings::Lists;
use crate::python::Break;
use crate::settings::ParamChanges;
use values::{capacity, name_value, number, number_to_1024, place, rows, seconds, step, steps, target, tolerance};

/// A cycle-approximate simulator of the AWS NeuronCore for NKI kernels.
#[derive(Debug, Parser)]
// The name is the command's even if the process is `python -m nki_sim`.
#[command(name = "nki-sim", bin_name = "nki-sim", version, about, max_term_width = 110)]
pub(crate) struct Cli {
    /// When to colour diagnostics; `auto` does on a terminal, unless NO_COLOR is set
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, value_name = "WHEN")]
    pub(crate) color: Color,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// When text has colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a kernel and report its outputs, findings and timeline
    Run(Box<RunArgs>),
    /// Specialise and validate kernels without running them
    #[command(mut_arg("file", |file| file.help(
        "Python file with a kernel, a lowered kernel (.nkir), or a folder: every .py file in it or below it that defines a kernel"
    )))]
    Check(CheckArgs),
    /// Write the compiled kernel in text form (.nkir)
    Lower(LowerArgs),
    /// Rewrite a file for neuronxcc.nki (Beta 1) in the current language, and list what has to be changed by hand
    Migrate(MigrateArgs),
    /// Rank timing parameters by their effect on the latency
    Whatif(WhatifArgs),
    /// Compare two runs (run --json, --csv or --parquet, hardware profiles, or exports of Neuron Explorer); can fail CI on a regression
    Compare(CompareArgs),
    /// Time the instruction streams of a hardware profile on the machine model, and compare with the recorded times
    Replay(ReplayArgs),
    /// Fit timing parameters to hardware profiles, for --params
    Calibrate(CalibrateArgs),
    /// Time a kernel for every combination of arguments or constants, fastest first
    // A sweep reads the source and changes its constants: it takes no lowered kernel, and Python does not execute it.
    #[command(
        mut_arg("file", |file| file.help("Python file with a kernel")),
        mut_arg("frontend", |frontend| frontend.hide(true)),
        mut_arg("expect", |expect| expect.help(
            "Compare an output with an array, and rank only the points where it is equal: FILE.npy, or a tensor as in --arg"
        ))
    )]
    Sweep(Box<SweepArgs>),
    /// Run many kernels within limits of time and memory: reads a job and writes a result as one line of JSON each
    Batch(BatchArgs),
    /// Serve check, run, sweep, compare and explain to agents over standard input and output (Model Context Protocol)
    Mcp(McpArgs),
    /// Perform the tasks of another process of this command
    #[command(hide = true)]
    Worker,
    /// Explain a diagnostic, an API name, a cause of stalls, a remedy, a timing parameter, a table or a column; without a name, list the names
    Explain {
        /// E.g. uninitialized-read, nc_matmul, nl.softmax, NkiTensor.reshape, dma-bandwidth, dma.engines or Instruction.opcode
        name: Option<String>,
    },
    /// Print the completions of a shell, e.g. for `source <(nki-sim completions bash)`
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page of the command or of a subcommand, for `man -l -`
    Man {
        /// The subcommand
        command: Option<String>,
    },
}

impl Command {
    /// Whether only the process of the Python package can execute it.
    pub(crate) fn is_for_python(&self) -> bool {
        matches!(self, Command::Sweep(args) if args.search)
    }

    /// The kernel of a command that is also available as a job.
    pub(crate) fn kernel_mut(&mut self) -> Option<&mut KernelArgs> {
        match self {
            Command::Run(args) => Some(&mut args.kernel),
            Command::Check(args) => Some(&mut args.kernel),
            Command::Sweep(args) => Some(&mut args.kernel),
            _ => None,
        }
    }

    /// The kernel that it compiles.
    pub(crate) fn kernel(&self) -> Option<&KernelArgs> {
        match self {
            Command::Run(args) => Some(&args.kernel),
            Command::Check(args) => Some(&args.kernel),
            Command::Lower(args) => Some(&args.kernel),
            Command::Whatif(args) => Some(&args.kernel),
            _ => None,
        }
    }
}

/// Who executes the Python of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Frontend {
    /// The built-in evaluator
    Builtin,
    /// Python, which needs the Python package
    Python,
    /// Python if the package is installed
    Auto,
}

/// Levels of findings.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct LevelArgs {
    /// Findings that fail the run: slugs, classes (bug, suspicious, strict), or `warnings` for all that would be warnings
    #[arg(long, value_name = "SLUG|CLASS|warnings", value_delimiter = ',')]
    pub(crate) deny: Vec<String>,
    /// Findings that are warnings: slugs or classes
    #[arg(long, value_name = "SLUG|CLASS", value_delimiter = ',')]
    pub(crate) warn: Vec<String>,
    /// Findings that are not reported: slugs or classes
    #[arg(long, value_name = "SLUG|CLASS", value_delimiter = ',')]
    pub(crate) allow: Vec<String>,
}

impl LevelArgs {
    /// As a source of levels.
    pub(crate) fn source(&self) -> Result<Source, String> {
        let lists = Lists { deny: self.deny.clone(), warn: self.warn.clone(), allow: self.allow.clone() };
        lists.source(|level| format!("--{}", level.name()))
    }
}

/// The kernel, its arguments and its machine.
#[derive(Debug, Clone, Args)]
pub(crate) struct KernelArgs {
    /// Python file with a kernel, or a lowered kernel (.nkir)
    pub(crate) file: PathBuf,
    /// Name of the kernel; needed only if the file has several
    #[arg(long, value_name = "NAME")]
    pub(crate) kernel: Option<String>,
    /// An argument of the kernel, once for each: FILE.npy, dtype[d0,d1,...][:normal|uniform|zeros|ones|arange][:SEED], dtype([[1, 2], ...]), or a Python literal
    #[arg(long = "arg", value_name = "NAME=VALUE", value_parser = name_value)]
    pub(crate) args: Vec<(String, String)>,
    /// Chip generation: trn1 (trn1n, inf2, gen2), trn2 (gen3) or trn3 (gen4, trn3pre) [default: the decorator's platform_target, $NEURON_PLATFORM_TARGET_OVERRIDE, $NKI_NC_VERSION, trn2]
    #[arg(long, value_parser = target)]
    pub(crate) target: Option<Target>,
    /// Physical cores per logical core [default: NEURON_LOGICAL_NC_CONFIG, or 1]
    #[arg(long, value_name = "1|2", value_parser = clap::value_parser!(u32).range(1..=2))]
    pub(crate) lnc: Option<u32>,
    /// Treat the files as written for neuronxcc.nki (Beta 1), whatever they import
    #[arg(long)]
    pub(crate) beta1: bool,
    /// What executes the kernel's Python: the built-in evaluator, or Python itself, which needs the Python package
    #[arg(long, value_enum, default_value_t = Frontend::Builtin, hide_possible_values = true, conflicts_with = "beta1", value_name = "builtin|python|auto")]
    pub(crate) frontend: Frontend,
    /// Do not model what compilers change in a kernel: keep every load and all values of a tile in one place, and of a kernel for neuronxcc.nki every copy, and spill no tile
    #[arg(long)]
    pub(crate) as_written: bool,
    /// Make DMA descriptors before the kernel runs, unless the kernel chooses otherwise: the compiler's flag of this name
    #[arg(long)]
    pub(crate) disable_dge: bool,
    /// Launch grid of a kernel for neuronxcc.nki: programs along each axis, e.g. 4,2; nc2*4 and 4*nc2 divide an axis between two cores
    #[arg(long, value_name = "N,M,...", value_parser = launch_grid, conflicts_with = "lnc")]
    pub(crate) programs: Option<LaunchGrid>,
    /// Also report what the official compiler would reject
    #[arg(long)]
    pub(crate) strict: bool,
    #[command(flatten)]
    pub(crate) levels: LevelArgs,
    /// Limit of specialisation steps, and of instructions executed in dynamic loops
    #[arg(long, value_name = "N", value_parser = steps, allow_negative_numbers = true)]
    pub(crate) max_steps: Option<u64>,
    /// Memory limit, e.g. 8GiB or 50% [default: $NKI_SIM_MAX_MEMORY, half of the available memory]
    #[arg(long, value_name = "SIZE", allow_negative_numbers = true)]
    pub(crate) max_memory: Option<String>,
    /// Reject a kernel that does not fit into SBUF or PSUM, or run it with a warning and no valid latency [default: $NKI_SIM_CAPACITY, error]
    #[arg(long, value_name = "error|warn", value_parser = capacity())]
    pub(crate) capacity: Option<Capacity>,
    /// The arguments are those of a job, whose messages do not speak of the command line.
    #[arg(skip)]
    pub(crate) of_job: bool,
}

/// The number of a kernel's programs along each axis of its launch grid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LaunchGrid(pub(crate) Vec<GridAxis>);

impl LaunchGrid {
    /// Number of cores that it is distributed over.
    pub(crate) fn cores(&self) -> u32 {
        self.0.iter().map(|axis| axis.cores).product()
    }
}

impl std::fmt::Display for LaunchGrid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let axis = |axis: &GridAxis| match (axis.cores, axis.cores_outside) {
            (1, _) => axis.sequential.to_string(),
            (cores, true) => format!("nc{cores}*{}", axis.sequential),
            (cores, false) => format!("{}*nc{cores}", axis.sequential),
        };
        f.write_str(&self.0.iter().map(axis).collect::<Vec<_>>().join(","))
    }
}

/// `4,2`, `nc2*4,2` or `4*nc2`.
fn launch_grid(text: &str) -> Result<LaunchGrid, String> {
    let wrong =
        |axis: &str| format!("`{axis}` is not an axis of a grid: write a number of programs, nc2, nc2*N or N*nc2");
    let axis = |axis: &str| -> Result<GridAxis, String> {
        let mut found = GridAxis { sequential: 1, cores: 1, cores_outside: false };
        let factors: Vec<&str> = axis.split('*').map(str::trim).collect();
        for (at, factor) in factors.iter().enumerate() {
            let count = |text: &str| text.parse().ok().filter(|n| (1..=1024).contains(n)).ok_or_else(|| wrong(axis));
            match factor.strip_prefix("nc") {
                Some(cores) if found.cores == 1 => {
                    found.cores = cores.parse().ok().filter(|n| (1..=2).contains(n)).ok_or_else(|| wrong(axis))?;
                    found.cores_outside = at == 0;
                }
                None if found.sequential == 1 => found.sequential = count(factor)?,
                _ => return Err(wrong(axis)),
            }
        }
        if factors.len() > 2 { Err(wrong(axis)) } else { Ok(found) }
    };
    let axes = text.split(',').map(|one| axis(one.trim())).collect::<Result<Vec<_>, _>>()?;
    let grid = LaunchGrid(axes);
    if grid.cores() > 2 { Err("a grid is spread over two cores at most".into()) } else { Ok(grid) }
}

/// The order of the instructions of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum InstructionOrder {
    Compiler,
    Program,
}

/// Changes of timing parameters.
#[derive(Debug, Clone, Args)]
pub(crate) struct ParamArgs {
    /// Change a timing parameter, e.g. tensor.clock_ghz=2.8
    #[arg(long, value_name = "NAME=VALUE", value_parser = name_value)]
    pub(crate) set: Vec<(String, String)>,
    /// Change timing parameters to the values in a TOML file
    #[arg(long, value_name = "FILE.toml")]
    pub(crate) params: Option<PathBuf>,
}

/// Expected values of outputs.
#[derive(Debug, Clone, Args)]
pub(crate) struct ExpectArgs {
    /// Compare an output with an array, and fail if they differ: FILE.npy, or a tensor as in --arg
    #[arg(long, value_name = "NAME=VALUE", value_parser = name_value)]
    pub(crate) expect: Vec<(String, String)>,
    /// Relative tolerance of --expect [default: by dtype]
    #[arg(long, value_name = "R", value_parser = tolerance, allow_negative_numbers = true, requires = "expect")]
    pub(crate) rtol: Option<f64>,
    /// Absolute tolerance of --expect [default: by dtype]
    #[arg(long, value_name = "A", value_parser = tolerance, allow_negative_numbers = true, requires = "expect")]
    pub(crate) atol: Option<f64>,
}

impl ExpectArgs {
    /// The tolerances that the user gave.
    pub(crate) fn tolerances(&self) -> Tolerances {
        Tolerances { rtol: self.rtol, atol: self.atol }
    }
}

/// How the timeline is computed.
#[derive(Debug, Clone, Args)]
pub(crate) struct TimingArgs {
    /// Instruction order: the compiler's (a list schedule) or the program's
    #[arg(long, value_enum, value_name = "ORDER", default_value_t = InstructionOrder::Compiler)]
    pub(crate) schedule: InstructionOrder,
    /// What the latency predicts: a profiler's total time, or the result of the runtime's device benchmark [default: profile]
    #[arg(long, value_name = "profile|device", value_parser = ["profile", "device"])]
    pub(crate) measure: Option<String>,
    #[command(flatten)]
    pub(crate) changes: ParamArgs,
}

impl From<&ParamArgs> for ParamChanges {
    fn from(args: &ParamArgs) -> Self {
        ParamChanges { file: args.params.clone(), set: args.set.clone(), ..ParamChanges::default() }
    }
}

impl From<&TimingArgs> for ParamChanges {
    fn from(args: &TimingArgs) -> Self {
        ParamChanges {
            program_order: args.schedule == InstructionOrder::Program,
            measure: args.measure.clone(),
            ..(&args.changes).into()
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) kernel: KernelArgs,
    #[command(flatten)]
    pub(crate) timing: TimingArgs,
    /// Number of ranks, which synchronise at collectives; --arg NAME@RANK=VALUE is for one rank
    #[arg(long, value_name = "N", value_parser = number_to_1024, allow_negative_numbers = true, conflicts_with = "no_numerics")]
    pub(crate) ranks: Option<u32>,
    /// Write each output to DIR/NAME.npy (DIR/rankN/NAME.npy with --ranks)
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) expected: ExpectArgs,
    /// Write a tensor as it is after an execution of a line; ITERATION counts the executions from 0 [default: the last]
    #[arg(long, value_name = "NAME@LINE[:ITERATION]=FILE.npy", value_parser = name_value, conflicts_with = "ranks")]
    pub(crate) dump: Vec<(String, String)>,
    /// Stop in Python's debugger before an execution of a line and before each later one (needs --frontend python); ITERATION counts the executions from 0 [default: 0]
    #[arg(long = "break", value_name = "LINE[:ITERATION]", value_parser = place, conflicts_with_all = ["ranks", "no_numerics"])]
    pub(crate) stop: Option<Break>,
    /// Compute only the timeline, no values
    #[arg(long, conflicts_with_all = ["out", "expect", "dump"])]
    pub(crate) no_numerics: bool,
    /// Write the report as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write executed instructions as CSV with the columns of Neuron Explorer
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    /// Write the tables of Neuron Explorer's profile schema as Parquet files (DIR/rankN with --ranks)
    #[arg(long, value_name = "DIR")]
    pub(crate) parquet: Option<PathBuf>,
    /// Write the timeline as a Perfetto trace, compressed if the name ends in .gz
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Write an HTML page with timeline, source, memory, roofline and verdict
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Also print the critical path, by source line and loop iteration
    #[arg(long)]
    pub(crate) critical_path: bool,
}

#[derive(Debug, Args)]
pub(crate) struct WhatifArgs {
    #[command(flatten)]
    pub(crate) kernel: KernelArgs,
    #[command(flatten)]
    pub(crate) timing: TimingArgs,
    /// Change of each parameter, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 10.0, value_parser = step, allow_negative_numbers = true)]
    pub(crate) step: f64,
    /// Parameters to show
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = rows, allow_negative_numbers = true)]
    pub(crate) top: usize,
    /// Write all parameters as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// How `compare` writes its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum CompareFormat {
    /// Tables for reading
    Text,
    /// One JSON object
    Json,
    /// Annotations of GitHub Actions
    Github,
    /// A test suite in JUnit's XML, a case for each --fail-if
    Junit,
}

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// The baseline
    pub(crate) before: PathBuf,
    /// The run to compare with it
    pub(crate) after: PathBuf,
    /// Exit with code 1 if this condition holds, e.g. 'latency > +2%' (grammar: docs/cli.md)
    #[arg(long, value_name = "CONDITION", allow_hyphen_values = true)]
    pub(crate) fail_if: Vec<String>,
    /// Format of the result
    #[arg(long, value_enum, default_value_t = CompareFormat::Text)]
    pub(crate) format: CompareFormat,
    /// Write the result to a file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Write an HTML page with both runs on one time axis
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) levels: LevelArgs,
    /// Rows to show of each table
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = rows, allow_negative_numbers = true)]
    pub(crate) top: usize,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// A hardware profile, the file of `neuron-profile view --output-format json`
    pub(crate) profile: PathBuf,
    /// Chip generation: trn1 (trn1n, inf2, gen2), trn2 (gen3) or trn3 (gen4, trn3pre) [default: the profile's]
    #[arg(long, value_parser = target)]
    pub(crate) target: Option<Target>,
    #[command(flatten)]
    pub(crate) changes: ParamArgs,
    /// Rows to show of each table
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = rows, allow_negative_numbers = true)]
    pub(crate) top: usize,
    /// Write all figures and the start of each instruction as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct CalibrateArgs {
    /// Hardware profiles, files of `neuron-profile view --output-format json`
    #[arg(required = true)]
    pub(crate) profiles: Vec<PathBuf>,
    /// File to write, for --params
    #[arg(short, long, value_name = "FILE.toml")]
    pub(crate) output: PathBuf,
    /// Chip generation: trn1 (trn1n, inf2, gen2), trn2 (gen3) or trn3 (gen4, trn3pre) [default: the profiles']
    #[arg(long, value_parser = target)]
    pub(crate) target: Option<Target>,
    /// Start from the values in a TOML file
    #[arg(long, value_name = "FILE.toml")]
    pub(crate) params: Option<PathBuf>,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct SweepArgs {
    #[command(flatten)]
    pub(crate) kernel: KernelArgs,
    #[command(flatten)]
    pub(crate) timing: TimingArgs,
    /// Values of a kernel argument or of a constant at the top of the file
    #[arg(long, value_name = "NAME=V1,V2,...", value_parser = name_value, required = true)]
    pub(crate) grid: Vec<(String, String)>,
    #[command(flatten)]
    pub(crate) expected: ExpectArgs,
    /// Let Optuna choose the points, which needs the Python package and Optuna: pip install 'nki-sim[search]'
    #[arg(long, conflicts_with = "state")]
    pub(crate) search: bool,
    /// Number of points that a search times at most
    #[arg(long, value_name = "N", requires = "search", value_parser = steps, allow_negative_numbers = true)]
    pub(crate) trials: Option<u64>,
    /// Time after which a search starts no further point
    #[arg(long, value_name = "SECONDS", requires = "search", value_parser = seconds, allow_negative_numbers = true)]
    pub(crate) seconds: Option<f64>,
    /// How a search chooses: tpe, random, nsga2 or nsga3
    #[arg(long, value_name = "NAME", requires = "search", default_value = "tpe")]
    pub(crate) sampler: String,
    /// Seed of the sampler
    #[arg(long, value_name = "N", requires = "search", default_value_t = 0)]
    pub(crate) seed: u32,
    /// With --expect, compute the values of every point, even if a correct one is already as good in latency and SBUF
    #[arg(long, requires = "search")]
    pub(crate) no_prune: bool,
    /// URL of an Optuna storage, e.g. sqlite:///search.db; a later search with it continues
    #[arg(long, value_name = "URL", requires = "search")]
    pub(crate) storage: Option<String>,
    /// Name of the study in the storage [default: the file's]
    #[arg(long, value_name = "NAME", requires_all = ["search", "storage"])]
    pub(crate) study: Option<String>,
    /// Write an SVG plot of latency against SBUF that marks the Pareto front
    #[arg(long, value_name = "FILE.svg")]
    pub(crate) plot: Option<PathBuf>,
    /// File that records finished points; a later call with it reuses them
    #[arg(long, value_name = "FILE")]
    pub(crate) state: Option<PathBuf>,
    /// Concurrent points [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = number, allow_negative_numbers = true)]
    pub(crate) jobs: Option<u32>,
    /// Rows to show
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = rows, allow_negative_numbers = true)]
    pub(crate) top: usize,
    /// Write all points as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write all points as CSV
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
}

/// Workers and the limits of what they do.
#[derive(Debug, Args)]
pub(crate) struct LimitArgs {
    /// Worker processes [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = number_to_1024, allow_negative_numbers = true)]
    pub(crate) jobs: Option<u32>,
    /// Time limit of a job
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, value_parser = seconds, allow_negative_numbers = true)]
    pub(crate) max_seconds: f64,
    /// Memory limit of a job, e.g. 512MiB [default: the workers share $NKI_SIM_MAX_MEMORY, or half of the available memory]
    #[arg(long, value_name = "SIZE", allow_negative_numbers = true)]
    pub(crate) max_memory: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct McpArgs {
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
}

#[derive(Debug, Args)]
pub(crate) struct BatchArgs {
    /// File of jobs, a JSON object in each line (fields: docs/cli.md); `-` reads standard input
    #[arg(value_name = "JOBS.jsonl")]
    pub(crate) jobs_file: PathBuf,
    /// Write the results to a file, when all jobs are finished, instead of standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) json_lines: Option<PathBuf>,
    /// End with the process of this number, which started this one
    #[arg(long, value_name = "PID", hide = true)]
    pub(crate) parent: Option<u32>,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
}

/// How `check` writes its findings to standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum CheckFormat {
    /// A line with the result
    Text,
    /// One JSON object, as --json writes it
    Json,
    /// A log of SARIF 2.1.0
    Sarif,
    /// Annotations of GitHub Actions
    Github,
    /// A test suite in JUnit's XML, a case for each finding
    Junit,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) kernel: KernelArgs,
    /// More files and folders; of several files, those without a kernel are skipped
    #[arg(value_name = "FILE", index = 2)]
    pub(crate) more: Vec<PathBuf>,
    /// What to write to standard output; with every format, diagnostics go to standard error as text
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = CheckFormat::Text)]
    pub(crate) format: CheckFormat,
    /// Write the findings as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

impl CheckArgs {
    /// The files and folders of the call.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        [&self.kernel.file].into_iter().chain(&self.more).map(PathBuf::as_path)
    }
}

#[derive(Debug, Args)]
pub(crate) struct LowerArgs {
    #[command(flatten)]
    pub(crate) kernel: KernelArgs,
    /// File to write instead of standard output
    #[arg(short, long, value_name = "FILE.nkir")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct MigrateArgs {
    /// Python file that imports neuronxcc.nki; it is not changed
    pub(crate) file: PathBuf,
    /// Treat the names that the file imports from nki as those of neuronxcc.nki (Beta 1), too
    #[arg(long)]
    pub(crate) beta1: bool,
    /// File to write instead of standard output
    #[arg(short, long, value_name = "NEW.py")]
    pub(crate) output: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_grammar_is_consistent() {
        Cli::command().debug_assert();
    }
}
