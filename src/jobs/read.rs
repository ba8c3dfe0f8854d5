//! Parses jobs; errors name the field.

use nki_diag::slugs;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// The error for JSON other than an object.
const NOT_A_JOB: &str = "a job is a JSON object";

/// Parses a job; errors name the field.
pub(crate) fn read<T: DeserializeOwned + JsonSchema>(json: &str) -> Result<T, String> {
    // Without the line end, so that errors are reported in this line.
    let json = json.trim();
    // serde also accepts a list of fields as a job.
    let is_object = json.starts_with('{');
    let wrong = match serde_json::from_str(json) {
        Ok(job) if is_object => return Ok(job),
        Ok(_) => return Err(NOT_A_JOB.into()),
        Err(wrong) => wrong,
    };
    match serde_json::from_str(json) {
        Ok(Value::Object(fields)) => Err(fault::<T>(fields).unwrap_or_else(|| wrong.to_string())),
        Ok(_) => Err(NOT_A_JOB.into()),
        Err(_) => Err(format!("not valid JSON: {wrong}")),
    }
}

/// The first invalid field.
fn fault<T: DeserializeOwned + JsonSchema>(fields: Map<String, Value>) -> Option<String> {
    let known = fields_of::<T>();
    for (name, value) in fields {
        if !known.contains(&name) {
            let hint = slugs::nearest_of(&name, known.iter().map(String::as_str))
                .map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            return Some(format!("unknown field `{name}`{hint}"));
        }
        let alone = Value::Object(Map::from_iter([(name.clone(), value)]));
        match serde_json::from_value::<T>(alone) {
            Err(e) if !e.to_string().starts_with("missing field") => {
                return Some(format!("`{name}`: {}", in_words(&e.to_string())));
            }
            _ => {}
        }
    }
    None
}

/// A serde error in terms of JSON.
fn in_words(error: &str) -> String {
    let kinds = [
        ("expected u32", "expected a whole number from 0 to 4294967295"),
        ("expected u64", "expected a whole number, at least 0"),
        ("expected f64", "expected a number"),
    ];
    kinds.iter().fold(error.to_owned(), |text, (kind, words)| text.replace(kind, words))
}

/// The names of a job's fields.
pub(super) fn fields_of<T: JsonSchema>() -> Vec<String> {
    let schema = schemars::schema_for!(T).to_value();
    schema["properties"].as_object().map(|fields| fields.keys().cloned().collect()).unwrap_or_default()
}
