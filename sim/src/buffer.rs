//! Bytes of tensors, passed from files and callers to the memories and back without a copy.

use std::any::Any;
use std::fmt;
use std::ops::Deref;

use memmap2::{MmapMut, MmapOptions};

/// Memory of the caller that a [`Buffer`] uses, for example the bytes of a NumPy array.
///
/// The owner is kept alive until the buffer is dropped, which may happen on any thread. [`Any`] is a supertrait, so that
/// [`Buffer::into_foreign`] can return the caller's own type.
///
/// Both methods always return the same bytes (same address, same length). No other code may write to them during the buffer's
/// lifetime, nor read them if [`bytes_mut`](ForeignBytes::bytes_mut) grants access.
pub trait ForeignBytes: Any + Send + Sync {
    /// The bytes: little-endian elements, row-major and without gaps. No alignment is required.
    fn bytes(&self) -> &[u8];

    /// The bytes for writing; `None` if they must not change. A buffer then copies them before its first write.
    fn bytes_mut(&mut self) -> Option<&mut [u8]>;
}

/// Bytes of a tensor: [`HostTensor::data`](crate::HostTensor) and every storage of the memory model.
///
/// A buffer is moved, never copied: from a file or the caller to [`exec::run`](crate::exec::run), into the memory model as an HBM
/// tensor, and back as an output. A kernel uses buffers as follows:
///
/// - an input that is only read is read in place;
/// - an input that is written is written in place, even in foreign memory, so that the caller sees it. Foreign memory without write
///   access is copied before the first write, and the caller's bytes do not change;
/// - an output is the memory that the kernel wrote to. An input that is also an output is returned as the same buffer.
///
/// Created from a `Vec<u8>` (moved), with [`Buffer::zeroed`], or from foreign memory with [`Buffer::foreign`]. It dereferences to a slice.
/// The address of the bytes is stable during the buffer's lifetime, even when the buffer is moved, except for a write through an owner without
/// write access: an array of another language may point to them and keep the buffer alive.
#[derive(Default)]
pub struct Buffer(Kind);

enum Kind {
    /// Allocated here: words, so that every element type is aligned, and the number of valid bytes.
    Words(Vec<u64>, usize),
    /// A vector from the caller.
    Bytes(Vec<u8>),
    /// Pages from the system, and the number of valid bytes.
    Map(Pages, usize),
    Foreign(Box<dyn ForeignBytes>),
}

impl Default for Kind {
    fn default() -> Self {
        Kind::Words(Vec::new(), 0)
    }
}

/// Minimum size of a buffer with its own pages, which are populated together before the first write: page faults one by one take longer
/// than filling them.
const MAP_FROM: usize = 64 << 10;
/// Minimum size for huge pages, if the system has them; these are populated on access.
const HUGE_FROM: usize = HUGE_PAGE;
/// Size of a huge page.
const HUGE_PAGE: usize = 2 << 20;

impl Buffer {
    /// `length` zero bytes, aligned for every element type. Buffers of 2 MiB and more take no memory until they are accessed.
    pub fn zeroed(length: usize) -> Self {
        if length >= MAP_FROM
            && let Some(pages) = Pages::fresh(length)
        {
            return Buffer(Kind::Map(pages, length));
        }
        Buffer(Kind::Words(vec![0; length.div_ceil(8)], length))
    }

    /// `length` unspecified bytes, for callers that track writes: memory released by an earlier buffer, if available. Allocating
    /// and clearing pages in the system takes longer than most writes to them.
    pub(crate) fn unspecified(length: usize) -> Self {
        match spare::take(length) {
            Some(pages) => Buffer(Kind::Map(pages, length)),
            None => Buffer::zeroed(length),
        }
    }

    /// A buffer in the caller's memory.
    pub fn foreign(owner: Box<dyn ForeignBytes>) -> Self {
        Buffer(Kind::Foreign(owner))
    }

    /// The owner of the caller's memory; the buffer itself if it owns its bytes (which may have been copied for writing).
    ///
    /// # Errors
    /// If the memory is not foreign.
    pub fn into_foreign(self) -> Result<Box<dyn ForeignBytes>, Buffer> {
        match self.0 {
            Kind::Foreign(owner) => Ok(owner),
            own => Err(Buffer(own)),
        }
    }

