//! Sums of products of names: the form of extents and bounds, so that `128 * (i + 1) - 128 * i` is 128.

use std::fmt;

/// A factor of a product: a name or another expression, as text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Atom {
    text: String,
    /// Whether the text can be a factor without parentheses.
    tight: bool,
}

/// `constant + sum of coefficient * product of atoms`, terms in source order.
#[derive(Debug, Clone, Default)]
pub(super) struct Poly {
    terms: Vec<(Vec<Atom>, i64)>,
    constant: i64,
}

impl PartialEq for Poly {
    fn eq(&self, other: &Self) -> bool {
        self.minus(other).is_some_and(|d| d.terms.is_empty() && d.constant == 0)
    }
}

impl Poly {
    /// A number.
    pub(super) fn number(constant: i64) -> Self {
        Self { terms: Vec::new(), constant }
    }

    /// An opaque expression.
    pub(super) fn atom(text: &str, tight: bool) -> Self {
        Self { terms: vec![(vec![Atom { text: text.to_owned(), tight }], 1)], constant: 0 }
    }

    /// Its value, if it is a number.
    pub(super) fn value(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// Whether it is this number.
    pub(super) fn is(&self, number: i64) -> bool {
        self.value() == Some(number)
    }

    /// The sum; `None` beyond 64 bits.
    pub(super) fn plus(&self, other: &Self) -> Option<Self> {
        let mut out = self.clone();
        out.constant = out.constant.checked_add(other.constant)?;
        for (atoms, by) in &other.terms {
            match out.terms.iter_mut().find(|t| t.0 == *atoms) {
                Some(term) => term.1 = term.1.checked_add(*by)?,
                None => out.terms.push((atoms.clone(), *by)),
            }
        }
        out.terms.retain(|t| t.1 != 0);
        Some(out)
    }

    /// The difference.
    pub(super) fn minus(&self, other: &Self) -> Option<Self> {
        self.plus(&other.times(&Self::number(-1))?)
    }

    /// The product.
    pub(super) fn times(&self, other: &Self) -> Option<Self> {
        let mut out = Self::number(self.constant.checked_mul(other.constant)?);
        let one = |p: &Self| p.terms.iter().cloned().chain([(Vec::new(), p.constant)]).collect::<Vec<_>>();
        for (a, m) in one(self) {
            for (b, n) in one(other) {
                let mut atoms = [a.clone(), b.clone()].concat();
                if atoms.is_empty() {
                    continue;
                }
                atoms.sort();
                out = out.plus(&Self { terms: vec![(atoms, m.checked_mul(n)?)], constant: 0 })?;
            }
        }
        Some(out)
    }

    /// Whether it certainly is a multiple of a number.
    pub(super) fn is_multiple_of(&self, of: i64) -> bool {
        self.constant % of == 0 && self.terms.iter().all(|term| term.1 % of == 0)
    }

    /// Whether it contains a subtraction.
    pub(super) fn may_be_negative(&self) -> bool {
        self.constant < 0 || self.terms.iter().any(|t| t.1 < 0)
    }

    /// As a factor of a product, or of a call's method.
    pub(super) fn factor(&self) -> String {
        let text = self.to_string();
        let tight = text.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '.');
        if tight { text } else { format!("({text})") }
    }
}

impl fmt::Display for Poly {
    /// Python's text, added terms before subtracted ones.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let product = |(atoms, by): &(Vec<Atom>, i64)| {
            let alone = atoms.len() == 1 && by.abs() == 1;
            let mut factors: Vec<String> = (by.abs() != 1).then(|| by.abs().to_string()).into_iter().collect();
            factors.extend(atoms.iter().map(|a| match a.tight || alone && *by > 0 {
                true => a.text.clone(),
                false => format!("({})", a.text),
            }));
            factors.join(" * ")
        };
        let mut text = String::new();
        let (added, taken): (Vec<_>, Vec<_>) = self.terms.iter().partition(|t| t.1 > 0);
        for term in added {
            text += if text.is_empty() { "" } else { " + " };
            text += &product(term);
        }
        if self.constant > 0 || self.terms.is_empty() {
            text += &if text.is_empty() { self.constant.to_string() } else { format!(" + {}", self.constant) };
        }
        let first_is_taken = text.is_empty();
        for (at, term) in taken.into_iter().enumerate() {
            text += if first_is_taken && at == 0 { "-" } else { " - " };
            text += &product(term);
        }
        if self.constant < 0 && !self.terms.is_empty() {
            text += &format!(" - {}", self.constant.unsigned_abs());
        }
        f.write_str(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::Poly;

    fn name(text: &str) -> Poly {
        Poly::atom(text, true)
    }

    #[test]
    fn sums_cancel_and_products_are_expanded() {
        let (m, r) = (name("m"), name("R"));
        let start = m.times(&r).unwrap();
        let end = m.plus(&Poly::number(1)).unwrap().times(&r).unwrap();
        assert_eq!(end.minus(&start).unwrap(), r);
        assert!(end.minus(&start).unwrap().minus(&r).unwrap().is(0));
    }

    #[test]
    fn text_is_python() {
        let half = Poly::atom("n // 2", false);
        let all = Poly::number(-128).times(&name("i")).unwrap().plus(&name("M")).unwrap();
        assert_eq!(all.to_string(), "M - 128 * i");
        assert_eq!(half.to_string(), "n // 2");
        assert_eq!(half.times(&Poly::number(3)).unwrap().to_string(), "3 * (n // 2)");
        assert_eq!(Poly::number(-5).to_string(), "-5");
        assert_eq!(Poly::default().to_string(), "0");
        assert_eq!(name("i").times(&Poly::number(-1)).unwrap().to_string(), "-i");
        assert_eq!(name("i").minus(&Poly::number(5)).unwrap().to_string(), "i - 5");
        assert_eq!(Poly::number(0).minus(&name("i")).unwrap().minus(&Poly::number(5)).unwrap().to_string(), "-i - 5");
        assert_eq!(all.plus(&Poly::number(3)).unwrap().factor(), "(M + 3 - 128 * i)");
    }
}
