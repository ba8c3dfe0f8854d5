//! The numbers of the timing model, from `params/<target>.toml`; each has a value, a unit, a source and a confidence.

use nki_isa::Target;
use nki_isa::names::Named as _;
pub use nki_isa::schema::Confidence;
use rustc_hash::FxHashMap;
use serde::Deserialize;

/// Parses a confidence as spelled in the files.
fn confidence<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Confidence, D::Error> {
    let name = String::deserialize(from)?;
    Confidence::from_name(&name).ok_or_else(|| {
        let all: Vec<_> = Confidence::ALL.iter().map(|c| c.name()).collect();
        serde::de::Error::custom(format!("confidence `{name}` is not one of {}", all.join(", ")))
    })
}

/// A parameter.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Param<T = f64> {
    /// The value, in `unit`.
    pub value: T,
    /// Its unit.
    pub unit: String,
    /// The source of the value.
    pub source: String,
    /// How well the value is supported.
    #[serde(deserialize_with = "confidence")]
    pub confidence: Confidence,
}

/// Parameters that instructions name (see [`nki_isa::work::Law`]).
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(transparent)]
pub struct Rows(FxHashMap<String, Param>);

impl Rows {
    /// The parameter of this name.
    ///
    /// # Panics
    /// If there is none: an instruction names a row that is missing in the parameter files (`tests/arch.rs` finds these).
    pub fn row(&self, name: &str) -> &Param {
        self.0.get(name).unwrap_or_else(|| panic!("the timing parameters have no row `{name}`"))
    }
}

