//! `--strict`: constructs that the official compiler's reader rejects.
//!
//! The reader analyses whole functions, including statements that never run, so a function is checked by a walk over its syntax. Checks that
//! need a value (an int for an enum, a list as an argument) are performed where the value is used, by [`reject`].
//!
//! Sources: nki-language-guide.rst and migration/index.rst of the SDK 2.32; the reader of github.com/leanprover/KLR
//! (`interop/klr/gather.c`, `KLR/NKI/Simplify.lean`).

use std::rc::Rc;

use nki_diag::Span;

use crate::dialect::common::strict::reject;
use crate::eval::Interp;
use crate::eval::language::Construct;
use crate::eval::value::{BuiltinType, Function, Value};
use crate::syntax::*;

/// Built-in functions supported by the compiler.
const BUILTINS: &[&str] =
    &["abs", "divmod", "enumerate", "isinstance", "len", "max", "min", "print", "range", "sum", "zip"];

/// Supported decorators.
const DECORATORS: &[&str] = &["jit", "staticmethod", "dataclass"];

/// Supported base classes.
const BASES: &[&str] = &["NKIObject", "Enum", "NamedTuple"];

/// Supported functions of `math` (KLR, `KLR/Trace/Python.lean`).
const MATH: &[&str] = &["ceil", "floor", "gcd", "log2", "log10", "pow", "sqrt"];

/// Supported methods of lists and of dicts (KLR, `KLR/Trace/Python.lean`).
const LIST_METHODS: &[&str] = &["append", "clear", "copy", "count", "extend", "index", "pop", "remove", "reverse"];
const DICT_METHODS: &[&str] = &["clear", "copy", "get", "items", "keys", "pop", "setdefault", "values"];

