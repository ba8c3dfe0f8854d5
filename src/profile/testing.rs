//! Synthetic profiles for tests: a small program in the documented schema, timed by the model itself.

use std::fmt::Write as _;

use nki_isa::Target;
use nki_isa::names::{Engine, Named};
use nki_sim_core::timing::cost::CostKind;
use nki_sim_core::timing::replay::{cost, replay};
use nki_sim_core::timing::{Laws, Params};

use super::{HardwareProfile, Mapped, Role};

/// An instruction of a program: track, opcode, operands, the profiler's type, function.
pub(crate) struct Line {
    track: &'static str,
    opcode: &'static str,
    operands: String,
    kind: &'static str,
    function: &'static str,
}

/// A program under construction, with counts of the engines' semaphores.
#[derive(Default)]
pub(crate) struct Program {
    lines: Vec<Line>,
    /// Value of each engine's semaphore, by position in [`Engine::QUEUES`].
    counts: [u32; Engine::QUEUES.len()],
    transfers: u32,
}

/// The semaphore that counts an engine's instructions.
fn semaphore(engine: Engine) -> usize {
    3 + Engine::QUEUES.iter().position(|q| *q == engine).unwrap_or(0)
}

fn track(engine: Engine) -> &'static str {
    match engine {
        Engine::Tensor => "Tensor",
        Engine::Vector => "Vector",
        Engine::Scalar => "Scalar",
        Engine::GpSimd => "GpSimd",
        _ => "Sync",
    }
}

/// The event that an instruction waits for.
#[derive(Clone, Copy)]
pub(crate) enum After {
    Nothing,
    /// All instructions of this engine so far.
    Engine(Engine),
    /// A transfer, by number.
    Transfer(u32),
}

impl Program {
    fn wait(&self, after: After) -> String {
        match after {
            After::Nothing => String::new(),
            After::Engine(e) => {
                let i = semaphore(e);
                format!("S[{i}] ({})>={} ", track(e), self.counts[i - 3])
            }
            After::Transfer(n) => format!("S[{}] (q)>=16 ", 20 + n),
        }
    }

    /// A pass through the vector or scalar engine.
    pub(crate) fn pass(&mut self, engine: Engine, opcode: &'static str, after: After, operands: &str) -> &mut Self {
        let wait = self.wait(after);
        let i = semaphore(engine);
        self.counts[i - 3] += 1;
        let function = if opcode == "ACTIVATE" { "EXP" } else { "" };
        let operands = format!(" {wait}S[{i}] ({})++@complete {operands} ", track(engine));
        self.lines.push(Line { track: track(engine), opcode, operands, kind: "REGULAR", function });
        self
    }

    /// A matmul of `moving` columns: two loads and passes for fp32, unless it transposes.
    pub(crate) fn matmul(&mut self, dtype: &str, transpose: bool, moving: u32, after: After) -> &mut Self {
        let wait = self.wait(after);
        let i = semaphore(Engine::Tensor);
        self.counts[i - 3] += 1;
        let kind = if transpose { "TRANSPOSE" } else { "REGULAR" };
        let mode = if transpose { "ENABLED" } else { "DISABLED" };
        let passes = if dtype == "fp32" && !transpose { 2 } else { 1 };
        for n in 0..passes {
            let wait = if n == 0 { wait.as_str() } else { "" };
            let load = format!(" {wait}transpose_mode={mode} src={dtype}@0x36500[-1,0,0][128,1,1] 128*128 ");
            self.lines.push(Line { track: "Tensor", opcode: "LDWEIGHTS", operands: load, kind, function: "" });
            let done = if n + 1 == passes { format!("S[{i}] (Tensor)++@complete ") } else { String::new() };
            let pass = format!(
                " {done}acc_flags=3 src={dtype}@0x4000[1,0,0][{moving},1,1] dst=0x2000000[1,0,0][{moving},1,1] 128*128 "
            );
            self.lines.push(Line { track: "TensorMatrix", opcode: "MATMUL", operands: pass, kind, function: "" });
        }
        self
    }

    /// A load of 128 rows of `run` bytes, or a store; returns its number.
    pub(crate) fn transfer(&mut self, engine: Engine, store: bool, run: u32, after: After) -> u32 {
        let wait = self.wait(after);
        let number = self.transfers;
        self.transfers += 1;
        let hbm = |side: &str| {
            format!("{side}_elem_size={run} {side}_pattern=[{run},1][128,1] {side}_addr_imm=0x8005c03b0000")
        };
        let sbuf = |side: &str| {
            format!("{side}_elem_size={run} {side}_pattern=[262144,1][128,1] {side}_addr_imm=0x802000036500")
        };
        let sides = if store { [sbuf("src"), hbm("dst")] } else { [hbm("src"), sbuf("dst")] };
        let operands = format!(" {wait}semaphore={} sem_increment=16 {} ", 20 + number, sides.join(" "));
        let line = Line { track: track(engine), opcode: "DMA_DIRECT2D", operands, kind: "REGULAR", function: "" };
        self.lines.push(line);
        number
    }