macro_rules! sections {
    ($($(#[$doc:meta])* pub struct $Name:ident { $($field:ident: $ty:ty,)* })*) => {
        $($(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $Name {
            $(#[doc = concat!("`", stringify!($field), "`: see the parameter files for unit and source.")] pub $field: $ty,)*
        })*
    };
}

sections! {
    /// Time outside the instructions.
    pub struct Kernel { measure: Param<String>, head_us: Param, neuronxcc_head_us: Param, device_head_us: Param, pair_us: Param, tail_us: Param, }
    /// The compiler's scheduling of the program.
    pub struct Compiler { tensor_window: Param, compute_window: Param, latency_window: Param, trigger_window: Param, transfer_window: Param, dma_window: Param, trigger_estimate: Param, dma_latency_us: Param, fp32_estimate: Param, fp32_transpose_cycles_per_row: Param, }
    /// Semaphores between engines.
    pub struct Sync { engine_ns: Rows, dma_ns: Rows, }
    /// The cores of a logical core: barrier, and GpSimd's own DMA engine between them.
    pub struct Cores { barrier_ns: Param, gpsimd_dma_ns: Param, gpsimd_dma_bytes_per_ns: Param, hbm_bytes_per_ns: Param, hbm_descriptor_ns: Param, hbm_apart: Param, hbm_apart_bytes: Param, }
    /// Collectives of ranks in one instance.
    pub struct Collectives {
        trigger_ns: Param, hop_us: Param, reduction_us: Param, link_bytes_per_ns: Param, mesh_bytes_per_ns: Param, rdh_bytes_per_ns: Param,
        ring_bytes_per_ns: Param, mesh_max_bytes: Param, rdh_max_bytes: Param,
    }
    /// Dynamic control flow and sequencer instructions.
    pub struct Control { loop_iteration_us: Param, branch_ns: Param, register_move_ns: Param, register_load_ns: Param, register_load_hbm_ns: Param, register_store_ns: Param, }
    /// The tensor engine.
    pub struct Tensor {
        clock_ghz: Param, min_columns: Param, weight_load_cycles: Param, cycles_per_row: Param, fp32_cycles_per_row: Param, fp32_weight_loads: Param,
        fp32_transpose_cycles_per_row: Param, transpose_cycles_per_row: Param, onezero_factor: Param, mixed_8bit_factor: Param, issue_overhead_ns: Param, drain_ns: Param,
        fp32_drain_ns: Param, stride_sector_bytes: Param, stride_factor: Param, limiter_rate: Param, limiter_period_ns: Param,
        limiter_release: Param, limiter_engage: Param,
    }
    /// The vector engine.
    pub struct Vector {
        clock_ghz: Param, min_cycles: Param, issue_overhead_cycles: Param, transpose_issue_cycles: Param, operand_cycles: Param, stride_bytes: Param, stride_factor: Param, port: Param<String>, psum_port: Param<String>,
        cycles: Rows, fixed_ns: Rows,
    }
    /// The scalar engine.
    pub struct Scalar {
        clock_ghz: Param, min_cycles: Param, issue_overhead_ns: Param, issue_overhead_psum_ns: Param, cycles_per_element: Param,
        cycles_per_element_16bit: Param,
        activation_fixed_ns: Param, copy_fixed_ns: Param, copy_psum_fixed_ns: Param, vector_operand_ns: Param, accumulator_issue_ns: Param,
        stride_bytes: Param, stride_factor: Param, table_load_ns: Param, tables: Param<Vec<Vec<String>>>,
        free_functions: Param<Vec<String>>,
    }
    /// The GpSimd engine.
    pub struct GpSimd {
        clock_ghz: Param, fixed_cycles: Param, cycles_per_element: Param, two_input_factor: Param, completion_ns: Param, cycles: Rows,
    }
    /// DMA queues and engines.
    pub struct Dma {
        engines: Param, partitions_per_engine: Param, bytes_per_ns: Param, descriptor_ns: Param, least_packet_ns: Param, onchip_packet_ns: Param,
        packet_bytes: Param, efficient_bytes: Param, load_dispatch_ns: Param, load_payload_ns: Param, load_notify_ns: Param,
        load_tail_ns: Param, load_tail_bytes: Param,
        store_dispatch_ns: Param, store_payload_ns: Param, store_notify_ns: Param, hardware_trigger_ns: Param, software_trigger_ns: Param, neuronxcc_trigger_ns: Param,
        indirect_trigger_ns: Param, indirect_row_ns: Param, static_trigger_ns: Param, profile_trigger_ns: Param, software_dispatch_ns: Param,
        strided_store_ns: Param, scattered_run_ns: Param, scattered_stride_bytes: Param, transpose_slowdown: Param, wide_transpose_slowdown: Param, onchip_transpose_slowdown: Param,
        load_queues: Param<Vec<String>>, store_queues: Param<Vec<String>>, onchip_queues: Param<Vec<String>>, hardware_queues: Param<Vec<String>>,
    }
    /// All numbers of one generation, by section.
    pub struct Values {
        kernel: Kernel, compiler: Compiler, sync: Sync, cores: Cores, collectives: Collectives, control: Control, tensor: Tensor,
        vector: Vector, scalar: Scalar, gpsimd: GpSimd, dma: Dma,
    }
}

/// A parameter that cannot be set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParamError {
    /// No such name.
    #[error("no timing parameter `{name}`{}", if near.is_empty() { String::new() } else { format!("; did you mean `{near}`?") })]
    Unknown {
        /// The requested name.
        name: String,
        /// A similar one, or empty.
        near: String,
    },
    /// The value does not fit.
    #[error("timing parameter `{name}` cannot be `{value}`: {reason}")]
    Value {
        /// The parameter.
        name: String,
        /// The rejected value.
        value: String,
        /// The reason for the rejection.
        reason: String,
    },
    /// A parameter file does not parse.
    #[error("timing parameters: {0}")]
    File(String),
}

/// The text of a generation's parameter file.
pub fn source(target: Target) -> &'static str {
    match target {
        Target::Trn1 => include_str!("params/trn1.toml"),
        Target::Trn2 => include_str!("params/trn2.toml"),
        Target::Trn3 => include_str!("params/trn3.toml"),
    }
}

/// The parameters of one generation. Derefs to [`Values`].
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    target: Target,
    table: toml::Table,
    values: Values,
    changed: bool,
}

impl std::ops::Deref for Params {
    type Target = Values;
    fn deref(&self) -> &Values {
        &self.values
    }
}

impl Params {
    /// The parameters of a generation.
    pub fn of(target: Target) -> Params {
        // The three files are compiled in; a test loads each.
        Self::parse(target, source(target)).unwrap_or_else(|e| panic!("parameters of {target}: {e}"))
    }

    /// Parameters from the text of a file.
    ///
    /// # Errors
    /// If a key is unknown or missing, or a value is of the wrong kind or out of range.
    pub fn parse(target: Target, text: &str) -> Result<Params, ParamError> {
        let table: toml::Table = text.parse().map_err(|e| ParamError::File(format!("{e}")))?;
        let values: Values = table.clone().try_into().map_err(|e| ParamError::File(format!("{e}")))?;
        let params = Params { target, table, values, changed: false };
        for name in names_of(&params.table) {
            if let Some(Param { value: toml::Value::Float(v), unit, .. }) = params.get(&name) {
                check(&name, &unit, v)?;
            }
        }
        Ok(params)
    }

    /// The generation.
    pub fn target(&self) -> Target {
        self.target
    }

    /// Whether a parameter other than `kernel.measure` was set, so that the model differs from the files.
    pub fn is_changed(&self) -> bool {
        self.changed
    }

    /// The parameters whose values differ from those in `base`, by name, each with both values: here and in `base`.
    pub fn differences(&self, base: &Params) -> Vec<(String, toml::Value, toml::Value)> {
        let value = |of: &Params, name: &str| of.get(name).map(|param| param.value);
        let changed = |name: String| {
            let (own, other) = (value(self, &name)?, value(base, &name)?);
            (own != other).then_some((name, own, other))
        };
        names_of(&self.table).into_iter().filter_map(changed).collect()
    }

    /// Changes one parameter, for example `tensor.clock_ghz` to `2.8`. Lists are written as in TOML. The parameter's confidence becomes assumed.
    ///
    /// # Errors
    /// If the name is unknown or the value is of the wrong kind or out of range.
    pub fn set_text(&mut self, name: &str, value: &str) -> Result<(), ParamError> {
        set(&mut self.table, name, value)?;
        self.values = self.table.clone().try_into().map_err(|e| ParamError::Value {
            name: name.to_string(),
            value: value.to_string(),
            reason: format!("{e}"),
        })?;
        self.changed |= name != "kernel.measure";
        Ok(())
    }

    /// The parameters for a `neuronxcc.nki` program: its profile starts after `kernel.neuronxcc_head_us`, and GpSimd takes `dma.neuronxcc_trigger_ns`
    /// for the descriptors of a transfer, also in a profile. A changed `kernel.head_us` or `dma.software_trigger_ns` is kept.
    #[must_use]
    pub fn for_neuronxcc(mut self) -> Params {
        let default = Params::of(self.target);
        if self.kernel.head_us == default.kernel.head_us {
            self.table["kernel"]["head_us"] = self.table["kernel"]["neuronxcc_head_us"].clone();
            self.values.kernel.head_us = self.values.kernel.neuronxcc_head_us.clone();
        }
        let dma = &mut self.values.dma;
        if dma.software_trigger_ns == default.dma.software_trigger_ns {
            self.table["dma"]["software_trigger_ns"] = self.table["dma"]["neuronxcc_trigger_ns"].clone();
            dma.software_trigger_ns = dma.neuronxcc_trigger_ns.clone();
            self.table["dma"]["profile_trigger_ns"]["value"] = toml::Value::Float(0.0);
            dma.profile_trigger_ns.value = 0.0;
        }
        self
    }

    /// Changes the parameters that a file names. An entry is a value, or a table with a value and optionally its unit (which must be that of the
    /// parameter), source and confidence. The default confidence is assumed. `target = "trn2"` limits the file to one generation.
    ///
    /// # Errors
    /// If the text is not TOML, it is for another generation, a name is unknown, a unit differs, or a value is of the wrong kind or out of range.
    pub fn overlay(&mut self, text: &str) -> Result<(), ParamError> {
        let mut changes: toml::Table = text.parse().map_err(|e| ParamError::File(format!("{e}")))?;
        self.check_target(changes.remove("target"))?;
        let (mut entries, mut table) = (Vec::new(), self.table.clone());
        entries_of("", &changes, &mut entries);
        for (name, value) in entries {
            match value.as_table() {
                None => {
                    let text = match value {
                        toml::Value::String(s) => s.clone(),
                        other => other.to_string(),
                    };
                    set(&mut table, &name, &text)?;
                }
                Some(whole) => {
                    let said = |reason: &str| ParamError::File(format!("`{name}`: {reason}"));
                    if let Some(key) = whole.keys().find(|key| !FIELDS.contains(&key.as_str())) {
                        return Err(said(&format!(
                            "there is no field `{key}`; the fields are value, unit, source and confidence"
                        )));
                    }
                    let value = whole.get("value").ok_or_else(|| said("no field `value`"))?.to_string();
                    set(&mut table, &name, &value)?;
                    let Some(entry) = entry_mut(&mut table, &name) else { continue };
                    if let Some(unit) = whole.get("unit")
                        && let Some(own) = entry.get("unit").filter(|own| *own != unit)
                    {
                        return Err(said(&format!("the unit is {own}, not {unit}: convert the value")));
                    }
                    for key in ["source", "confidence"] {
                        if let Some(v) = whole.get(key) {
                            entry.insert(key.into(), v.clone());
                        }
                    }
                    let whole: Result<Param<toml::Value>, _> = toml::Value::Table(entry.clone()).try_into();
                    whole.map_err(|e| said(e.message()))?;
                }
            }
        }
        self.values = table.clone().try_into().map_err(|e| ParamError::File(format!("{e}")))?;
        self.table = table;
        self.changed = true;
        Ok(())
    }

    /// Checks that a file with this `target` is for this generation.
    fn check_target(&self, target: Option<toml::Value>) -> Result<(), ParamError> {
        let Some(value) = target else { return Ok(()) };
        let Some(own) = value.as_str().and_then(Target::from_name) else {
            return Err(ParamError::File(format!("`target` is {value}; the targets are {}", Target::NAMES)));
        };
        if own != self.target {
            return Err(ParamError::File(format!(
                "they are for {own}, but the target of this run is {}; remove the line `target` to use them nevertheless",
                self.target
            )));
        }
        Ok(())
    }

    /// Changes one number.
    ///
    /// # Errors
    /// As [`Params::set_text`].
    pub fn set(&mut self, name: &str, value: f64) -> Result<(), ParamError> {
        self.set_text(name, &value.to_string())
    }

    /// The parameter with this name.
    pub fn get(&self, name: &str) -> Option<Param<toml::Value>> {
        let mut at = &self.table;
        for part in name.split('.') {
            at = at.get(part)?.as_table()?;
        }
        at.clone().try_into().ok()
    }
}

/// The fields of a parameter in a file.
const FIELDS: [&str; 4] = ["value", "unit", "source", "confidence"];

/// Maximum number of DMA engines in the model.
pub(crate) const MOST_ENGINES: f64 = 64.0;

/// Whether a parameter of this unit is a count.
pub(crate) fn is_whole(unit: &str) -> bool {
    matches!(unit, "engines" | "partitions" | "transfers" | "instructions" | "operations")
}

/// A number for a message, with an exponent where this is shorter.
fn short(value: f64) -> String {
    let plain = value == 0.0 || !value.is_finite() || (1e-6..1e15).contains(&value.abs());
    if plain { value.to_string() } else { format!("{value:e}") }
}

fn check(name: &str, unit: &str, value: f64) -> Result<(), ParamError> {
    let bad = |reason: &str| {
        Err(ParamError::Value { name: name.to_string(), value: short(value), reason: reason.to_string() })
    };
    let divisor = [
        "clock_ghz",
        "bytes_per_ns",
        "engines",
        "limiter_rate",
        "partitions_per_engine",
        "packet_bytes",
        "limiter_period_ns",
        "n_gather_group",
    ]
    .iter()
    .any(|d| name.ends_with(d));
    if !value.is_finite() || value < 0.0 {
        return bad("it must be a number that is not negative");
    }
    if divisor && value == 0.0 {
        return bad("it must be more than 0");
    }
    // Fractions, and engines beyond the 64 bits of a set, would be dropped.
    if is_whole(unit) && (value.fract() != 0.0 || value == 0.0) {
        return bad(&format!("it must be a whole number of {unit}, at least 1"));
    }
    if unit == "engines" && value > MOST_ENGINES {
        return bad(&format!("it must be at most {MOST_ENGINES}"));
    }
    // At slower or faster rates, times do not fit into 64 bits of picoseconds.
    let rate = ["clock_ghz", "bytes_per_ns", "limiter_rate"].iter().any(|r| name.ends_with(r));
    if rate && !(1e-3..=1e6).contains(&value) {
        return bad("it must be between 0.001 and 1000000");
    }
    if name.ends_with("limiter_rate") && value > 1.0 {
        return bad("it is a share of the full rate: it must be at most 1");
    }
    // With shorter periods the limiter would decide millions of times per matmul.
    if name.ends_with("limiter_period_ns") && value < 1.0 {
        return bad("it must be at least 1");
    }
    if name.ends_with("_estimate") && value > 100.0 {
        return bad("it must be at most 100");
    }
    if name.ends_with("slowdown") && value < 0.01 {
        return bad("it must be at least 0.01");
    }
    if value > 1e9 {
        return bad("it must be at most 1e9");
    }
    Ok(())
}

fn set(table: &mut toml::Table, name: &str, value: &str) -> Result<(), ParamError> {
    let unknown = || ParamError::Unknown { name: name.to_string(), near: nearest(name) };
    let at = entry_mut(table, name).ok_or_else(unknown)?;
    let old = at.get("value").ok_or_else(unknown)?;
    let bad = |reason: String| ParamError::Value { name: name.to_string(), value: value.to_string(), reason };
    let new = match old {
        toml::Value::Float(_) => {
            let v: f64 = value.parse().map_err(|_| bad("it must be a number".into()))?;
            check(name, at.get("unit").and_then(toml::Value::as_str).unwrap_or_default(), v)?;
            toml::Value::Float(v)
        }
        toml::Value::String(_) => toml::Value::String(value.trim_matches('"').to_string()),
        _ => format!("v = {value}")
            .parse::<toml::Table>()
            .ok()
            .and_then(|mut t| t.remove("v"))
            .ok_or_else(|| bad("it must be a list, such as [\"sync\"]".into()))?,
    };
    at.insert("value".into(), new);
    at.insert("source".into(), toml::Value::String("set for this run".into()));
    at.insert("confidence".into(), toml::Value::String("assumed".into()));
    Ok(())
}

fn entry_mut<'t>(table: &'t mut toml::Table, name: &str) -> Option<&'t mut toml::Table> {
    let mut at = table;
    for part in name.split('.') {
        at = at.get_mut(part).and_then(|v| v.as_table_mut())?;
    }
    Some(at)
}

