//! Intermediate values: results of instructions during a run.

use nki_isa::Program;
use nki_isa::inst::Footprint;
use nki_isa::names::Named;
use nki_isa::program::{Node, NodeKind};
use nki_sim_core::Buffer;
use nki_sim_core::exec::{Extent, Moment, Observed, Observer};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use rustc_hash::{FxHashMap, FxHashSet};
use std::path::Path;
use std::sync::Arc;

use crate::arrays::Memory;
use crate::cache::Compiled;
use crate::errors::ours;

/// Which values a run keeps.
#[derive(Debug, Clone, FromPyObject)]
pub(crate) struct Wanted {
    /// Tensors by name; all if empty.
    names: Vec<String>,
    /// Lines, each with an optional path suffix of its file; all if empty.
    lines: Vec<(Option<String>, u32)>,
    /// Maximum total bytes of all values.
    limit: u64,
}

impl Wanted {
    fn has_name(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|n| n == name)
    }

    fn has_line(&self, program: &Program, node: &Node) -> bool {
        let is = |(file, line): &(Option<String>, u32)| {
            node.loc.line == *line && file.as_ref().is_none_or(|f| Path::new(file_of(program, node)).ends_with(f))
        };
        self.lines.is_empty() || self.lines.iter().any(is)
    }

    /// Rejects names and lines that no instruction of the programs writes.
    ///
    /// # Errors
    /// The name or line, with the available ones.
    fn check(&self, py: Python<'_>, programs: &[&Program]) -> PyResult<()> {
        let (mut names, mut lines) = (FxHashSet::default(), self.lines.clone());
        for program in programs {
            each_write(program, &mut |node, name| {
                names.insert(name.to_owned());
                lines.retain(|one| {
                    let alone = Wanted { names: Vec::new(), lines: vec![one.clone()], limit: 0 };
                    !alone.has_line(program, node)
                });
            });
        }
        if let Some(unknown) = self.names.iter().find(|name| !names.contains(*name)) {
            let mut known: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
            known.sort();
            let message = format!("no instruction writes a tensor `{unknown}`; they write {}", known.join(", "));
            return Err(ours(py, "ArgumentError", &message));
        }
        if let Some((file, line)) = lines.first() {
            let file = file.as_ref().map_or_else(String::new, |f| format!(" of {f}"));
            return Err(ours(py, "ArgumentError", &format!("no instruction at line {line}{file} writes a tensor")));
        }
        Ok(())
    }
}

fn file_of<'p>(program: &'p Program, node: &Node) -> &'p str {
    program.files.get(node.loc.file as usize).map_or("", |f| &**f)
}

fn each_write(program: &Program, each: &mut dyn FnMut(&Node, &str)) {
    program.visit(&mut |node| {
        let NodeKind::Inst(inst) = &node.kind else { return };
        let mut footprint = Footprint::default();
        inst.footprint(&mut footprint);
        for view in &footprint.writes {
            each(node, &program.tensor(view.tensor).name);
        }
    });
}

/// A tensor after an instruction.
#[derive(Debug)]
pub(crate) struct Value {
    observed: Observed,
    tensor: String,
    core: u32,
    file: String,
    line: u32,
    instruction: &'static str,
    /// `name=` of the instruction, or empty.
    name: String,
    /// Number of earlier values of tensors of this name that the core has written at this line.
    execution: usize,
    /// Unrolled loops by variable, followed by dynamic loops by line; outermost first.
    iterations: Vec<(String, i64)>,
}

impl Value {
    /// The keywords of `nki_sim._values.Value`.
    fn into_dict(self, py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        let dict = PyDict::new(py);
        let bytes = |bytes: Vec<u8>| Py::new(py, Memory(Buffer::from(bytes)));
        dict.set_item("memory", bytes(self.observed.bytes())?)?;
        dict.set_item("shape", PyTuple::new(py, &self.observed.shape)?)?;
        dict.set_item("dtype", self.observed.dtype().name())?;
        let unwritten = &self.observed.unwritten;
        if !unwritten.is_empty() {
            dict.set_item("unwritten", bytes(unwritten.iter().map(|&u| u8::from(u)).collect())?)?;
        }
        dict.set_item("tensor", self.tensor)?;
        dict.set_item("core", self.core)?;
        dict.set_item("file", self.file)?;
        dict.set_item("line", self.line)?;
        dict.set_item("instruction", self.instruction)?;
        dict.set_item("name", self.name)?;
        dict.set_item("execution", self.execution)?;
        dict.set_item("iterations", self.iterations)?;
        Ok(dict)
    }
}

