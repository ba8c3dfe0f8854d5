//! `.npy` files: NumPy's format versions 1 to 3, read in either byte order and layout.
//!
//! Written by hand rather than with a crate because the device's element types are not NumPy's: ml_dtypes stores
//! bfloat16 as `<V2` and 8-bit floats as `<V1` (or `<f1`, which NumPy cannot read back), and error messages for wrong
//! files are part of the product.

use std::io::{self, Read, Seek};
use std::ops::Range;
use std::path::Path;
use std::{fmt, fs};

use nki_isa::dtype::DType;
use nki_isa::names::Named;
use nki_isa::shape::tuple_text;
use nki_sim_core::Buffer;
use rayon::prelude::*;

use crate::memory;

/// The element type of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Elem {
    /// A dtype of the device.
    Device(DType),
    /// `float64`, for comparisons only.
    F64,
    /// `int64`, for comparisons only.
    I64,
    /// `uint64`, for comparisons only.
    U64,
    /// `V1`: an 8-bit float whose kind the file does not specify.
    Void1,
    /// `V2`: bfloat16.
    Void2,
    /// `V4`, or a structure of 2 or 4 one-byte fields: a packed type that the file does not name.
    Packed(usize),
}

impl Elem {
    /// Bytes per element.
    pub(crate) fn size(self) -> usize {
        match self {
            Elem::Device(d) => d.size(),
            Elem::F64 | Elem::I64 | Elem::U64 => 8,
            Elem::Void1 => 1,
            Elem::Void2 => 2,
            Elem::Packed(size) => size,
        }
    }

    fn from_descr(kind: u8, size: usize) -> Option<Elem> {
        Some(match (kind, size) {
            (b'b' | b'?', 1) => Elem::Device(DType::Bool),
            (b'i', 1) => Elem::Device(DType::I8),
            (b'i', 2) => Elem::Device(DType::I16),
            (b'i', 4) => Elem::Device(DType::I32),
            (b'i', 8) => Elem::I64,
            (b'u', 1) => Elem::Device(DType::U8),
            (b'u', 2) => Elem::Device(DType::U16),
            (b'u', 4) => Elem::Device(DType::U32),
            (b'u', 8) => Elem::U64,
            // ml_dtypes 0.6 writes this for float8_e5m2.
            (b'f', 1) => Elem::Device(DType::F8E5M2),
            (b'f', 2) => Elem::Device(DType::F16),
            (b'f', 4) => Elem::Device(DType::F32),
            (b'f', 8) => Elem::F64,
            (b'V', 1) => Elem::Void1,
            (b'V', 2) => Elem::Void2,
            (b'V', 4) => Elem::Packed(4),
            _ => return None,
        })
    }
}

impl fmt::Display for Elem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Elem::Device(d) => f.write_str(d.name()),
            Elem::F64 => f.write_str("float64"),
            Elem::I64 => f.write_str("int64"),
            Elem::U64 => f.write_str("uint64"),
            Elem::Void1 => f.write_str("V1 (an 8-bit float of unknown kind)"),
            Elem::Void2 => f.write_str("V2 (bfloat16)"),
            Elem::Packed(size) => write!(f, "{size} bytes packed in an unknown way"),
        }
    }
}

/// An array: little-endian elements in row-major order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Array {
    /// Element type.
    pub(crate) elem: Elem,
    /// Extents; empty for a scalar.
    pub(crate) shape: Vec<usize>,
    /// Little-endian bytes, row-major.
    pub(crate) data: Buffer,
}

impl Array {
    /// Number of elements.
    pub(crate) fn len(&self) -> usize {
        self.shape.iter().product()
    }
}

/// `(128, 512)`, in Python syntax.
pub(crate) fn shape_text(shape: &[usize]) -> String {
    tuple_text(shape.iter())
}

const MAGIC: &[u8] = b"\x93NUMPY";