    /// The bytes for writing. Foreign memory without write access is copied first.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        if let Kind::Foreign(owner) = &mut self.0
            && owner.bytes_mut().is_none()
        {
            *self = Buffer::copy_of(owner.bytes());
        }
        match &mut self.0 {
            Kind::Words(words, length) => &mut bytemuck::cast_slice_mut(words)[..*length],
            Kind::Bytes(bytes) => bytes,
            Kind::Map(pages, length) => pages.bytes_mut(*length),
            // The owner has just granted write access.
            Kind::Foreign(owner) => owner.bytes_mut().unwrap_or_default(),
        }
    }

    fn copy_of(bytes: &[u8]) -> Self {
        let mut copy = Buffer::zeroed(bytes.len());
        copy.bytes_mut().copy_from_slice(bytes);
        copy
    }
}

/// Memory from the system. On drop it is kept for another buffer, within limits.
struct Pages {
    /// `None` after it has been handed over.
    map: Option<MmapMut>,
    /// Offset of the first byte in it.
    start: usize,
    /// Whether the pages are not populated yet: a buffer that is never written needs none.
    pending: bool,
}

impl Pages {
    /// Pages of zeros for `length` bytes.
    fn fresh(length: usize) -> Option<Pages> {
        if length < HUGE_FROM {
            return Some(Pages { map: Some(MmapOptions::new().len(length).map_anon().ok()?), start: 0, pending: true });
        }
        // Additional space for alignment to a huge page.
        let map = MmapOptions::new().len(length.checked_add(HUGE_PAGE)?).map_anon().ok()?;
        // Advice only: everything also works without huge pages.
        #[cfg(target_os = "linux")]
        let _ = map.advise(memmap2::Advice::HugePage);
        let start = map.as_ptr().align_offset(HUGE_PAGE).min(HUGE_PAGE);
        Some(Pages { map: Some(map), start, pending: false })
    }

    fn size(&self) -> usize {
        self.map.as_ref().map_or(0, |map| map.len())
    }

    fn bytes(&self, length: usize) -> &[u8] {
        self.map.as_ref().map_or(&[], |map| &map[self.start..self.start + length])
    }

    fn bytes_mut(&mut self, length: usize) -> &mut [u8] {
        #[cfg(target_os = "linux")]
        if std::mem::take(&mut self.pending)
            && let Some(map) = &self.map
        {
            // Advice only: otherwise pages are populated one by one.
            let _ = map.advise(memmap2::Advice::PopulateWrite);
        }
        self.map.as_mut().map_or(&mut [], |map| &mut map[self.start..self.start + length])
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        if let Some(map) = self.map.take() {
            spare::keep(Pages { map: Some(map), ..*self });
        }
    }
}

/// Pages released by buffers: a process that runs a kernel repeatedly reuses the same memory.
mod spare {
    use std::collections::VecDeque;
    use std::sync::{Mutex, PoisonError};

    use super::Pages;

    /// Maximum number of bytes kept; the oldest pages are released first.
    const MOST: usize = 96 << 20;

    #[derive(Default)]
    struct Spare {
        pages: VecDeque<Pages>,
        bytes: usize,
    }

    static SPARE: Mutex<Spare> = Mutex::new(Spare { pages: VecDeque::new(), bytes: 0 });

    /// Pages of a previous buffer of the same size: the most recently released, which are the most likely to be cached.
    pub(super) fn take(length: usize) -> Option<Pages> {
        let with_space = if length < super::HUGE_FROM { length } else { length.checked_add(super::HUGE_PAGE)? };
        let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
        let at = spare.pages.iter().rposition(|p| p.size() == with_space)?;
        let pages = spare.pages.remove(at)?;
        spare.bytes -= with_space;
        Some(pages)
    }

    /// Keeps pages, and returns the excess to the system.
    pub(super) fn keep(pages: Pages) {
        let mut gone = Vec::new();
        let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
        spare.bytes += pages.size();
        spare.pages.push_back(pages);
        while spare.bytes > MOST
            && let Some(mut oldest) = spare.pages.pop_front()
        {
            spare.bytes -= oldest.size();
            gone.extend(oldest.map.take());
        }
        // Unmap after releasing the lock, because it is slow.
        drop(spare);
        drop(gone);
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Kind::Words(words, length) => &bytemuck::cast_slice(words)[..*length],
            Kind::Bytes(bytes) => bytes,
            Kind::Map(pages, length) => pages.bytes(*length),
            Kind::Foreign(owner) => owner.bytes(),
        }
    }
}

