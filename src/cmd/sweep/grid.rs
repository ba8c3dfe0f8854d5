//! The grid: values of each axis, and their combinations.

use serde::Serialize;

/// Maximum number of points: a slip in a grid should not run for a week.
const MOST_POINTS: usize = 100_000;

/// One `--grid`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Axis {
    /// The parameter or constant.
    pub(super) name: String,
    /// Its values, as text.
    pub(super) values: Vec<String>,
    /// Whether it is a constant of the file instead of a parameter of the kernel.
    pub(super) constant: bool,
}

/// A value for each axis.
pub(super) type Point = Vec<String>;

/// Splits at commas outside of brackets and quotes.
pub(super) fn split(text: &str) -> Result<Vec<String>, String> {
    let mut out = vec![String::new()];
    let mut open: Vec<char> = Vec::new();
    let mut quote: Option<char> = None;
    for c in text.chars() {
        match (c, quote) {
            (c, Some(q)) if c == q => quote = None,
            (_, Some(_)) => {}
            ('"' | '\'', None) => quote = Some(c),
            ('(', None) => open.push(')'),
            ('[', None) => open.push(']'),
            ('{', None) => open.push('}'),
            (')' | ']' | '}', None) if open.pop() != Some(c) => return Err(format!("`{c}` closes nothing")),
            (',', None) if open.is_empty() => {
                out.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(last) = out.last_mut() {
            last.push(c);
        }
    }
    if quote.is_some() || !open.is_empty() {
        return Err("a quote or bracket is never closed".into());
    }
    let out: Vec<String> = out.into_iter().map(|v| v.trim().to_string()).collect();
    if out.iter().any(String::is_empty) {
        return Err("a value is empty".into());
    }
    Ok(out)
}

/// All combinations; the last axis varies fastest.
pub(super) fn points(axes: &[Axis]) -> Result<Vec<Point>, String> {
    let count = axes.iter().try_fold(1usize, |n, a| n.checked_mul(a.values.len())).unwrap_or(usize::MAX);
    if count > MOST_POINTS {
        return Err(format!("the grid has {count} points, more than {MOST_POINTS}; leave out some values"));
    }
    let mut out: Vec<Point> = vec![Vec::new()];
    for axis in axes {
        out = out
            .into_iter()
            .flat_map(|p| {
                axis.values.iter().map(move |v| {
                    let mut p = p.clone();
                    p.push(v.clone());
                    p
                })
            })
            .collect();
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_in_brackets_and_quotes_do_not_split() {
        assert_eq!(split("1,2, 4").unwrap(), ["1", "2", "4"]);
        assert_eq!(split("float32[128,512],(1, 2),'a,b'").unwrap(), ["float32[128,512]", "(1, 2)", "'a,b'"]);
        assert!(split("1,,2").is_err() && split("(1").is_err() && split("1)").is_err());
    }

    #[test]
    fn points_are_all_combinations() {
        let axis = |name: &str, n: usize| Axis {
            name: name.into(),
            values: (0..n).map(|i| i.to_string()).collect(),
            constant: false,
        };
        let p = points(&[axis("a", 2), axis("b", 3)]).unwrap();
        assert_eq!(p.len(), 6);
        assert_eq!(p[1], ["0", "1"]);
        assert!(points(&[axis("a", 400), axis("b", 400)]).unwrap_err().contains("160000 points"));
    }
}