    /// The load of a function table.
    pub(crate) fn table(&mut self) -> &mut Self {
        let operands = " table_sel=0 ".to_owned();
        self.lines.push(Line { track: "Scalar", opcode: "ACT_TABLE_LOAD", operands, kind: "REGULAR", function: "" });
        self
    }

    /// An instruction with this opcode and these operands.
    pub(crate) fn raw(&mut self, track: &'static str, opcode: &'static str, operands: &str) -> &mut Self {
        let operands = operands.to_owned();
        self.lines.push(Line { track, opcode, operands, kind: "REGULAR", function: "" });
        self
    }

    fn json(&self, times: &[(u64, u64)], rest: &str) -> String {
        let mut out = String::from("{\"instruction\": [");
        for (pc, (line, (start, end))) in self.lines.iter().zip(times).enumerate() {
            let comma = if pc > 0 { "," } else { "" };
            let Line { track, opcode, operands, kind, function } = line;
            let _ = write!(
                out,
                "{comma}\n{{\"timestamp\": {start}, \"duration\": {}, \"label\": \"{track}\", \"opcode\": \"{opcode}\", \"operands\": \"{operands}\", \"instruction_type\": \"{kind}\", \"activation_fn\": \"{function}\", \"subgraph\": \"sg00\", \"pc\": {pc}}}",
                end - start
            );
        }
        out + "]" + rest + "}"
    }

    /// The profile of this program on a machine with these parameters, as text.
    pub(crate) fn profile(&self, params: &Params) -> String {
        // Parse the instructions from the text, at arbitrary times.
        let any: Vec<(u64, u64)> = (0..self.lines.len() as u64).map(|i| (i * 100, i * 100 + 50)).collect();
        let read = HardwareProfile::parse(&self.json(&any, "")).unwrap().unwrap();
        let core = &read.cores[0];
        let mapped = Mapped::of(core);
        let laws = Laws::new(params).unwrap();
        let done = replay(std::slice::from_ref(&mapped.stream), &laws, None, None).unwrap();
        let ns = |ps: u64| (ps + 500) / 1000;
        let mut times = vec![(0, 0); self.lines.len()];
        let (mut packets, mut semaphores, mut queues) = (String::new(), String::new(), Vec::new());
        let mut last_pass = 0;
        let mut moved = [0; Engine::QUEUES.len()];
        for ((op, time), item) in mapped.ops.iter().zip(&done.cores[0]).zip(&mapped.stream) {
            let passes = op.parts.iter().filter(|p| matches!(p.role, Role::Pass(_))).count().max(1) as u64;
            let pass = |n: usize| ns(time.start + (time.end - time.start) * n as u64 / passes);
            let drain = ns(time.complete) - ns(time.end);
            for part in &op.parts {
                let i = &core.instructions[part.instruction];
                times[i.pc as usize] = match part.role {
                    Role::Weights(0) => (ns(time.issue).max(last_pass), ns(time.start)),
                    Role::Weights(n) => (pass(n - 1), pass(n)),
                    Role::Pass(n) => (pass(n), pass(n + 1) + drain),
                    Role::Trigger => (ns(time.start), ns(time.end)),
                    Role::Whole => (ns(time.start), ns(time.complete)),
                };
                if let Role::Pass(n) = part.role {
                    last_pass = pass(n);
                }
                let Some((arrive, left)) = time.payload.filter(|_| part.role == Role::Trigger) else { continue };
                let queue = Engine::QUEUES.iter().position(|e| *e == i.engine).unwrap();
                queues.push((queue, i.engine));
                let run = i.operands.number("src_elem_size").unwrap();
                let kind = if i.engine == Engine::GpSimd { "software_dynamic" } else { "hardware_dynamic" };
                // A queue moves one transfer at a time.
                let begin = arrive.max(moved[queue]);
                moved[queue] = left + 3000;
                let step = (left - begin) / 8;
                // Time that occupies no engine appears as engines that start later.
                let CostKind::Dma(dma) = cost(item, 0, &laws).kind else { panic!("{item:?}") };
                // The last packet ends when the semaphore's packet is written.
                let visible = ns(time.complete);
                semaphores += &format!(
                    ",{{\"timestamp\": {visible}, \"id\": \"S[{}] (q)\", \"value\": 16, \"subgraph\": \"sg00\"}}",
                    i.operands.number("semaphore").unwrap()
                );
                let mut packet = |engine: u64, start: u64, end: u64, bytes: u64| {
                    packets += &format!(
                        ",{{\"timestamp\": {start}, \"duration\": {}, \"dma_queue\": \"{queue}\", \"dma_engine\": \"{engine}\", \"transfer_size\": {bytes}, \"queue_type\": \"{kind}\", \"subgraph\": \"sg00\"}}",
                        end - start
                    );
                };
                for engine in 0..16 {
                    let late = dma.payload * engine / 15;
                    for n in 0..8 {
                        packet(engine, ns(begin + late + step * n), ns(begin + late + step * (n + 1)), run);
                    }
                    packet(engine, ns(left + late) + 1, ns(left + late) + 2, 4);
                }
            }
        }
        let total = ns(done.elapsed);
        let changes = &done.limiter[0];
        let limiter = changes.iter().enumerate().map(|(i, (t, full))| {
            let until = changes.get(i + 1).map_or(total, |c| ns(c.0));
            let k = if *full { 8 } else { 4 };
            format!(
                "{{\"timestamp\": {}, \"duration\": {}, \"k\": {k}, \"n\": 8, \"subgraph\": \"sg00\"}}",
                ns(*t),
                until - ns(*t)
            )
        });
        let limiter: Vec<String> = limiter.collect();
        queues.sort_by_key(|q| q.0);
        queues.dedup_by_key(|q| q.0);
        let named = queues.iter().map(|(i, e)| {
            let kind = if *e == Engine::GpSimd { "Dynamic" } else { "DynamicHW" };
            format!("{{\"q_idx\": {i}, \"q_name\": \"q{}{kind}\", \"subgraph\": \"sg00\"}}", track(*e))
        });
        let named: Vec<String> = named.collect();
        let rest = format!(
            ", \"dma\": [{}], \"semaphore_update\": [{}], \"ham\": [{}], \"dma_queues_info\": [{}], \"summary\": [{{\"total_time\": {}e-9, \"instance_type\": \"{}.48xlarge\"}}]",
            packets.trim_start_matches(','),
            semaphores.trim_start_matches(','),
            limiter.join(","),
            named.join(","),
            total,
            Target::Trn2.name()
        );
        self.json(&times, &rest)
    }
}

