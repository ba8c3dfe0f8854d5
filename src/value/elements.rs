//! Encodes literal arrays, written as nested lists of numbers, as bytes.

use nki_isa::dtype::{DType, decode_f32, encode_f32, encode_i64};
use nki_isa::names::Named;

use super::{TensorSpec, Value};
use crate::npy::shape_text;

/// The array with these elements.
pub(super) fn encoded(dtype: DType, value: &Value) -> Result<TensorSpec, String> {
    if dtype.is_packed() {
        return Err(format!("an element of {dtype} holds four numbers: give a file"));
    }
    let mut shape = Vec::new();
    let mut at = value;
    while let Value::List(items) = at {
        shape.push(items.len());
        let Some(first) = items.first() else { return Err("the array is empty".into()) };
        at = first;
    }
    if shape.is_empty() {
        return Err(format!("a list of numbers expected, e.g. {}([[1, 2], [3, 4]])", dtype.name()));
    }
    let mut data = vec![0; shape.iter().product::<usize>() * dtype.size()];
    let mut bytes = data.chunks_exact_mut(dtype.size());
    fill(value, &shape, &mut |element| match bytes.next() {
        Some(out) => encode(dtype, element, out),
        None => Ok(()),
    })?;
    Ok(TensorSpec::Written { dtype, shape, data })
}

/// Visits the elements in row-major order.
fn fill(value: &Value, shape: &[usize], each: &mut dyn FnMut(&Value) -> Result<(), String>) -> Result<(), String> {
    match (value, shape) {
        (Value::List(items), [extent, rest @ ..]) if items.len() == *extent => {
            items.iter().try_for_each(|item| fill(item, rest, each))
        }
        (Value::List(_), _) | (_, [_, ..]) => Err(format!(
            "the lists do not have equal lengths: elements of the shape {} are missing or left over",
            shape_text(shape)
        )),
        (element, []) => each(element),
    }
}

/// Encodes one element.
fn encode(dtype: DType, element: &Value, out: &mut [u8]) -> Result<(), String> {
    let unfit = |what: &dyn std::fmt::Display| Err(format!("{what} cannot be held by {dtype}"));
    match element {
        Value::Int(n) if dtype.is_int() => {
            if dtype.int_range().is_some_and(|(low, high)| !(low..=high).contains(n)) {
                return unfit(n);
            }
            encode_i64(dtype, &[*n], out);
        }
        Value::Bool(b) if dtype.is_int() => encode_i64(dtype, &[i64::from(*b)], out),
        Value::Float(x) if dtype.is_int() => return unfit(x),
        Value::Int(_) | Value::Float(_) => {
            let wide = if let Value::Int(n) = element { *n as f64 } else { number(element) };
            let value = wide as f32;
            encode_f32(dtype, &[value], out);
            let mut back = [0.0];
            decode_f32(dtype, out, &mut back);
            let back = f64::from(back[0]);
            // Overflow yields infinity, NaN, or the largest number; rounding changes less than half.
            let fits = back.is_finite() && back.abs() >= wide.abs() / 2.0;
            if wide.is_finite() && wide.abs() >= 1.0 && !fits {
                return unfit(&wide);
            }
        }
        _ => return Err(format!("an element of an array is a number, not {}", described(element))),
    }
    Ok(())
}

fn number(element: &Value) -> f64 {
    if let Value::Float(x) = element { *x } else { f64::NAN }
}

fn described(element: &Value) -> &'static str {
    match element {
        Value::None => "None",
        Value::Bool(_) => "a bool",
        Value::Str(_) => "a string",
        Value::Dtype(_) => "a dtype",
        Value::Tensor(_) => "a tensor",
        _ => "a container",
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    fn written(text: &str) -> Result<(DType, Vec<usize>, Vec<u8>), String> {
        match parse(text) {
            Ok(Value::Tensor(TensorSpec::Written { dtype, shape, data })) => Ok((dtype, shape, data)),
            Ok(other) => Err(format!("{other:?}")),
            Err(e) => Err(e.to_string()),
        }
    }

    #[test]
    fn elements_are_encoded_in_row_major_order() {
        assert_eq!(
            written("int8([[1, -2, 3], [4, 5, 6]])").unwrap(),
            (DType::I8, vec![2, 3], vec![1, 254, 3, 4, 5, 6])
        );
        let (_, shape, data) = written("float32([1.5, -inf, nan])").unwrap();
        assert_eq!(shape, [3]);
        assert_eq!(data[..8], [0, 0, 0xc0, 0x3f, 0, 0, 0x80, 0xff]);
        assert!(f32::from_le_bytes([data[8], data[9], data[10], data[11]]).is_nan());
        assert_eq!(written("nl.bfloat16([[1]])").unwrap().2, [0x80, 0x3f]);
    }

    #[test]
    fn what_an_array_cannot_hold_is_named() {
        for (text, why) in [
            ("int8([300])", "300 cannot be held by int8"),
            ("int32([1.5])", "1.5 cannot be held by int32"),
            ("float16([1e6])", "1000000 cannot be held by float16"),
            ("float8_e4m3([1000])", "cannot be held"),
            ("float32([[1, 2], [3]])", "equal lengths"),
            ("float32([[1], 2])", "equal lengths"),
            ("float32([1, [2]])", "equal lengths"),
            ("float32([])", "empty"),
            ("float32([[], []])", "empty"),
            ("float32(1)", "a list of numbers"),
            ("float32(['a'])", "not a string"),
            ("float32([None])", "not None"),
            ("float8_e4m3fn_x4([1])", "four numbers"),
        ] {
            let e = written(text).unwrap_err();
            assert!(e.contains(why), "{text}: {e}");
        }
    }
}
