//! Gives every on-chip tensor an address.

use nki_isa::TensorId;
use nki_isa::program::Address;

/// Where tensors lie.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Placement {
    /// By tensor id: the physical address of on-chip tensors, `None` for HBM tensors (each has storage of its own).
    pub addresses: Vec<Option<Address>>,
    /// Most SBUF bytes per partition in use at one time, over cores.
    pub sbuf_peak_bytes: u32,
    /// Most PSUM banks in use at one time, over cores.
    pub psum_peak_banks: u32,
}

impl Placement {
    /// The address of an on-chip tensor.
    pub fn address(&self, tensor: TensorId) -> Option<Address> {
        self.addresses.get(tensor.0 as usize).copied().flatten()
    }
}
