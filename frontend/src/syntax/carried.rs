//! Names, and items of objects, with loop-carried values.

use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Argument, Expr, ExprKind, FPart, Slot, Stmt, StmtKind, Symbol, UnaryOp, sym};

/// A name that the body of a loop binds, but may read before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Carried {
    pub(crate) name: Symbol,
    pub(crate) slot: Slot,
    /// The first assignment in the body.
    pub(crate) span: nki_diag::Span,
    /// Whether all assignments are `name op= ...`, and the name is not read otherwise in the loop or later: its value has no effect.
    pub(crate) is_counter: bool,
}

/// An item or attribute of the value of a name: `s[0]`, `d['key']`, `obj.name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ItemPath {
    pub(crate) base: Symbol,
    pub(crate) slot: Slot,
    pub(crate) key: ItemKey,
}

/// The constant that selects an [`ItemPath`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ItemKey {
    Attr(Symbol),
    Index(i64),
    Key(Rc<str>),
}

/// An item that the body of a loop assigns, but may read before, and the place of the assignment.
pub(crate) type CarriedItem = (ItemPath, nki_diag::Span);

/// The items that a body carries from one execution to the next, if their objects are made outside of it.
pub(crate) fn carried_items(body: &[Stmt]) -> Vec<CarriedItem> {
    let mut flow = Flow::default();
    flow.block(body);
    let Flow { items_read, items_assigned, .. } = flow;
    items_assigned.into_iter().filter(|(item, _)| items_read.contains(item)).collect()
}

/// The item that an expression denotes.
fn item_of(expr: &Expr) -> Option<ItemPath> {
    let (base, key) = match &expr.kind {
        ExprKind::Attr(base, name) => (base, ItemKey::Attr(*name)),
        ExprKind::Subscript(base, index) => (base, key_of(index)?),
        _ => return None,
    };
    match &base.kind {
        ExprKind::Name(base, slot) => Some(ItemPath { base: *base, slot: *slot, key }),
        _ => None,
    }
}

/// The key of a constant index.
fn key_of(index: &Expr) -> Option<ItemKey> {
    match &index.kind {
        ExprKind::Int(index) => Some(ItemKey::Index(*index)),
        ExprKind::Str(key) => Some(ItemKey::Key(key.clone())),
        ExprKind::Unary(UnaryOp::Neg, index) => match &index.kind {
            ExprKind::Int(index) => Some(ItemKey::Index(-index)),
            _ => None,
        },
        _ => None,
    }
}

/// The names that the body of a loop over `target` carries.
pub(super) fn carried(target: &Expr, body: &[Stmt]) -> Box<[Carried]> {
    let mut flow = Flow::default();
    flow.bind(target, target.span, false);
    flow.assigned.clear();
    flow.block(body);
    let Flow { read, used, .. } = &flow;
    let is_carried = |carried: &&Carried| read.contains(&carried.slot);
    let with_use = |carried: &Carried| {
        // Another function may read a name that is not local.
        let has_reader = used.contains_key(&carried.slot) || !matches!(carried.slot, Slot::Local(_));
        Carried { is_counter: carried.is_counter && !has_reader, ..*carried }
    };
    flow.assigned.iter().filter(is_carried).map(with_use).collect()
}

/// Sets the carried names of those loops of a function ([`For::carried`]) that have a counter which is read later.
pub(super) fn find_counters(function: &[Stmt]) {
    if counters(function).is_empty() {
        return;
    }
    // Most counters are never read and do not require an analysis of the statements after their loop.
    let mut whole = Flow::of(FxHashSet::default());
    whole.block(function);
    find_in(function, &whole.used, &mut Vec::new(), None);
}