/// A rejected construct: its location, a description, and the replacement.
type Finding = (Span, String, &'static str);

/// Reports rejected parts of a construct of a kernel.
pub(super) fn check(interp: &mut Interp<'_>, construct: &Construct<'_>) {
    match *construct {
        Construct::Function(called) => function(interp, called),
        Construct::Class(def) => class(interp, def),
        Construct::Call(callee, span) => call(interp, callee, span),
        Construct::Method(base, name, span) => method(interp, base, name, span),
        Construct::NestedIndex(span) => {
            reject(interp, span, "an index of an index", "write one index, or the method .slice");
        }
        Construct::DictKey(class, span) => {
            let what = format!("a dict key of type {class}");
            reject(interp, span, &what, "use `str(key)` as the key, or a list indexed by number");
        }
        Construct::ListArgument(span) => reject(interp, span, "a list as a kernel argument", "pass a tuple"),
    }
}

fn function(interp: &mut Interp<'_>, function: &Rc<Function>) {
    // Checked with the enclosing function.
    if function.def.name == sym::genexpr {
        return;
    }
    let mut walk = Walk { interp, function, found: Vec::new() };
    walk.function(&function.def);
    for (span, what, instead) in std::mem::take(&mut walk.found) {
        reject(interp, span, &what, instead);
    }
}

fn class(interp: &mut Interp<'_>, def: &ClassDef) {
    for decorator in &def.decorators {
        if let Some((what, instead)) = unknown_decorator(interp, decorator) {
            reject(interp, decorator.span, &what, instead);
        }
    }
    if def.bases.is_empty() {
        let what = format!("the class `{}`, which derives from nothing,", interp.name(def.name));
        reject(interp, def.name_span, &what, "derive from nl.NKIObject, Enum or NamedTuple");
    }
    for base in &def.bases {
        if !BASES.contains(&&*last_word(interp, base)) {
            let what = format!("the base class `{}`", interp.source_text(base.span));
            let instead = "derive only from nl.NKIObject, Enum or NamedTuple, and keep shared data in a field";
            reject(interp, base.span, &what, instead);
        }
    }
    if let Some((_, value)) = def.keywords.first() {
        reject(interp, value.span, "a keyword in a class statement", "leave it out");
    }
}

fn method(interp: &mut Interp<'_>, base: &Value, name: &str, span: Span) {
    let (what, known) = match base {
        Value::List(_) => ("list", LIST_METHODS),
        Value::Dict(_) => ("dict", DICT_METHODS),
        _ => return,
    };
    if !known.contains(&name) {
        reject(interp, span, &format!("the method `{what}.{name}`"), "write it out with `for`, append and pop");
    }
}

fn call(interp: &mut Interp<'_>, callee: &Value, span: Span) {
    match callee {
        Value::Native(native) => match native.name.split_once('.') {
            Some(("numpy", name)) => {
                let instead = "pass the array as an argument, or make a tensor: nl.zeros, nl.full, nl.shared_constant";
                reject(interp, span, &format!("a call of `np.{name}`"), instead);
            }
            Some(("math", name)) if !MATH.contains(&name) => {
                let instead = "compute the number outside of the kernel and pass it";
                reject(interp, span, &format!("a call of `math.{name}`"), instead);
            }
            _ => {}
        },
        Value::Kernel(_) => {
            let instead = "decorate only the kernel that is launched";
            reject(interp, span, "a call of a decorated kernel", instead);
        }
        Value::Type(BuiltinType::Set | BuiltinType::FrozenSet) => reject(interp, span, "a set", "use a list or a dict"),
        _ => {}
    }
}

/// The finding about a decorator that the compiler does not support.
fn unknown_decorator(interp: &Interp<'_>, decorator: &Expr) -> Option<(String, &'static str)> {
    let word = last_word(interp, decorator);
    let instead = "only nki.jit, staticmethod and dataclass are known; call the wrapper by hand";
    (!DECORATORS.contains(&&*word)).then(|| (format!("the decorator `{word}`"), instead))
}

/// The last name of `a.b.c` or `a.b.c(...)`.
fn last_word(interp: &Interp<'_>, expr: &Expr) -> String {
    match &expr.kind {
        ExprKind::Call(callee, _) => last_word(interp, callee),
        ExprKind::Name(name, _) | ExprKind::Attr(_, name) => interp.name(*name).to_string(),
        _ => interp.source_text(expr.span),
    }
}

struct Walk<'w, 'i> {
    interp: &'w Interp<'i>,
    function: &'w Function,
    found: Vec<Finding>,
}

impl Walk<'_, '_> {
    fn say(&mut self, span: Span, what: impl Into<String>, instead: &'static str) {
        self.found.push((span, what.into(), instead));
    }

    fn function(&mut self, def: &FuncDef) {
        for param in &def.params {
            match param.kind {
                ParamKind::Star => self.say(param.span, "`*args`", "take one parameter that is a tuple"),
                ParamKind::DoubleStar => self.say(param.span, "`**kwargs`", "name the parameters, with defaults"),
                ParamKind::KeywordOnly => {
                    self.say(param.span, "a keyword-only parameter", "leave out the `*` before it (dropped in NKI 0.3)")
                }
                ParamKind::PositionalOnly => {
                    self.say(param.span, "a positional-only parameter", "leave out the `/` after it")
                }
                ParamKind::Normal => {}
            }
        }
        for decorator in &def.decorators {
            if let Some((what, instead)) = unknown_decorator(self.interp, decorator) {
                self.say(decorator.span, what, instead);
            }
        }
        self.block(&def.body);
    }

    fn block(&mut self, body: &[Stmt]) {
        body.iter().for_each(|s| self.stmt(s));
    }

    fn orelse(&mut self, orelse: &[Stmt]) {
        if let Some(first) = orelse.first() {
            self.say(first.span, "`else` of a loop", "set a flag in the loop and test it afterwards");
        }
        self.block(orelse);
    }

    fn stmt(&mut self, stmt: &Stmt) {
        let span = stmt.span;
        match &stmt.kind {
            StmtKind::Expr(e) => self.expr(e),
            StmtKind::Assign(targets, value) => {
                self.expr(value);
                self.exprs(targets);
            }
            StmtKind::AugAssign(target, op, value) => {
                if *op == BinOp::MatMul {
                    self.say(span, "`@=`", "call nl.matmul or nisa.nc_matmul");
                }
                self.expr(value);
                self.expr(target);
            }
            StmtKind::AnnAssign(target, _, value) => {
                value.iter().for_each(|e| self.expr(e));
                self.expr(target);
            }
            StmtKind::If(arms, orelse) => {
                for (test, body) in arms {
                    self.expr(test);
                    self.block(body);
                }
                self.block(orelse);
            }
            StmtKind::For(f) => {
                if matches!(f.target.kind, ExprKind::Tuple(_) | ExprKind::List(_)) {
                    self.say(
                        f.target.span,
                        "a `for` with several variables",
                        "loop over one, and unpack it in the body",
                    );
                }
                self.expr(&f.iter);
                self.expr(&f.target);
                self.block(&f.body);
                self.orelse(&f.orelse);
            }
            StmtKind::While(test, body, orelse) => {
                self.expr(test);
                self.block(body);
                self.orelse(orelse);
            }
            StmtKind::Return(value) => value.iter().for_each(|e| self.expr(e)),
            StmtKind::Raise(value, cause) => {
                self.say(span, "`raise`", "write `assert condition, message`");
                value.iter().chain(cause).for_each(|e| self.expr(e));
            }
            StmtKind::Assert(test, message) => {
                self.expr(test);
                message.iter().for_each(|e| self.expr(e));
            }
            StmtKind::With(items, body) => {
                for (context, target) in items {
                    let plain = matches!(&context.kind, ExprKind::Call(_, a) if a.is_empty());
                    if !plain || last_word(self.interp, context) != "no_reorder" {
                        self.say(context.span, "this `with`", "the only context manager is nl.no_reorder()");
                    }
                    if let Some(target) = target {
                        self.say(target.span, "`as` of a `with`", "leave it out: nl.no_reorder() gives no value");
                    }
                }
                self.block(body);
            }
            StmtKind::Try(t) => {
                self.say(span, "`try`", "test with `if` beforehand");
                self.block(&t.body);
                t.handlers.iter().for_each(|h| self.block(&h.body));
                self.block(&t.orelse);
                self.block(&t.finally);
            }
            StmtKind::Match(m) => {
                self.say(span, "`match`", "write `if` and `elif`; NKI 0.7 accepts it");
                self.expr(&m.subject);
                for case in &m.cases {
                    case.guard.iter().for_each(|e| self.expr(e));
                    self.block(&case.body);
                }
            }
            StmtKind::Yield(y) => {
                self.say(span, "`yield`", "return a list of the items; NKI 0.7 accepts it");
                y.value.iter().for_each(|e| self.expr(e));
            }
            StmtKind::Def(def, _) => self.function(def),
            StmtKind::Class(..) => {
                self.say(span, "a class inside a function", "define it at the top of the file");
            }
            StmtKind::Import(_) | StmtKind::ImportFrom(_) => {
                self.say(span, "an import inside a function", "import at the top of the file");
            }
            StmtKind::Delete(_) => self.say(span, "`del`", "leave it out; list.pop and dict.pop remove items"),
            StmtKind::Global(_) => self.say(span, "`global`", "pass the value as an argument and return it"),
            StmtKind::Nonlocal(_) => self.say(span, "`nonlocal`", "keep the value in a list or an NKIObject"),
            StmtKind::Break | StmtKind::Continue | StmtKind::Pass | StmtKind::Unsupported(_) => {}
        }
    }

    /// The loops and tests of a generator expression.
    fn generator(&mut self, body: &[Stmt]) {
        for stmt in body {
            match &stmt.kind {
                StmtKind::For(f) => {
                    if !matches!(f.iter.kind, ExprKind::Name(sym::iterable, _)) {
                        self.expr(&f.iter);
                    }
                    self.generator(&f.body);
                }
                StmtKind::If(arms, _) => arms.iter().for_each(|(test, body)| {
                    self.expr(test);
                    self.generator(body);
                }),
                StmtKind::Yield(y) => y.value.iter().for_each(|e| self.expr(e)),
                _ => self.stmt(stmt),
            }
        }
    }

    fn exprs(&mut self, exprs: &[Expr]) {
        exprs.iter().for_each(|e| self.expr(e));
    }

    fn expr(&mut self, expr: &Expr) {
        let span = expr.span;
        match &expr.kind {
            ExprKind::Name(name, Slot::Global(index)) => self.builtin(*name, *index, span),
            ExprKind::Attr(base, _) | ExprKind::Unary(_, base) => self.expr(base),
            ExprKind::Subscript(a, b) => {
                self.expr(a);
                self.expr(b);
            }
            ExprKind::Binary(op, a, b) => {
                if *op == BinOp::MatMul {
                    self.say(span, "`@`", "call nl.matmul or nisa.nc_matmul");
                }
                self.expr(a);
                self.expr(b);
            }
            ExprKind::Slice(a, b, c) => [a, b, c].into_iter().flatten().for_each(|e| self.expr(e)),
            ExprKind::Set(items) => {
                self.say(span, "a set", "use a list or a dict");
                self.exprs(items);
            }
            ExprKind::Tuple(items) | ExprKind::List(items) | ExprKind::And(items) | ExprKind::Or(items) => {
                self.exprs(items);
            }
            ExprKind::Dict(items) => {
                for (key, value) in items {
                    match key {
                        Some(key) => self.expr(key),
                        None => self.say(value.span, "`**` in a dict", "copy the dict and set its keys"),
                    }
                    self.expr(value);
                }
            }
            ExprKind::Compare(left, rest) => {
                if rest.iter().any(|(op, _)| matches!(op, CmpOp::Is | CmpOp::IsNot)) {
                    self.say(span, "`is`", "write == or !=");
                }
                self.expr(left);
                rest.iter().for_each(|(_, e)| self.expr(e));
            }
            ExprKind::IfElse(a, b, c) => [a, b, c].into_iter().for_each(|e| self.expr(e)),
            ExprKind::Call(callee, arguments) => {
                self.expr(callee);
                arguments.iter().for_each(|argument| self.argument(argument));
            }
            ExprKind::Lambda(def) => {
                self.say(span, "`lambda`", "define a function with `def`");
                self.block(&def.body);
            }
            ExprKind::Walrus(_, value) => {
                self.say(span, "`:=`", "assign in a statement of its own");
                self.expr(value);
            }
            ExprKind::Comp(comp) => {
                self.say(span, "a comprehension", "append to a list in a `for` loop");
                comp.key.iter().for_each(|e| self.expr(e));
                self.expr(&comp.element);
                for clause in &comp.clauses {
                    self.expr(&clause.iter);
                    self.exprs(&clause.ifs);
                }
            }
            ExprKind::Generator(def, iterable) => {
                self.say(span, "a comprehension", "append to a list in a `for` loop");
                self.expr(iterable);
                self.generator(&def.body);
            }
            ExprKind::Yield(value, _) => value.iter().for_each(|e| self.expr(e)),
            ExprKind::FString(parts) => {
                for part in parts {
                    if let FPart::Value { expr, spec, .. } = part {
                        if spec.is_some() {
                            self.say(expr.span, "a format specification", "write {value} alone");
                        }
                        self.expr(expr);
                    }
                }
            }
            ExprKind::Starred(inner) => {
                self.say(span, "`*` in front of a value or target", "write the items out");
                self.expr(inner);
            }
            ExprKind::Name(..)
            | ExprKind::None
            | ExprKind::Bool(_)
            | ExprKind::Int(_)
            | ExprKind::Float(_)
            | ExprKind::Str(_)
            | ExprKind::Ellipsis
            | ExprKind::Unsupported(_) => {}
        }
    }

    fn argument(&mut self, argument: &Argument) {
        let expr = match argument {
            Argument::Positional(e) | Argument::Keyword(_, e) => e,
            Argument::Star(e) => {
                self.say(e.span, "`*` in a call", "write the arguments out");
                e
            }
            Argument::DoubleStar(e) => {
                self.say(e.span, "`**` in a call", "write the arguments out");
                e
            }
        };
        self.expr(expr);
    }

    /// A function of Python that the compiler does not support, unless the module has one of that name.
    fn builtin(&mut self, name: Symbol, index: u32, span: Span) {
        let globals = self.function.module.globals.borrow();
        let Some(Value::Native(native)) = globals.get(index as usize) else { return };
        let text = self.interp.name(name);
        if native.name != *text || BUILTINS.contains(&&*text) {
            return;
        }
        drop(globals);
        self.say(span, format!("the built-in `{text}`"), "write it out with `for` and `if`");
    }
}

#[cfg(test)]
mod tests;
