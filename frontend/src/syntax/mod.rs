//! Python source: its tree, the parser, and the resolution of names to slots.

mod blocks;
mod calls;
mod carried;
mod hoist;
pub(crate) mod parse;
pub(crate) mod resolve;
mod scopes;
mod tree;
mod walrus;

pub(crate) use self::carried::{Carried, CarriedItem, ItemKey, ItemPath, carried_items};
pub(crate) use self::tree::*;
