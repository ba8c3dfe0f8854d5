//! The costs of a program's statements. Unrolled loops repeat a few costs, so each is stored once.

use rustc_hash::FxHashMap;

use super::Cost;
use crate::trace::NodeIndex;

/// The cost of each statement.
#[derive(Debug, Default)]
pub(crate) struct Costs {
    distinct: Vec<Cost>,
    /// By statement: the number of its cost in `distinct`, or `NONE`.
    of: Vec<u32>,
}

/// Marks a statement without a cost: a dynamic loop or branch.
const NONE: u32 = u32::MAX;

impl Costs {
    /// The cost of a statement; `None` for a dynamic loop or branch.
    pub(crate) fn of(&self, node: NodeIndex) -> Option<&Cost> {
        self.distinct.get(self.of[node.0 as usize] as usize)
    }

    /// Each cost once, in the order of first use.
    pub(crate) fn distinct(&self) -> &[Cost] {
        &self.distinct
    }

    /// Concatenates the costs of consecutive parts of a program.
    pub(crate) fn joined(parts: Vec<Costs>) -> Self {
        let mut all = Numbered::default();
        let mut of = Vec::with_capacity(parts.iter().map(|p| p.of.len()).sum());
        for part in parts {
            let numbers: Vec<u32> = part.distinct.into_iter().map(|cost| all.number(cost)).collect();
            of.extend(part.of.iter().map(|n| numbers.get(*n as usize).copied().unwrap_or(NONE)));
        }
        Costs { distinct: all.into_costs(), of }
    }
}

impl FromIterator<Option<Cost>> for Costs {
    fn from_iter<I: IntoIterator<Item = Option<Cost>>>(costs: I) -> Self {
        let mut all = Numbered::default();
        let of = costs.into_iter().map(|cost| cost.map_or(NONE, |cost| all.number(cost))).collect();
        Costs { distinct: all.into_costs(), of }
    }
}

/// Distinct costs with their numbers, from 0.
#[derive(Default)]
struct Numbered(FxHashMap<Cost, u32>);

impl Numbered {
    fn number(&mut self, cost: Cost) -> u32 {
        let next = self.0.len() as u32;
        *self.0.entry(cost).or_insert(next)
    }

    fn into_costs(self) -> Vec<Cost> {
        let mut all: Vec<(Cost, u32)> = self.0.into_iter().collect();
        all.sort_unstable_by_key(|(_, number)| *number);
        all.into_iter().map(|(cost, _)| cost).collect()
    }
}

#[cfg(test)]
mod tests {
    use nki_isa::names::Engine;

    use super::*;
    use crate::timing::cost::CostKind;
    use crate::timing::params::Confidence;

    #[test]
    fn parts_share_what_they_have_in_common() {
        let cost = |engine| Cost { engine, kind: CostKind::Free, confidence: Confidence::Measured };
        let (a, b, c) = (cost(Engine::Vector), cost(Engine::Scalar), cost(Engine::Tensor));
        let all = [Some(&b), None, Some(&a), Some(&b), Some(&c), Some(&a), None];
        let part = |range: std::ops::Range<usize>| all[range].iter().map(|c| c.cloned()).collect::<Costs>();
        let joined = Costs::joined(vec![part(0..3), part(3..3), part(3..7)]);
        for (node, cost) in (0..).zip(all) {
            assert_eq!(joined.of(NodeIndex(node)), cost, "statement {node}");
        }
        assert_eq!(joined.distinct(), [b, a, c]);
    }
}