impl From<Vec<u8>> for Buffer {
    /// Takes ownership of the vector.
    fn from(bytes: Vec<u8>) -> Self {
        Buffer(Kind::Bytes(bytes))
    }
}

impl Clone for Buffer {
    /// A copy of the bytes, in memory of its own.
    fn clone(&self) -> Self {
        Buffer::copy_of(self)
    }
}

impl PartialEq for Buffer {
    /// Compares the bytes, not their storage.
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.0 {
            Kind::Words(..) | Kind::Bytes(_) => "own",
            Kind::Map(..) => "pages",
            Kind::Foreign(_) => "foreign",
        };
        let first = &self[..self.len().min(16)];
        write!(f, "Buffer({kind}, {} bytes, {first:?}{})", self.len(), if first.len() < self.len() { ".." } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Caller {
        bytes: Vec<u8>,
        writable: bool,
    }

    impl ForeignBytes for Caller {
        fn bytes(&self) -> &[u8] {
            &self.bytes
        }
        fn bytes_mut(&mut self) -> Option<&mut [u8]> {
            self.writable.then_some(&mut self.bytes[..])
        }
    }

    fn foreign(bytes: &[u8], writable: bool) -> Buffer {
        Buffer::foreign(Box::new(Caller { bytes: bytes.to_vec(), writable }))
    }

    fn bytes_of(owner: Box<dyn ForeignBytes>) -> Vec<u8> {
        let owner: Box<dyn Any> = owner;
        owner.downcast::<Caller>().expect("the type that was put in").bytes
    }

    #[test]
    fn zeroed_of_any_size() {
        for length in [0, 1, 7, 8, MAP_FROM - 1, MAP_FROM, MAP_FROM + 5, HUGE_FROM - 1, HUGE_FROM, 3 * HUGE_FROM + 5] {
            let mut buffer = Buffer::zeroed(length);
            assert_eq!(buffer.len(), length);
            assert!(buffer.iter().all(|&b| b == 0));
            assert_eq!(buffer.as_ptr().align_offset(8), 0);
            buffer.bytes_mut().fill(7);
            assert!(buffer.iter().all(|&b| b == 7));
        }
    }

    #[test]
    fn memory_is_used_again_but_never_twice() {
        // A length that no other test uses.
        let length = 3 * MAP_FROM + 64;
        let mut first = Buffer::unspecified(length);
        let mut second = Buffer::unspecified(length);
        first.bytes_mut().fill(1);
        second.bytes_mut().fill(2);
        assert!(first.iter().all(|&b| b == 1));
        drop(second);
        let mut third = Buffer::unspecified(length);
        assert!(third.iter().all(|&b| b == 0 || b == 2));
        third.bytes_mut().fill(3);
        assert!(first.iter().all(|&b| b == 1));
        assert!(Buffer::zeroed(length).iter().all(|&b| b == 0));
    }

    #[test]
    fn a_buffer_keeps_its_address_when_it_moves() {
        for mut buffer in [
            Buffer::zeroed(100),
            Buffer::zeroed(MAP_FROM),
            Buffer::zeroed(HUGE_FROM),
            vec![1, 2].into(),
            foreign(&[1], true),
        ] {
            buffer.bytes_mut()[0] = 9;
            let address = buffer.as_ptr();
            let moved = Box::new(buffer);
            assert_eq!(moved.as_ptr(), address);
        }
    }

    #[test]
    fn writes_reach_the_caller() {
        let mut buffer = foreign(&[1, 2, 3], true);
        buffer.bytes_mut()[1] = 9;
        let owner = buffer.into_foreign().expect("foreign");
        assert_eq!(bytes_of(owner), [1, 9, 3]);
    }

    #[test]
    fn memory_that_must_not_change_is_copied_before_a_write() {
        let mut buffer = foreign(&[1, 2, 3], false);
        let address = buffer.as_ptr();
        assert_eq!(buffer.clone(), buffer);
        assert_eq!(buffer.as_ptr(), address, "reading copies nothing");
        buffer.bytes_mut()[1] = 9;
        assert_eq!(*buffer, [1, 9, 3]);
        assert!(buffer.into_foreign().is_err());
        assert_eq!(bytes_of(foreign(&[4], false).into_foreign().expect("untouched")), [4]);
    }
}
