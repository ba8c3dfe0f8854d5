//! Types of the fields of jobs, and the options that they become.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// Named values in the order of the document, which the seeds of generated tensors follow.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Named(pub(crate) Vec<(String, Value)>);

impl Serialize for Named {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl<'de> Deserialize<'de> for Named {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries(PhantomData<Named>);
        impl<'de> Visitor<'de> for Entries {
            type Value = Named;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of names and values")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Named, A::Error> {
                let mut out: Vec<(String, Value)> = Vec::new();
                while let Some((name, value)) = map.next_entry()? {
                    if out.iter().any(|(known, _)| *known == name) {
                        return Err(serde::de::Error::custom(format!("`{name}` is given twice")));
                    }
                    out.push((name, value));
                }
                Ok(Named(out))
            }
        }
        deserializer.deserialize_map(Entries(PhantomData))
    }
}

/// Lists of values by name, in the order of the document.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Grid(pub(crate) Named);

/// Fields of a job that are no options of its command.
pub(super) const NOT_OPTIONS: [&str; 5] = ["file", "source", "id", "point", "max_seconds"];

/// The option that a field becomes.
fn option(field: &str) -> String {
    match field {
        "args" => "--arg".to_owned(),
        _ => format!("--{}", field.replace('_', "-")),
    }
}

/// A field's value that becomes words of a command line.
pub(super) trait OptionValue {
    /// Appends the option of `field` to `words`, once for each value; nothing without a value.
    fn add_words(&self, field: &str, words: &mut Vec<String>) -> Result<(), String>;
}

impl OptionValue for bool {
    fn add_words(&self, field: &str, words: &mut Vec<String>) -> Result<(), String> {
        words.extend(self.then(|| option(field)));
        Ok(())
    }
}

impl<T: fmt::Display> OptionValue for Option<T> {
    fn add_words(&self, field: &str, words: &mut Vec<String>) -> Result<(), String> {
        words.extend(self.iter().map(|value| format!("{}={value}", option(field))));
        Ok(())
    }
}

impl OptionValue for Vec<String> {
    fn add_words(&self, field: &str, words: &mut Vec<String>) -> Result<(), String> {
        words.extend(self.iter().map(|value| format!("{}={value}", option(field))));
        Ok(())
    }
}

impl OptionValue for Named {
    fn add_words(&self, field: &str, words: &mut Vec<String>) -> Result<(), String> {
        for (name, value) in &self.0 {
            let text = text(value).map_err(|e| format!("`{name}`: {e}"))?;
            words.push(format!("{}={name}={text}", option(field)));
        }
        Ok(())
    }
}

impl OptionValue for Grid {
    fn add_words(&self, field: &str, words: &mut Vec<String>) -> Result<(), String> {
        for (name, values) in &self.0.0 {
            let Value::Array(values) = values else {
                return Err(format!("`{field}`: `{name}` is not a list of values"));
            };
            if values.is_empty() {
                return Err(format!("`{field}`: `{name}` has no values"));
            }
            let texts = values.iter().map(text).collect::<Result<Vec<_>, _>>()?;
            words.push(format!("{}={name}={}", option(field), texts.join(",")));
        }
        Ok(())
    }
}

/// A list of strings, or a single string instead of a list of one.
pub(super) fn one_or_more<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::String(one) => Ok(vec![one]),
        other => serde_json::from_value(other).map_err(serde::de::Error::custom),
    }
}

/// Whether a field is left out.
pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A value in the syntax of `--arg`.
pub(crate) fn text(value: &Value) -> Result<String, String> {
    Ok(match value {
        Value::Null => "None".into(),
        Value::Bool(true) => "True".into(),
        Value::Bool(false) => "False".into(),
        Value::Number(n) => n.to_string(),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(text).collect::<Result<Vec<_>, _>>()?.join(",")),
        Value::Object(map) => match map.get("values") {
            Some(values) => {
                if let Some(other) = map.keys().find(|k| !["dtype", "values"].contains(&k.as_str())) {
                    return Err(format!("unknown field `{other}`: an array has `dtype` and `values`"));
                }
                let dtype = match map.get("dtype") {
                    None => "float32",
                    Some(Value::String(name)) if crate::value::dtype_name(name).is_some() => name,
                    Some(Value::String(other)) => return Err(crate::value::no_dtype(other)),
                    Some(other) => return Err(format!("the dtype of an array is a name, not {other}")),
                };
                format!("{dtype}({})", text(values)?)
            }
            None => {
                let entry = |(key, value): (&String, &Value)| {
                    let key = key.replace('\\', "\\\\").replace('\'', "\\'").replace('\n', "\\n");
                    Ok(format!("'{key}': {}", text(value)?))
                };
                format!("{{{}}}", map.iter().map(entry).collect::<Result<Vec<_>, String>>()?.join(", "))
            }
        },
    })
}
