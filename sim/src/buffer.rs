//! Bytes of tensors, handed from files and callers to the memories and back without a copy.

use std::any::Any;
use std::fmt;
use std::ops::Deref;

use memmap2::{MmapMut, MmapOptions};

/// Memory of the caller that a [`Buffer`] works on: the bytes of a NumPy array, say.
///
/// The owner is kept alive until the buffer is dropped, which may happen on any thread. The trait has [`Any`] above it, so that
/// [`Buffer::into_foreign`] can give the caller its own type back.
///
/// Both methods return the same bytes (same address, same length) whenever they are called. Nobody else may write to them while the
/// buffer lives, and nobody else may read them while it lives if [`bytes_mut`](ForeignBytes::bytes_mut) gives access.
pub trait ForeignBytes: Any + Send + Sync {
    /// The bytes: little-endian elements, row-major and without gaps. Alignment is not needed.
    fn bytes(&self) -> &[u8];

    /// The bytes for writing; none if they must not change. A buffer then copies them before its first write.
    fn bytes_mut(&mut self) -> Option<&mut [u8]>;
}

/// Bytes of a tensor: [`HostTensor::data`](crate::HostTensor) and every storage of the memory model.
///
/// A buffer is moved, never copied: from a file or the caller to [`exec::run`](crate::exec::run), into the memory model as an HBM
/// tensor, and back as an output. What a kernel does with it:
///
/// - an input that is only read is read where it is;
/// - an input that is written is written in place, also in foreign memory, so that the caller sees it. Foreign memory without write
///   access is copied before the first write, and the caller's bytes stay what they were;
/// - an output is the memory that the kernel wrote to. An input that is an output too comes back as the buffer that went in.
///
/// Made from a `Vec<u8>` (taken over), from [`Buffer::zeroed`], or from foreign memory with [`Buffer::foreign`]. It is read as a slice.
/// The bytes have one address as long as the buffer lives and is not written to through an owner without write access, also when the
/// buffer is moved: an array of another language may point to them and keep the buffer.
#[derive(Default)]
pub struct Buffer(Kind);

enum Kind {
    /// Made here: words, so that every element type is aligned; the number of bytes that count.
    Words(Vec<u64>, usize),
    /// Given by the caller.
    Bytes(Vec<u8>),
    /// Pages of the system, and the number of the bytes that count.
    Map(Pages, usize),
    Foreign(Box<dyn ForeignBytes>),
}

impl Default for Kind {
    fn default() -> Self {
        Kind::Words(Vec::new(), 0)
    }
}

/// From this size on a buffer gets pages of its own, all at once before its first write: one by one, when they are touched, takes longer
/// than filling them.
const MAP_FROM: usize = 64 << 10;
/// From this size on huge pages, if the system has them; they come when they are touched.
const HUGE_FROM: usize = HUGE_PAGE;
/// Size of a huge page.
const HUGE_PAGE: usize = 2 << 20;

impl Buffer {
    /// `length` bytes of zeros, aligned for every element type. Ones of 2 MiB and more take no memory until they are touched.
    pub fn zeroed(length: usize) -> Self {
        if length >= MAP_FROM
            && let Some(pages) = Pages::fresh(length)
        {
            return Buffer(Kind::Map(pages, length));
        }
        Buffer(Kind::Words(vec![0; length.div_ceil(8)], length))
    }

    /// `length` bytes of anything, for one who keeps account of what has been written: memory that an earlier buffer has given back,
    /// if there is any. Pages that the system has to find and clear first take longer than most of what is written to them.
    pub(crate) fn unspecified(length: usize) -> Self {
        match spare::take(length) {
            Some(pages) => Buffer(Kind::Map(pages, length)),
            None => Buffer::zeroed(length),
        }
    }

    /// Works on the caller's memory.
    pub fn foreign(owner: Box<dyn ForeignBytes>) -> Self {
        Buffer(Kind::Foreign(owner))
    }

    /// The owner of the caller's memory; the buffer itself if its bytes are its own (they may have been copied for writing).
    ///
    /// # Errors
    /// If the memory is not foreign.
    pub fn into_foreign(self) -> Result<Box<dyn ForeignBytes>, Buffer> {
        match self.0 {
            Kind::Foreign(owner) => Ok(owner),
            own => Err(Buffer(own)),
        }
    }

    /// For writing. Foreign memory without write access is copied first.
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
            // Write access was there a moment ago.
            Kind::Foreign(owner) => owner.bytes_mut().unwrap_or_default(),
        }
    }

    fn copy_of(bytes: &[u8]) -> Self {
        let mut copy = Buffer::zeroed(bytes.len());
        copy.bytes_mut().copy_from_slice(bytes);
        copy
    }
}

/// Memory straight from the system. When it is dropped it is kept for another buffer, within limits.
struct Pages {
    /// None once it has been handed on.
    map: Option<MmapMut>,
    /// Where in it to begin.
    start: usize,
    /// The pages are not allocated yet: a buffer that nobody writes to needs none.
    pending: bool,
}

impl Pages {
    /// Pages of zeros for `length` bytes.
    fn fresh(length: usize) -> Option<Pages> {
        if length < HUGE_FROM {
            return Some(Pages { map: Some(MmapOptions::new().len(length).map_anon().ok()?), start: 0, pending: true });
        }
        // Space to begin at a huge page.
        let map = MmapOptions::new().len(length.checked_add(HUGE_PAGE)?).map_anon().ok()?;
        // Advice: without huge pages everything works the same.
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
            // Advice: otherwise they come one by one.
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

/// Pages that buffers have given back: a process that runs a kernel many times gets the same memory every time.
mod spare {
    use std::collections::VecDeque;
    use std::sync::{Mutex, PoisonError};

    use super::Pages;

    /// Most bytes that are kept; the oldest go first.
    const MOST: usize = 96 << 20;

    #[derive(Default)]
    struct Spare {
        pages: VecDeque<Pages>,
        bytes: usize,
    }

    static SPARE: Mutex<Spare> = Mutex::new(Spare { pages: VecDeque::new(), bytes: 0 });

    /// Pages that once were for as many bytes: the last that were given back, which are the likeliest to be in the cache.
    pub(super) fn take(length: usize) -> Option<Pages> {
        let with_space = if length < super::HUGE_FROM { length } else { length.checked_add(super::HUGE_PAGE)? };
        let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
        let at = spare.pages.iter().rposition(|p| p.size() == with_space)?;
        let pages = spare.pages.remove(at)?;
        spare.bytes -= with_space;
        Some(pages)
    }

    /// Keeps pages; what then is too much goes back to the system.
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
        // The system takes its time: others need not wait for it.
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
    /// Takes the vector over.
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
    /// Equal bytes, wherever they are.
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
        // A length of this test's own.
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
