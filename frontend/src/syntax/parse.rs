//! From source text to [`crate::syntax`]: the only file that uses the parser crate's types.
//!
//! The parser recovers from errors, so every syntax error of a file is reported at once. Nesting is bounded before
//! parsing, from the token stream, because recursive descent would overflow the stack on hostile input.

mod forms;

use std::cell::{Cell, OnceCell};
use std::rc::Rc;

use nki_diag::{Diagnostic, FileId, Span};
use ruff_python_ast as py;
use ruff_python_ast::token::TokenKind;
use ruff_python_parser::{Mode, ParseOptions, lexer};
use ruff_text_size::{Ranged, TextRange};

use super::hoist;
use crate::syntax::*;

/// Maximum combined nesting of brackets, blocks and chained operators.
const MAX_NESTING: u32 = 1000;

/// Parses one file. With syntax errors the tree is what could be recovered.
pub(crate) fn parse(file: FileId, text: &str, names: &mut Interner) -> (ModuleAst, Vec<Diagnostic>) {
    let mut diagnostics = Vec::new();
    let empty = || ModuleAst { body: Vec::new(), scope: Scope::default(), globals: Vec::new(), functions: Vec::new() };
    if u32::try_from(text.len()).is_err() {
        let span = Span { file, start: 0, end: 0 };
        diagnostics.push(Diagnostic::error("syntax-error", "the file is larger than 4 GiB").at(span, "here"));
        return (empty(), diagnostics);
    }
    if let Some(offset) = too_deep(text) {
        let span = Span { file, start: offset, end: (offset + 1).min(text.len() as u32) };
        diagnostics.push(
            Diagnostic::error("nesting-too-deep", format!("code is nested more than {MAX_NESTING} levels deep"))
                .at(span, "the limit is exceeded here")
                .help("split the expression or the block over several statements or functions"),
        );
        return (empty(), diagnostics);
    }
    let parsed = ruff_python_parser::parse_unchecked(text, ParseOptions::from(Mode::Module));
    for error in parsed.errors() {
        let span = span(file, error.location);
        diagnostics.push(Diagnostic::error("syntax-error", error.error.to_string()).at(span, "not valid Python"));
    }
    let py::Mod::Module(module) = parsed.into_syntax() else {
        return (empty(), diagnostics);
    };
    let mut convert = Convert { file, names, text, yields: false, class: None };
    let body = convert.block(&module.body);
    if diagnostics.is_empty() {
        super::scopes::check(&body, names, &mut diagnostics);
    }
    (ModuleAst { body, scope: Scope::default(), globals: Vec::new(), functions: Vec::new() }, diagnostics)
}

/// Python's mangling of a private name in a class: `__x` in `C` or `_C` is `_C__x`. None for other names.
pub(crate) fn private(class: &str, name: &str) -> Option<String> {
    let class = class.trim_start_matches('_');
    let is_private = !class.is_empty() && name.starts_with("__") && !name.ends_with("__");
    is_private.then(|| format!("_{class}{name}"))
}

