//! The text of an instruction's operands: `S[5] (Tensor)>=4 S[4] (Scalar)++@complete src=fp32@0x2000000[1,1,1,1][512,1,1,1] channels=128`.

use std::collections::BTreeMap;

use nki_isa::DType;
use nki_isa::names::{Named, Space};

/// Operands, taken apart.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Operands {
    /// Semaphores that it waits for.
    pub(crate) waits: Vec<Wait>,
    /// Semaphores that it changes on completion.
    pub(crate) updates: Vec<Update>,
    /// The operands of the form `name=value`.
    pub(crate) fields: BTreeMap<String, String>,
    /// Everything else, in order.
    pub(crate) words: Vec<String>,
    /// Whether it names semaphores of the runtime (`$S[2]`).
    pub(crate) of_runtime: bool,
}

/// A condition on a semaphore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wait {
    pub(crate) semaphore: u32,
    pub(crate) relation: Relation,
    pub(crate) value: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Relation {
    AtLeast,
    AtMost,
    Equal,
}

impl Wait {
    /// Whether a value meets it.
    pub(crate) fn holds(&self, value: i64) -> bool {
        match self.relation {
            Relation::AtLeast => value >= self.value,
            Relation::AtMost => value <= self.value,
            Relation::Equal => value == self.value,
        }
    }
}

/// A change of a semaphore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Update {
    pub(crate) semaphore: u32,
    pub(crate) change: Change,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Add(i64),
    Set(i64),
}

impl Change {
    pub(crate) fn apply(self, value: i64) -> i64 {
        match self {
            Change::Add(n) => value.saturating_add(n),
            Change::Set(n) => n,
        }
    }
}

/// A tensor operand.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Access {
    pub(crate) dtype: Option<DType>,
    pub(crate) address: u64,
    /// Steps and counts, innermost first.
    pub(crate) dims: Vec<(i64, u32)>,
}

/// Start of PSUM in the address space of a partition.
const PSUM: u64 = 0x200_0000;

impl Access {
    /// Elements of a partition.
    pub(crate) fn elements(&self) -> u32 {
        self.dims.iter().fold(1u32, |n, d| n.saturating_mul(d.1))
    }

    pub(crate) fn space(&self) -> Space {
        if self.address >= PSUM { Space::Psum } else { Space::Sbuf }
    }

    /// Bytes between adjacent elements of the innermost dimension with more than one element.
    pub(crate) fn stride_bytes(&self, dtype: DType) -> u32 {
        let step = self.dims.iter().find(|d| d.1 > 1).map_or(1, |d| d.0.unsigned_abs());
        u32::try_from(step.saturating_mul(dtype.size() as u64)).unwrap_or(u32::MAX)
    }
}

impl Operands {
    /// Parses the text. Unknown parts are kept as words.
    pub(crate) fn parse(text: &str) -> Operands {
        let mut out = Operands::default();
        let mut rest = text.trim_start();
        while !rest.is_empty() {
            if let Some(after) = out.semaphore(rest) {
                rest = after.trim_start();
                continue;
            }
            let (word, after) = rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len()));
            rest = after.trim_start();
            match word.split_once('=') {
                Some((name, value)) if !name.is_empty() => {
                    out.fields.insert(name.to_owned(), value.to_owned());
                }
                _ => out.words.push(word.to_owned()),
            }
        }
        out
    }

    /// Parses a semaphore condition or change at the start of `text`; returns the rest.
    fn semaphore<'t>(&mut self, text: &'t str) -> Option<&'t str> {
        let own = text.strip_prefix("S[");
        let (number, rest) = own.or_else(|| text.strip_prefix("$S["))?.split_once(']')?;
        let semaphore = number.parse().ok()?;
        let mut rest = rest.trim_start();
        if let Some((_, after)) = rest.strip_prefix('(').and_then(|r| r.split_once(')')) {
            rest = after;
        }
        let (word, after) = rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len()));
        let word = word.split('@').next().unwrap_or_default();
        let relation = |text: &str, relation, by| Some((relation, text.parse::<i64>().ok()?.checked_add(by)?));
        let wait = if let Some(v) = word.strip_prefix(">=") {
            relation(v, Relation::AtLeast, 0)
        } else if let Some(v) = word.strip_prefix("<=") {
            relation(v, Relation::AtMost, 0)
        } else if let Some(v) = word.strip_prefix("==") {
            relation(v, Relation::Equal, 0)
        } else if let Some(v) = word.strip_prefix('>') {
            relation(v, Relation::AtLeast, 1)
        } else if let Some(v) = word.strip_prefix('<') {
            relation(v, Relation::AtMost, -1)
        } else {
            None
        };
        let change = || {
            Some(match word {
                "++" => Change::Add(1),
                "--" => Change::Add(-1),
                _ => match (word.strip_prefix("+="), word.strip_prefix("-="), word.strip_prefix('=')) {
                    (Some(n), ..) => Change::Add(n.parse().ok()?),
                    (_, Some(n), _) => Change::Add(n.parse::<i64>().ok()?.checked_neg()?),
                    (.., Some(n)) => Change::Set(n.parse().ok()?),
                    _ => return None,
                },
            })
        };
        match wait {
            _ if own.is_none() => self.of_runtime = true,
            Some((relation, value)) => self.waits.push(Wait { semaphore, relation, value }),
            None => self.updates.push(Update { semaphore, change: change()? }),
        }
        Some(after)
    }

    /// The value of `name`.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(String::as_str)
    }

    /// The number called `name`.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        number(self.field(name)?)
    }

    /// The tensor operand called `name`: `fp32@0x4000[1,1,1][512,1,1]`; the type is omitted if the instruction implies it.
    pub(crate) fn access(&self, name: &str) -> Option<Access> {
        let text = self.field(name)?;
        let (head, dims) = text.split_once('[')?;
        let (dtype, address) = match head.split_once('@') {
            Some((dtype, address)) => (dtype, address),
            None => ("", head),
        };
        let dims = dims.strip_suffix(']')?;
        let (steps, counts) = dims.split_once("][")?;
        let steps: Vec<i64> = list(steps)?;
        let counts: Vec<u32> = list(counts)?;
        if steps.len() != counts.len() || counts.contains(&0) {
            return None;
        }
        Some(Access {
            dtype: self::dtype(dtype),
            address: number(address)?,
            dims: steps.into_iter().zip(counts).collect(),
        })
    }

    /// The steps and counts of one side of a DMA: `[2048,1][128,1]`, innermost first.
    pub(crate) fn pattern(&self, name: &str) -> Option<Vec<(i64, u64)>> {
        let (steps, counts) = self.field(name)?.strip_prefix('[')?.strip_suffix(']')?.split_once("][")?;
        let (steps, counts): (Vec<i64>, Vec<u64>) = (list(steps)?, list(counts)?);
        (steps.len() == counts.len() && !counts.contains(&0)).then(|| steps.into_iter().zip(counts).collect())
    }

    /// The rows and columns of a matmul: the word `128*128`.
    pub(crate) fn tile(&self) -> Option<(u32, u32)> {
        self.words.iter().find_map(|w| {
            let (rows, columns) = w.split_once('*')?;
            Some((rows.parse().ok()?, columns.parse().ok()?))
        })
    }
}

