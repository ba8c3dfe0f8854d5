//! Storage; its shape, capacity and address are checked at allocation.

use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use nki_isa::ids::{Address, TrailId};
use nki_isa::program::Input;
use nki_isa::tensor::Tensor as Memory;
use nki_isa::view::MAX_DIMS;
use nki_isa::{DType, Declaration, Loc, Space, TensorId, View, Violation};
use smallvec::SmallVec;

use super::{Builder, Sharing, Site};
use crate::build::Result;
use crate::build::tensor::{MAX_ELEMENTS, Storage, Tensor, tuple_text};

/// A request for storage.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    /// Name for messages and reports.
    pub(crate) name: &'a str,
    /// Which tensor of the other core it is, in shared HBM.
    pub(crate) sharing: Sharing,
    /// Memory.
    pub(crate) space: Space,
    /// Extents as given by the kernel.
    pub(crate) shape: &'a [i64],
    /// Element type.
    pub(crate) dtype: DType,
    /// `address=`: (partition, byte) on chip, (byte,) in HBM.
    pub(crate) address: Option<&'a [i64]>,
    /// Initial contents.
    pub(crate) data: Option<Arc<[u8]>>,
}

/// The extents as counts.
fn check_shape(request: &Request<'_>) -> Result<SmallVec<[u32; 4]>> {
    let name = request.name;
    let text = || tuple_text(request.shape.iter().copied());
    let on_chip = request.space.is_on_chip();
    // The manual allocates [1] tensors in SBUF for registers (register_alloc); they are (1, 1) everywhere else.
    if on_chip && request.shape == [1] {
        return Ok(SmallVec::from_slice(&[1, 1]));
    }
    let least = if on_chip { 2 } else { 1 };
    if request.shape.len() < least || request.shape.len() > MAX_DIMS {
        let message =
            format!("`{name}` of shape {} in {} must have {least} to {MAX_DIMS} dimensions", text(), request.space);
        let help = match request.shape {
            // For (1,), both are the same.
            [n] if on_chip => format!(
                "write ({n}, 1) for one element in each of {n} partitions, or (1, {n}) for {n} elements in one partition"
            ),
            _ if on_chip => "on chip dimension 0 is the partition dimension: write (partitions, elements)".into(),
            _ => String::new(),
        };
        return Err(Violation::new("bad-shape", "", message).help(help));
    }
    let total = request.shape.iter().try_fold(1u64, |n, &d| n.checked_mul(u64::try_from(d).unwrap_or(1)));
    if total.is_none_or(|n| n > MAX_ELEMENTS) {
        return Err(Violation::new(
            "bad-shape",
            "",
            format!("`{name}` of shape {} has more than 2**40 elements", text()),
        ));
    }
    request
        .shape
        .iter()
        .enumerate()
        .map(|(d, &n)| {
            u32::try_from(n).ok().filter(|&n| n > 0).ok_or_else(|| {
                Violation::new(
                    "bad-shape",
                    "",
                    format!("`{name}` of shape {}: dimension {d} is {n}, not positive", text()),
                )
            })
        })
        .collect()
}

/// Bytes of HBM that the kernel has assigned to a tensor by address.
#[derive(Debug)]
pub(super) struct HbmPlace {
    space: Space,
    core: u32,
    span: Range<u64>,
    name: Arc<str>,
}

impl Builder {
    /// Allocates storage after checking shape, capacity and address.
    ///
    /// # Errors
    /// `bad-shape`, `partition-size`, `sbuf-capacity`, `psum-capacity`, `psum-alignment`, `bad-address`.
    pub(crate) fn alloc(&mut self, request: &Request<'_>, site: Site) -> Result<Tensor> {
        let shape = check_shape(request)?;
        let space = request.space;
        let bytes: u64 = shape.iter().skip(usize::from(space.is_on_chip())).map(|&n| u64::from(n)).product::<u64>()
            * request.dtype.size() as u64;
        if space.is_on_chip() {
            self.check_on_chip(request, &shape, bytes, site)?;
        } else if bytes > u64::from(u32::MAX) * 16 {
            return Err(Violation::new("bad-shape", "", format!("`{}` takes {bytes} bytes of HBM", request.name)));
        }
        let address = match request.address {
            Some(at) if space.is_on_chip() => Some(self.check_address(request, &shape, bytes, at)?),
            _ => None,
        };
        let again = self.core > 0 || self.program_index > 0;
        if space == Space::SharedHbm && again {
            if let Some(id) = self.shared.next(request) {
                let first = &self.program.tensors[id.0 as usize];
                if first.shape == shape && first.dtype == request.dtype {
                    return Ok(self.handle(id));
                }
                return Err(self.divergence(request, Some(first)));
            } else if request.sharing != Sharing::Name {
                return Err(self.divergence(request, None));
            }
        }
        if space == Space::Hbm && again {
            let first = self.private.get(self.next_private).copied();
            self.next_private += 1;
            if let Some(id) = first.filter(|&id| self.is_output(id)) {
                let first = &self.program.tensors[id.0 as usize];
                if first.shape == shape && first.dtype == request.dtype {
                    return Ok(self.handle(id));
                }
            }
        }
        let core = if space == Space::SharedHbm { 0 } else { self.core };
        if let Some(at) = request.address.filter(|_| space.is_hbm()) {
            self.check_hbm_address(request, core, bytes, at)?;
        }
        let declaration = Declaration {
            name: self.intern(request.name),
            space,
            shape,
            dtype: request.dtype,
            unnamed: request.sharing == Sharing::Unnamed && space == Space::SharedHbm,
            address,
            core,
            data: request.data.clone(),
            loops: self.loops(),
            loc: site.loc,
        };
        let made = self.add(declaration, site.trail);
        match space {
            Space::SharedHbm => self.shared.push(made.storage.id, request),
            Space::Hbm if !again => self.private.push(made.storage.id),
            _ => {}
        }
        Ok(made)
    }