/// Reads a file.
pub(crate) fn read(path: &Path) -> Result<Array, String> {
    let fail = |e: io::Error| format!("cannot read `{}`: {e}", path.display());
    let file = fs::metadata(path).map_err(fail)?;
    let source = match usize::try_from(file.len()) {
        Ok(size) if file.is_file() => {
            memory::check_file(path, size as u64)?;
            Source::File(path, size)
        }
        // A pipe has no size.
        _ => Source::Bytes(memory::read_stream(path)?),
    };
    parse(&source).map_err(|e| match e {
        Error::Io(e) => fail(e),
        Error::Format(e) => format!("`{}`: {e}", path.display()),
    })
}

/// Why an array could not be read.
#[derive(Debug)]
enum Error {
    Io(io::Error),
    Format(String),
}

impl From<io::Error> for Error {
    fn from(e: io::Error) -> Self {
        Error::Io(e)
    }
}

impl From<String> for Error {
    fn from(e: String) -> Self {
        Error::Format(e)
    }
}

/// Source of an array's bytes.
enum Source<'a> {
    /// A file and its size.
    File(&'a Path, usize),
    Bytes(Vec<u8>),
}

impl Source<'_> {
    fn size(&self) -> usize {
        match self {
            Source::File(_, size) => *size,
            Source::Bytes(bytes) => bytes.len(),
        }
    }

    /// Fills `out` with the bytes from `at` on; all are within [`size`](Source::size). Large arrays are read by several threads, because obtaining
    /// fresh memory from the system takes longer than reading.
    fn read(&self, at: usize, out: &mut [u8]) -> io::Result<()> {
        const PART: usize = 2 << 20;
        match self {
            Source::File(path, _) => out.par_chunks_mut(PART).enumerate().try_for_each(|(i, part)| {
                let mut file = fs::File::open(path)?;
                file.seek(io::SeekFrom::Start((at + i * PART) as u64))?;
                file.read_exact(part)
            }),
            Source::Bytes(bytes) => {
                out.copy_from_slice(&bytes[at..at + out.len()]);
                Ok(())
            }
        }
    }

    fn read_vec(&self, range: Range<usize>) -> io::Result<Vec<u8>> {
        let mut out = vec![0; range.len()];
        self.read(range.start, &mut out)?;
        Ok(out)
    }
}

/// Decodes a file. Its elements are read directly into their final buffer.
fn parse(source: &Source<'_>) -> Result<Array, Error> {
    let size = source.size();
    let (major, text) = header_place(&source.read_vec(0..size.min(12))?, size)?;
    let end = text.end;
    let raw = source.read_vec(text)?;
    let header = if major == 3 {
        String::from_utf8(raw).map_err(|_| "the header is not UTF-8".to_owned())?
    } else {
        raw.iter().map(|&b| b as char).collect()
    };
    let Header { elem, big_endian, fortran, shape } = parse_header(&header)?;
    let count = shape
        .iter()
        .try_fold(1usize, |n, &d| n.checked_mul(d))
        .and_then(|n| n.checked_mul(elem.size()))
        .ok_or_else(|| format!("shape {} is too large", shape_text(&shape)))?;
    let got = size - end;
    if got < count {
        Err(format!(
            "truncated: shape {} of {elem} needs {count} bytes of data, the file has {got}",
            shape_text(&shape)
        ))?;
    }
    if got > count {
        Err(format!(
            "{} bytes follow the data: shape {} of {elem} needs {count} bytes",
            got - count,
            shape_text(&shape)
        ))?;
    }
    let mut data = Buffer::zeroed(count);
    source.read(end, data.bytes_mut())?;
    if big_endian {
        for e in data.bytes_mut().chunks_exact_mut(elem.size()) {
            e.reverse();
        }
    }
    if fortran && shape.len() > 1 {
        data = to_row_major(&data, &shape, elem.size()).into();
    }
    if elem == Elem::Device(DType::Bool) {
        // NumPy allows any non-zero byte.
        for b in data.bytes_mut() {
            *b = u8::from(*b != 0);
        }
    }
    Ok(Array { elem, shape, data })
}

