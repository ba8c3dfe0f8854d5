//! Converts the JSON of `neuron-profile view` to a [`HardwareProfile`].

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, Sender};
use std::time::Duration;

use nki_isa::names::Engine;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::{Core, HardwareProfile, Instruction, Ns, Operands, Packet, PacketKind};
use crate::output::eprint;

/// Maximum file size: the tables take several times as much memory.
const MOST_BYTES: u64 = 2 << 30;

/// Time that a pipe may take before the reader prints a notice.
const PATIENCE: Duration = Duration::from_secs(2);

/// Maximum plausible time, 1000 seconds.
const LATEST: f64 = 1e12;

/// A number, or a string with a number, as in some tables.
#[derive(Debug, Clone, Copy, Default)]
struct Number(Option<f64>);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Either {
            Number(f64),
            Text(String),
            Other(serde::de::IgnoredAny),
        }
        Ok(Number(match Either::deserialize(from)? {
            Either::Number(x) => Some(x),
            Either::Text(text) => text.trim().parse().ok(),
            Either::Other(_) => None,
        }))
    }
}

impl Number {
    fn time(self) -> Option<Ns> {
        self.0.filter(|x| (0.0..=LATEST).contains(x)).map(|x| x.round() as Ns)
    }

    fn index(self) -> Option<u32> {
        self.0.filter(|x| (0.0..=1e6).contains(x)).map(|x| x as u32)
    }
}

#[derive(Debug, Deserialize)]
struct Tables<'t> {
    #[serde(borrow, default)]
    instruction: Option<&'t RawValue>,
    #[serde(borrow, default)]
    dma: Option<&'t RawValue>,
    #[serde(borrow, default)]
    semaphore_update: Option<&'t RawValue>,
    #[serde(borrow, default)]
    ham: Option<&'t RawValue>,
    #[serde(borrow, default)]
    summary: Option<&'t RawValue>,
    #[serde(borrow, default)]
    dma_queues_info: Option<&'t RawValue>,
    #[serde(borrow, default)]
    warnings: Option<&'t RawValue>,
    #[serde(borrow, default)]
    metadata: Option<&'t RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct InstructionRow {
    timestamp: Number,
    duration: Number,
    label: String,
    opcode: String,
    operands: String,
    subgraph: String,
    instruction_type: String,
    activation_fn: String,
    evt_wait_time: Number,
    pc: Number,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PacketRow {
    timestamp: Number,
    duration: Number,
    dma_queue: Number,
    dma_engine: Number,
    transfer_size: Number,
    queue_type: String,
    subgraph: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SemaphoreRow {
    timestamp: Number,
    id: String,
    value: Number,
    subgraph: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct LimiterRow {
    timestamp: Number,
    duration: Number,
    k: Number,
    n: Number,
    subgraph: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct QueueRow {
    q_idx: Number,
    q_name: String,
    subgraph: String,
}

/// Metadata of the whole profile.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct MetadataRow {
    is_simulation: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WarningRow {
    message: String,
}

/// The rows of a table; empty if it is missing.
fn rows<'t, T: Deserialize<'t>>(name: &str, table: Option<&'t RawValue>) -> Result<Vec<T>, String> {
    let Some(text) = table.map(RawValue::get).filter(|t| *t != "null") else { return Ok(Vec::new()) };
    serde_json::from_str(text).map_err(|e| format!("table `{name}`: {e} of the table"))
}

impl HardwareProfile {
    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read or is not such a profile, with the reason.
    pub(crate) fn read(path: &Path) -> Result<HardwareProfile, String> {
        let text = text(path)?;
        match Self::parse(&text) {
            Ok(Some(profile)) => Ok(profile),
            Ok(None) => Err(format!(
                "`{}` is not a hardware profile: it has no table `instruction` with `timestamp`, `duration` and `label`; expected the file of `neuron-profile view --output-format json`",
                path.display()
            )),
            Err(why) => {
                let foreign = !text.is_empty() && !text.trim_start().starts_with('{');
                let hint =
                    if foreign { "; expected the file of `neuron-profile view --output-format json`" } else { "" };
                Err(format!("`{}`: {why}{hint}", path.display()))
            }
        }
    }

    /// A profile from its text; `None` for other JSON.
    ///
    /// # Errors
    /// If it is not JSON, or a profile with an invalid record.
    pub(crate) fn parse(text: &str) -> Result<Option<HardwareProfile>, String> {
        if text.trim().is_empty() {
            return Err("it is empty".into());
        }
        if !text.trim_start().starts_with('{') {
            return match serde_json::from_str::<serde::de::IgnoredAny>(text) {
                Ok(_) => Ok(None),
                Err(_) => Err("it is not JSON".into()),
            };
        }
        let tables: Tables<'_> = serde_json::from_str(text).map_err(|e| match e.is_eof() {
            true => format!("it ends in the middle ({e}); was the file copied whole?"),
            false => format!("it is not JSON: {e}"),
        })?;
        // Neuron Explorer's table of the same name has other columns.
        let ours = |t: &RawValue| {
            t.get().starts_with('[')
                && ["\"timestamp\"", "\"duration\"", "\"label\""].iter().all(|w| t.get().contains(w))
        };
        if !tables.instruction.is_some_and(ours) {
            return Ok(None);
        }
        // A metadata table of another kind does not invalidate the profile.
        let metadata: Vec<MetadataRow> = rows("metadata", tables.metadata).unwrap_or_default();
        if metadata.iter().any(|row| row.is_simulation) {
            return Err(
                "it is a simulated profile, not one of the hardware; compare reports of `nki-sim run --json`".into()
            );
        }
        build(&tables).map(Some)
    }
}

/// The text of a file with at most [`MOST_BYTES`].
pub(crate) fn text(path: &Path) -> Result<String, String> {
    let cannot = |e: std::io::Error| format!("cannot read `{}`: {e}", path.display());
    let known = std::fs::metadata(path).map_err(cannot)?;
    #[cfg(unix)]
    if std::os::unix::fs::FileTypeExt::is_char_device(&known.file_type()) {
        return Err(format!("`{}` is a device, not a file", path.display()));
    }
    let too_large = |size: String| {
        format!(
            "`{}` has {size}; at most {} GiB are read: capture fewer executions or a part of the program",
            path.display(),
            MOST_BYTES >> 30
        )
    };
    if known.len() > MOST_BYTES {
        return Err(too_large(format!("{:.1} GiB", known.len() as f64 / f64::from(1 << 30))));
    }
    let _announced = (!known.is_file()).then(|| Announced::of(path));
    let mut text = String::new();
    // A pipe has no length, and may be endless.
    let read = File::open(path).and_then(|file| file.take(MOST_BYTES + 1).read_to_string(&mut text));
    let read = read.map_err(|e| match e.kind() {
        std::io::ErrorKind::InvalidData => format!("`{}` is not a text file", path.display()),
        _ => cannot(e),
    })?;
    if read as u64 > MOST_BYTES {
        return Err(too_large(format!("more than {} GiB", MOST_BYTES >> 30)));
    }
    // Some editors insert a byte order mark.
    Ok(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    })
}

