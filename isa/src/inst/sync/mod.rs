//! Instructions of the sequencers, and statements that need no engine.

pub mod core_barrier;
pub mod device_print;
pub mod register_load;
pub mod register_move;
pub mod register_store;
pub mod scalar_compute;
pub mod scalar_load;
pub mod scalar_store;

use crate::view::View;
use crate::violation::Violation;

/// `view` has exactly one element, statically addressed or not.
pub(crate) fn one_element(name: &'static str, view: &View) -> Result<(), Violation> {
    if view.elements() == 1 {
        return Ok(());
    }
    Err(Violation::new(
        "shape-mismatch",
        name,
        format!("`{name}` has {:?} = {} elements, but a register holds one", view.shape(), view.elements()),
    )
    .help("slice one element: tensor[0:1, 0:1]"))
}
