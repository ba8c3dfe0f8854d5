//! Words of the comments that describe kernels of tests.

/// Splits at spaces outside quotes and brackets.
pub(crate) fn words(text: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut depth = 0i32;
    let mut quote = None;
    for c in text.trim().chars() {
        match (quote, c) {
            (Some(q), _) if q == c => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, '[' | '(' | '{') => depth += 1,
            (None, ']' | ')' | '}') => depth -= 1,
            _ => {}
        }
        if c == ' ' && depth == 0 && quote.is_none() {
            out.push(String::new());
        } else if let Some(last) = out.last_mut() {
            last.push(c);
        }
    }
    out.retain(|w| !w.is_empty());
    out
}
