//! Instructions and maths of this group.
