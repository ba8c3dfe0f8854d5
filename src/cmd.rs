//! The subcommands, one file each.

pub(crate) mod batch;
pub(crate) mod calibrate;
pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod explain;
pub(crate) mod grammar;
pub(crate) mod lower;
pub(crate) mod mcp;
pub(crate) mod migrate;
mod ranks;
pub(crate) mod replay;
pub(crate) mod run;
pub(crate) mod script;
pub(crate) mod sweep;
pub(crate) mod whatif;
pub(crate) mod worker;