/// Like [`find_counters`], in a block of the function. `used` has the position of the last read of each slot, `follows` the statements that are
/// executed after the block, the last ones first, and `outer` the start of the outermost loop around it.
fn find_in<'b>(block: &'b [Stmt], used: &FxHashMap<Slot, u32>, follows: &mut Vec<&'b [Stmt]>, outer: Option<u32>) {
    for (place, stmt) in block.iter().enumerate() {
        let depth = follows.len();
        follows.push(&block[place + 1..]);
        let is_loop = matches!(stmt.kind, StmtKind::For(_) | StmtKind::While(..));
        // Only an enclosing loop executes earlier code afterwards.
        let start = outer.unwrap_or(stmt.span.start);
        if let StmtKind::For(f) = &stmt.kind {
            let mut slots = counters(&f.body);
            slots.retain(|slot| used.get(slot).is_some_and(|last| *last >= start));
            if !slots.is_empty() {
                let mut later = Flow::of(slots);
                later.until_settled(follows);
                let mut names = carried(&f.target, &f.body);
                names.iter_mut().for_each(|name| name.is_counter &= !later.needed.contains(&name.slot));
                // Set once: a tree is resolved once.
                let _ = f.carried.set(names);
            }
        }
        for inner in stmt.blocks() {
            if is_loop {
                // The next iteration.
                follows.push(inner);
            }
            find_in(inner, used, follows, if is_loop { Some(start) } else { outer });
            follows.truncate(depth + 1);
        }
        follows.truncate(depth);
    }
}

/// The names that a block changes by `name op= ...`.
fn counters(block: &[Stmt]) -> FxHashSet<Slot> {
    let mut found = FxHashSet::default();
    for stmt in block {
        if let StmtKind::AugAssign(Expr { kind: ExprKind::Name(_, slot), .. }, ..) = &stmt.kind {
            found.insert(*slot);
        }
        found.extend(stmt.blocks().into_iter().flat_map(counters));
    }
    found
}

/// What a statement binds.
#[derive(PartialEq)]
enum Bound {
    Name(Slot),
    Item(ItemPath),
}

/// The reads and bindings of the statements so far, in the order of execution.
#[derive(Default)]
struct Flow {
    /// Names and items that are bound on all paths.
    bound: Vec<Bound>,
    /// Slots that may have been read before this iteration bound them.
    read: Vec<Slot>,
    /// Slots read other than by `name op= ...` of the same name, with the position of the last read.
    used: FxHashMap<Slot, u32>,
    /// The subset that may have been read before this iteration bound them.
    needed: FxHashSet<Slot>,
    assigned: Vec<Carried>,
    /// Items of unbound names that may have been read before they were bound, and those that are assigned.
    items_read: Vec<ItemPath>,
    items_assigned: Vec<CarriedItem>,
    /// The slots analysed by `bound`, `read`, `needed` and `assigned`; all if `None`.
    only: Option<FxHashSet<Slot>>,
}

impl Flow {
    /// An analysis of these slots; `used` has all.
    fn of(only: FxHashSet<Slot>) -> Self {
        Flow { only: Some(only), ..Flow::default() }
    }