/// Major version of the format, and the range of the header's text. `start` is the beginning of a file of `size` bytes.
fn header_place(start: &[u8], size: usize) -> Result<(u8, Range<usize>), String> {
    if start.is_empty() {
        return Err("the file is empty".into());
    }
    if !start.starts_with(MAGIC) {
        let hint =
            if start.starts_with(b"PK") { "; it looks like a .npz archive: save one array with np.save" } else { "" };
        let n = start.len().min(6);
        return Err(format!("not a .npy file: it starts with {:02x?}, not with \\x93NUMPY{hint}", &start[..n]));
    }
    let (length_bytes, major) = match start.get(6..8) {
        Some([1, _]) => (2, 1),
        Some([v @ (2 | 3), _]) => (4, *v),
        Some([a, b]) => return Err(format!("format version {a}.{b} is not supported; 1.0, 2.0 and 3.0 are")),
        _ => return Err("truncated: the file ends inside the format version".into()),
    };
    let begin = 8 + length_bytes;
    let length = match start.get(8..begin) {
        Some(&[a, b]) => u16::from_le_bytes([a, b]) as usize,
        Some(&[a, b, c, d]) => u32::from_le_bytes([a, b, c, d]) as usize,
        _ => return Err("truncated: the file ends inside the header length".into()),
    };
    let end = begin.saturating_add(length);
    if end > size {
        return Err(format!("truncated: the header needs {length} bytes, the file has {} left", size - begin));
    }
    Ok((major, begin..end))
}

fn to_row_major(data: &[u8], shape: &[usize], size: usize) -> Vec<u8> {
    if data.is_empty() {
        // The other extents of an empty array may be of any size.
        return Vec::new();
    }
    let mut out = Vec::with_capacity(data.len());
    let mut strides = Vec::with_capacity(shape.len());
    let mut stride = size;
    for &d in shape {
        strides.push(stride);
        stride *= d;
    }
    let mut index = vec![0usize; shape.len()];
    let mut at = 0usize;
    while out.len() < data.len() {
        out.extend_from_slice(&data[at..at + size]);
        for k in (0..shape.len()).rev() {
            index[k] += 1;
            at += strides[k];
            if index[k] < shape[k] {
                break;
            }
            at -= strides[k] * shape[k];
            index[k] = 0;
        }
    }
    out
}

struct Header {
    elem: Elem,
    big_endian: bool,
    fortran: bool,
    shape: Vec<usize>,
}

fn parse_header(header: &str) -> Result<Header, String> {
    use crate::value::Value;
    let bad = |what: &str| format!("the header {what}: {}", header.trim());
    let value = crate::value::parse(header.trim()).map_err(|e| bad(&format!("is not a Python literal ({e})")))?;
    let Value::Dict(entries) = value else {
        return Err(bad("is not a dictionary"));
    };
    let get = |key: &str| entries.iter().find(|(k, _)| k == key).map(|(_, v)| v);
    let (elem, big_endian) = match get("descr") {
        Some(Value::Str(descr)) => parse_descr(descr)?,
        Some(Value::List(fields)) if matches!(bytes_of(fields), Some(2 | 4)) => (Elem::Packed(fields.len()), false),
        Some(Value::List(_)) => {
            return Err("the array has named fields (a structured dtype); save a plain array".into());
        }
        _ => return Err(bad("has no 'descr'")),
    };
    let Some(Value::Bool(fortran)) = get("fortran_order") else {
        return Err(bad("has no 'fortran_order'"));
    };
    let Some(Value::Tuple(dims)) = get("shape") else {
        return Err(bad("has no 'shape'"));
    };
    let shape = dims
        .iter()
        .map(|d| match d {
            Value::Int(n) => usize::try_from(*n).map_err(|_| bad("has a negative extent")),
            _ => Err(bad("has a shape that is not of integers")),
        })
        .collect::<Result<_, _>>()?;
    Ok(Header { elem, big_endian, fortran: *fortran, shape })
}