/// The byte offset at which nesting passes [`MAX_NESTING`], if it does.
fn too_deep(text: &str) -> Option<u32> {
    // One counter of chained operators per open bracket or line; a comma or a new line starts a new chain.
    let mut chains: Vec<u32> = vec![0];
    let (mut total, mut lines) = (0u32, 0usize);
    let mut lexer = lexer::lex(text, Mode::Module);
    loop {
        let kind = lexer.next_token();
        lines += usize::from(matches!(kind, TokenKind::Newline | TokenKind::NonLogicalNewline));
        match kind {
            TokenKind::EndOfFile => return None,
            TokenKind::Lpar
            | TokenKind::Lsqb
            | TokenKind::Lbrace
            | TokenKind::Indent
            | TokenKind::FStringStart
            | TokenKind::TStringStart => {
                // The bracket also lengthens the chain it is in: `f()()()` nests.
                if let Some(top) = chains.last_mut() {
                    *top += 1;
                }
                chains.push(0);
                total += 2;
            }
            TokenKind::Rpar
            | TokenKind::Rsqb
            | TokenKind::Rbrace
            | TokenKind::Dedent
            | TokenKind::FStringEnd
            | TokenKind::TStringEnd
                if chains.len() > 1 =>
            {
                total = total.saturating_sub(1 + chains.pop().unwrap_or(0));
            }
            TokenKind::Newline | TokenKind::Comma | TokenKind::Semi => {
                if let Some(top) = chains.last_mut() {
                    total = total.saturating_sub(std::mem::take(top));
                }
            }
            TokenKind::Plus
            | TokenKind::Minus
            | TokenKind::Star
            | TokenKind::Slash
            | TokenKind::Vbar
            | TokenKind::Amper
            | TokenKind::Dot
            | TokenKind::Percent
            | TokenKind::Tilde
            | TokenKind::CircumFlex
            | TokenKind::LeftShift
            | TokenKind::RightShift
            | TokenKind::DoubleStar
            | TokenKind::DoubleSlash
            | TokenKind::At
            | TokenKind::ColonEqual
            | TokenKind::If
            | TokenKind::Else
            | TokenKind::Lambda
            | TokenKind::Not
            | TokenKind::Await
            | TokenKind::Yield
            | TokenKind::From
            | TokenKind::For
            | TokenKind::Async
            | TokenKind::Colon => {
                if let Some(top) = chains.last_mut() {
                    *top += 1;
                    total += 1;
                }
            }
            _ => {}
        }
        if total > MAX_NESTING {
            // The lexer does not report the position: the line is close enough.
            return Some(text.split_inclusive('\n').take(lines).map(|l| l.len() as u32).sum());
        }
    }
}

fn span(file: FileId, range: TextRange) -> Span {
    Span { file, start: range.start().into(), end: range.end().into() }
}

struct Convert<'a> {
    file: FileId,
    names: &'a mut Interner,
    text: &'a str,
    /// Whether the function being converted contains a `yield`.
    yields: bool,
    /// The name of the class whose body is being converted.
    class: Option<String>,
}

