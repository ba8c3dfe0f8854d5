//! Program to text.

use std::fmt::{self, Write};

use super::{VERSION, base64, is_plain_name};
use crate::arg::Arg;
use crate::ids::{Loc, TrailId};
use crate::inst::Inst;
use crate::program::{Bound, Control, Node, NodeKind, Program, Step};
use crate::view::{Dim, Index, View};

/// The program as text; see the [module](super) for the form.
pub fn print(program: &Program) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = Printer { program, out: &mut out }.program();
    out
}

struct Printer<'a> {
    program: &'a Program,
    out: &'a mut String,
}

impl Printer<'_> {
    fn program(&mut self) -> fmt::Result {
        let p = self.program;
        writeln!(self.out, "nkir {VERSION}")?;
        self.out.push_str("kernel ");
        self.name(&p.name)?;
        writeln!(self.out, "\ntarget {}", p.target)?;
        for (i, file) in p.files.iter().enumerate() {
            write!(self.out, "file {i} ")?;
            self.quoted(file)?;
            self.out.push('\n');
        }
        for (i, trail) in p.trails.iter().enumerate().skip(1) {
            write!(self.out, "trail {i} < {} ", trail.parent.map_or(0, |t| t.0))?;
            let loc = match &trail.step {
                Step::Root => {
                    self.out.push_str("root");
                    Loc::default()
                }
                Step::Iteration { variable, value, is_count, loc, independent } => {
                    self.name(variable)?;
                    let count = if *is_count { " count" } else { "" };
                    let independent = if *independent { " independent" } else { "" };
                    write!(self.out, " = {value}{count}{independent}")?;
                    *loc
                }
                Step::Call { function, loc } => {
                    self.out.push_str("call ");
                    self.name(function)?;
                    *loc
                }
            };
            self.place(loc, TrailId::ROOT)?;
        }
        for (i, tag) in p.tags.iter().enumerate() {
            write!(self.out, "tag {i} ")?;
            self.quoted(&tag.name)?;
            for (word, before) in [(" after", &tag.after), (" issued after", &tag.issued_after)] {
                for (k, after) in before.iter().enumerate() {
                    write!(self.out, "{} {}", if k == 0 { word } else { "," }, after.0)?;
                }
            }
            if let Some(block) = tag.block {
                write!(self.out, " in {block}")?;
            }
            self.out.push('\n');
        }
        for (i, t) in p.tensors.iter().enumerate() {
            write!(self.out, "tensor %{i} ")?;
            self.name(&t.name)?;
            write!(self.out, ": {} {}{:?}", t.space, t.dtype, &t.shape[..])?;
            if let Some(a) = t.address {
                write!(self.out, " @({}, {})", a.partition, a.byte)?;
            }
            if t.unnamed {
                self.out.push_str(" unnamed");
            }
            if t.core != 0 {
                write!(self.out, " core {}", t.core)?;
            }
            if t.loops != 0 {
                write!(self.out, " loops {}", t.loops)?;
            }
            if let Some(data) = &t.data {
                self.out.push_str(" = \"");
                base64::encode(data, self.out);
                self.out.push('"');
            }
            self.place(t.loc, t.trail)?;
        }
        for (keyword, name, tensor) in p
            .inputs
            .iter()
            .map(|i| ("input", &i.name, i.tensor))
            .chain(p.outputs.iter().map(|o| ("output", &o.name, o.tensor)))
        {
            write!(self.out, "{keyword} ")?;
            self.name(name)?;
            writeln!(self.out, " %{}", tensor.0)?;
        }
        if p.registers != 0 {
            writeln!(self.out, "registers {}", p.registers)?;
        }
        for core in &p.cores {
            self.out.push_str("core {\n");
            self.body(core, 1)?;
            self.out.push_str("}\n");
        }
        Ok(())
    }

    fn body(&mut self, nodes: &[Node], depth: usize) -> fmt::Result {
        for node in nodes {
            self.indent(depth);
            match &node.kind {
                NodeKind::Inst(inst) => {
                    self.inst(inst)?;
                    if let Some(tag) = node.tag {
                        write!(self.out, " !{}", tag.0)?;
                    }
                    self.place(node.loc, node.trail)?;
                    continue;
                }
                NodeKind::Control(control) => match &**control {
                    Control::For { variable, lower, upper, step, body } => {
                        write!(self.out, "for r{} in ", variable.0)?;
                        self.bound(*lower)?;
                        self.out.push_str("..");
                        self.bound(*upper)?;
                        if *step != 1 {
                            write!(self.out, " step {step}")?;
                        }
                        self.out.push_str(" {");
                        self.place(node.loc, node.trail)?;
                        self.body(body, depth + 1)?;
                    }
                    Control::While { condition, body } => {
                        write!(self.out, "while r{} {{", condition.0)?;
                        self.place(node.loc, node.trail)?;
                        self.body(body, depth + 1)?;
                    }
                    Control::If { condition, then, otherwise } => {
                        write!(self.out, "if r{} {{", condition.0)?;
                        self.place(node.loc, node.trail)?;
                        self.body(then, depth + 1)?;
                        if !otherwise.is_empty() {
                            self.indent(depth);
                            self.out.push_str("} else {\n");
                            self.body(otherwise, depth + 1)?;
                        }
                    }
                },
            }
            self.indent(depth);
            self.out.push_str("}\n");
        }
        Ok(())
    }

    fn inst(&mut self, inst: &Inst) -> fmt::Result {
        let schema = inst.schema();
        write!(self.out, "{}(", schema.name)?;
        let mut first = true;
        for (operand, arg) in schema.operands.iter().zip(inst.args()) {
            if operand.default.is_some_and(|default| default() == arg) {
                continue;
            }
            if !first {
                self.out.push_str(", ");
            }
            first = false;
            write!(self.out, "{}=", operand.name)?;
            self.arg(&arg)?;
        }
        self.out.push(')');
        Ok(())
    }

    fn arg(&mut self, arg: &Arg) -> fmt::Result {
        match arg {
            Arg::None => self.out.write_str("None"),
            Arg::Bool(true) => self.out.write_str("True"),
            Arg::Bool(false) => self.out.write_str("False"),
            Arg::Int(i) => write!(self.out, "{i}"),
            // The shortest text that parses to the same bits; always with a point, an exponent or a name.
            Arg::Float(x) => write!(self.out, "{x:?}"),
            Arg::Name(n) => self.out.write_str(n),
            Arg::Text(s) => self.quoted(s),
            Arg::DType(d) => write!(self.out, "dtype {d}"),
            Arg::View(v) => self.view(v),
            Arg::Register(r) => write!(self.out, "r{}", r.0),
            Arg::List(list) => {
                self.out.push('[');
                for (i, a) in list.iter().enumerate() {
                    if i > 0 {
                        self.out.push_str(", ");
                    }
                    self.arg(a)?;
                }
                self.out.push(']');
                Ok(())
            }
        }
    }

    fn view(&mut self, view: &View) -> fmt::Result {
        write!(self.out, "%{}", view.tensor.0)?;
        let tensor = self.program.tensors.get(view.tensor.0 as usize);
        if tensor.is_none_or(|t| t.dtype != view.dtype) {
            write!(self.out, ":{}", view.dtype)?;
        }
        if tensor.is_some_and(|t| is_whole(view, &View::whole(view.tensor, t))) {
            return Ok(());
        }
        self.out.push('[');
        let mut dims = &view.dims[..];
        if view.space.is_on_chip()
            && let Some((outer, free)) = dims.split_first()
        {
            let first = view.partition;
            let &Dim { stride, count } = outer;
            if stride == 1
                && let Some(end) = first.checked_add(count)
            {
                write!(self.out, "p {first}..{end}; ")?;
            } else {
                write!(self.out, "p {first}+{stride}x{count}; ")?;
            }
            dims = free;
        }
        if view.offset != 0 {
            write!(self.out, "+{}; ", view.offset)?;
        }
        for (i, &Dim { stride, count }) in dims.iter().enumerate() {
            write!(self.out, "{}{stride}x{count}", if i > 0 { ", " } else { "" })?;
        }
        if let Some(indirect) = view.indirect.as_deref() {
            self.out.push_str("; by ");
            match &indirect.index {
                Index::Register(r) => write!(self.out, "r{}", r.0)?,
                Index::Scalar(v) => {
                    self.out.push_str("scalar ");
                    self.view(v)?;
                }
                Index::Columns(v) => {
                    self.out.push_str("columns ");
                    self.view(v)?;
                }
                Index::Vector(v) => {
                    self.out.push_str("vector ");
                    self.view(v)?;
                }
            }
            write!(self.out, " x{} < {}", indirect.stride, indirect.bound)?;
        }
        self.out.push(']');
        Ok(())
    }

    fn bound(&mut self, bound: Bound) -> fmt::Result {
        match bound {
            Bound::Static(i) => write!(self.out, "{i}"),
            Bound::Register(r) => write!(self.out, "r{}", r.0),
        }
    }

    /// Ends a line with its statement's location.
    fn place(&mut self, loc: Loc, trail: TrailId) -> fmt::Result {
        if loc != Loc::default() || trail != TrailId::ROOT {
            self.out.push_str("  #");
            if loc != Loc::default() {
                self.out.push(' ');
                if loc.file != 0 {
                    write!(self.out, "{}:", loc.file)?;
                }
                write!(self.out, "{}:{} {}..{}", loc.line, loc.column, loc.start, loc.end)?;
            }
            if trail != TrailId::ROOT {
                write!(self.out, " t{}", trail.0)?;
            }
        }
        self.out.push('\n');
        Ok(())
    }

    fn name(&mut self, name: &str) -> fmt::Result {
        if is_plain_name(name) { self.out.write_str(name) } else { self.quoted(name) }
    }

    fn quoted(&mut self, text: &str) -> fmt::Result {
        self.out.push('"');
        for c in text.chars() {
            match c {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\n' => self.out.push_str("\\n"),
                '\t' => self.out.push_str("\\t"),
                c if c.is_control() => write!(self.out, "\\u{{{:x}}}", u32::from(c))?,
                c => self.out.push(c),
            }
        }
        self.out.push('"');
        Ok(())
    }

    fn indent(&mut self, depth: usize) {
        for _ in 0..depth {
            self.out.push_str("  ");
        }
    }
}

/// Whether `view` equals `whole` except for its dtype.
fn is_whole(view: &View, whole: &View) -> bool {
    view.partition == 0
        && view.offset == 0
        && view.dims == whole.dims
        && view.space == whole.space
        && view.indirect.is_none()
}
