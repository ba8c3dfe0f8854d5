//! Programs of files: `.neff`, which hold a program in text form.

use std::sync::Arc;

use nki_isa::names::Named;
use nki_isa::{Program, TensorId};
use pyo3::prelude::*;

use crate::cache::{Compiled, Ready};
use crate::convert::Conversion;
use crate::errors::value_error;
use crate::host::Table;
use crate::levels::Judge;

/// Name, shape and dtype of a tensor.
type Described = (String, Vec<usize>, &'static str);

/// A program that was compiled before.
#[pyclass(frozen, module = "nki_sim._native")]
#[derive(Debug)]
pub(crate) struct Loaded {
    ready: Arc<Ready>,
}

#[pymethods]
impl Loaded {
    /// `label` names the text in messages; its first `outputs` outputs are results. `settings` are timing parameters by name.
    #[new]
    fn new(
        py: Python<'_>,
        label: &str,
        text: &str,
        outputs: usize,
        older_compiler: bool,
        settings: Vec<(String, String)>,
        judge: &Judge,
    ) -> PyResult<Self> {
        let ready = Ready::parse(py, (label, text), outputs, older_compiler, settings, judge)?;
        Ok(Loaded { ready: Arc::new(ready) })
    }

    /// The inputs, in the order of the program.
    fn inputs(&self) -> Vec<Described> {
        let program = &self.ready.kernel.program;
        program.inputs.iter().map(|input| described(program, &input.name, input.tensor)).collect()
    }

    /// The results.
    fn outputs(&self) -> Vec<Described> {
        let program = &self.ready.kernel.program;
        program.outputs[..self.ready.outputs].iter().map(|o| described(program, &o.name, o.tensor)).collect()
    }

    /// The names of the inputs that the program writes.
    fn written(&self) -> Vec<String> {
        self.ready.written_names()
    }

    /// The program with these arrays, by the names of its inputs.
    fn with_arrays(&self, arrays: Vec<(String, Bound<'_, PyAny>)>, judge: &Judge) -> PyResult<Compiled> {
        let table = Table::default();
        let mut given = Vec::new();
        for (name, value) in &arrays {
            let mut conversion = Conversion::of_argument(&table, std::mem::take(&mut given));
            conversion.value(value, name)?;
            given = conversion.arrays.unwrap_or_default();
        }
        table.release();
        let program = &self.ready.kernel.program;
        for input in &program.inputs {
            if !given.iter().any(|(name, _)| **name == *input.name) {
                return Err(value_error(format!("there is no array for the input `{}`", input.name)));
            }
        }
        Ok(Compiled { ready: self.ready.clone(), arrays: given, judge: judge.0.clone() })
    }
}

fn described(program: &Program, name: &str, tensor: TensorId) -> Described {
    let tensor = program.tensor(tensor);
    (name.to_owned(), tensor.shape.iter().map(|&n| n as usize).collect(), tensor.dtype.name())
}
