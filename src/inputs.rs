//! Converts argument values to frontend arguments (shapes and literals) and simulator inputs (bytes).

use nki_frontend::Arg;
use nki_isa::Program;
use nki_isa::dtype::DType;
use nki_sim_core::generate::{Fill, generate};
use nki_sim_core::{Buffer, HostTensor};

use crate::npy::{self, Elem};
use crate::value::{TensorSpec, Value};

/// An input of a run. Generated contents are created on demand: compiling does not need them.
#[derive(Debug)]
pub struct Given {
    /// Name, shape and dtype; also the data, unless it is generated.
    tensor: HostTensor,
    /// The distribution and seed of generated data.
    fill: Option<(Fill, u64)>,
}

impl From<HostTensor> for Given {
    fn from(tensor: HostTensor) -> Self {
        Given { tensor, fill: None }
    }
}

impl Given {
    /// The kernel's name for it.
    pub(crate) fn name(&self) -> &str {
        &self.tensor.name
    }

    /// Extents.
    pub(crate) fn shape(&self) -> &[usize] {
        &self.tensor.shape
    }

    /// Element type.
    pub(crate) fn dtype(&self) -> DType {
        self.tensor.dtype
    }

    /// The tensor with its data.
    pub(crate) fn filled(self) -> HostTensor {
        let mut tensor = self.tensor;
        if let Some((fill, seed)) = self.fill {
            tensor.data = generate(tensor.dtype, tensor.shape.iter().product(), fill, seed);
        }
        tensor
    }
}

/// The tensors in the program's order.
pub(crate) fn in_order(program: &Program, mut tensors: Vec<Given>) -> Vec<HostTensor> {
    let mut out = Vec::new();
    for input in &program.inputs {
        if let Some(i) = tensors.iter().position(|t| *t.name() == *input.name) {
            out.push(tensors.swap_remove(i).filled());
        }
    }
    out
}

/// Converts the `position`-th argument to a frontend argument and appends its tensors to `tensors`, with the names of
/// [`nki_isa::program::Input`]: `name`, `name.0`, `name.key`.
pub(crate) fn resolve(name: &str, value: &Value, position: usize, tensors: &mut Vec<Given>) -> Result<Arg, String> {
    let member = |key: &str, value: &Value, tensors: &mut Vec<Given>| {
        resolve(&format!("{name}.{key}"), value, position, tensors)
    };
    let mut list = |items: &[Value]| -> Result<Vec<Arg>, String> {
        items.iter().enumerate().map(|(i, v)| member(&i.to_string(), v, tensors)).collect()
    };
    Ok(match value {
        Value::None => Arg::None,
        Value::Bool(b) => Arg::Bool(*b),
        Value::Int(n) => Arg::Int(*n),
        Value::Float(x) => Arg::Float(*x),
        Value::Str(s) => Arg::Str(s.clone()),
        // NKI accepts a dtype's name wherever it accepts a dtype.
        Value::Dtype(d) => Arg::Str(d.to_string()),
        Value::Tuple(items) => Arg::Tuple(list(items)?),
        Value::List(items) => Arg::List(list(items)?),
        Value::Dict(entries) => Arg::Dict(
            entries
                .iter()
                .map(|(k, v)| Ok((Arg::Str(k.clone()), member(k, v, tensors)?)))
                .collect::<Result<_, String>>()?,
        ),
        Value::Tensor(spec) => {
            let given = load(name, spec, position, tensors.len())?;
            let arg = Arg::Tensor { shape: given.tensor.shape.clone(), dtype: given.tensor.dtype };
            tensors.push(given);
            arg
        }
    })
}