/// Records the values of a rank.
pub(crate) struct Recorder<'p> {
    program: &'p Program,
    wanted: &'p Wanted,
    values: Vec<Value>,
    /// Number of values so far by core, file, line and name: each iteration of an unrolled loop may have its own tensor.
    executions: FxHashMap<(u32, u32, u32, Arc<str>), usize>,
    bytes: u64,
    limit: u64,
    /// Whether a value exceeded the limit.
    full: bool,
}

/// A recorder per rank; `None` if no values are requested.
///
/// # Errors
/// If no instruction of the ranks writes a requested name or line.
pub(crate) fn recorders<'p>(
    py: Python<'_>,
    ranks: &[&'p Compiled],
    wanted: Option<&'p Wanted>,
) -> PyResult<Vec<Recorder<'p>>> {
    let Some(wanted) = wanted else { return Ok(Vec::new()) };
    let programs: Vec<&Program> = ranks.iter().map(|r| &r.ready.kernel.program).collect();
    wanted.check(py, &programs)?;
    Ok(programs.into_iter().map(|program| Recorder::new(program, wanted, ranks.len())).collect())
}

impl<'p> Recorder<'p> {
    /// For a run of a program, one of several ranks that share the limit.
    fn new(program: &'p Program, wanted: &'p Wanted, ranks: usize) -> Self {
        let limit = wanted.limit / ranks as u64;
        Recorder { program, wanted, values: Vec::new(), executions: FxHashMap::default(), bytes: 0, limit, full: false }
    }

    /// The values as a list of dicts, unless they exceeded the limit.
    ///
    /// # Errors
    /// If they did.
    pub(crate) fn finish(self, py: Python<'_>) -> PyResult<Py<PyList>> {
        if !self.full {
            let values = self.values.into_iter().map(|value| value.into_dict(py)).collect::<PyResult<Vec<_>>>()?;
            return Ok(PyList::new(py, values)?.unbind());
        }
        let message = format!(
            "the values of intermediates take more than {} KiB, after {} of them; name the tensors or lines that are needed \
             (trace_values(kernel, names=[...], lines=[...])), or raise the limit with nki_sim.configure(max_memory=...)",
            self.limit >> 10,
            self.values.len()
        );
        Err(ours(py, "ArgumentError", &message))
    }
}

impl Observer for Recorder<'_> {
    fn wants(&mut self, moment: &Moment<'_>) -> Option<Extent> {
        let tensor = self.program.tensor(moment.tensor);
        if self.full || !self.wanted.has_name(&tensor.name) || !self.wanted.has_line(self.program, moment.node) {
            return None;
        }
        let elements: u64 = tensor.shape.iter().map(|&n| u64::from(n)).product();
        self.bytes += elements * tensor.dtype.size() as u64;
        self.full = self.bytes > self.limit;
        (!self.full).then_some(Extent::Tensor)
    }

    fn value(&mut self, moment: &Moment<'_>, value: Observed) {
        let (program, node) = (self.program, moment.node);
        let NodeKind::Inst(inst) = &node.kind else { return };
        let name = program.tensor(moment.tensor).name.clone();
        let place = (moment.core, node.loc.file, node.loc.line, name);
        let executions = self.executions.entry(place).or_default();
        let unrolled = program.iterations(node.trail).into_iter().map(|(variable, i)| (variable.to_owned(), i));
        let repeated = moment.loops.iter().map(|(loc, i)| (format!("line {}", loc.line), i64::from(*i)));
        self.values.push(Value {
            tensor: program.tensor(moment.tensor).name.to_string(),
            core: moment.core,
            file: file_of(program, node).to_owned(),
            line: node.loc.line,
            instruction: inst.schema().name,
            name: node.tag.map_or_else(String::new, |tag| program.tags[tag.0 as usize].name.to_string()),
            execution: *executions,
            iterations: unrolled.chain(repeated).collect(),
            observed: value,
        });
        *executions += 1;
    }
}