    /// Adds a tensor to the program.
    fn add(&mut self, declaration: Declaration, trail: TrailId) -> Tensor {
        let known = self.declared.entry(declaration.loc).or_default();
        let known = match known {
            Some(known) if **known == declaration => known.clone(),
            _ => known.insert(declaration.into()).clone(),
        };
        let id = self.push_tensor(known, trail);
        self.handle(id)
    }

    /// Adds a tensor with an existing declaration.
    fn push_tensor(&mut self, declaration: Arc<Declaration>, trail: TrailId) -> TensorId {
        let id = TensorId(self.program.tensors.len() as u32);
        self.program.tensors.push(Memory::new(declaration, trail));
        self.made.push(self.next_node());
        id
    }

    /// Whether another tensor with this declaration can be allocated on this core without checks or records.
    pub(super) fn is_plain(&self, declaration: &Declaration) -> bool {
        let limit = match declaration.space {
            Space::Sbuf => self.arch.sbuf_bytes,
            Space::Psum => self.arch.psum_bytes(),
            _ => return false,
        };
        declaration.address.is_none()
            && declaration.data.is_none()
            && declaration.core == self.core
            && declaration.loops == self.loops()
            && declaration.bytes() <= limit as usize
    }

    /// A new on-chip tensor with the declaration of an earlier one of the same statement, all of which is given; `None` if [`Self::alloc`] has
    /// more to check.
    pub(crate) fn another(&mut self, earlier: &Tensor, trail: TrailId) -> Option<Tensor> {
        let declaration = &earlier.storage.declaration;
        if !self.is_plain(declaration) {
            return None;
        }
        let id = self.push_tensor(declaration.clone(), trail);
        let storage = Rc::new(Storage { id, declaration: declaration.clone() });
        Some(Tensor { view: View { tensor: id, ..earlier.view.clone() }, storage })
    }

    /// A handle of the whole of a tensor of the program.
    pub(super) fn handle(&self, id: TensorId) -> Tensor {
        let declaration = self.program.tensors[id.0 as usize].declaration().clone();
        Tensor::whole(Rc::new(Storage { id, declaration }))
    }

    /// A constant in shared HBM; equal constants are one tensor.
    ///
    /// # Errors
    /// As [`Builder::alloc`].
    pub(crate) fn constant(&mut self, request: &Request<'_>, site: Site) -> Result<Tensor> {
        let shape = check_shape(request)?;
        let Some(data) = request.data.clone() else {
            return self.alloc(request, site);
        };
        let known = self.constants.get(&data).and_then(|ids| {
            ids.iter().copied().find(|id| {
                let t = &self.program.tensors[id.0 as usize];
                t.shape == shape && t.dtype == request.dtype
            })
        });
        if let Some(id) = known {
            return Ok(self.handle(id));
        }
        let declaration = Declaration {
            name: self.intern(request.name),
            space: Space::SharedHbm,
            shape,
            dtype: request.dtype,
            unnamed: false,
            address: None,
            core: 0,
            data: request.data.clone(),
            loops: 0,
            loc: site.loc,
        };
        let made = self.add(declaration, site.trail);
        self.constants.entry(data).or_default().push(made.storage.id);
        Ok(made)
    }

    fn check_on_chip(&mut self, request: &Request<'_>, shape: &[u32], bytes: u64, site: Site) -> Result<()> {
        let name = request.name;
        if shape[0] > self.arch.partitions {
            return Err(Violation::new(
                "partition-size",
                "",
                format!(
                    "`{name}` has {} partitions (dimension 0 of {}), but {} has {}",
                    shape[0],
                    tuple_text(request.shape.iter().copied()),
                    request.space,
                    self.arch.partitions
                ),
            )
            .help(format!(
                "split dimension 0 into tiles of at most {} (nl.tile_size.pmax), or move it to a free dimension; storage for several \
                 tiles is made with nl.alloc_tiles, in neuronxcc.nki by dimensions before an nl.par_dim",
                self.arch.partitions
            )));
        }
        let (id, limit) = match request.space {
            Space::Psum => ("psum-capacity", self.arch.psum_bytes()),
            _ => ("sbuf-capacity", self.arch.sbuf_bytes),
        };
        if bytes > u64::from(limit) {
            let too_large = Violation::new(
                id,
                "",
                format!(
                    "`{name}` occupies {bytes} bytes in each partition ({} of {}), but {} has {limit}",
                    tuple_text(request.shape.iter().copied()),
                    request.dtype,
                    request.space
                ),
            )
            .help("tile the free dimension");
            if !self.over_capacity {
                return Err(too_large);
            }
            self.too_large.push((too_large, site));
        }
        Ok(())
    }