/// The number of fields of a structured dtype if all are one byte.
fn bytes_of(fields: &[crate::value::Value]) -> Option<usize> {
    use crate::value::Value;
    let byte = |field: &Value| match field {
        Value::Tuple(pair) => {
            matches!(pair.get(1), Some(Value::Str(d)) if d.len() == 3 && d.ends_with('1')) && pair.len() == 2
        }
        _ => false,
    };
    fields.iter().all(byte).then_some(fields.len())
}

fn parse_descr(descr: &str) -> Result<(Elem, bool), String> {
    let unknown =
        || format!("dtype '{descr}' is not supported; bool, (u)int8..64, float16..64 and ml_dtypes' V1 and V2 are");
    let mut rest = descr;
    let mut big_endian = false;
    if let Some(stripped) = descr.strip_prefix(['<', '>', '|', '=']) {
        big_endian = descr.starts_with('>');
        rest = stripped;
    }
    let kind = *rest.as_bytes().first().ok_or_else(unknown)?;
    if kind == b'O' {
        return Err(
            "dtype object: the file holds pickled Python objects, not numbers; convert with .astype() first".into()
        );
    }
    if kind == b'c' {
        return Err(format!("dtype '{descr}' is complex, which the device does not have"));
    }
    if matches!(kind, b'U' | b'S') {
        return Err(format!("dtype '{descr}' is text, not numbers"));
    }
    let size: usize = if rest == "?" { 1 } else { rest.get(1..).and_then(|s| s.parse().ok()).ok_or_else(unknown)? };
    let elem = Elem::from_descr(kind, size).ok_or_else(unknown)?;
    Ok((elem, big_endian))
}

/// The NumPy dtype for a device type in the header. `<V2` and `<V1` match ml_dtypes; `np.load(f).view(ml_dtypes.bfloat16)`
/// restores the values. float8_e5m2 is written as `<V1` too, because NumPy rejects ml_dtypes' own `<f1`.
fn descr(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "|b1",
        DType::I8 => "|i1",
        DType::I16 => "<i2",
        DType::I32 => "<i4",
        DType::I64 => "<i8",
        DType::U8 => "|u1",
        // Packed types as integers: `.view(np.uint8)` and an ml_dtypes dtype restore the values.
        DType::U16 | DType::F4E2M1FNX4 => "<u2",
        DType::U32 | DType::F8E4M3FNX4 | DType::F8E5M2X4 => "<u4",
        DType::F16 => "<f2",
        DType::F32 | DType::TF32 => "<f4",
        DType::BF16 => "<V2",
        DType::F8E4M3 | DType::F8E4M3FN | DType::F8E5M2 | DType::F8E8M0 => "<V1",
    }
}

