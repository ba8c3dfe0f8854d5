//! Subscripts: index tiles become slices, tables of tiles become lists, masks become bounds of slices.

use super::kinds::{Frame, Kind, Memory, Tile, entries};
use super::poly::Poly;
use super::{Outcome, Pass, by_hand};
use crate::syntax::{Argument, Expr, ExprKind};

/// Upper bounds of extents along axes of a frame, from a mask.
pub(super) type Bounds = [(usize, Poly)];

/// A part of a tensor, as text in the current language.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) text: String,
    /// Its extents without the bounds of a mask, where they are known.
    pub(super) shape: Option<Vec<Poly>>,
    pub(super) dtype: Option<String>,
    pub(super) memory: Option<Memory>,
}

/// One entry of a subscript with index tiles.
enum Item {
    /// An int, and whether it remains a dimension.
    Int(Poly, bool),
    /// The axes along which it moves.
    Walk(Vec<usize>, Frame),
}

pub(super) fn tuple(shape: &[Poly]) -> String {
    let all: Vec<String> = shape.iter().map(ToString::to_string).collect();
    if all.len() == 1 { format!("({},)", all[0]) } else { format!("({})", all.join(", ")) }
}

fn overflow<T>(value: Option<T>, expr: &Expr) -> Outcome<T> {
    value.ok_or_else(|| by_hand(expr.span, "an index beyond 64 bits", "write the bounds as a slice"))
}

/// The end of `start : start + count`, restricted to the first `bound` by a mask.
fn end(start: &Poly, count: &Poly, bound: Option<&Poly>, expr: &Expr) -> Outcome<String> {
    let whole = overflow(start.plus(count), expr)?;
    Ok(match bound {
        None => whole.to_string(),
        Some(bound) => {
            let part = overflow(start.plus(bound), expr)?;
            match overflow(part.minus(&whole), expr)?.value() {
                Some(over) if over >= 0 => whole.to_string(),
                Some(_) if !part.may_be_negative() => part.to_string(),
                // A negative end would count from the end; an empty slice is an error.
                _ if part.may_be_negative() => format!("max(0, min({whole}, {part}))"),
                _ => format!("min({whole}, {part})"),
            }
        }
    })
}

fn bound_of(bounds: &Bounds, axis: usize) -> Option<&Poly> {
    bounds.iter().find(|b| b.0 == axis).map(|b| &b.1)
}