    fn concerns(&self, slot: Slot) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(&slot))
    }

    fn has_bound(&self, slot: Slot) -> bool {
        self.bound.contains(&Bound::Name(slot))
    }

    /// An item is read, possibly with the value of an earlier iteration.
    fn read_item(&mut self, item: ItemPath) {
        let bound = Bound::Item(item);
        if self.only.is_none() && !self.bound.contains(&bound) {
            let Bound::Item(item) = bound else { return };
            if !self.has_bound(item.slot) && !self.items_read.contains(&item) {
                self.items_read.push(item);
            }
        }
    }

    /// An item is assigned: `item op= ...` if `in_place`, otherwise to a value that does not depend on the present one.
    fn bind_item(&mut self, item: ItemPath, span: nki_diag::Span, in_place: bool) {
        if self.only.is_some() || self.has_bound(item.slot) {
            return;
        }
        if !self.items_assigned.iter().any(|(known, _)| *known == item) {
            self.items_assigned.push((item.clone(), span));
        }
        if !in_place {
            self.bound.push(Bound::Item(item));
        }
    }

    fn block(&mut self, body: &[Stmt]) {
        body.iter().for_each(|stmt| self.stmt(stmt));
    }

    /// The statements of `follows`, the last ones first, until each slot has been bound or read.
    fn until_settled(&mut self, follows: &[&[Stmt]]) {
        for stmt in follows.iter().rev().flat_map(|statements| statements.iter()) {
            let is_settled = |slot: &Slot| self.has_bound(*slot) || self.needed.contains(slot);
            if self.only.as_ref().is_some_and(|only| only.iter().all(is_settled)) {
                return;
            }
            self.stmt(stmt);
        }
    }

    /// Statements that may not be executed.
    fn optional(&mut self, body: &[Stmt]) {
        let bound = self.bound.len();
        self.block(body);
        self.bound.truncate(bound);
    }

    fn stmt(&mut self, stmt: &Stmt) {
        let span = stmt.span;
        match &stmt.kind {
            StmtKind::Expr(value) | StmtKind::Return(Some(value)) | StmtKind::Raise(Some(value), _) => self.read(value),
            StmtKind::Assign(targets, value) => {
                self.read(value);
                targets.iter().for_each(|target| self.bind(target, span, false));
            }
            StmtKind::AnnAssign(target, _, Some(value)) => {
                self.read(value);
                self.bind(target, span, false);
            }
            StmtKind::AugAssign(target, _, value) => {
                match &target.kind {
                    ExprKind::Name(_, slot) => self.begin(*slot),
                    _ => self.read(target),
                }
                self.read(value);
                self.bind(target, span, true);
            }
            StmtKind::Assert(test, message) => {
                self.read(test);
                message.iter().for_each(|e| self.read(e));
            }
            StmtKind::If(arms, orelse) => self.branches(arms, orelse),
            StmtKind::For(f) => {
                self.read(&f.iter);
                let bound = self.bound.len();
                self.bind(&f.target, f.target.span, false);
                self.block(&f.body);
                self.bound.truncate(bound);
                self.optional(&f.orelse);
            }
            StmtKind::While(test, body, orelse) => {
                self.read(test);
                self.optional(body);
                self.optional(orelse);
            }
            StmtKind::With(items, body) => {
                for (value, target) in items {
                    self.read(value);
                    target.iter().for_each(|target| self.bind(target, span, false));
                }
                self.block(body);
            }
            StmtKind::Try(t) => {
                self.optional(&t.body);
                t.handlers.iter().for_each(|handler| self.optional(&handler.body));
                self.optional(&t.orelse);
                self.block(&t.finally);
            }
            StmtKind::Match(m) => {
                self.read(&m.subject);
                m.cases.iter().for_each(|case| self.optional(&case.body));
            }
            _ => {}
        }
    }

    fn branches(&mut self, arms: &[(Expr, Vec<Stmt>)], orelse: &[Stmt]) {
        let before = self.bound.len();
        let mut in_all: Option<Vec<Bound>> = None;
        for (test, body) in arms.iter().map(|(test, body)| (Some(test), &body[..])).chain([(None, orelse)]) {
            test.into_iter().for_each(|test| self.read(test));
            self.block(body);
            let bound = self.bound.split_off(before);
            in_all = Some(match in_all {
                None => bound,
                Some(mut known) => {
                    known.retain(|one| bound.contains(one));
                    known
                }
            });
        }
        self.bound.extend(in_all.unwrap_or_default());
    }

    fn bind(&mut self, target: &Expr, span: nki_diag::Span, in_place: bool) {
        match &target.kind {
            ExprKind::Name(_, slot) if !self.concerns(*slot) => {}
            ExprKind::Name(name, slot) => {
                match self.assigned.iter_mut().find(|carried| carried.slot == *slot) {
                    Some(known) => known.is_counter &= in_place,
                    None => self.assigned.push(Carried { name: *name, slot: *slot, span, is_counter: in_place }),
                }
                if !in_place && !self.has_bound(*slot) {
                    self.bound.push(Bound::Name(*slot));
                }
            }
            ExprKind::Tuple(items) | ExprKind::List(items) => {
                items.iter().for_each(|item| self.bind(item, span, in_place));
            }
            ExprKind::Starred(inner) => self.bind(inner, span, in_place),
            // Items and attributes of a value.
            ExprKind::Attr(base, _) => {
                self.read(base);
                item_of(target).into_iter().for_each(|item| self.bind_item(item, span, in_place));
            }
            ExprKind::Subscript(base, index) => {
                self.read(base);
                self.read(index);
                item_of(target).into_iter().for_each(|item| self.bind_item(item, span, in_place));
            }
            _ => self.read(target),
        }
    }

    /// A slot is read, possibly with the value of an earlier iteration.
    fn begin(&mut self, slot: Slot) {
        if self.concerns(slot) && !self.has_bound(slot) && !self.read.contains(&slot) {
            self.read.push(slot);
        }
    }

    /// `d.get('key')` reads `d['key']`.
    fn read_got(&mut self, callee: &Expr, arguments: &[Argument]) {
        let ExprKind::Attr(dict, sym::plain_get) = &callee.kind else { return };
        let (ExprKind::Name(base, slot), Some(Argument::Positional(key))) = (&dict.kind, arguments.first()) else {
            return;
        };
        if let Some(key) = key_of(key) {
            self.read_item(ItemPath { base: *base, slot: *slot, key });
        }
    }

    fn reads(&mut self, exprs: &[Expr]) {
        exprs.iter().for_each(|e| self.read(e));
    }

    fn read(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Name(_, slot) => {
                self.begin(*slot);
                let last = self.used.entry(*slot).or_default();
                *last = expr.span.start.max(*last);
                if self.concerns(*slot) && !self.has_bound(*slot) {
                    self.needed.insert(*slot);
                }
            }
            ExprKind::Attr(..) | ExprKind::Subscript(..) if let Some(item) = item_of(expr) => {
                let (ExprKind::Attr(base, _) | ExprKind::Subscript(base, _)) = &expr.kind else { return };
                self.read(base);
                self.read_item(item);
            }
            ExprKind::Attr(a, _) | ExprKind::Unary(_, a) | ExprKind::Starred(a) | ExprKind::Generator(_, a) => {
                self.read(a);
            }
            ExprKind::Subscript(a, b) | ExprKind::Binary(_, a, b) => {
                self.read(a);
                self.read(b);
            }
            ExprKind::Slice(a, b, c) => [a, b, c].into_iter().flatten().for_each(|e| self.read(e)),
            ExprKind::Tuple(items)
            | ExprKind::List(items)
            | ExprKind::Set(items)
            | ExprKind::And(items)
            | ExprKind::Or(items) => self.reads(items),
            ExprKind::Dict(items) => {
                for (key, value) in items {
                    key.iter().for_each(|key| self.read(key));
                    self.read(value);
                }
            }
            ExprKind::Compare(left, rest) => {
                self.read(left);
                rest.iter().for_each(|(_, e)| self.read(e));
            }
            ExprKind::IfElse(a, b, c) => [a, b, c].into_iter().for_each(|e| self.read(e)),
            ExprKind::Call(callee, arguments) => {
                self.read(callee);
                self.read_got(callee, arguments);
                for argument in arguments {
                    let (Argument::Positional(e)
                    | Argument::Keyword(_, e)
                    | Argument::Star(e)
                    | Argument::DoubleStar(e)) = argument;
                    self.read(e);
                }
            }
            ExprKind::Walrus(target, value) => {
                self.read(value);
                self.bind(target, expr.span, false);
            }
            ExprKind::Comp(comp) => {
                for clause in &comp.clauses {
                    self.read(&clause.iter);
                    self.reads(&clause.ifs);
                }
                comp.key.iter().for_each(|key| self.read(key));
                self.read(&comp.element);
            }
            ExprKind::FString(parts) => self.parts(parts),
            _ => {}
        }
    }

    fn parts(&mut self, parts: &[FPart]) {
        for part in parts {
            if let FPart::Value { expr, spec, .. } = part {
                self.read(expr);
                spec.iter().for_each(|spec| self.parts(spec));
            }
        }
    }
}