/// The header of a file with this element type and shape.
pub(crate) fn header(dtype: DType, shape: &[usize]) -> Vec<u8> {
    let mut text = format!("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", descr(dtype), shape_text(shape));
    // Data starts at a multiple of 64; the header ends with a line feed.
    let unpadded = MAGIC.len() + 4 + text.len() + 1;
    text.extend(std::iter::repeat_n(' ', unpadded.next_multiple_of(64) - unpadded));
    text.push('\n');
    let mut out = MAGIC.to_vec();
    // At most a few hundred bytes: version 1 is enough.
    out.extend_from_slice(&[1, 0]);
    out.extend_from_slice(&(text.len() as u16).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(bytes: Vec<u8>) -> Result<Array, String> {
        super::parse(&Source::Bytes(bytes)).map_err(|e| match e {
            Error::Io(e) => e.to_string(),
            Error::Format(e) => e,
        })
    }

    fn file(descr: &str, fortran: bool, shape: &str, data: &[u8]) -> Vec<u8> {
        let f = if fortran { "True" } else { "False" };
        let h = format!("{{'descr': {descr}, 'fortran_order': {f}, 'shape': {shape}, }}\n");
        let mut out = b"\x93NUMPY\x01\x00".to_vec();
        out.extend((h.len() as u16).to_le_bytes());
        out.extend(h.as_bytes());
        out.extend(data);
        out
    }

    #[test]
    fn reads_what_it_writes() {
        let mut bytes = header(DType::BF16, &[2, 3]);
        assert_eq!(bytes.len() % 64, 0);
        bytes.extend([1u8; 12]);
        let a = parse(bytes).unwrap();
        assert_eq!((a.elem, a.shape.as_slice()), (Elem::Void2, &[2, 3][..]));
    }

    #[test]
    fn fortran_order_and_big_endian() {
        // [[1, 2, 3], [4, 5, 6]] column by column, big-endian.
        let data: Vec<u8> = [1i16, 4, 2, 5, 3, 6].iter().flat_map(|x| x.to_be_bytes()).collect();
        let a = parse(file("'>i2'", true, "(2, 3)", &data)).unwrap();
        let expect: Vec<u8> = [1i16, 2, 3, 4, 5, 6].iter().flat_map(|x| x.to_le_bytes()).collect();
        assert_eq!(*a.data, expect);
    }

    #[test]
    fn packed_elements_are_read_as_bytes() {
        let a = parse(file("[('a', '|u1'), ('b', '|V1'), ('c', '|u1'), ('d', '|u1')]", false, "(1,)", &[1, 2, 3, 4]));
        assert_eq!(a.map(|a| (a.elem, a.data.to_vec())), Ok((Elem::Packed(4), vec![1, 2, 3, 4])));
        assert_eq!(parse(file("'|V4'", false, "(1,)", &[0; 4])).map(|a| a.elem), Ok(Elem::Packed(4)));
        assert_eq!(descr(DType::F4E2M1FNX4), "<u2");
    }

    #[test]
    fn versions_2_and_3() {
        for version in [2u8, 3] {
            let h = "{'descr': '|u1', 'fortran_order': False, 'shape': (), }\n";
            let mut out = b"\x93NUMPY".to_vec();
            out.extend([version, 0]);
            out.extend((h.len() as u32).to_le_bytes());
            out.extend(h.as_bytes());
            out.push(7);
            let a = parse(out).unwrap();
            assert_eq!((a.shape.len(), &*a.data), (0, &[7u8][..]));
        }
    }

    #[test]
    fn a_large_file_is_read_in_parts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.npy");
        let data: Vec<u8> = (0..5_000_003u32).map(|i| (i % 251) as u8).collect();
        fs::write(&path, file("'|u1'", false, "(5000003,)", &data)).unwrap();
        assert!(*read(&path).unwrap().data == data);
        fs::write(&path, file("'|u1'", false, "(5000004,)", &data)).unwrap();
        assert!(read(&path).unwrap_err().contains("truncated"));
    }

    #[test]
    fn says_what_is_wrong() {
        let cases: [(Vec<u8>, &str); 10] = [
            (vec![], "empty"),
            (b"PK\x03\x04xx".to_vec(), ".npz"),
            (b"\x93NUMPY".to_vec(), "truncated"),
            (b"\x93NUMPY\x09\x00".to_vec(), "version 9.0"),
            (b"\x93NUMPY\x01\x00\xff\xff{".to_vec(), "header needs 65535 bytes"),
            (file("'|O'", false, "(1,)", &[0; 8]), "object"),
            (file("'<f4'", false, "(2, 2)", &[0; 15]), "needs 16 bytes of data, the file has 15"),
            (file("'<f4'", false, "(1,)", &[0; 9]), "5 bytes follow"),
            (file("[('a', '<f4')]", false, "(1,)", &[0; 4]), "structured"),
            (file("'<f4'", false, "(99999999999, 99999999999)", &[]), "too large"),
        ];
        for (bytes, want) in cases {
            let got = parse(bytes).unwrap_err();
            assert!(got.contains(want), "{got} / {want}");
        }
    }
}