impl Convert<'_> {
    fn span(&self, node: &impl Ranged) -> Span {
        span(self.file, node.range())
    }

    fn sym(&mut self, identifier: &py::Identifier) -> Symbol {
        self.intern(identifier.id.as_str())
    }

    /// The symbol of a name. In a class `C`, the name `__x` is `_C__x`.
    fn intern(&mut self, name: &str) -> Symbol {
        match self.class.as_deref().and_then(|class| private(class, name)) {
            Some(name) => self.names.intern(&name),
            None => self.names.intern(name),
        }
    }

    /// The body of the class of this name.
    fn class_body(&mut self, name: &str, body: &[py::Stmt]) -> Vec<Stmt> {
        let outer = self.class.replace(name.to_owned());
        let body = self.block(body);
        self.class = outer;
        body
    }

    fn name(&mut self, identifier: &py::Identifier) -> Expr {
        let symbol = self.sym(identifier);
        Expr { kind: ExprKind::Name(symbol, Slot::Unresolved), span: self.span(identifier) }
    }

    fn block(&mut self, body: &[py::Stmt]) -> Vec<Stmt> {
        body.iter().map(|s| self.stmt(s)).collect()
    }

    fn stmt(&mut self, stmt: &py::Stmt) -> Stmt {
        let span = self.span(stmt);
        Stmt { kind: self.stmt_kind(stmt), span }
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each kind of statement")]
    fn stmt_kind(&mut self, stmt: &py::Stmt) -> StmtKind {
        let unsupported = |construct, instead| StmtKind::Unsupported(Unsupported { construct, instead });
        match stmt {
            py::Stmt::Expr(s) => StmtKind::Expr(self.expr(&s.value)),
            py::Stmt::Assign(s) => StmtKind::Assign(self.exprs(&s.targets), self.expr(&s.value)),
            py::Stmt::AugAssign(s) => StmtKind::AugAssign(self.expr(&s.target), bin_op(s.op), self.expr(&s.value)),
            py::Stmt::AnnAssign(s) => StmtKind::AnnAssign(
                self.expr(&s.target),
                Annotation {
                    span: self.span(&*s.annotation),
                    item: s.annotation.is_subscript_expr().then(|| self.expr(&s.annotation)),
                },
                s.value.as_ref().map(|v| self.expr(v)),
            ),
            py::Stmt::If(s) => {
                let mut arms = vec![(self.expr(&s.test), self.block(&s.body))];
                let mut orelse = Vec::new();
                for clause in &s.elif_else_clauses {
                    let body = self.block(&clause.body);
                    match &clause.test {
                        Some(test) => arms.push((self.expr(test), body)),
                        None => orelse = body,
                    }
                }
                StmtKind::If(arms, orelse)
            }
            py::Stmt::For(s) if s.is_async => unsupported("`async for`", "use a plain `for` loop"),
            py::Stmt::For(s) => StmtKind::For(Box::new(For {
                target: self.expr(&s.target),
                iter: self.expr(&s.iter),
                body: self.block(&s.body),
                orelse: self.block(&s.orelse),
                carried: OnceCell::new(),
                own: OnceCell::new(),
                differs: Cell::new(false),
            })),
            py::Stmt::While(s) => StmtKind::While(self.expr(&s.test), self.block(&s.body), self.block(&s.orelse)),
            py::Stmt::Break(_) => StmtKind::Break,
            py::Stmt::Continue(_) => StmtKind::Continue,
            py::Stmt::Pass(_) => StmtKind::Pass,
            py::Stmt::Return(s) => StmtKind::Return(s.value.as_ref().map(|v| self.expr(v))),
            py::Stmt::Assert(s) => StmtKind::Assert(self.expr(&s.test), s.msg.as_ref().map(|m| self.expr(m))),
            py::Stmt::Raise(s) => {
                StmtKind::Raise(s.exc.as_ref().map(|e| self.expr(e)), s.cause.as_ref().map(|e| self.expr(e)))
            }
            py::Stmt::With(s) if s.is_async => unsupported("`async with`", "NKI only has `with nl.no_reorder():`"),
            py::Stmt::With(s) => {
                let items = s
                    .items
                    .iter()
                    .map(|item| (self.expr(&item.context_expr), item.optional_vars.as_ref().map(|v| self.expr(v))))
                    .collect();
                StmtKind::With(items, self.block(&s.body))
            }
            py::Stmt::Try(s) if s.is_star => unsupported("`except*`", "check the condition with `if` or `assert`"),
            py::Stmt::Try(s) => {
                let handlers = s
                    .handlers
                    .iter()
                    .map(|py::ExceptHandler::ExceptHandler(h)| Handler {
                        class: h.type_.as_ref().map(|t| self.expr(t)),
                        name: h.name.as_ref().map(|n| self.name(n)),
                        body: self.block(&h.body),
                    })
                    .collect();
                StmtKind::Try(Box::new(Try {
                    body: self.block(&s.body),
                    handlers,
                    orelse: self.block(&s.orelse),
                    finally: self.block(&s.finalbody),
                }))
            }
            py::Stmt::FunctionDef(s) => {
                let mut def = self.function(Some(&s.parameters), |convert| convert.block(&s.body));
                def.name = self.sym(&s.name);
                def.name_span = self.span(&s.name);
                def.returns = s.returns.as_ref().map(|r| self.span(&**r));
                def.decorators = s.decorator_list.iter().map(|d| self.expr(&d.expression)).collect();
                def.is_async = s.is_async;
                StmtKind::Def(Rc::new(def), self.name(&s.name))
            }
            py::Stmt::ClassDef(s) => {
                let (mut bases, mut keywords) = (Vec::new(), Vec::new());
                if let Some(arguments) = &s.arguments {
                    bases = self.exprs(&arguments.args);
                    for keyword in &arguments.keywords {
                        if let Some(name) = &keyword.arg {
                            keywords.push((self.sym(name), self.expr(&keyword.value)));
                        }
                    }
                }
                let yields = self.yields;
                let def = ClassDef {
                    name: self.sym(&s.name),
                    bases,
                    keywords,
                    decorators: s.decorator_list.iter().map(|d| self.expr(&d.expression)).collect(),
                    body: self.class_body(s.name.id.as_str(), &s.body),
                    has_type_params: s.type_params.is_some(),
                    scope: Scope::default(),
                    name_span: self.span(&s.name),
                };
                // A `yield` in a class body belongs to no function.
                self.yields = yields;
                StmtKind::Class(Rc::new(def), self.name(&s.name))
            }
            py::Stmt::Import(s) => StmtKind::Import(
                s.names
                    .iter()
                    .map(|alias| {
                        let path = alias.name.id.as_str().to_owned();
                        let first = path.split('.').next().unwrap_or("").to_owned();
                        let symbol = self.names.intern(alias.asname.as_ref().map_or(&first, |n| n.id.as_str()));
                        let bind = Expr { kind: ExprKind::Name(symbol, Slot::Unresolved), span: self.span(alias) };
                        ImportName { path, has_alias: alias.asname.is_some(), bind }
                    })
                    .collect(),
            ),
            py::Stmt::ImportFrom(s) => {
                let mut import = ImportFrom {
                    level: s.level,
                    path: s.module.as_ref().map_or(String::new(), |m| m.id.to_string()),
                    names: Vec::new(),
                    star: false,
                };
                for alias in &s.names {
                    if alias.name.id.as_str() == "*" {
                        import.star = true;
                        continue;
                    }
                    let symbol = self.sym(&alias.name);
                    let bind = self.name(alias.asname.as_ref().unwrap_or(&alias.name));
                    import.names.push((symbol, bind));
                }
                StmtKind::ImportFrom(import)
            }
            py::Stmt::Delete(s) => StmtKind::Delete(self.exprs(&s.targets)),
            py::Stmt::Global(s) => StmtKind::Global(s.names.iter().map(|n| self.sym(n)).collect()),
            py::Stmt::Nonlocal(s) => StmtKind::Nonlocal(s.names.iter().map(|n| self.sym(n)).collect()),
            py::Stmt::TypeAlias(_) => unsupported("a `type` alias", "assign the type to a name"),
            py::Stmt::Match(s) => StmtKind::Match(Box::new(Match {
                subject: self.expr(&s.subject),
                cases: s
                    .cases
                    .iter()
                    .map(|case| Case {
                        pattern: self.pattern(&case.pattern),
                        guard: case.guard.as_ref().map(|g| self.expr(g)),
                        body: self.block(&case.body),
                    })
                    .collect(),
            })),
            py::Stmt::IpyEscapeCommand(_) => unsupported("a notebook command", "remove it"),
        }
    }

    /// A function except its name.
    fn function(&mut self, parameters: Option<&py::Parameters>, body: impl FnOnce(&mut Self) -> Vec<Stmt>) -> FuncDef {
        // A `yield` in a default belongs to the enclosing function.
        let outer = std::mem::take(&mut self.yields);
        let mut body = body(self);
        let is_generator = std::mem::replace(&mut self.yields, outer);
        if is_generator {
            body = hoist::body(self.names, body);
        }
        let mut params = Vec::new();
        let (mut positional, mut has_star, mut has_double_star) = (0, false, false);
        if let Some(p) = parameters {
            positional = p.posonlyargs.len() + p.args.len();
            let groups = [
                (&p.posonlyargs, ParamKind::PositionalOnly),
                (&p.args, ParamKind::Normal),
                (&p.kwonlyargs, ParamKind::KeywordOnly),
            ];
            for (group, kind) in groups {
                for parameter in group {
                    let default = parameter.default.as_ref().map(|d| self.expr(d));
                    params.push(self.param(&parameter.parameter, kind, default));
                }
            }
            for (parameter, kind) in [(&p.vararg, ParamKind::Star), (&p.kwarg, ParamKind::DoubleStar)] {
                if let Some(parameter) = parameter {
                    params.push(self.param(parameter, kind, None));
                }
            }
            has_star = p.vararg.is_some();
            has_double_star = p.kwarg.is_some();
        }
        FuncDef {
            name: sym::lambda,
            params,
            body,
            decorators: Vec::new(),
            scope: Scope::default(),
            name_span: Span { file: self.file, start: 0, end: 0 },
            returns: None,
            positional,
            has_star,
            has_double_star,
            is_async: false,
            is_generator,
        }
    }

    fn param(&mut self, parameter: &py::Parameter, kind: ParamKind, default: Option<Expr>) -> Param {
        Param {
            name: self.sym(&parameter.name),
            kind,
            default,
            annotation: parameter.annotation.as_ref().map(|a| self.span(&**a)),
            span: self.span(parameter),
        }
    }

    fn exprs(&mut self, exprs: &[py::Expr]) -> Vec<Expr> {
        exprs.iter().map(|e| self.expr(e)).collect()
    }

    fn boxed(&mut self, expr: &py::Expr) -> Box<Expr> {
        Box::new(self.expr(expr))
    }

    fn optional(&mut self, expr: Option<&py::Expr>) -> Option<Box<Expr>> {
        expr.map(|e| self.boxed(e))
    }

    fn expr(&mut self, expr: &py::Expr) -> Expr {
        let span = self.span(expr);
        Expr { kind: self.expr_kind(expr), span }
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each kind of expression")]
    fn expr_kind(&mut self, expr: &py::Expr) -> ExprKind {
        let unsupported = |construct, instead| ExprKind::Unsupported(Unsupported { construct, instead });
        match expr {
            py::Expr::NoneLiteral(_) => ExprKind::None,
            py::Expr::BooleanLiteral(e) => ExprKind::Bool(e.value),
            py::Expr::EllipsisLiteral(_) => ExprKind::Ellipsis,
            py::Expr::StringLiteral(e) => ExprKind::Str(e.value.to_str().into()),
            py::Expr::NumberLiteral(e) => match &e.value {
                py::Number::Int(value) => match value.as_i64() {
                    Some(value) => ExprKind::Int(value),
                    None => unsupported(
                        "an integer of more than 64 bits",
                        "NKI integers are machine integers: use a smaller value",
                    ),
                },
                py::Number::Float(value) => ExprKind::Float(*value),
                py::Number::Complex { .. } => {
                    unsupported("a complex number", "keep the real and imaginary parts in two values")
                }
            },
            py::Expr::BytesLiteral(_) => unsupported("a bytes literal", "use a string"),
            py::Expr::Name(e) => ExprKind::Name(self.intern(e.id.as_str()), Slot::Unresolved),
            py::Expr::Attribute(e) => ExprKind::Attr(self.boxed(&e.value), self.sym(&e.attr)),
            py::Expr::Subscript(e) => ExprKind::Subscript(self.boxed(&e.value), self.boxed(&e.slice)),
            py::Expr::Slice(e) => ExprKind::Slice(
                self.optional(e.lower.as_deref()),
                self.optional(e.upper.as_deref()),
                self.optional(e.step.as_deref()),
            ),
            py::Expr::Tuple(e) => ExprKind::Tuple(self.exprs(&e.elts)),
            py::Expr::List(e) => ExprKind::List(self.exprs(&e.elts)),
            py::Expr::Set(e) => ExprKind::Set(self.exprs(&e.elts)),
            py::Expr::Dict(e) => ExprKind::Dict(
                e.items.iter().map(|item| (item.key.as_ref().map(|k| self.expr(k)), self.expr(&item.value))).collect(),
            ),
            py::Expr::UnaryOp(e) => {
                let op = match e.op {
                    py::UnaryOp::USub => UnaryOp::Neg,
                    py::UnaryOp::UAdd => UnaryOp::Pos,
                    py::UnaryOp::Invert => UnaryOp::Invert,
                    py::UnaryOp::Not => UnaryOp::Not,
                };
                match (op, self.expr(&e.operand)) {
                    // A constant, so that `-1` is free.
                    (UnaryOp::Neg, Expr { kind: ExprKind::Int(value), .. }) if value != i64::MIN => {
                        ExprKind::Int(-value)
                    }
                    (UnaryOp::Neg, Expr { kind: ExprKind::Float(value), .. }) => ExprKind::Float(-value),
                    (op, operand) => ExprKind::Unary(op, Box::new(operand)),
                }
            }
            py::Expr::BinOp(e) => ExprKind::Binary(bin_op(e.op), self.boxed(&e.left), self.boxed(&e.right)),
            py::Expr::BoolOp(e) => match e.op {
                py::BoolOp::And => ExprKind::And(self.exprs(&e.values)),
                py::BoolOp::Or => ExprKind::Or(self.exprs(&e.values)),
            },
            py::Expr::Compare(e) => {
                let rest =
                    e.ops.iter().zip(e.comparators.iter()).map(|(op, right)| (cmp_op(*op), self.expr(right))).collect();
                ExprKind::Compare(self.boxed(&e.left), rest)
            }
            py::Expr::If(e) => ExprKind::IfElse(self.boxed(&e.test), self.boxed(&e.body), self.boxed(&e.orelse)),
            py::Expr::Call(e) => {
                let func = self.boxed(&e.func);
                let mut arguments = Vec::with_capacity(e.arguments.args.len() + e.arguments.keywords.len());
                for argument in &e.arguments.args {
                    arguments.push(match argument {
                        py::Expr::Starred(starred) => Argument::Star(self.expr(&starred.value)),
                        other => Argument::Positional(self.expr(other)),
                    });
                }
                for keyword in &e.arguments.keywords {
                    let value = self.expr(&keyword.value);
                    arguments.push(match &keyword.arg {
                        Some(name) => Argument::Keyword(self.sym(name), value),
                        None => Argument::DoubleStar(value),
                    });
                }
                ExprKind::Call(func, arguments)
            }
            py::Expr::Lambda(e) => {
                let mut def = self.function(e.parameters.as_deref(), |convert| {
                    let value = convert.expr(&e.body);
                    let span = value.span;
                    vec![Stmt { kind: StmtKind::Return(Some(value)), span }]
                });
                def.name_span = self.span(e);
                ExprKind::Lambda(Rc::new(def))
            }
            py::Expr::Named(e) => ExprKind::Walrus(self.boxed(&e.target), self.boxed(&e.value)),
            py::Expr::ListComp(e) => self.comp(CompKind::List, None, &e.elt, &e.generators),
            py::Expr::SetComp(e) => self.comp(CompKind::Set, None, &e.elt, &e.generators),
            py::Expr::Generator(e) => self.generator(&e.elt, &e.generators, self.span(expr)),
            py::Expr::DictComp(e) => match &e.key {
                Some(key) => self.comp(CompKind::Dict, Some(key), &e.value, &e.generators),
                None => unsupported("unpacking in a comprehension", "write a loop"),
            },
            py::Expr::FString(e) => {
                let mut parts = Vec::new();
                for part in e.value.iter() {
                    match part {
                        py::FStringPart::Literal(literal) => parts.push(FPart::Text((&*literal.value).into())),
                        py::FStringPart::FString(f) => self.fparts(&f.elements, &mut parts),
                    }
                }
                ExprKind::FString(parts)
            }
            py::Expr::Starred(e) => ExprKind::Starred(self.boxed(&e.value)),
            py::Expr::TString(_) => unsupported("a t-string", "use an f-string"),
            py::Expr::Await(_) => unsupported("`await`", "call the function directly"),
            py::Expr::Yield(e) => {
                self.yields = true;
                ExprKind::Yield(self.optional(e.value.as_deref()), false)
            }
            py::Expr::YieldFrom(e) => {
                self.yields = true;
                ExprKind::Yield(Some(self.boxed(&e.value)), true)
            }
            py::Expr::IpyEscapeCommand(_) => unsupported("a notebook command", "remove it"),
        }
    }

    fn comp(
        &mut self,
        kind: CompKind,
        key: Option<&py::Expr>,
        element: &py::Expr,
        generators: &[py::Comprehension],
    ) -> ExprKind {
        if generators.iter().any(|g| g.is_async) {
            return ExprKind::Unsupported(Unsupported {
                construct: "an async comprehension",
                instead: "use a plain `for` loop",
            });
        }
        let clauses = generators
            .iter()
            .map(|g| CompClause { target: self.expr(&g.target), iter: self.expr(&g.iter), ifs: self.exprs(&g.ifs) })
            .collect();
        ExprKind::Comp(Box::new(Comp { kind, element: self.expr(element), key: key.map(|k| self.expr(k)), clauses }))
    }

    fn fparts(&mut self, elements: &py::InterpolatedStringElements, parts: &mut Vec<FPart>) {
        for element in elements {
            match element {
                py::InterpolatedStringElement::Literal(literal) => parts.push(FPart::Text((&*literal.value).into())),
                py::InterpolatedStringElement::Interpolation(value) => {
                    let expr = self.expr(&value.expression);
                    let mut conversion = match value.conversion {
                        py::ConversionFlag::None => None,
                        py::ConversionFlag::Str => Some('s'),
                        py::ConversionFlag::Ascii => Some('a'),
                        py::ConversionFlag::Repr => Some('r'),
                    };
                    if let Some(debug) = &value.debug_text {
                        // `{x=}` shows the source text of the expression, then its repr.
                        let range = value.expression.range();
                        let source = self.text.get(usize::from(range.start())..usize::from(range.end())).unwrap_or("");
                        parts.push(FPart::Text(format!("{}{source}{}", debug.leading(), debug.trailing()).into()));
                        if conversion.is_none() && value.format_spec.is_none() {
                            conversion = Some('r');
                        }
                    }
                    let spec = value.format_spec.as_ref().map(|spec| {
                        let mut inner = Vec::new();
                        self.fparts(&spec.elements, &mut inner);
                        inner
                    });
                    parts.push(FPart::Value { expr, conversion, spec });
                }
            }
        }
    }
}

fn bin_op(op: py::Operator) -> BinOp {
    match op {
        py::Operator::Add => BinOp::Add,
        py::Operator::Sub => BinOp::Sub,
        py::Operator::Mult => BinOp::Mul,
        py::Operator::MatMult => BinOp::MatMul,
        py::Operator::Div => BinOp::Div,
        py::Operator::Mod => BinOp::Mod,
        py::Operator::Pow => BinOp::Pow,
        py::Operator::LShift => BinOp::LShift,
        py::Operator::RShift => BinOp::RShift,
        py::Operator::BitOr => BinOp::BitOr,
        py::Operator::BitXor => BinOp::BitXor,
        py::Operator::BitAnd => BinOp::BitAnd,
        py::Operator::FloorDiv => BinOp::FloorDiv,
    }
}

fn cmp_op(op: py::CmpOp) -> CmpOp {
    match op {
        py::CmpOp::Eq => CmpOp::Eq,
        py::CmpOp::NotEq => CmpOp::Ne,
        py::CmpOp::Lt => CmpOp::Lt,
        py::CmpOp::LtE => CmpOp::Le,
        py::CmpOp::Gt => CmpOp::Gt,
        py::CmpOp::GtE => CmpOp::Ge,
        py::CmpOp::Is => CmpOp::Is,
        py::CmpOp::IsNot => CmpOp::IsNot,
        py::CmpOp::In => CmpOp::In,
        py::CmpOp::NotIn => CmpOp::NotIn,
    }
}
