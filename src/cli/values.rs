//! Values of options.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use nki_isa::arch::Target;
use nki_isa::names::Named;
use nki_sim_core::place::Capacity;

use crate::intermediates::file_and_line;
use crate::kernel::suggestion;
use crate::python::Break;

pub(super) fn name_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().into(), value.into())),
        _ => Err("expected NAME=VALUE".into()),
    }
}

pub(super) fn place(text: &str) -> Result<Break, String> {
    match file_and_line(text) {
        Some((file, line, iteration)) if line > 0 => Ok(Break { file, line, iteration: iteration.unwrap_or(0) }),
        _ => Err("expected LINE[:ITERATION], or FILE:LINE[:ITERATION]".into()),
    }
}

pub(super) fn target(text: &str) -> Result<Target, String> {
    Target::from_name(text).ok_or_else(|| {
        let near = suggestion(&text.to_lowercase(), Target::NAMES.split(", "));
        format!("expected one of {}{near}", Target::NAMES)
    })
}

pub(super) fn capacity() -> impl TypedValueParser<Value = Capacity> {
    PossibleValuesParser::new(["error", "warn"]).try_map(|word| word.parse())
}

pub(super) fn step(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(x) if x > 0.0 && x < 100.0 => Ok(x),
        _ => Err("expected a percentage between 0 and 100".into()),
    }
}

pub(super) fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(x) if x > 0.0 && x.is_finite() => Ok(x),
        _ => Err("expected a number of seconds above 0".into()),
    }
}

pub(super) fn tolerance(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(x) if x >= 0.0 && x.is_finite() => Ok(x),
        _ => Err("expected a finite number, 0 or more".into()),
    }
}

pub(super) fn steps(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(n) if n > 0 => Ok(n),
        _ => Err("expected a whole number, at least 1".into()),
    }
}

pub(super) fn number(text: &str) -> Result<u32, String> {
    steps(text).and_then(|n| n.try_into().map_err(|_| format!("expected at most {}", u32::MAX)))
}

pub(super) fn number_to_1024(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(n @ 1..=1024) => Ok(n),
        _ => Err("expected a whole number from 1 to 1024".into()),
    }
}

pub(super) fn rows(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "expected a whole number, 0 or more".into())
}
