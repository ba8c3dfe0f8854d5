//! Checks the given inputs against the compiled program.

use nki_diag::Diagnostic;
use nki_isa::Program;

use crate::HostTensor;

fn shape(dims: impl IntoIterator<Item = u64>) -> String {
    let dims: Vec<String> = dims.into_iter().map(|d| d.to_string()).collect();
    format!("[{}]", dims.join(", "))
}

pub(super) fn check(program: &Program, inputs: &[HostTensor]) -> Vec<Diagnostic> {
    let mut errors = Vec::new();
    if inputs.len() != program.inputs.len() {
        let names: Vec<&str> = program.inputs.iter().map(|i| &*i.name).collect();
        errors.push(Diagnostic::error(
            "input-mismatch",
            format!(
                "kernel `{}` takes {} tensors ({}), got {}",
                program.name,
                program.inputs.len(),
                names.join(", "),
                inputs.len()
            ),
        ));
        return errors;
    }
    for (input, host) in program.inputs.iter().zip(inputs) {
        let tensor = program.tensor(input.tensor);
        let same = host.shape.len() == tensor.shape.len()
            && host.shape.iter().zip(&tensor.shape).all(|(&h, &t)| h as u64 == u64::from(t));
        if host.dtype != tensor.dtype || !same {
            errors.push(Diagnostic::error(
                "input-mismatch",
                format!(
                    "input `{}` is {}{}, the program was compiled for {}{}",
                    input.name,
                    host.dtype,
                    shape(host.shape.iter().map(|&d| d as u64)),
                    tensor.dtype,
                    shape(tensor.shape.iter().map(|&d| u64::from(d)))
                ),
            ));
        } else if host.data.len() != tensor.bytes() {
            errors.push(Diagnostic::error(
                "input-mismatch",
                format!(
                    "input `{}` has {} bytes of data, its shape needs {}",
                    input.name,
                    host.data.len(),
                    tensor.bytes()
                ),
            ));
        }
    }
    errors
}