/// A program with every kind of operation, in chains and sequences.
pub(crate) fn mixed() -> Program {
    let mut p = Program::default();
    let loads: Vec<u32> =
        [512, 1024, 2048, 4096].into_iter().map(|run| p.transfer(Engine::Sync, false, run, After::Nothing)).collect();
    for load in loads {
        p.table();
        p.matmul("fp32", false, 512, After::Transfer(load));
        for _ in 0..24 {
            p.matmul("fp32", false, 512, After::Nothing).matmul("fp32", false, 128, After::Nothing);
        }
        p.matmul("fp32", true, 128, After::Nothing).matmul("fp32", true, 256, After::Nothing);
        for moving in [128, 512] {
            p.matmul("bfloat16", false, moving, After::Nothing).matmul("bfloat16", false, moving, After::Nothing);
        }
        p.matmul("bfloat16", false, 512, After::Nothing);
        for moving in [128, 512, 512] {
            p.matmul("bfloat16", true, moving, After::Nothing).matmul("bfloat16", true, moving, After::Nothing);
        }
        for n in [512, 128] {
            let tile = |from: &str, n: u32| {
                format!("src=fp32@{from}[1,1,1][{n},1,1] dst=fp32@0x4800[1,1,1][{n},1,1] channels=128")
            };
            let (psum, sbuf) = ("0x2000000", "0x4000");
            p.pass(Engine::Vector, "COPY", After::Engine(Engine::Tensor), &tile(psum, n));
            p.pass(Engine::Vector, "TENSOR_REDUCE", After::Nothing, &format!("op=MAX dim=X {}", tile(psum, n)));
            p.pass(Engine::Vector, "TENSOR_REDUCE", After::Nothing, &format!("op=MAX dim=X {}", tile(sbuf, n)));
            p.pass(Engine::Vector, "RECIPROCAL", After::Nothing, &tile(sbuf, n / 4));
            p.pass(
                Engine::Scalar,
                "ACTIVATE",
                After::Engine(Engine::Vector),
                &format!("bias_ptr=fp32@0x4810 {}", tile(sbuf, n)),
            );
            p.pass(Engine::Scalar, "ACTIVATE", After::Nothing, &format!("bias_ptr=fp32@0x4810 {}", tile(sbuf, n)));
            p.pass(Engine::Scalar, "COPY", After::Nothing, &tile(psum, n));
            p.pass(Engine::Scalar, "COPY", After::Nothing, &tile(sbuf, n));
        }
        let store = p.transfer(Engine::Scalar, true, 1024, After::Engine(Engine::Scalar));
        p.pass(
            Engine::Vector,
            "COPY",
            After::Transfer(store),
            "src=fp32@0x4000[1,1][64,1] dst=fp32@0x4800[1,1][64,1] channels=128",
        );
        p.transfer(Engine::GpSimd, false, 1024, After::Engine(Engine::Vector));
        let software = p.transfer(Engine::GpSimd, false, 1024, After::Nothing);
        p.matmul("fp32", false, 128, After::Transfer(software));
        p.matmul("fp32", false, 128, After::Engine(Engine::Scalar));
    }
    p
}