fn load(name: &str, spec: &TensorSpec, position: usize, count: usize) -> Result<Given, String> {
    let (dtype, shape, data, fill) = match spec {
        TensorSpec::Generated { dtype, shape, fill, seed } => {
            // Tensors of the same argument have different contents.
            let seed = seed.unwrap_or(position.max(count) as u64);
            (*dtype, shape.clone(), Buffer::default(), Some((*fill, seed)))
        }
        TensorSpec::Written { dtype, shape, data } => {
            let mut bytes = Buffer::zeroed(data.len());
            bytes.bytes_mut().copy_from_slice(data);
            (*dtype, shape.clone(), bytes, None)
        }
        TensorSpec::File { path, dtype } => {
            let array = npy::read(path)?;
            let dtype = device_dtype(array.elem, *dtype)
                .map_err(|e| format!("argument `{name}`: `{}`: {e}", path.display()))?;
            (dtype, array.shape, array.data, None)
        }
    };
    if shape.is_empty() {
        return Err(format!(
            "argument `{name}` is an array without dimensions; pass a number, or an array of shape (1, 1)"
        ));
    }
    if shape.contains(&0) {
        return Err(format!("argument `{name}` has shape {}: it is empty", npy::shape_text(&shape)));
    }
    Ok(Given { tensor: HostTensor { name: name.into(), shape, dtype, data }, fill })
}

/// The device type of a file's elements. `wanted` reinterprets the bytes.
fn device_dtype(elem: Elem, wanted: Option<DType>) -> Result<DType, String> {
    match (elem, wanted) {
        (_, Some(dtype)) if dtype.size() == elem.size() => Ok(dtype),
        (_, Some(dtype)) => Err(format!(
            "cannot be read as {dtype} ({} bytes): its elements are {elem} ({} bytes)",
            dtype.size(),
            elem.size()
        )),
        (Elem::Device(dtype), None) => Ok(dtype),
        (Elem::Void2, None) => Ok(DType::BF16),
        (Elem::Void1, None) => {
            Err("its elements are 8-bit floats of unknown kind; append the kind, e.g. FILE.npy:float8_e4m3".into())
        }
        (Elem::Packed(size), None) => Err(format!(
            "its elements are {elem}; append the dtype, e.g. FILE.npy:{}",
            if size == 2 { "float4_e2m1fn_x4" } else { "float8_e4m3fn_x4" }
        )),
        (Elem::F64, None) => Err("float64 is not a device type; save array.astype(np.float32)".into()),
        (Elem::I64, None) => Ok(DType::I64),
        (Elem::U64, None) => Err(format!("{elem} is not a device type; save array.astype(np.int32)")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::parse;

    fn resolved(text: &str) -> (Arg, Vec<Given>) {
        let mut tensors = Vec::new();
        let arg = resolve("x", &parse(text).unwrap(), 2, &mut tensors).unwrap();
        (arg, tensors)
    }

    #[test]
    fn members_of_containers_are_named() {
        let (arg, tensors) = resolved("{'k': (int8[2], 3), 'v': float32[4]}");
        let names: Vec<&str> = tensors.iter().map(Given::name).collect();
        assert_eq!(names, ["x.k.0", "x.v"]);
        let Arg::Dict(entries) = arg else { panic!() };
        assert_eq!(entries[1].1, Arg::Tensor { shape: vec![4], dtype: DType::F32 });
    }

    #[test]
    fn unknown_floats_need_a_kind() {
        assert!(device_dtype(Elem::Void1, None).unwrap_err().contains("float8_e4m3"));
        assert_eq!(device_dtype(Elem::Void1, Some(DType::F8E5M2)), Ok(DType::F8E5M2));
        assert_eq!(device_dtype(Elem::Void2, None), Ok(DType::BF16));
        assert!(device_dtype(Elem::Packed(2), None).unwrap_err().contains("FILE.npy:float4_e2m1fn_x4"));
        assert_eq!(device_dtype(Elem::Packed(4), Some(DType::F8E5M2X4)), Ok(DType::F8E5M2X4));
        assert!(device_dtype(Elem::F64, None).unwrap_err().contains("float32"));
        assert!(device_dtype(Elem::F64, Some(DType::F32)).unwrap_err().contains("8 bytes"));
    }
}