impl Pass<'_> {
    /// A tensor or a part of one.
    pub(super) fn place(&mut self, expr: &Expr, bounds: &Bounds) -> Outcome<Place> {
        match (&expr.kind, self.tile(expr)) {
            (ExprKind::Name(..), Some(tile)) => {
                if !tile.blocks.is_empty() {
                    return Err(by_hand(
                        expr.span,
                        "a table of tiles as a value",
                        "pass the tiles, or the list and its extents",
                    ));
                }
                let text = self.kinds.source(expr.span).to_owned();
                self.narrowed(expr, text, &tile, bounds)
            }
            (ExprKind::Subscript(base, key), _) => self.subscript(expr, base, key, bounds),
            (_, tile) => {
                let text = self.expr(expr)?;
                let tile = tile.unwrap_or_default();
                let text = self.called_once(expr, text, &tile)?;
                self.narrowed(expr, text, &tile, bounds)
            }
        }
    }

    /// The text of a value, or a name for the result of a call if a new tile needs its shape or dtype: the call would be repeated.
    fn called_once(&mut self, expr: &Expr, text: String, tile: &Tile) -> Outcome<String> {
        let ExprKind::Call(callee, _) = &expr.kind else { return Ok(text) };
        let stem = match &callee.kind {
            ExprKind::Name(name, _) => self.kinds.names.name(*name).to_string(),
            // A method of a tile returns another view of it.
            ExprKind::Attr(base, _) if self.tile(base).is_some() => return Ok(text),
            ExprKind::Attr(_, name) => self.kinds.names.name(*name).to_string(),
            _ => "value".to_owned(),
        };
        if !text.contains('(') || (tile.shape.is_some() && tile.dtype.is_some()) {
            return Ok(text);
        }
        self.hoisted(&stem, |_, name| Ok(vec![format!("{name} = {text}")]))
    }

    /// A whole tensor, or the part left by a mask.
    pub(super) fn narrowed(&self, expr: &Expr, text: String, tile: &Tile, bounds: &Bounds) -> Outcome<Place> {
        let place = |text| Place { text, shape: tile.shape.clone(), dtype: tile.dtype.clone(), memory: tile.memory };
        if bounds.is_empty() {
            return Ok(place(text));
        }
        let Some(shape) = &tile.shape else {
            return Err(by_hand(
                expr.span,
                "mask=",
                "bound the slice of an operand whose shape is not known here: t[0:min(size, end)]",
            ));
        };
        let mut items = Vec::new();
        for (axis, count) in shape.iter().enumerate() {
            let bound = bound_of(bounds, axis).filter(|_| !count.is(1));
            items.push(format!("0:{}", end(&Poly::number(0), count, bound, expr)?));
        }
        Ok(place(format!("{text}[{}]", items.join(", "))))
    }

    fn subscript(&mut self, expr: &Expr, base: &Expr, key: &Expr, bounds: &Bounds) -> Outcome<Place> {
        let tile = self.tile(base).unwrap_or_default();
        let mut keys = entries(key);
        let text = if tile.blocks.is_empty() {
            match &base.kind {
                ExprKind::Name(..) => self.kinds.source(base.span).to_owned(),
                _ => self.place(base, &[])?.text,
            }
        } else {
            let text = self.of_table(base, &tile, &keys)?;
            keys.drain(..tile.blocks.len());
            if keys.is_empty() {
                return self.narrowed(expr, text, &tile, bounds);
            }
            text
        };
        if keys.iter().any(|k| self.tile(k).is_some()) {
            return Err(by_hand(
                expr.span,
                "a tile as an index",
                "t.ap(pattern=[[stride, count], ...], vector_offset=index), or scalar_offset= for one index",
            ));
        }
        if keys.iter().any(|k| self.kinds.frame(k).is_some()) {
            return self.walked(expr, text, &tile, &keys, bounds);
        }
        self.sliced(expr, text, &tile, &keys, bounds)
    }

    /// The tile of a table.
    fn of_table(&self, base: &Expr, tile: &Tile, keys: &[&Expr]) -> Outcome<String> {
        let refuse = || {
            by_hand(
                base.span,
                "an index of block dimensions",
                "index the list of tiles with one int for each block dimension",
            )
        };
        let mut flat = Poly::number(0);
        for (at, extent) in tile.blocks.iter().enumerate() {
            let index = keys.get(at).and_then(|k| self.kinds.poly(k)).ok_or_else(refuse)?;
            flat = overflow(flat.times(extent).and_then(|f| f.plus(&index)), base)?;
        }
        Ok(format!("{}[{flat}]", self.kinds.source(base.span)))
    }

    /// `t[slices and ints]`
    fn sliced(&mut self, expr: &Expr, text: String, tile: &Tile, keys: &[&Expr], bounds: &Bounds) -> Outcome<Place> {
        let whole = |k: &&Expr| matches!(k.kind, ExprKind::Ellipsis | ExprKind::Slice(None, None, None));
        if keys.iter().all(whole)
            && (keys.len() == 1 || tile.shape.as_ref().is_some_and(|s| s.len() == keys.len()))
            && !bounds.is_empty()
        {
            return self.narrowed(expr, text, tile, bounds);
        }
        if tile.blocks.is_empty() && matches!(keys[..], [Expr { kind: ExprKind::Ellipsis, .. }]) {
            let text = self.spliced_subscript(expr, text, keys, &["...".to_owned()]);
            return Ok(Place { text, shape: tile.shape.clone(), dtype: tile.dtype.clone(), memory: tile.memory });
        }
        let mut shape = Some(Vec::new());
        let mut items = Vec::new();
        let extent = |at: usize| tile.shape.as_ref().and_then(|s| s.get(at).cloned());
        let mut axis = 0;
        for (at, key) in keys.iter().enumerate() {
            let (span, item) = match &key.kind {
                ExprKind::Slice(from, to, None) => {
                    let start = from.as_ref().map_or(Some(Poly::number(0)), |e| self.kinds.poly(e));
                    let stop = to.as_ref().map_or_else(|| extent(at), |e| self.kinds.poly(e));
                    let negative = |p: &Option<Poly>| p.as_ref().and_then(Poly::value).is_some_and(|v| v < 0);
                    let known = !negative(&start) && !negative(&stop);
                    (start.zip(stop).filter(|_| known), self.expr(key)?)
                }
                ExprKind::Call(callee, args) if self.kinds.language(callee).as_deref() == Some("ds") => {
                    let arg = |i: usize| {
                        args.get(i).and_then(|a| match a {
                            Argument::Positional(e) => self.kinds.poly(e),
                            _ => None,
                        })
                    };
                    let span = arg(0).zip(arg(1)).and_then(|(start, n)| Some((start.clone(), start.plus(&n)?)));
                    (span, self.expr(key)?)
                }
                ExprKind::Slice(..) | ExprKind::Ellipsis | ExprKind::None => {
                    shape = None;
                    items.push(self.expr(key)?);
                    axis += 1;
                    continue;
                }
                _ if self.kinds.may_be_slices(key) => {
                    if !bounds.is_empty() {
                        return Err(by_hand(expr.span, "mask=", "bound the slice: t[start:min(end, size)]"));
                    }
                    shape = None;
                    items.push(self.expr(key)?);
                    continue;
                }
                _ => {
                    items.push(self.expr(key)?);
                    // On chip, the partition dimension remains.
                    if at == 0 && tile.memory != Some(Memory::Hbm) {
                        shape.iter_mut().for_each(|s: &mut Vec<Poly>| s.push(Poly::number(1)));
                        axis += 1;
                    }
                    continue;
                }
            };
            let count = span.as_ref().and_then(|(start, stop)| stop.minus(start));
            match (bound_of(bounds, axis), &span, &count) {
                (None, ..) => items.push(item),
                (_, _, Some(n)) if n.is(1) => items.push(item),
                (Some(bound), Some((start, _)), Some(n)) => {
                    items.push(format!("{start}:{}", end(start, n, Some(bound), expr)?));
                }
                _ => return Err(by_hand(expr.span, "mask=", "bound the slice: t[start:min(end, size)]")),
            }
            match (&mut shape, count) {
                (Some(shape), Some(n)) => shape.push(n),
                (shape, _) => *shape = None,
            }
            axis += 1;
        }
        if let Some(shape) = &mut shape {
            match &tile.shape {
                Some(all) => shape.extend(all.iter().skip(keys.len()).cloned()),
                None if shape.len() < 2 => shape.clear(),
                None => {}
            }
            if shape.len() == 1 && tile.memory.is_some_and(|m| m != Memory::Hbm) {
                shape.push(Poly::number(1));
            }
        }
        let shape = shape.filter(|s| !s.is_empty());
        let same_layout = bounds.is_empty() && tile.blocks.is_empty();
        let text = if same_layout {
            self.spliced_subscript(expr, text, keys, &items)
        } else {
            format!("{text}[{}]", items.join(", "))
        };
        Ok(Place { text, shape, dtype: tile.dtype.clone(), memory: tile.memory })
    }

    /// The subscript with other entries, in its layout.
    fn spliced_subscript(&self, expr: &Expr, base: String, keys: &[&Expr], items: &[String]) -> String {
        let ExprKind::Subscript(of, _) = &expr.kind else { return base };
        let mut out = base;
        let mut at = of.span.end;
        for (key, item) in keys.iter().zip(items) {
            out += &self.text[at as usize..key.span.start as usize];
            out += item;
            at = key.span.end;
        }
        out + &self.text[at as usize..expr.span.end as usize]
    }

    /// `t[index tiles and ints]`
    fn walked(&mut self, expr: &Expr, text: String, tile: &Tile, keys: &[&Expr], bounds: &Bounds) -> Outcome<Place> {
        let pattern = "t.ap(pattern=[[stride, count], ...], offset=first)";
        let refuse = |what: &str| by_hand(expr.span, what, pattern);
        let mut items = Vec::new();
        let mut counts: Vec<Option<Poly>> = Vec::new();
        for key in keys {
            if let Some(frame) = self.kinds.frame(key) {
                if counts.is_empty() {
                    counts.clone_from(&frame.counts);
                }
                if counts.len() != frame.counts.len() {
                    return Err(refuse("index tiles of different ranks"));
                }
                for (axis, count) in frame.counts.iter().enumerate() {
                    match (&counts[axis], count) {
                        (Some(a), Some(b)) if a != b => return Err(refuse("index tiles of different extents")),
                        (None, Some(n)) => counts[axis] = Some(n.clone()),
                        _ => {}
                    }
                }
                items.push(Item::Walk(frame.axes(), frame));
            } else if let Some(at) = self.kinds.poly(key) {
                items.push(Item::Int(at, false));
            } else {
                return Err(refuse("slices together with index tiles"));
            }
        }
        let Some(needs_reshape) = self.align(&mut items, &counts) else {
            let is_whole =
                matches!(&expr.kind, ExprKind::Subscript(base, _) if matches!(base.kind, ExprKind::Name(..)));
            let pattern =
                (is_whole && bounds.is_empty()).then(|| Self::pattern(&text, tile, &items, &counts)).flatten();
            let text =
                pattern.ok_or_else(|| refuse("an index that is not a slice: it transposes, repeats or reverses"))?;
            let shape = counts.iter().map(|c| c.clone().unwrap_or(Poly::number(1))).collect();
            return Ok(Place { text, shape: Some(shape), dtype: tile.dtype.clone(), memory: tile.memory });
        };
        let mut parts = Vec::new();
        for item in &items {
            parts.push(match item {
                Item::Int(at, false) => at.to_string(),
                Item::Int(at, true) => format!("{at}:{}", overflow(at.plus(&Poly::number(1)), expr)?),
                Item::Walk(axes, frame) => self.run(expr, axes, frame, &counts, bounds)?,
            });
        }
        let shape: Vec<Poly> = counts.iter().map(|c| c.clone().unwrap_or(Poly::number(1))).collect();
        let mut text = format!("{text}[{}]", parts.join(", "));
        if needs_reshape {
            if !bounds.is_empty() {
                return Err(refuse("a mask of an index that is not a slice of each dimension"));
            }
            text += &format!(".reshape({})", tuple(&shape));
        }
        Ok(Place { text, shape: Some(shape), dtype: tile.dtype.clone(), memory: tile.memory })
    }

    /// The access pattern of an index into a whole tensor that is not expressible as slices.
    fn pattern(text: &str, tile: &Tile, items: &[Item], counts: &[Option<Poly>]) -> Option<String> {
        // Distance in elements between consecutive indices of a dimension.
        let mut strides = vec![Poly::number(1); items.len()];
        for at in (1..items.len()).rev() {
            let extent = match &tile.shape {
                Some(shape) => shape.get(at)?.clone(),
                None => Poly::atom(&format!("{text}.shape[{at}]"), true),
            };
            strides[at - 1] = strides[at].times(&extent)?;
        }
        let mut offset = Poly::number(0);
        let mut steps = vec![Poly::number(0); counts.len()];
        for (at, (item, stride)) in items.iter().zip(&strides).enumerate() {
            match item {
                Item::Int(index, _) => offset = offset.plus(&index.times(stride)?)?,
                Item::Walk(axes, frame) => {
                    // On chip, exactly the first axis moves along the partitions.
                    let partitions = at == 0 && axes[..] == [0] && frame.steps[0].is(1);
                    let free = at > 0 && !axes.contains(&0);
                    if tile.memory != Some(Memory::Hbm) && !partitions && !free {
                        return None;
                    }
                    offset = offset.plus(&frame.base.times(stride)?)?;
                    for &axis in axes {
                        steps[axis] = steps[axis].plus(&frame.steps[axis].times(stride)?)?;
                    }
                }
            }
        }
        let pairs: Vec<String> = steps
            .iter()
            .zip(counts)
            .map(|(step, count)| format!("[{step}, {}]", count.clone().unwrap_or(Poly::number(1))))
            .collect();
        Some(format!("{text}.ap(pattern=[{}], offset={offset})", pairs.join(", ")))
    }

    /// Chooses the ints that remain dimensions, so that the slices have the dimensions of the frame; returns whether a reshape
    /// must follow. `None` if the index is not expressible as slices.
    fn align(&self, items: &mut [Item], counts: &[Option<Poly>]) -> Option<bool> {
        let mut used = Vec::new();
        let mut merged = false;
        for item in items.iter() {
            if let Item::Walk(axes, frame) = item {
                merged |= axes.len() > 1;
                if axes.is_empty() {
                    return None;
                }
                if let [axis] = axes[..] {
                    frame.steps[axis].value().filter(|s| *s > 0)?;
                } else {
                    // Each axis steps over the whole extent of the following ones.
                    for pair in axes.windows(2) {
                        let inner = frame.steps[pair[1]].times(counts[pair[1]].as_ref()?)?;
                        (frame.steps[pair[0]] == inner).then_some(())?;
                    }
                    frame.steps[*axes.last()?].value().filter(|s| *s > 0)?;
                }
                used.extend(axes.iter().copied());
            }
        }
        let in_order = used.windows(2).all(|w| w[0] < w[1]);
        let idle: Vec<usize> = (0..counts.len()).filter(|a| !used.contains(a)).collect();
        let repeats = idle.iter().any(|a| counts[*a].as_ref().is_some_and(|n| !n.is(1)));
        if !in_order || repeats {
            return None;
        }
        if merged {
            return Some(true);
        }
        // An int between the slices around an idle axis takes its place.
        let mut complete = true;
        for axis in idle {
            let after = items.iter().position(|i| matches!(i, Item::Walk(a, _) if a[0] > axis)).unwrap_or(items.len());
            let before =
                items.iter().rposition(|i| matches!(i, Item::Walk(a, _) if a[0] < axis)).map_or(0, |at| at + 1);
            let free = (before..after).find(|&at| matches!(items[at], Item::Int(_, false)));
            match free.map(|at| &mut items[at]) {
                Some(Item::Int(_, kept)) => *kept = true,
                _ => complete = false,
            }
        }
        Some(!complete)
    }

    /// The slice covered by an index tile.
    fn run(
        &self,
        expr: &Expr,
        axes: &[usize],
        frame: &Frame,
        counts: &[Option<Poly>],
        bounds: &Bounds,
    ) -> Outcome<String> {
        let mut count = Poly::number(1);
        for axis in axes {
            let own = counts[*axis].clone().unwrap_or(Poly::number(1));
            count = overflow(count.times(&own), expr)?;
        }
        let step = axes.last().and_then(|a| frame.steps[*a].value()).unwrap_or(1);
        let bound = axes.first().and_then(|a| bound_of(bounds, *a)).filter(|_| !count.is(1));
        let start = &frame.base;
        if step == 1 {
            return Ok(format!("{start}:{}", end(start, &count, bound, expr)?));
        }
        if bound.is_some() {
            return Err(by_hand(
                expr.span,
                "mask= of a strided index",
                "bound the slice: t[start:min(end, size):step]",
            ));
        }
        let reach = count.minus(&Poly::number(1)).and_then(|n| n.times(&Poly::number(step)));
        let last = overflow(reach.and_then(|r| r.plus(&Poly::number(1))).and_then(|r| r.plus(start)), expr)?;
        Ok(format!("{start}:{last}:{step}"))
    }

    /// A tile, a table of tiles, or a tensor.
    pub(super) fn tile(&self, expr: &Expr) -> Option<Tile> {
        match self.kinds.kind(expr) {
            Kind::Tile(tile) => Some(tile),
            Kind::Other => self.computed(expr),
            _ => None,
        }
    }
}