/// The entries of an overlay file: values, and tables with a value.
fn entries_of<'t>(prefix: &str, table: &'t toml::Table, out: &mut Vec<(String, &'t toml::Value)>) {
    for (key, value) in table {
        let name = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        match value.as_table() {
            Some(inner) if !inner.contains_key("value") => entries_of(&name, inner, out),
            _ => out.push((name, value)),
        }
    }
}

/// All names, in alphabetical order.
pub fn names(target: Target) -> Vec<String> {
    source(target).parse().map_or_else(|_| Vec::new(), |t| names_of(&t))
}

fn names_of(table: &toml::Table) -> Vec<String> {
    fn walk(prefix: &str, table: &toml::Table, out: &mut Vec<String>) {
        for (key, value) in table {
            let Some(inner) = value.as_table() else { continue };
            let name = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
            if inner.get("value").is_some_and(|v| !v.is_table()) {
                out.push(name);
            } else {
                walk(&name, inner, out);
            }
        }
    }
    let mut out = Vec::new();
    walk("", table, &mut out);
    out.sort();
    out
}

fn nearest(name: &str) -> String {
    let last = name.rsplit('.').next().unwrap_or(name);
    let all = names(Target::DEFAULT);
    let find = |f: &dyn Fn(&str) -> bool| all.iter().find(|n| f(n)).cloned();
    find(&|n| n.starts_with(name))
        .or_else(|| find(&|n| n.rsplit('.').next() == Some(last)))
        .or_else(|| find(&|n| last.len() > 3 && n.contains(last)))
        .or_else(|| nki_diag::slugs::nearest_of(name, all.iter().map(String::as_str)).map(str::to_owned))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_says_what_it_is() {
        for target in [Target::Trn1, Target::Trn2, Target::Trn3] {
            let params = Params::of(target);
            let names = names(target);
            assert!(names.len() > 100);
            for name in names {
                let p = params.get(&name).unwrap();
                assert!(!p.unit.is_empty() && !p.source.is_empty(), "{name}");
            }
        }
    }

    #[test]
    fn neuronxcc_has_a_start_of_its_own() {
        let head = |p: Params| p.for_neuronxcc().get("kernel.head_us").and_then(|p| p.value.as_float());
        let mut p = Params::of(Target::Trn2);
        assert_eq!(head(p.clone()), Some(p.kernel.neuronxcc_head_us.value));
        assert!(p.kernel.neuronxcc_head_us.value > p.kernel.head_us.value);
        p.set("kernel.neuronxcc_head_us", 12.0).unwrap();
        assert_eq!(head(p.clone()), Some(12.0));
        p.set("kernel.head_us", 20.0).unwrap();
        assert_eq!(head(p), Some(20.0), "what the user sets");
    }

    #[test]
    fn neuronxcc_has_descriptors_of_its_own() {
        let numbers = |p: Params| {
            let p = p.for_neuronxcc();
            ["dma.software_trigger_ns", "dma.profile_trigger_ns"]
                .map(|name| p.get(name).and_then(|p| p.value.as_float()))
        };
        let mut p = Params::of(Target::Trn2);
        assert_eq!(numbers(p.clone()), [Some(p.dma.neuronxcc_trigger_ns.value), Some(0.0)]);
        p.set("dma.neuronxcc_trigger_ns", 500.0).unwrap();
        assert_eq!(numbers(p.clone()), [Some(500.0), Some(0.0)]);
        p.set("dma.profile_trigger_ns", 20.0).unwrap();
        assert_eq!(numbers(p.clone()), [Some(500.0), Some(0.0)], "measured under a profiler");
        p.set("dma.software_trigger_ns", 800.0).unwrap();
        assert_eq!(numbers(p), [Some(800.0), Some(20.0)], "what the user sets");
    }

    #[test]
    fn generations_have_the_same_names() {
        assert_eq!(names(Target::Trn1), names(Target::Trn2));
        assert_eq!(names(Target::Trn3), names(Target::Trn2));
    }

    #[test]
    fn changes_are_checked() {
        let mut p = Params::of(Target::Trn2);
        p.set("tensor.clock_ghz", 2.8).unwrap();
        assert_eq!((p.tensor.clock_ghz.value, p.tensor.clock_ghz.confidence), (2.8, Confidence::Assumed));
        p.set_text("dma.load_queues", "[\"sync\", \"scalar\"]").unwrap();
        assert_eq!(p.dma.load_queues.value.len(), 2);
        assert!(p.set("tensor.clock_ghz", 0.0).is_err());
        for value in [1e-15, 1e-12, 9e-4, 2e6] {
            let e = p.set("vector.clock_ghz", value).unwrap_err().to_string();
            assert!(e.ends_with("it must be between 0.001 and 1000000"), "{e}");
        }
        assert!(p.set("tensor.clock_ghz", f64::NAN).is_err());
        assert!(p.set("tensor.limiter_period_ns", 0.5).is_err());
        assert!(p.set("compiler.trigger_estimate", 101.0).is_err());
        assert!(p.set_text("dma.load_queues", "sync").is_err());
        let e = p.set("tensor.clock", 1.0).unwrap_err();
        assert_eq!(e.to_string(), "no timing parameter `tensor.clock`; did you mean `tensor.clock_ghz`?");
        assert_eq!(nearest("tensor.clock_gz"), "tensor.clock_ghz");
    }

    #[test]
    fn differences_are_named() {
        let base = Params::of(Target::Trn2);
        let mut p = base.clone();
        assert!(p.differences(&base).is_empty());
        p.set("tensor.clock_ghz", 2.8).unwrap();
        p.set_text("dma.load_queues", "[\"scalar\"]").unwrap();
        // The same value is no difference.
        p.set("kernel.tail_us", base.kernel.tail_us.value).unwrap();
        let names: Vec<_> = p.differences(&base).into_iter().map(|(name, ..)| name).collect();
        assert_eq!(names, ["dma.load_queues", "tensor.clock_ghz"]);
    }

    #[test]
    fn a_file_changes_what_it_names() {
        let mut p = Params::of(Target::Trn2);
        p.overlay("tensor.clock_ghz = 2.8\n[dma]\nload_queues = [\"scalar\"]\n[kernel]\ntail_us = { value = 1, unit = \"us\", source = \"s\", confidence = \"measured\" }")
            .unwrap();
        assert_eq!((p.tensor.clock_ghz.value, p.tensor.clock_ghz.confidence), (2.8, Confidence::Assumed));
        assert_eq!((p.kernel.tail_us.value, p.kernel.tail_us.confidence), (1.0, Confidence::Measured));
        assert_eq!(p.dma.load_queues.value, ["scalar"]);
        assert_eq!(p.sync, Params::of(Target::Trn2).sync);
        for wrong in [
            "tensor.clock = 1",
            "tensor.clock_ghz = 0",
            "tensor.clock_ghz = \"a\"",
            "tensor = 1",
            "x",
            "dma.descriptor_ns = { value = 1, unit = \"us\" }",
            "dma.descriptor_ns = { value = 1, units = \"ns\" }",
            "dma.descriptor_ns = { value = 1, confidence = \"sure\" }",
            "dma.descriptor_ns = { unit = \"ns\" }",
            "target = \"trn1\"\ntensor.clock_ghz = 2.8",
            "target = \"trn9\"",
            "target = 2",
        ] {
            assert!(p.overlay(wrong).is_err(), "{wrong}");
        }
        p.overlay("target = \"trn2\"\ntensor.clock_ghz = { value = 2.4, source = \"a run\" }").unwrap();
        let clock = &p.tensor.clock_ghz;
        assert_eq!(
            (clock.value, &*clock.unit, &*clock.source, clock.confidence),
            (2.4, "GHz", "a run", Confidence::Assumed)
        );
        Params::of(Target::Trn1).overlay(source(Target::Trn2)).unwrap();
    }

    #[test]
    fn unknown_keys_are_refused() {
        let text = source(Target::Trn2).replace("min_columns", "minimum_columns");
        assert!(Params::parse(Target::Trn2, &text).is_err());
    }
}