/// Prints a notice after a while that the command is waiting for a pipe: without a writer, it would wait silently forever.
struct Announced(#[expect(dead_code, reason = "dropped when the pipe has been read")] Sender<()>);

impl Announced {
    fn of(path: &Path) -> Self {
        let (over, waited) = std::sync::mpsc::channel();
        let text = format!("waiting for a process that writes to `{}`\n", path.display());
        std::thread::spawn(move || {
            if waited.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                eprint(&text);
            }
        });
        Announced(over)
    }
}

fn build(tables: &Tables<'_>) -> Result<HardwareProfile, String> {
    let mut notes = Vec::new();
    let mut cores: BTreeMap<String, Core> = BTreeMap::new();
    let of = |name: String| Core { name, ..Core::default() };
    let mut latest = 0;
    instructions(tables, &mut cores, &mut latest, &mut notes)?;
    for (i, row) in rows::<PacketRow>("dma", tables.dma)?.into_iter().enumerate() {
        let (Some(start), Some(length)) = (row.timestamp.time(), row.duration.time()) else {
            return Err(format!("record {i} of table `dma` has no time in `timestamp` or `duration`"));
        };
        let kind = match row.queue_type.as_str() {
            "software_dynamic" => PacketKind::Software,
            "hardware_dynamic" => PacketKind::Hardware,
            "instruction" => PacketKind::Instruction,
            _ => PacketKind::Other,
        };
        let packet = Packet {
            queue: row.dma_queue.index().unwrap_or(u32::MAX),
            engine: row.dma_engine.index().unwrap_or(u32::MAX),
            kind,
            bytes: row.transfer_size.0.filter(|x| (0.0..=1e15).contains(x)).unwrap_or(0.0) as u64,
            start,
            end: start + length,
        };
        latest = latest.max(packet.end);
        cores.entry(row.subgraph.clone()).or_insert_with(|| of(row.subgraph)).packets.push(packet);
    }
    for row in rows::<SemaphoreRow>("semaphore_update", tables.semaphore_update)? {
        // `S[5] (Tensor)`, or the number alone.
        let digits: String = row.id.trim_start_matches("S[").chars().take_while(char::is_ascii_digit).collect();
        let (Some(at), Ok(id), Some(value)) = (row.timestamp.time(), digits.parse(), row.value.0) else { continue };
        cores.entry(row.subgraph.clone()).or_insert_with(|| of(row.subgraph)).semaphores.push((at, id, value as i64));
    }
    for row in rows::<LimiterRow>("ham", tables.ham)? {
        let (Some(at), Some(length), Some(k), Some(n)) = (row.timestamp.time(), row.duration.time(), row.k.0, row.n.0)
        else {
            continue;
        };
        cores.entry(row.subgraph.clone()).or_insert_with(|| of(row.subgraph)).limiter.push((at, length, k >= n));
    }
    for row in rows::<QueueRow>("dma_queues_info", tables.dma_queues_info)? {
        let Some(index) = row.q_idx.index() else { continue };
        let core = cores.entry(row.subgraph.clone()).or_insert_with(|| of(row.subgraph));
        core.queues.entry(index).or_insert(row.q_name);
    }
    for core in cores.values_mut() {
        core.packets.sort_by_key(|p| p.start);
        core.semaphores.sort_by_key(|s| s.0);
        core.limiter.sort_by_key(|l| l.0);
    }
    let summaries = rows::<serde_json::Map<String, serde_json::Value>>("summary", tables.summary)?;
    let first = summaries.into_iter().next().unwrap_or_default();
    let summary: BTreeMap<String, f64> =
        first.iter().filter_map(|(k, v)| v.as_f64().filter(|x| x.is_finite()).map(|x| (k.clone(), x))).collect();
    let total = match summary.get("total_time").map(|s| Number(Some(s * 1e9)).time()) {
        Some(Some(t)) if t > 0 => t,
        _ => {
            notes.push("it has no total time; the end of the last record is used instead".into());
            latest
        }
    };
    notes.extend(
        rows::<WarningRow>("warnings", tables.warnings)?.into_iter().map(|w| format!("profiler: {}", w.message)),
    );
    let instance = first.get("instance_type").and_then(|v| v.as_str()).map(str::to_owned);
    Ok(HardwareProfile { cores: cores.into_values().collect(), summary, instance, total, notes })
}

