//! The kernel's current location: Python's frames as a span, and as the enclosing calls and iterations.

#![allow(unsafe_code)]

use std::rc::Rc;

use nki_diag::{FileId, Span};
use nki_frontend::trace::{Loop, Name, Trace};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyString};
use rustc_hash::FxHashMap;

use crate::convert::tracer;

/// Flags of resumable code: generators and coroutines.
const RESUMED: u32 = 0x20 | 0x80 | 0x200;

/// Start and end of an instruction: line, column, line, column; lines from 1, columns in bytes from 0.
type Position = [Option<u32>; 4];

/// The result of `nki_sim._trace.about_code`: whether its frames are no location in the kernel, the name of its text, the text, its lines, the modules it
/// uses, the position of each instruction, and the jump targets.
type About = (bool, String, Option<String>, u32, Vec<String>, Vec<Position>, Vec<u32>);

/// Code with its globals.
pub(crate) type Met = (Py<PyAny>, Py<PyAny>);

/// A code object encountered.
#[derive(Debug)]
struct Code {
    /// Kept alive, so that its address is not reused.
    object: Py<PyAny>,
    /// Whether it is no location in the kernel: code of this package, of NumPy.
    ours: bool,
    /// A lambda or comprehension: enclosing loops are not its own.
    expression: bool,
    /// A comprehension or generator expression, which is not a call.
    inlined: bool,
    resumed: bool,
    name: Name,
    file: FileId,
    positions: Vec<Position>,
    /// Jump targets, in order.
    targets: Vec<u32>,
}

impl Code {
    /// Whether an instruction can be reached only from an earlier one.
    fn follows(&self, at: u32, earlier: u32) -> bool {
        let passed = |at: u32| self.targets.partition_point(|&to| to <= at);
        earlier < at && passed(earlier) == passed(at)
    }
}

/// An instruction of a code object.
#[derive(Debug)]
struct Site {
    span: Span,
    loops: Vec<(Loop, Py<PyString>)>,
}

/// A frame around the location of the last operation.
#[derive(Debug)]
struct Level {
    frame: Py<PyAny>,
    code: Rc<Code>,
    /// Depth of the trail around it.
    depth: usize,
    /// Iterations of its loops.
    iterations: Vec<(Span, i64)>,
    /// The instruction of the last operation in it, and the number of enclosing loops.
    last: Option<(u32, usize)>,
}

/// Where the kernel is.
#[derive(Debug, Default)]
pub(crate) struct Places {
    /// The frame that called the kernel.
    base: usize,
    /// The code of the kernel, whose frame has the names that it returns.
    kernel: usize,
    /// Its frame, once an operation has been traced.
    pub(crate) frame: Option<Py<PyAny>>,
    /// Frames of the kernel, outermost first.
    levels: Vec<Level>,
    codes: FxHashMap<usize, Rc<Code>>,
    sites: FxHashMap<(usize, u32), Rc<Site>>,
    /// Code encountered, with its globals.
    pub(crate) met: Vec<Met>,
}

/// The innermost Python frame.
pub(super) fn current(py: Python<'_>) -> Option<Bound<'_, PyAny>> {
    // SAFETY: the interpreter's lock is held; the result is borrowed, or null if no Python code runs.
    unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PyEval_GetFrame().cast()) }
}

fn outer<'py>(frame: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    frame.getattr(intern!(frame.py(), "f_back"))
}

fn last_instruction(frame: &Bound<'_, PyAny>) -> PyResult<u32> {
    Ok(frame.getattr(intern!(frame.py(), "f_lasti"))?.extract::<i64>()?.max(0) as u32)
}

impl Places {
    /// For a kernel with this code that is called from here.
    pub(crate) fn new(py: Python<'_>, kernel: &Bound<'_, PyAny>) -> Self {
        let base = current(py).map_or(0, |frame| frame.as_ptr() as usize);
        Places { base, kernel: kernel.as_ptr() as usize, ..Places::default() }
    }

    /// Resets the state before the kernel runs again.
    pub(crate) fn restart(&mut self) {
        self.levels.clear();
        self.frame = None;
    }

