//! The metadata of memory, without its bytes.

use nki_isa::program::Node;
use nki_isa::{Fault, TensorId, View};

use super::Memory;
use super::access::{Access, Shift, Unwritten};
use super::clobbers::Clobbered;

/// Locations of tensors and written bytes. Kept in program order, and valid while instructions are pending.
pub(crate) struct Account<'a, 'p>(&'a mut Memory<'p>);

impl<'p> Memory<'p> {
    /// The metadata, without the bytes.
    pub(crate) fn account(&mut self) -> Account<'_, 'p> {
        Account(self)
    }
}

impl<'p> Account<'_, 'p> {
    /// See [`Memory::resolve`].
    pub(crate) fn resolve(&mut self, view: &View, shift: &Shift) -> Result<Access, Fault> {
        self.0.resolve(view, shift)
    }

    /// See [`Memory::find_unwritten`].
    pub(crate) fn find_unwritten(&self, access: &Access) -> Option<Unwritten> {
        self.0.find_unwritten(access)
    }

    /// See [`Memory::is_fresh`].
    pub(crate) fn is_fresh(&self, access: &Access) -> bool {
        self.0.is_fresh(access)
    }

    /// See [`Memory::unwritten_elements`].
    pub(crate) fn unwritten_elements(&self, access: &Access) -> Vec<bool> {
        self.0.unwritten_elements(access)
    }

    /// The tensor and statement that overwrote bytes of a read through another tensor.
    pub(crate) fn clobbered(&mut self, access: &Access) -> Option<Clobbered<'p>> {
        if self.0.clobbers.is_empty() { None } else { self.0.clobbers.read(access) }
    }

    /// Starts an instruction, to which the following writes are attributed.
    pub(crate) fn executes(&mut self, node: &'p Node) {
        self.0.clobbers.now = Some(node);
    }

    /// See [`Memory::renew`].
    pub(crate) fn renew(&mut self, tensor: TensorId) {
        self.0.renew(tensor);
    }

    /// See [`Memory::begin_sums`].
    pub(crate) fn begin_sums(&mut self, tensor: TensorId) {
        self.0.begin_sums(tensor);
    }

    /// Row pitch of a storage in bytes, its total bytes, and bytes in memory per byte of the program.
    pub(crate) fn extent(&self, storage: usize) -> (usize, usize, usize) {
        let s = &self.0.storages[storage];
        (s.pitch, s.bytes().len(), self.0.scale)
    }
}
