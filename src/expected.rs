//! Expected values of outputs: `--expect NAME=FILE.npy`.

use nki_isa::Program;
use nki_sim_core::HostTensor;

use crate::Failure;
use crate::compare::{self, Comparison, Tolerance};
use crate::inputs;
use crate::npy::{self, Array, Elem};
use crate::value::{self, TensorSpec, Value};

/// Tolerances of a call; the defaults depend on the dtype.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tolerances {
    /// Relative.
    pub(crate) rtol: Option<f64>,
    /// Absolute.
    pub(crate) atol: Option<f64>,
}

/// The expected value of an output.
#[derive(Debug, Clone)]
pub(crate) struct Expected {
    /// The output.
    pub(crate) name: String,
    /// The array's file, or the other given value.
    pub(crate) file: String,
    /// The array.
    pub(crate) array: Array,
}

/// Maximum number of characters of a literal array in messages.
const MOST_CHARACTERS: usize = 40;

/// Reads the arrays: a file, or a tensor in the syntax of `--arg`.
pub(crate) fn read(given: &[(String, String)]) -> Result<Vec<Expected>, Failure> {
    let mut out: Vec<Expected> = Vec::new();
    for (name, text) in given {
        if out.iter().any(|e| e.name == *name) {
            return Err(Failure::Call(format!("--expect {name} is given twice")));
        }
        let array = array(name, text).map_err(|e| format!("--expect {name}: {e}"))?;
        let short: String = text.chars().take(MOST_CHARACTERS).collect();
        let is_file = text.contains(".npy") || std::path::Path::new(text).exists();
        let file = if short.len() < text.len() && !is_file { format!("{short}...") } else { text.clone() };
        out.push(Expected { name: name.clone(), file, array });
    }
    Ok(out)
}

fn array(name: &str, text: &str) -> Result<Array, String> {
    let value = match value::parse(text) {
        // A file may contain doubles, which are not valid as arguments.
        Ok(Value::Tensor(TensorSpec::File { dtype: None, .. })) => return npy::read(text.as_ref()),
        Ok(value @ Value::Tensor(_)) => value,
        // A file with another name.
        _ => return npy::read(text.as_ref()),
    };
    let mut tensors = Vec::new();
    inputs::resolve(name, &value, 0, &mut tensors)?;
    let tensor = tensors.pop().ok_or("no tensor")?.filled();
    Ok(Array { elem: Elem::Device(tensor.dtype), shape: tensor.shape, data: tensor.data })
}

/// Checks that the kernel has outputs of these names.
pub(crate) fn check_names<'a>(
    program: &Program,
    expected: impl IntoIterator<Item = &'a Expected>,
) -> Result<(), Failure> {
    for e in expected {
        if !program.outputs.iter().any(|o| *o.name == *e.name) {
            let names: Vec<String> = program.outputs.iter().map(|o| format!("`{}`", o.name)).collect();
            return Err(Failure::Call(format!(
                "--expect {}: kernel `{}` has no output of that name; it has {}",
                e.name,
                program.name,
                if names.is_empty() { "no outputs".into() } else { names.join(", ") }
            )));
        }
    }
    Ok(())
}

/// The results of `--expect`.
#[derive(Debug, Default)]
pub(crate) struct Comparisons {
    /// The completed comparisons.
    pub(crate) done: Vec<Comparison>,
    /// The reasons why others failed.
    pub(crate) problems: Vec<String>,
}

/// Compares outputs with their expected values.
pub(crate) fn compare<'a>(
    mut outputs: Vec<HostTensor>,
    expected: impl IntoIterator<Item = &'a Expected>,
    given: Tolerances,
) -> Comparisons {
    let mut out = Comparisons::default();
    for e in expected {
        let Some(output) = outputs.iter().position(|o| *o.name == *e.name) else { continue };
        let output = outputs.swap_remove(output);
        let mut tolerance = Tolerance::of(output.dtype);
        tolerance.rtol = given.rtol.unwrap_or(tolerance.rtol);
        tolerance.atol = given.atol.unwrap_or(tolerance.atol);
        let got = Array { elem: Elem::Device(output.dtype), shape: output.shape, data: output.data };
        match compare::compare(&e.name, &e.file, &got, output.dtype, &e.array, tolerance) {
            Ok(c) => out.done.push(c),
            Err(problem) => out.problems.push(problem),
        }
    }
    out
}
