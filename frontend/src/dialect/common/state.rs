//! The dialects' state during an evaluation: the program being built, and caches.

use std::any::Any;
use std::rc::Rc;
use std::sync::Arc;

use nki_diag::{Diagnostic, Severity, Span};
use nki_isa::inst::REGISTRY;
use nki_isa::program::Trail;
use nki_isa::{Arch, Arg, DType, Loc, Program, TensorId, Violation};
use rustc_hash::{FxHashMap, FxHashSet};

use super::clip::Clip;
use super::errors::{raise, span_of};
use super::launch::Launch;
use super::registers::Turns;
use super::repeat::{Made, Repeats};
use crate::Options;
use crate::build::builder::{Builder, NodeAt, Site};
use crate::build::tensor::Tensor;
use crate::eval::Interp;
use crate::eval::error::{EvalResult, Raise};
use crate::eval::language::{Backend, Edge, Outputs};
use crate::eval::value::Value;
use crate::syntax::Symbol;

/// The program being built, and caches.
#[derive(Debug)]
pub(crate) struct State {
    /// The program.
    pub(crate) builder: Builder,
    /// Keywords of each instruction of the registry, created at its first call.
    pub(crate) keywords: Vec<Option<Rc<[Symbol]>>>,
    /// Argument slots, reused by every call.
    pub(crate) slots: Vec<Option<Arg>>,
    /// The starts of the open `with nl.no_reorder()` blocks.
    pub(crate) no_reorder: Vec<NodeAt>,
    /// The result of the last instruction, if that was a masked one of Beta 1: the part left by the mask, and the position after it.
    masked: Option<(TensorId, Vec<Clip>, NodeAt)>,
    /// Tiles of Beta 1 with the boolean results of comparisons.
    pub(crate) truths: FxHashSet<TensorId>,
    /// Whether a loop of Beta 1 started at another number than 0.
    pub(crate) offset_loops: bool,
    /// The program of a grid that is being specialised.
    pub(crate) launch: Launch,
    /// Names of the variables to which calls are assigned, by location of the call.
    targets: FxHashMap<Span, Arc<str>>,
    /// Dynamic loops whose bodies may be evaluated again, outermost first.
    pub(super) turns: Vec<Turns>,
    /// The last location lookup: consecutive instructions often share it.
    last: Option<(Span, Loc)>,
    /// Potentially repeated calls of instructions.
    pub(super) instructions: Repeats<Made>,
    /// Potentially repeated calls that allocate tensors.
    pub(super) allocations: Repeats<Tensor>,
}

impl State {
    /// The initial state of a compilation with these options.
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            builder: Builder::new("", options.target, options.lnc.max(1)).allow_too_large(options.over_capacity),
            keywords: vec![None; REGISTRY.len()],
            slots: Vec::new(),
            no_reorder: Vec::new(),
            masked: None,
            truths: FxHashSet::default(),
            offset_loops: false,
            launch: Launch::default(),
            targets: FxHashMap::default(),
            turns: Vec::new(),
            last: None,
            instructions: Repeats::default(),
            allocations: Repeats::default(),
        }
    }

    /// Whether the call at `span` names its tensor independently of the caller.
    pub(super) fn has_target(&self, span: Span) -> bool {
        self.targets.contains_key(&span)
    }
}

impl State {
    /// Records the part of the latest result that a mask leaves: rectangles.
    pub(crate) fn note_mask(&mut self, tile: TensorId, clips: Vec<Clip>) {
        self.masked = Some((tile, clips, self.builder.next_node()));
    }

    /// The target of an assignment was evaluated, and possibly allocated, after the value had been computed at `before`: reorders them so that the
    /// target comes first.
    pub(crate) fn note_target(&mut self, value: &Tensor, before: NodeAt) {
        self.builder.make_earlier(value, before);
        let now = self.builder.next_node();
        if let Some((_, _, after)) = &mut self.masked
            && *after == before
        {
            *after = now;
        }
    }

