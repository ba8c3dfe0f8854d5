//! Findings of `--strict`.

use nki_diag::{Diagnostic, Span};

use crate::eval::Interp;

/// Reports, with `--strict`, a construct that the official compiler rejects and what to write instead; once per place.
pub(crate) fn reject(interp: &mut Interp<'_>, span: Span, what: &str, instead: &str) {
    if interp.options.strict && interp.in_kernel {
        let finding = Diagnostic::warning("strict-language", format!("{what} is not accepted by the NKI compiler"))
            .at(span, "the simulator accepts it")
            .help(instead);
        interp.report_once(finding, span);
    }
}
