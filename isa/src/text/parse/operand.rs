//! Operands of instructions: numbers, names, lists, views.

use super::*;

impl Parser {
    pub(super) fn arg(&self, c: &mut Cursor<'_>, depth: usize) -> Parsed<Arg> {
        if depth > MAX_DEPTH {
            return c.problem("lists are nested too deeply");
        }
        if c.is_string() {
            return c.string().map(|s| Arg::Text(s.into()));
        }
        if c.is_number() {
            return c.number().map(|n| match n {
                Imm::Int(i) => Arg::Int(i),
                Imm::Float(x) => Arg::Float(x),
            });
        }
        if c.take("-inf") {
            return Ok(Arg::Float(f64::NEG_INFINITY));
        }
        if c.take("[") {
            let mut list = Vec::new();
            while !c.take("]") {
                if !list.is_empty() {
                    c.expect(",")?;
                }
                list.push(self.arg(c, depth + 1)?);
            }
            return Ok(Arg::List(list));
        }
        let word = c.peek_word();
        if register_number(word).is_some() {
            return self.register(c).map(Arg::Register);
        }
        if word.is_empty() {
            return self.view(c, depth).map(Arg::View);
        }
        c.keyword(word);
        Ok(match word {
            "None" => Arg::None,
            "True" => Arg::Bool(true),
            "False" => Arg::Bool(false),
            "NaN" => Arg::Float(f64::NAN),
            "inf" => Arg::Float(f64::INFINITY),
            "dtype" => Arg::DType(named(c)?),
            name => Arg::Name(name.into()),
        })
    }

    fn view(&self, c: &mut Cursor<'_>, depth: usize) -> Parsed<View> {
        let at = c.mark();
        if depth > MAX_DEPTH {
            return c.problem("views are nested too deeply");
        }
        if !c.take("%") {
            return c.expected("a value");
        }
        // Back to the `%` for the common reader.
        let id: u32 = c.int("the number of a tensor")?;
        let Some(tensor) = self.program.tensors.get(id as usize) else {
            return c.problem_at(at, format!("tensor %{id} is not declared above"));
        };
        let mut view = View::whole(TensorId(id), tensor);
        if c.take(":") {
            view.dtype = named(c)?;
        }
        if !c.take("[") {
            return Ok(view);
        }
        view.dims.clear();
        if view.space.is_on_chip() {
            if !c.keyword("p") {
                return c.expected("`p` and the partitions");
            }
            view.partition = c.int("a partition")?;
            let outer = if c.take("..") {
                let at = c.mark();
                let end: u32 = c.int("a partition")?;
                match end.checked_sub(view.partition) {
                    Some(count) if count > 0 => Dim { stride: 1, count },
                    _ => return c.problem_at(at, format!("no partitions in {}..{end}", view.partition)),
                }
            } else {
                c.expect("+")?;
                dim(c)?
            };
            view.dims.push(outer);
            c.expect(";")?;
        }
        if c.take("+") {
            let at = c.mark();
            view.offset = c.int("an offset")?;
            if view.offset.abs() > MAX_STRIDE {
                return c.problem_at(at, "the offset is too large");
            }
            c.expect(";")?;
        }
        dims(c, &mut view.dims)?;
        if c.take(";") {
            view.indirect = Some(Box::new(self.indirect(c, &view, depth)?));
        }
        c.expect("]")?;
        Ok(view)
    }

    fn indirect(&self, c: &mut Cursor<'_>, view: &View, depth: usize) -> Parsed<Indirect> {
        if !c.keyword("by") {
            return c.expected("`by`");
        }
        let start = c.mark();
        let index = if c.keyword("scalar") {
            Index::Scalar(self.view(c, depth + 1)?)
        } else if c.keyword("vector") {
            Index::Vector(self.view(c, depth + 1)?)
        } else if c.keyword("columns") {
            Index::Columns(self.view(c, depth + 1)?)
        } else {
            Index::Register(self.register(c)?)
        };
        c.expect("x")?;
        let at = c.mark();
        let stride: i64 = c.int("a stride")?;
        if stride.unsigned_abs() > MAX_STRIDE.unsigned_abs() {
            return c.problem_at(at, "the stride is too large");
        }
        c.expect("<")?;
        let bound = c.int("a bound")?;
        if matches!(index, Index::Vector(_)) && view.dims.is_empty() {
            return c.problem_at(start, "a vector is an index for each step of a dimension, and the view has none");
        }
        if matches!(index, Index::Columns(_)) && (view.dims.len() != 2 || !view.space.is_on_chip()) {
            return c.problem_at(start, "columns are the free dimension of a view on chip with two dimensions");
        }
        Ok(Indirect { index, stride, bound })
    }
}

/// `STRIDExCOUNT`.
fn dim(c: &mut Cursor<'_>) -> Parsed<Dim> {
    let at = c.mark();
    let stride: i64 = c.int("a stride")?;
    c.expect("x")?;
    let count: u32 = c.int("a count")?;
    if count == 0 || stride.unsigned_abs() > MAX_STRIDE.unsigned_abs() {
        return c.problem_at(at, format!("{stride}x{count} counts nothing or its stride is too large"));
    }
    Ok(Dim { stride, count })
}

/// Dimensions, at least one.
fn dims(c: &mut Cursor<'_>, dims: &mut Dims) -> Parsed<()> {
    let at = c.mark();
    loop {
        dims.push(dim(c)?);
        if dims.len() > MAX_DIMS {
            return c.problem_at(at, format!("more than {MAX_DIMS} dimensions"));
        }
        if !c.take(",") {
            break;
        }
    }
    let elements = dims.iter().fold(1u128, |n, d| n.saturating_mul(u128::from(d.count)));
    let reach = dims.iter().fold(0i128, |n, d| n.saturating_add(i128::from(d.stride).abs() * i128::from(d.count)));
    if elements > MAX_BYTES || reach > i128::from(MAX_STRIDE) {
        return c.problem_at(at, "the view is too large (limit 2**40 elements)");
    }
    Ok(())
}