    /// Python's current location; updates the trace's enclosing calls and iterations.
    pub(crate) fn here(&mut self, py: Python<'_>, trace: &mut Trace<'_, '_>) -> PyResult<Span> {
        let Some(innermost) = current(py) else { return Ok(Span::default()) };
        if let Some(level) = self.levels.last()
            && level.frame.as_ptr() == innermost.as_ptr()
            && !level.code.resumed
        {
            let (code, last) = (level.code.clone(), level.last);
            let at = last_instruction(&innermost)?;
            let site = self.site(trace, &code, at)?;
            // Without a jump in between, the loops are in the same iterations.
            let same = |(earlier, loops): (u32, usize)| loops == site.loops.len() && code.follows(at, earlier);
            if !last.is_some_and(same) {
                self.iterate(trace, &innermost, &site)?;
            }
            if let Some(level) = self.levels.last_mut() {
                trace.leave_to(level.depth + level.iterations.len());
                level.last = Some((at, site.loops.len()));
            }
            return Ok(site.span);
        }
        self.walk(py, trace, innermost)
    }

    /// The same after a call or return.
    fn walk<'py>(
        &mut self,
        py: Python<'py>,
        trace: &mut Trace<'_, '_>,
        innermost: Bound<'py, PyAny>,
    ) -> PyResult<Span> {
        let mut frames = Vec::new();
        let mut at = innermost;
        while !at.is_none() && at.as_ptr() as usize != self.base {
            let code = self.code(py, trace, &at)?;
            let next = outer(&at)?;
            if !code.ours {
                frames.push((at, code));
            }
            at = next;
        }
        frames.reverse();
        let same = self.levels.iter().zip(&frames).take_while(|(l, (f, _))| l.frame.as_ptr() == f.as_ptr()).count();
        self.levels.truncate(same);
        if same == 0 {
            trace.leave_to(0);
        }
        let mut span = Span::default();
        for (index, (frame, code)) in frames.iter().enumerate().skip(same.saturating_sub(1)) {
            if index >= same {
                if index > 0 && !code.inlined {
                    trace.enter_call(code.name, span);
                }
                if self.frame.is_none() && code.object.as_ptr() as usize == self.kernel {
                    self.frame = Some(frame.clone().unbind());
                }
                let (frame, code) = (frame.clone().unbind(), code.clone());
                self.levels.push(Level { frame, code, depth: trace.depth(), iterations: Vec::new(), last: None });
            }
            if let Some(level) = self.levels.get_mut(index) {
                level.last = None;
            }
            let site = self.site(trace, code, last_instruction(frame)?)?;
            self.iterate(trace, frame, &site)?;
            span = site.span;
        }
        Ok(span)
    }

    /// Enters the iterations of the loops around a location of the innermost level, and leaves inner ones.
    fn iterate(&mut self, trace: &mut Trace<'_, '_>, frame: &Bound<'_, PyAny>, site: &Site) -> PyResult<()> {
        let Some(level) = self.levels.last_mut() else { return Ok(()) };
        if site.loops.is_empty() && level.iterations.is_empty() {
            trace.leave_to(level.depth);
            return Ok(());
        }
        let locals = frame.getattr(intern!(frame.py(), "f_locals"))?;
        let dict = locals.cast::<PyDict>().ok();
        let mut entered = 0;
        let mut same = true;
        for (around, name) in &site.loops {
            let value = match dict {
                Some(dict) => dict.get_item(name)?,
                None => locals.get_item(name).ok(),
            };
            let Some(value) = value.filter(|value| value.is_instance_of::<PyInt>()) else { continue };
            let Ok(value) = value.extract::<i64>() else { continue };
            same = same && level.iterations.get(entered) == Some(&(around.header, value));
            if !same {
                trace.leave_to(level.depth + entered);
                level.iterations.truncate(entered);
                trace.enter_iteration(around, value);
                level.iterations.push((around.header, value));
            }
            entered += 1;
        }
        trace.leave_to(level.depth + entered);
        level.iterations.truncate(entered);
        Ok(())
    }

    fn code(&mut self, py: Python<'_>, trace: &mut Trace<'_, '_>, frame: &Bound<'_, PyAny>) -> PyResult<Rc<Code>> {
        let object = frame.getattr(intern!(py, "f_code"))?;
        if let Some(known) = self.codes.get(&(object.as_ptr() as usize)) {
            return Ok(known.clone());
        }
        let globals = frame.getattr(intern!(py, "f_globals"))?;
        self.add(trace, &object, &globals)
    }

    /// Records a code object.
    pub(crate) fn add_code(
        &mut self,
        trace: &mut Trace<'_, '_>,
        object: &Bound<'_, PyAny>,
        globals: &Bound<'_, PyAny>,
    ) -> PyResult<FileId> {
        Ok(self.add(trace, object, globals)?.file)
    }

    fn add(
        &mut self,
        trace: &mut Trace<'_, '_>,
        object: &Bound<'_, PyAny>,
        globals: &Bound<'_, PyAny>,
    ) -> PyResult<Rc<Code>> {
        let py = object.py();
        let (ours, file, text, lines, modules, positions, targets): About =
            tracer(py)?.getattr("about_code")?.call1((object, globals))?.extract()?;
        let name: String = object.getattr("co_name")?.extract()?;
        let flags: u32 = object.getattr("co_flags")?.extract()?;
        let file = match (trace.sources().find(&file), text) {
            _ if ours => FileId::default(),
            (Some(known), Some(_)) => known,
            (_, Some(text)) => trace.add_file(&file, &text, &modules),
            (_, None) => trace.add_lines(&file, lines, &modules),
        };
        let inlined = matches!(&*name, "<listcomp>" | "<setcomp>" | "<dictcomp>" | "<genexpr>");
        let code = Rc::new(Code {
            object: object.clone().unbind(),
            ours,
            expression: inlined || name == "<lambda>",
            inlined,
            resumed: flags & RESUMED != 0,
            name: trace.name(&name),
            file,
            positions,
            targets,
        });
        if !ours {
            self.met.push((object.clone().unbind(), globals.clone().unbind()));
        }
        self.codes.insert(object.as_ptr() as usize, code.clone());
        Ok(code)
    }

    fn site(&mut self, trace: &mut Trace<'_, '_>, code: &Rc<Code>, at: u32) -> PyResult<Rc<Site>> {
        let key = (code.object.as_ptr() as usize, at);
        if let Some(known) = self.sites.get(&key) {
            return Ok(known.clone());
        }
        let span = span_of(trace, code, at);
        let loops = if code.expression { Vec::new() } else { trace.loops_around(span) };
        let named = |around: Loop| {
            let name = Python::attach(|py| PyString::intern(py, &around.variable).unbind());
            (around, name)
        };
        let site = Rc::new(Site { span, loops: loops.into_iter().map(named).collect() });
        self.sites.insert(key, site.clone());
        Ok(site)
    }

    /// The span of the last executed instruction of `frame`.
    pub(crate) fn span_in(&mut self, trace: &mut Trace<'_, '_>, frame: &Bound<'_, PyAny>) -> PyResult<Span> {
        let code = self.code(frame.py(), trace, frame)?;
        Ok(span_of(trace, &code, last_instruction(frame)?))
    }

    /// The span of an instruction of a code object; `None` for one of this package.
    pub(crate) fn span_at(
        &mut self,
        trace: &mut Trace<'_, '_>,
        frame: &Bound<'_, PyAny>,
        at: u32,
    ) -> PyResult<Option<Span>> {
        let code = self.code(frame.py(), trace, frame)?;
        Ok((!code.ours).then(|| span_of(trace, &code, at)))
    }
}

/// The source bytes of an instruction: the whole line if Python provides no columns.
fn span_of(trace: &Trace<'_, '_>, code: &Code, at: u32) -> Span {
    let sources = trace.sources();
    let file = code.file;
    let Some([Some(line), first, last, end]) = code.positions.get(at as usize / 2).copied() else {
        return Span::new(file, 0, 0);
    };
    let whole = sources.line_span(file, line).unwrap_or(Span::new(file, 0, 0));
    let start_of = |line: u32| {
        let span = sources.line_span(file, line)?;
        let text = sources.line_text(file, line)?;
        Some(span.start - (text.len() - text.trim_start().len()) as u32)
    };
    match (first, last, end) {
        (Some(first), Some(last), Some(end)) => match (start_of(line), start_of(last)) {
            // Lines without text have no columns.
            (Some(a), Some(b)) if a + first < whole.end && a + first <= b + end => Span::new(file, a + first, b + end),
            _ => whole,
        },
        _ => whole,
    }
}