    /// Addresses in HBM must not overlap: tensors have separate memory here, so two of them cannot share bytes.
    fn check_hbm_address(&mut self, request: &Request<'_>, core: u32, bytes: u64, at: &[i64]) -> Result<()> {
        let name = request.name;
        let refuse = |message: String| Violation::new("bad-address", "", message);
        let &[byte] = at else {
            return Err(refuse(format!("`{name}` is in {}, where an address is one number", request.space))
                .help("write address=(byte,); (partition, byte) is for SBUF and PSUM"));
        };
        let Ok(byte) = u64::try_from(byte) else {
            return Err(refuse(format!("`{name}` has address ({byte},): it must be 0 or more")));
        };
        let span = byte..byte.saturating_add(bytes);
        let shared = |p: &HbmPlace| {
            (p.space, p.core) == (request.space, core) && p.span.start < span.end && span.start < p.span.end
        };
        if let Some(other) = self.hbm_places.iter().find(|p| shared(p)) {
            let message = format!(
                "`{name}` occupies bytes {} to {} of {}, but `{}` occupies {} to {}",
                span.start, span.end, request.space, other.name, other.span.start, other.span.end
            );
            return Err(refuse(message)
                .help("HBM tensors that share bytes are not simulated: allocate one tensor and use views of it"));
        }
        let name = self.intern(name);
        self.hbm_places.push(HbmPlace { space: request.space, core, span, name });
        Ok(())
    }

    fn check_address(&self, request: &Request<'_>, shape: &[u32], bytes: u64, at: &[i64]) -> Result<Address> {
        let name = request.name;
        let refuse = |message: String| Violation::new("bad-address", "", message);
        let &[first, second] = at else {
            return Err(refuse(format!("`{name}` is in {}, where an address is two numbers", request.space))
                .help("write address=(partition, byte); (byte,) is for HBM"));
        };
        let (Ok(partition), Ok(byte)) = (u32::try_from(first), u32::try_from(second)) else {
            return Err(refuse(format!("`{name}` has address ({first}, {second}): both parts must be 0 or more")));
        };
        if u64::from(partition) + u64::from(shape[0]) > u64::from(self.arch.partitions) {
            return Err(refuse(format!(
                "`{name}` with {} partitions at partition {partition} ends past partition {}",
                shape[0],
                self.arch.partitions - 1
            )));
        }
        let limit = if request.space == Space::Psum { self.arch.psum_bytes() } else { self.arch.sbuf_bytes };
        if u64::from(byte) + bytes > u64::from(limit) {
            return Err(refuse(format!(
                "`{name}` occupies bytes {byte} to {} of each partition, but {} has {limit}",
                u64::from(byte) + bytes,
                request.space
            ))
            .help("the second part of an address counts bytes"));
        }
        let bank = self.arch.psum_bank_bytes;
        if request.space == Space::Psum && byte % bank != 0 {
            return Err(Violation::new(
                "psum-alignment",
                "",
                format!(
                    "`{name}` is at byte {byte} of PSUM; a PSUM tensor starts on a bank, a multiple of {bank} bytes"
                ),
            )
            .help(format!("use address=({partition}, bank * {bank}), bank 0 to {}", self.arch.psum_banks - 1)));
        }
        Ok(Address { partition, byte })
    }

    /// An HBM tensor for an array argument.
    ///
    /// # Errors
    /// `bad-shape`.
    pub(crate) fn input(&mut self, name: &str, shape: &[i64], dtype: DType, loc: Loc) -> Result<Tensor> {
        let sharing = Sharing::Order;
        let request = Request { name, sharing, space: Space::SharedHbm, shape, dtype, address: None, data: None };
        let shape = check_shape(&request)?;
        if let Some(known) = self.program.inputs.iter().find(|i| &*i.name == name) {
            return Ok(self.handle(known.tensor));
        }
        let name = self.intern(name);
        let declaration = Declaration {
            name: name.clone(),
            space: Space::SharedHbm,
            shape,
            dtype,
            unnamed: false,
            address: None,
            core: 0,
            data: None,
            loops: 0,
            loc,
        };
        let made = self.add(declaration, TrailId::ROOT);
        self.program.inputs.push(Input { name, tensor: made.storage.id });
        Ok(made)
    }

    /// Whether the tensor is an argument of the kernel.
    pub(super) fn is_input(&self, id: TensorId) -> bool {
        self.program.inputs.iter().any(|i| i.tensor == id)
    }
}