    /// The part of a result left by a mask, if nothing has been emitted since. Later the rest of the tile may have been written, too.
    pub(crate) fn mask_of(&self, tile: TensorId) -> Option<&[Clip]> {
        let (id, clips, after) = self.masked.as_ref()?;
        (*id == tile && *after == self.builder.next_node()).then_some(clips)
    }
}

impl Backend for State {
    fn size(&self) -> (u64, usize) {
        (self.builder.emitted, self.builder.tensors())
    }

    fn open_statements(&self) -> usize {
        self.builder.statements()
    }

    /// Tensors larger than their memory, if that is a warning.
    fn take_findings(&mut self) -> Vec<(Diagnostic, Span)> {
        if self.builder.too_large.is_empty() {
            return Vec::new();
        }
        let too_large = std::mem::take(&mut self.builder.too_large).into_iter();
        let finding = |(violation, site): (Violation, Site)| {
            let span = span_of(site.loc);
            let mut finding = raise("", &violation, span, &[]).diagnostic;
            finding.severity = Severity::Warning;
            (finding.note("it is used as if the memory were larger: the latency is not valid"), span)
        };
        too_large.map(finding).collect()
    }

    fn input(&mut self, name: &str, shape: &[usize], dtype: DType, loc: Loc, span: Span) -> EvalResult<Value> {
        let shape: Vec<i64> = shape.iter().map(|&n| i64::try_from(n).unwrap_or(i64::MAX)).collect();
        match self.builder.input(name, &shape, dtype, loc) {
            Ok(t) => Ok(Value::object(t)),
            Err(v) => Err(raise("", &v, span, &[])),
        }
    }

    fn begin_core(&mut self, kernel: &str, core: u32, schedule: &[Edge]) {
        self.builder.set_name(kernel);
        self.builder.set_schedule(schedule.iter().map(|(later, earlier)| (&**later, &**earlier)));
        while self.builder.core() < core {
            self.builder.next_core();
        }
    }

    fn begin_program(&mut self, counts: &[u32], at: &[u32], index: u32) {
        let wide = |list: &[u32]| list.iter().map(|&n| i64::from(n)).collect();
        self.launch = Launch { counts: wide(counts), at: wide(at) };
        self.builder.begin_program(index);
    }

    fn written_inputs(&self) -> Vec<(String, Value)> {
        self.builder.written_inputs().into_iter().map(|t| (t.storage.name.to_string(), Value::object(t))).collect()
    }

    fn return_outputs(
        &mut self,
        outputs: &[(String, Value)],
        allowed: Outputs,
        span: Span,
        findings: &mut Vec<Diagnostic>,
    ) -> EvalResult<()> {
        for (name, value) in outputs {
            let Some(t) = value.downcast::<Tensor>() else {
                let message = format!("the kernel returns a value of type {} as `{name}`", value.type_name());
                let label = "kernels return tensors, or tuples of tensors";
                return Err(Raise::at("kernel-output", message, span, label));
            };
            for finding in self.builder.return_tensor(name, t, allowed.private, span) {
                if finding.is_error() {
                    return Err(Raise::new(finding));
                }
                findings.push(finding);
            }
        }
        Ok(())
    }

    fn tensor(&self, value: &Value) -> Option<(TensorId, String)> {
        let tensor = value.downcast::<Tensor>()?;
        Some((tensor.storage.id, tensor.storage.name.to_string()))
    }

    fn finish(&mut self, files: Vec<Arc<str>>, trails: Vec<Trail>, span: Span) -> EvalResult<Program> {
        self.builder.check_schedule().map_err(|v| raise("", &v, span, &[]))?;
        self.builder.check_prepared().map_err(|v| raise("", &v, span, &[]))?;
        let fresh = Builder::new("", self.builder.arch().target, 1);
        Ok(std::mem::replace(&mut self.builder, fresh).finish(files, trails))
    }
}

