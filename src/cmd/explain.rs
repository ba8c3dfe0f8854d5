//! `nki-sim explain SLUG|INSTRUCTION`.

use nki_diag::slugs;

use crate::Failure;
use crate::output::print;

/// Prints the page of a diagnostic, or the list of all.
pub(crate) fn run(name: Option<&str>) -> Result<(), Failure> {
    let Some(name) = name else {
        let width = slugs::all().map(|s| s.id.len()).max().unwrap_or(0);
        let lines: Vec<String> = slugs::all().map(|s| format!("{:width$}  {}\n", s.id, s.summary)).collect();
        print(&lines.concat());
        return Ok(());
    };
    if let Some(page) = slugs::explain(name) {
        print(&page);
        return Ok(());
    }
    let hint = match slugs::nearest(name) {
        Some(near) => format!("; did you mean `{}`?", near.id),
        None => "; `nki-sim explain` lists all".into(),
    };
    Err(Failure::Call(format!("no diagnostic is called `{name}`{hint}")))
}