/// The table of instructions, into the queues of their cores.
fn instructions(
    tables: &Tables<'_>,
    cores: &mut BTreeMap<String, Core>,
    latest: &mut Ns,
    notes: &mut Vec<String>,
) -> Result<(), String> {
    let list = rows::<InstructionRow>("instruction", tables.instruction)?;
    if list.is_empty() {
        return Err("table `instruction` is empty".into());
    }
    // The profiler assigns types to the program's instructions only, not to the runtime's.
    let typed = list.iter().any(|r| !r.instruction_type.trim().is_empty());
    let mut foreign: BTreeMap<String, usize> = BTreeMap::new();
    for (i, row) in list.into_iter().enumerate() {
        let (Some(start), Some(length)) = (row.timestamp.time(), row.duration.time()) else {
            return Err(format!("record {i} of table `instruction` has no time in `timestamp` or `duration`"));
        };
        *latest = (*latest).max(start + length);
        let Some(engine) = engine(&row.label) else {
            *foreign.entry(row.label).or_insert(0) += 1;
            continue;
        };
        let operands = Operands::parse(&row.operands);
        let of_kernel = if typed {
            !row.instruction_type.trim().is_empty()
        } else {
            !operands.of_runtime && !RUNTIME.contains(&row.opcode.as_str())
        };
        let instruction = Instruction {
            engine,
            of_kernel,
            transpose: row.instruction_type.eq_ignore_ascii_case("TRANSPOSE"),
            function: row.activation_fn,
            start,
            end: start + length,
            wait: row.evt_wait_time.time().unwrap_or(0),
            pc: row.pc.0.map_or(0, |x| x as i64),
            opcode: row.opcode,
            operands,
        };
        let core = cores.entry(row.subgraph.clone()).or_insert_with(|| Core { name: row.subgraph, ..Core::default() });
        core.instructions.push(instruction);
    }
    for (label, n) in foreign {
        notes.push(format!("{} of `{label}`, an engine that is not modelled, are left out", crate::count(n, "record")));
    }
    for core in cores.values_mut() {
        in_queue_order(&mut core.instructions);
    }
    Ok(())
}

/// Instructions of the runtime around a program, for profiles that do not mark the program's instructions.
const RUNTIME: [&str; 9] = [
    "WRITE",
    "DRAIN",
    "NOTIFY",
    "TENSOR_LOAD",
    "COMPARE_BRANCH",
    "SET_ORDERING_MODE",
    "EVENT_SEMAPHORE_RANGE_CLEAR",
    "NOP",
    "HALT",
];

fn engine(label: &str) -> Option<Engine> {
    Some(match label.to_ascii_lowercase().as_str() {
        // Weight loads and passes are on separate tracks.
        "tensor" | "tensormatrix" => Engine::Tensor,
        "vector" => Engine::Vector,
        "scalar" => Engine::Scalar,
        "gpsimd" => Engine::GpSimd,
        "sync" => Engine::Sync,
        _ => return None,
    })
}

/// Sorts instructions by queue, in queue order: by program counter without loops, else by time.
fn in_queue_order(list: &mut [Instruction]) {
    let number = |e: Engine| Engine::QUEUES.iter().position(|q| *q == e);
    list.sort_by_key(|i| (number(i.engine), i.start, i.pc));
    for queue in list.chunk_by_mut(|a, b| a.engine == b.engine) {
        let mut counters: Vec<i64> = queue.iter().map(|i| i.pc).collect();
        counters.sort_unstable();
        if counters.windows(2).all(|w| w[0] != w[1]) {
            queue.sort_by_key(|i| i.pc);
        }
    }
}