/// The dialects' state in this evaluation.
pub(crate) fn state<'i>(interp: &'i mut Interp<'_>) -> &'i mut State {
    (&mut *interp.backend as &mut dyn Any).downcast_mut().expect("evaluations are made with this backend")
}

/// The target machine.
pub(crate) fn arch(interp: &Interp<'_>) -> &'static Arch {
    Arch::of(interp.options.target)
}

/// The site of a call.
pub(crate) fn site(interp: &mut Interp<'_>, span: Span) -> Site {
    let loc = match state(interp).last {
        Some((at, loc)) if at == span => loc,
        _ => {
            let loc = interp.loc(span);
            state(interp).last = Some((span, loc));
            loc
        }
    };
    Site { loc, trail: interp.trail() }
}

/// The name of the variable to which the call at `span` is assigned: tensors are named after it.
///
/// Read from the source text, so that the evaluator need not pass assignment targets around.
pub(crate) fn target_name(interp: &mut Interp<'_>, span: Span) -> Arc<str> {
    if let Some(known) = state(interp).targets.get(&span) {
        return known.clone();
    }
    let before = interp.sources.text(span.file).and_then(|text| text.get(..span.start as usize));
    let Some(name) = before.and_then(target_before) else {
        // Returned by a helper: each caller determines the name.
        let returned = before.is_some_and(|text| text.trim_end().ends_with("return"));
        return returned.then(|| caller_name(interp)).flatten().unwrap_or_else(|| "tensor".into());
    };
    let name: Arc<str> = name.into();
    state(interp).targets.insert(span, name.clone());
    name
}

/// The variable to which the innermost active call is assigned; the function's name if there is none.
fn caller_name(interp: &Interp<'_>) -> Option<Arc<str>> {
    let calls = interp.kernel_calls();
    let target = |span: Span| {
        let before = interp.sources.text(span.file)?.get(..span.start as usize)?;
        Some((target_before(before), before.trim_end().ends_with("return")))
    };
    for (_, span) in calls.iter().rev() {
        match target(*span)? {
            (Some(name), _) => return Some(name.into()),
            (None, true) => {}
            (None, false) => break,
        }
    }
    calls.last().map(|(function, _)| Arc::from(&*interp.name(*function)))
}

/// The variable in `... name = ` or `name.append(` at the end of the text.
fn target_before(text: &str) -> Option<&str> {
    let line_start = text.rfind('\n').map_or(0, |i| i + 1);
    let mut line = text.get(line_start..)?;
    if line.trim().is_empty() {
        // A call on a separate line: `x = (` or `x = \` above it.
        let above = text.get(..line_start)?.trim_end_matches('\n');
        let above = above.get(above.rfind('\n').map_or(0, |i| i + 1)..)?;
        let code = above.split('#').next()?.trim_end();
        if code.ends_with(['(', '[', '{', ',', '=', '\\', '+', '-', '*', '/', '@', '%', '&', '|']) {
            line = code.trim_end_matches('\\');
        }
    }
    let line = last_statement(line);
    let before = line.trim_end().trim_end_matches(['(', '[', ' ']);
    if let Some(head) = before.strip_suffix('=') {
        let head = head.trim_end();
        if !head.ends_with(['=', '!', '<', '>', '+', '-', '*', '/']) {
            // `name: annotation =`
            let head = head.split_once(':').map_or(head, |(h, _)| h);
            return name_of_item(head, "");
        }
    }
    if let Some(head) = before.strip_suffix(".append") {
        return last_name(head);
    }
    // Nested in a larger expression: the variable at the start of the line.
    let (head, rest) = line.split_once('=')?;
    if rest.starts_with('=') {
        return None;
    }
    name_of_item(head, rest)
}

/// The text after the last `;` of a line, or the `:` of a compound statement.
fn last_statement(line: &str) -> &str {
    const COMPOUND: &[&str] =
        &["async", "class", "def", "elif", "else", "except", "finally", "for", "if", "try", "while", "with"];
    let is_header = |text: &str| {
        let word = text.trim_start().split(|c: char| !c.is_alphanumeric() && c != '_').next();
        word.is_some_and(|word| COMPOUND.contains(&word))
    };
    let (mut start, mut depth, mut quote) = (0, 0_i32, None);
    let mut chars = line.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match (quote, c) {
            (Some(_), '\\') => drop(chars.next()),
            (Some(open), _) if open == c => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => depth -= 1,
            (None, ';') if depth <= 0 => start = at + 1,
            // Below 0, the line closes brackets of earlier lines.
            (None, ':')
                if (depth < 0 || depth == 0 && is_header(&line[start..at]))
                    && !matches!(chars.peek(), Some((_, '='))) =>
            {
                (start, depth) = (at + 1, 0);
            }
            _ => {}
        }
    }
    &line[start..]
}

