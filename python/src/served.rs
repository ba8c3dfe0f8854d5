//! Programs that other runtimes call by name: XLA, for kernels inside `jax.jit`.
//!
//! A program's name is a hash of its text, so that a compiled graph that outlives the process (jax can keep them on disk) either
//! finds the same program or none. Programs are kept until the process ends: a compiled graph may call them at any time.

use std::sync::{Arc, PoisonError, RwLock};

use nki_diag::{ColorChoice, Diagnostic, render_all};
use nki_sim::findings::denied_text;
use nki_sim::session::{Session, Stop};
use nki_sim_core::HostTensor;
use pyo3::prelude::*;
use pyo3::types::PyModule;
use rustc_hash::FxHashMap;

use crate::cache::{Compiled, Ready};
use crate::threads::in_this_process;
use crate::xla::{self, Call};

static PROGRAMS: RwLock<Option<FxHashMap<String, Served>>> = RwLock::new(None);

#[derive(Clone)]
struct Served {
    ready: Arc<Ready>,
    session: Session,
}

/// Stores the program under this name. Reads `NKI_PRECISE_FP` now. The levels of findings are those of its last trace.
#[pyfunction]
pub(crate) fn serve(name: String, compiled: &Compiled) -> PyResult<()> {
    let served = Served { ready: compiled.ready.clone(), session: compiled.session()? };
    let mut programs = PROGRAMS.write().unwrap_or_else(PoisonError::into_inner);
    let known = programs.get_or_insert_default().entry(name).or_insert_with(|| served.clone());
    known.session.judge = served.session.judge;
    drop(programs);
    Ok(())
}

/// Runs the program named by the attribute `program`: its inputs are the first arguments, its outputs the results. The other arguments are
/// the results of the documented custom call, which computes nothing. Does not need the interpreter.
///
/// # Errors
/// As text: an unknown program, mismatched operands, the rendered diagnostics of a kernel that faults.
pub(crate) fn run(call: Call<'_>) -> Result<(), String> {
    let name = call.text("program").ok_or("the custom call names no program")?;
    let served =
        PROGRAMS.read().unwrap_or_else(PoisonError::into_inner).as_ref().and_then(|all| all.get(name).cloned());
    let Some(Served { ready, mut session }) = served else {
        return Err(format!(
            "the NKI program {name} is not known in this process: the graph was compiled in another one; trace the function again"
        ));
    };
    let program = &ready.kernel.program;
    if call.arguments.len() != program.inputs.len() + ready.outputs || call.results.len() != ready.outputs {
        return Err(format!(
            "kernel {}: the custom call has {} operands and {} results, the program {} and {}",
            program.name,
            call.arguments.len(),
            call.results.len(),
            program.inputs.len() + ready.outputs,
            ready.outputs
        ));
    }
    let fits = |tensor, dtype, dims: &[usize], name: &str| {
        let tensor = program.tensor(tensor);
        let same = tensor.shape.iter().map(|&d| d as usize).eq(dims.iter().copied());
        if same && xla::dtype_number(tensor.dtype) == Some(dtype) {
            return Ok(());
        }
        Err(format!("kernel {}: `{name}` of the custom call is not what the program was compiled for", program.name))
    };
    let mut inputs = Vec::with_capacity(call.arguments.len());
    for (input, argument) in program.inputs.iter().zip(call.arguments) {
        fits(input.tensor, argument.dtype, &argument.dims, &input.name)?;
        let tensor = HostTensor {
            name: input.name.clone(),
            shape: argument.dims.clone(),
            dtype: program.tensor(input.tensor).dtype,
            data: argument.buffer(),
        };
        inputs.push(tensor.into());
    }
    for (output, place) in program.outputs.iter().zip(&call.results) {
        fits(output.tensor, place.dtype, &place.dims, &output.name)?;
    }
    let rendered = |all: &[Diagnostic]| render_all(all, &ready.compiled.sources, ColorChoice::Plain);
    session.memory = nki_sim::memory::limit(None)?;
    let judge = &session.judge;
    let done = in_this_process(|| session.run_alone(&ready.kernel, inputs)).map_err(|stop| match stop {
        Stop::Kernel(fault) => rendered(&judge.judge(fault.found()).diagnostics),
        Stop::Call(message) => message,
    })?;
    // Findings of the compiler were reported during tracing.
    let applied = judge.judge(done.findings);
    if applied.diagnostics.iter().any(Diagnostic::is_error) {
        return Err(rendered(&applied.diagnostics) + "\n" + &denied_text(&applied.denied));
    }
    for (output, place) in done.outputs.iter().zip(call.results) {
        place.bytes.copy_from_slice(&output.data);
    }
    if done.prints.is_empty() && applied.diagnostics.is_empty() {
        return Ok(());
    }
    tell(&done.prints, &rendered(&applied.diagnostics))
}

/// Prints and warns like a direct call.
fn tell(prints: &[String], findings: &str) -> Result<(), String> {
    Python::attach(|py| {
        let tell = PyModule::import(py, "nki_sim._jax")?.getattr("tell")?;
        tell.call1((prints, findings.trim_end())).map(drop)
    })
    .map_err(|e: PyErr| e.to_string())
}
