//! The result tile of a call without `dst`: Beta 1's calls return their results.

use smallvec::SmallVec;

use crate::arg::Arg;
use crate::dtype::DType;
use crate::names::Space;
use crate::schema::Schema;
use crate::view::View;

/// Shape, element type and memory of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultTile {
    /// Extents; the first counts partitions.
    pub shape: SmallVec<[u32; 4]>,
    /// Element type, unless the call names one.
    pub dtype: DType,
    /// Where the instruction writes it.
    pub space: Space,
}

impl ResultTile {
    /// A tile in SBUF.
    pub fn sbuf(shape: impl IntoIterator<Item = u32>, dtype: DType) -> ResultTile {
        ResultTile { shape: shape.into_iter().collect(), dtype, space: Space::Sbuf }
    }

    /// A tile in SBUF of the shape and type of a view.
    pub fn like(view: &View) -> ResultTile {
        ResultTile::sbuf(view.shape(), view.dtype)
    }

    /// The result of a reduction over these axes of a view: at least two dimensions.
    pub fn reduced(view: &View, axes: &[i64], keepdims: bool) -> ResultTile {
        let shape = view.shape();
        let rank = shape.len() as i64;
        let gone = |at: usize| axes.iter().any(|&a| if a < 0 { a + rank } else { a } == at as i64);
        let mut out: SmallVec<[u32; 4]> = SmallVec::new();
        for (at, &count) in shape.iter().enumerate() {
            match gone(at) {
                false => out.push(count),
                true if keepdims => out.push(1),
                true => {}
            }
        }
        while out.len() < 2 {
            out.push(1);
        }
        ResultTile { shape: out, dtype: view.dtype, space: Space::Sbuf }
    }
}

/// The operands of a call before the instruction is built, without `dst`.
#[derive(Debug, Clone, Copy)]
pub struct Given<'a> {
    schema: &'static Schema,
    slots: &'a [Option<Arg>],
}

impl<'a> Given<'a> {
    /// Operands in the order of the schema.
    pub fn new(schema: &'static Schema, slots: &'a [Option<Arg>]) -> Given<'a> {
        Given { schema, slots }
    }

    fn get(&self, operand: &str) -> Option<&'a Arg> {
        self.slots.get(self.schema.position(operand)?)?.as_ref()
    }

    /// The tile given for an operand.
    pub fn view(&self, operand: &str) -> Option<&'a View> {
        match self.get(operand)? {
            Arg::View(view) => Some(view),
            _ => None,
        }
    }

    /// A tile in SBUF of the shape and type of an operand.
    pub fn like(&self, operand: &str) -> Option<ResultTile> {
        self.view(operand).map(ResultTile::like)
    }

    /// The name given for an operand, for example of an engine.
    pub fn name(&self, operand: &str) -> Option<&'a str> {
        match self.get(operand)? {
            Arg::Name(name) | Arg::Text(name) => Some(name),
            _ => None,
        }
    }

    /// Whether a flag is set.
    pub fn flag(&self, operand: &str) -> bool {
        matches!(self.get(operand), Some(Arg::Bool(true) | Arg::Int(1)))
    }

    /// An integer, or the integers of a list.
    pub fn ints(&self, operand: &str) -> Vec<i64> {
        let int = |arg: &Arg| if let Arg::Int(i) = arg { Some(*i) } else { None };
        match self.get(operand) {
            Some(Arg::List(list)) => list.iter().filter_map(int).collect(),
            Some(one) => int(one).into_iter().collect(),
            None => Vec::new(),
        }
    }
}
