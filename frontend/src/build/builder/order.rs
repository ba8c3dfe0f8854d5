//! Names of instructions, and the order between them.

use nki_isa::Violation;
use nki_isa::ids::TagId;
use nki_isa::program::Tag;

use super::{Builder, NodeAt};
use crate::build::Result;

/// The kind of a dependence between two instructions (`nisa.dependency`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dependency {
    /// The later instruction waits for the completion of the earlier one, at each execution.
    Runtime,
    /// The compiler issues the earlier one first, but the engines may overlap.
    Schedule,
}

impl Builder {
    /// The tag of a statement, created if there is none; `None` if its stream has ended.
    fn tag(&mut self, at: NodeAt) -> Option<TagId> {
        let tags = &mut self.program.tags;
        let body = self.bodies.iter_mut().find(|b| b.id == at.body)?;
        let node = body.nodes.get_mut(at.index as usize)?;
        Some(*node.tag.get_or_insert_with(|| {
            tags.push(Tag::default());
            TagId(tags.len() as u32 - 1)
        }))
    }

    /// Keeps the instructions of each queue in program order, from `from` to the last (`nl.no_reorder()`). All are in one body, since such a block
    /// contains no device loop.
    pub(crate) fn keep_order(&mut self, from: NodeAt) {
        let Some(end) = self.bodies.last().filter(|b| b.id == from.body).map(|b| b.nodes.len() as u32) else { return };
        if end.saturating_sub(from.index) < 2 {
            return;
        }
        let block = self.ordered_blocks;
        self.ordered_blocks += 1;
        for index in from.index..end {
            if let Some(tag) = self.tag(NodeAt { body: from.body, index }) {
                self.program.tags[tag.0 as usize].block = Some(block);
            }
        }
    }

    /// Names an instruction, which may add dependences on others.
    ///
    /// # Errors
    /// Like [`Self::order`].
    pub(crate) fn name_node(&mut self, at: NodeAt, name: &str) -> Result<()> {
        let name = self.intern(name);
        if let Some(tag) = self.tag(at) {
            self.program.tags[tag.0 as usize].name = name.clone();
        }
        for i in 0..self.schedule.len() {
            if self.schedule[i].0 == name
                && let Some(earlier) = self.named.get(&self.schedule[i].1).copied()
            {
                self.order(at, earlier, Dependency::Runtime)?;
                self.schedule[i].2 = true;
            }
        }
        if !self.schedule.is_empty() {
            self.named.insert(name, at);
        }
        Ok(())
    }

    /// The edges of `with_schedule`, for the next core.
    pub(crate) fn set_schedule<'e>(&mut self, edges: impl Iterator<Item = (&'e str, &'e str)>) {
        self.schedule = edges.map(|(later, earlier)| (later.into(), earlier.into(), false)).collect();
        self.named.clear();
    }

    /// Rejects a schedule with an edge that no instruction enforces.
    pub(crate) fn check_schedule(&self) -> Result<()> {
        let Some((later, earlier, _)) = self.schedule.iter().find(|edge| !edge.2) else { return Ok(()) };
        let missing = [later, earlier].into_iter().find(|name| !self.named.contains_key(*name));
        let (message, help) = match missing {
            Some(name) => (
                format!("with_schedule names `{name}`, but no instruction of the kernel has this name"),
                "name the instruction: nisa.op(..., name=\"...\")",
            ),
            None => (
                format!("with_schedule: `{later}` must wait for `{earlier}`, which comes after it in the program"),
                "this simulator issues instructions in program order, which is its own limit: write the instruction to wait for first",
            ),
        };
        Err(Violation::new("depends-on", "", message).help(help))
    }

    /// Orders one instruction after another.
    ///
    /// # Errors
    /// `depends-on` if the later one does not come later, or if a device loop or branch is between them.
    pub(crate) fn order(&mut self, later: NodeAt, earlier: NodeAt, kind: Dependency) -> Result<()> {
        let refuse = |message: &str, help: &str| Err(Violation::new("depends-on", "", message).help(help));
        let depth = |at: NodeAt| self.bodies.iter().position(|b| b.id == at.body);
        let (Some(to), Some(from)) = (depth(later), depth(earlier)) else {
            return refuse(
                "depends_on: one of the instructions is in a dynamic loop or branch that has ended",
                "put both in the same body, or the earlier instruction in an enclosing body",
            );
        };
        if from > to {
            return refuse(
                "depends_on: the instruction to wait for is in a dynamic loop or branch, but the waiting instruction is not",
                "put both in the same body, or the earlier instruction in an enclosing body",
            );
        }
        if from == to && earlier.index >= later.index {
            return refuse(
                "depends_on: the instruction to wait for does not precede the waiting instruction",
                "an order against that of the program is a limit of this simulator, not a rule of the language: write the instruction to wait for first",
            );
        }
        if let (Some(later), Some(earlier)) = (self.tag(later), self.tag(earlier)) {
            let tag = &mut self.program.tags[later.0 as usize];
            let after = match kind {
                Dependency::Runtime => &mut tag.after,
                Dependency::Schedule => &mut tag.issued_after,
            };
            if !after.contains(&earlier) {
                after.push(earlier);
            }
        }
        Ok(())
    }
}