/// The variable of `head`, `a, b` or one name, for the item after `items`: each of several gets one, and the last one also nested
/// items.
fn name_of_item<'t>(head: &'t str, items: &str) -> Option<&'t str> {
    let items = items.trim_start();
    let (mut depth, mut count) = (0_usize, 0);
    let outer = usize::from(items.starts_with(['(', '[']));
    for c in items.chars() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            ',' if depth == outer => count += 1,
            _ => {}
        }
    }
    let named = head.trim().trim_start_matches(['(', '[']).trim_end_matches([')']);
    match named.split(',').nth(count) {
        Some(name) if depth == outer && !named.contains(['(', '[']) => last_name(name),
        _ => last_name(head),
    }
}

/// The identifier at the end of the text; the `name` and `names` of `self.name` and `names[i]`.
fn last_name(text: &str) -> Option<&str> {
    let text = text.trim_end();
    let text = if text.ends_with(']') { text.get(..text.rfind('[')?)? } else { text };
    let start = text.rfind(|c: char| !(c.is_alphanumeric() || c == '_')).map_or(0, |i| i + 1);
    let name = text.get(start..)?;
    (!name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit())).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::target_before;

    #[test]
    fn names_come_from_assignments() {
        for (text, name) in [
            ("x = 1\n    tile = ", Some("tile")),
            ("a_tile: nl.tensor = ", Some("a_tile")),
            ("self.buffer = ", Some("buffer")),
            ("rows[i] = ", Some("rows")),
            ("tiles.append(", Some("tiles")),
            ("nisa.dma_copy(dst=", Some("dst")),
            ("tiles = [", Some("tiles")),
            ("out = f(a, ", Some("out")),
            ("a, b = ", Some("a")),
            ("a, b = f((128, 4), x), ", Some("b")),
            ("(a, b) = (f(x), ", Some("b")),
            ("a, b = f(x, ", Some("b")),
            ("a, b = (\n   ", Some("a")),
            ("    a, b = (f(x),\n   ", Some("b")),
            ("x = (\n   ", Some("x")),
            ("x = \\\n   ", Some("x")),
            ("x = (a +  # and\n   ", Some("x")),
            ("x = 1  # one\n    ", None),
            ("x[:, i] = t\n    nl.store(out, ", None),
            ("P, N = x.shape; t = ", Some("t")),
            ("P, N = x.shape; f(", None),
            ("a = ';'; b = ", Some("b")),
            ("d = f(';", Some("d")),
            ("def tile(shape, dt=nl.float32): return ", None),
            ("def tile(shape, dt=nl.float32): t = ", Some("t")),
            ("def tile(shape,\n         dt=nl.float32): return ", None),
            ("if a == b: t = ", Some("t")),
            ("for i in f(n=2): t = f(", Some("t")),
            ("t = {'a': ", Some("t")),
            ("if x == ", None),
            ("", None),
        ] {
            assert_eq!(target_before(text), name, "{text:?}");
        }
    }
}