fn list<T: std::str::FromStr>(text: &str) -> Option<Vec<T>> {
    text.split(',').map(|n| n.trim().parse().ok()).collect()
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// The hardware's names of element types that differ from the language's.
fn dtype(name: &str) -> Option<DType> {
    let name = match name {
        "fp32" => "float32",
        "fp32r" => "tfloat32",
        "fp16" => "float16",
        "bf16" => "bfloat16",
        "fp8e4" | "fp8_e4" | "fp8_exp4" => "float8_e4m3",
        "fp8e5" | "fp8_e5" | "fp8_exp5" => "float8_e5m2",
        other => other,
    };
    DType::from_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn semaphores_and_tensors_are_taken_apart() {
        let o = Operands::parse(
            " S[5] (Tensor)>=4 S[4] (Scalar)++@complete EXP bias_ptr=fp32@0x4810 src=fp32@0x2000000[1,1,1][512,1,2] dst=bf16@0x40[2,1][8,1] channels=96 ",
        );
        assert_eq!(o.waits, [Wait { semaphore: 5, relation: Relation::AtLeast, value: 4 }]);
        assert_eq!(o.updates, [Update { semaphore: 4, change: Change::Add(1) }]);
        assert_eq!((o.number("channels"), o.words.as_slice()), (Some(96), &["EXP".to_owned()][..]));
        let src = o.access("src").unwrap();
        assert_eq!((src.dtype, src.elements(), src.space()), (Some(DType::F32), 1024, Space::Psum));
        let dst = o.access("dst").unwrap();
        assert_eq!((dst.space(), dst.stride_bytes(DType::BF16)), (Space::Sbuf, 4));
        assert!(!o.of_runtime && o.access("bias_ptr").is_none() && o.access("none").is_none());
        let runtime = Operands::parse("setter=0 $S[2]==8 $S[2]=0@complete");
        assert!(runtime.of_runtime && runtime.waits.is_empty() && runtime.updates.is_empty());
    }

    #[test]
    fn what_is_not_understood_is_a_word() {
        for text in [
            "S[",
            "S[x]>=1",
            "S[1]",
            "S[1]>=",
            "S[4294967296]>=1",
            "=",
            "[1][2]",
            "src=fp32@0x[1][2]",
            "é S[1]!=2",
            "S[1] (a",
        ] {
            let o = Operands::parse(text);
            assert!(o.waits.is_empty() && o.updates.is_empty(), "{text}");
            assert!(o.access("src").is_none());
        }
        for wrong in ["1@0x1[1][1,2]", "fp32@0x1[1][0]", "fp32@0x1[1]", "fp32@zz[1][2]", "fp32@0x1[1][-2]"] {
            let o = Operands::parse(&format!("src={wrong}"));
            assert!(o.access("src").is_none(), "{wrong}");
        }
        assert_eq!(Operands::parse("p=[2048,1][128,1]").pattern("p"), Some(vec![(2048, 128), (1, 1)]));
        assert_eq!(Operands::parse("p=[2048,1][128,0]").pattern("p"), None);
    }
}
