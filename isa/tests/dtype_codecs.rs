//! The codecs against ml_dtypes (vectors in `corpus/`), `half` and `microfloat`.

use microfloat::{f8e4m3, f8e4m3fn, f8e5m2};
use nki_isa::DType;
use nki_isa::dtype::{
    MxElement, Overflow, bits_to_f32, bits_to_i64, decode_f32, decode_i64, encode_f32, encode_f32_with, encode_i64,
    f32_to_bits, i64_to_bits, round_to_int,
};
use nki_isa::names::Named;

const FLOATS: [DType; 6] = [DType::BF16, DType::F16, DType::F8E4M3, DType::F8E4M3FN, DType::F8E5M2, DType::F8E8M0];

fn corpus(kind: &str, dtype: DType) -> Vec<Vec<String>> {
    let path = format!("{}/tests/corpus/{kind}_{}.txt", env!("CARGO_MANIFEST_DIR"), dtype.name());
    let text = std::fs::read_to_string(&path).expect("corpus file");
    text.lines().filter(|l| !l.starts_with('#')).map(|l| l.split_whitespace().map(String::from).collect()).collect()
}

fn hex(text: &str) -> u32 {
    u32::from_str_radix(text, 16).expect("hexadecimal")
}

#[test]
fn encoding_is_bit_equal_with_ml_dtypes() {
    for dtype in FLOATS {
        let rows = corpus("encode", dtype);
        assert!(rows.len() > 100);
        for row in rows {
            let (x, want) = (f32::from_bits(hex(&row[0])), hex(&row[1]));
            let got = f32_to_bits(dtype, x);
            if x.is_nan() && dtype == DType::F16 {
                // NumPy keeps the payload as it is, hardware makes the NaN quiet; both are NaN of the same sign.
                assert!(bits_to_f32(dtype, got).is_nan() && got >> 15 == want >> 15);
                continue;
            }
            assert_eq!(got, want, "{dtype}: {x:?} ({:#x}) gives {got:#x}, want {want:#x}", x.to_bits());
        }
    }
}

#[test]
fn decoding_is_equal_with_ml_dtypes() {
    for dtype in [DType::F8E4M3, DType::F8E4M3FN, DType::F8E5M2, DType::F8E8M0] {
        for (code, want) in corpus("decode", dtype).into_iter().flatten().enumerate() {
            let got = bits_to_f32(dtype, code as u32);
            match want.as_str() {
                "nan" => assert!(got.is_nan(), "{dtype} {code:#x}"),
                _ => assert_eq!(got.to_bits(), hex(&want), "{dtype} {code:#x}"),
            }
        }
    }
}

/// All values whose bits are a multiple of a prime: half a million, in every range.
fn sample() -> impl Iterator<Item = f32> {
    (0..u32::MAX / 8191).map(|i| f32::from_bits(i * 8191 + 3))
}

#[test]
fn encoding_agrees_with_other_implementations() {
    for x in sample() {
        assert_eq!(f32_to_bits(DType::BF16, x) as u16, half::bf16::from_f32(x).to_bits() & nan_mask(x), "{x:?}");
        assert_eq!(f32_to_bits(DType::F16, x) as u16, half::f16::from_f32(x).to_bits(), "{x:?}");
        if !x.is_nan() {
            assert_eq!(f32_to_bits(DType::F8E4M3, x) as u8, f8e4m3::from_f32(x).to_bits(), "{x:?}");
            assert_eq!(f32_to_bits(DType::F8E4M3FN, x) as u8, f8e4m3fn::from_f32(x).to_bits(), "{x:?}");
            assert_eq!(f32_to_bits(DType::F8E5M2, x) as u8, f8e5m2::from_f32(x).to_bits(), "{x:?}");
        }
    }
}

/// ml_dtypes drops a NaN's payload, `half` keeps its upper bits.
fn nan_mask(x: f32) -> u16 {
    if x.is_nan() { 0xffc0 } else { 0xffff }
}

#[test]
fn decoding_agrees_with_other_implementations() {
    for bits in 0..=u16::MAX {
        let (a, b) = (bits_to_f32(DType::F16, bits.into()), half::f16::from_bits(bits).to_f32());
        assert!(a == b && a.is_sign_negative() == b.is_sign_negative() || a.is_nan() && b.is_nan(), "{bits:#x}");
        let (a, b) = (bits_to_f32(DType::BF16, bits.into()), half::bf16::from_bits(bits).to_f32());
        assert!(a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan(), "{bits:#x}");
    }
}

#[test]
fn every_code_survives_a_round_trip() {
    for dtype in FLOATS {
        for bits in 0..1u32 << (8 * dtype.size()) {
            let value = bits_to_f32(dtype, bits);
            if !value.is_nan() {
                assert_eq!(f32_to_bits(dtype, value), bits, "{dtype}");
            }
        }
    }
}

#[test]
fn packed_elements_are_their_four_numbers() {
    let formats = [(MxElement::E4M3FN, DType::F8E4M3FN), (MxElement::E5M2, DType::F8E5M2)];
    for (element, dtype) in formats {
        for code in 0..=255u8 {
            let four = element.unpack(element.pack([code, 0, !code, code]));
            for (got, code) in four.into_iter().zip([code, 0, !code, code]) {
                assert_eq!(got.to_bits(), bits_to_f32(dtype, code.into()).to_bits(), "{dtype} {code:#x}");
            }
            let value = bits_to_f32(dtype, code.into());
            assert!(value.is_nan() || element.encode(value) == code);
        }
    }
    for row in corpus("encode", DType::F4E2M1FNX4) {
        let (x, want) = (f32::from_bits(hex(&row[0])), hex(&row[1]) as u8);
        assert_eq!(MxElement::E2M1FN.encode(x), want, "{x:?}");
        let back = MxElement::E2M1FN.unpack(u32::from(want) << 12)[3];
        assert!(x.is_nan() || (back - x).abs() <= 0.25 + x.abs() / 4.0 || x.abs() > 6.0, "{x:?} {back:?}");
    }
}

#[test]
fn overflow_rules() {
    let encode = |dtype, x, rule| {
        let mut out = [0];
        encode_f32_with(dtype, &[x], &mut out, rule);
        bits_to_f32(dtype, out[0].into())
    };
    assert_eq!(encode(DType::F8E4M3, 1e6, Overflow::Saturate), 240.0);
    assert_eq!(encode(DType::F8E4M3, -1e6, Overflow::ToInf), f32::NEG_INFINITY);
    assert_eq!(encode(DType::F8E4M3FN, -1e6, Overflow::Saturate), -448.0);
    assert!(encode(DType::F8E4M3FN, 1e6, Overflow::ToInf).is_nan());
    assert!(encode(DType::F8E5M2, 1e6, Overflow::ToNan).is_nan());
    assert_eq!(encode(DType::F8E5M2, f32::INFINITY, Overflow::Saturate), 57344.0);
    // Rounds down to the largest value: no overflow.
    assert_eq!(encode(DType::F8E4M3, 247.9, Overflow::ToInf), 240.0);
    assert!(encode(DType::F8E4M3FN, f32::NAN, Overflow::Saturate).is_nan());
}

#[test]
fn floats_become_integers_by_rounding_to_even_and_saturating() {
    let cases = [
        (DType::I32, 2.5, 2),
        (DType::I32, 3.5, 4),
        (DType::I32, -0.5, 0),
        (DType::I32, -1.5, -2),
        (DType::I32, 1e20, i32::MAX.into()),
        (DType::I32, f32::NEG_INFINITY, i32::MIN.into()),
        (DType::I32, 16_777_217.0, 16_777_216),
        (DType::U32, -3.0, 0),
        (DType::U32, 4.3e9, u32::MAX.into()),
        (DType::U32, 4_000_000_000.0, 4_000_000_000),
        (DType::I8, 200.0, 127),
        (DType::I8, -128.5, -128),
        (DType::U8, 254.5, 254),
        (DType::U8, -0.6, 0),
        (DType::I16, -40000.0, -32768),
        (DType::U16, 65535.5, 65535),
        (DType::I32, f32::NAN, 0),
        (DType::U8, f32::NAN, 0),
        (DType::Bool, 0.1, 1),
        (DType::Bool, -0.0, 0),
    ];
    for (dtype, x, want) in cases {
        assert_eq!(round_to_int(dtype, x), want, "{dtype} {x}");
        assert_eq!(bits_to_i64(dtype, f32_to_bits(dtype, x)), want, "{dtype} {x}");
    }
    // The fast path is the documented function.
    for x in sample() {
        for dtype in [DType::I8, DType::U8, DType::I16, DType::U16, DType::I32, DType::U32, DType::Bool] {
            assert_eq!(bits_to_i64(dtype, f32_to_bits(dtype, x)), round_to_int(dtype, x), "{dtype} {x:?}");
        }
    }
}

#[test]
fn integers_wrap_and_extend() {
    assert_eq!(i64_to_bits(DType::I8, 200), 200);
    assert_eq!(bits_to_i64(DType::I8, 200), -56);
    assert_eq!(bits_to_i64(DType::U16, i64_to_bits(DType::U16, -1)), 65535);
    assert_eq!(bits_to_i64(DType::I32, i64_to_bits(DType::I32, 1 << 31)), i64::from(i32::MIN));
    assert_eq!(i64_to_bits(DType::Bool, 256), 1);
    assert_eq!(bits_to_f32(DType::Bool, 7), 1.0);
    let values = [1i64, -2, 300];
    let mut bytes = [0; 6];
    encode_i64(DType::I16, &values, &mut bytes);
    let mut back = [0; 3];
    decode_i64(DType::I16, &bytes, &mut back);
    assert_eq!(back, values);
}

/// Slices of any length and alignment give what single elements give.
#[test]
fn slices_equal_elements() {
    let values: Vec<f32> = (0..77).map(|i| (i as f32 - 38.0) * 1.37).collect();
    for &dtype in DType::ALL {
        let size = dtype.size();
        let mut bytes = vec![0u8; values.len() * size + 1];
        encode_f32(dtype, &values, &mut bytes[1..]);
        let mut back = vec![0.0; values.len()];
        decode_f32(dtype, &bytes[1..], &mut back);
        for (i, &x) in values.iter().enumerate() {
            let bits = f32_to_bits(dtype, x);
            if dtype == DType::I64 {
                // The bits are its low half.
                let whole = x.round_ties_even() as i64;
                assert_eq!((&bytes[1 + i * size..][..size], bits), (&whole.to_le_bytes()[..], whole as u32));
                assert_eq!(back[i], whole as f32);
                continue;
            }
            assert_eq!(&bytes[1 + i * size..][..size], &bits.to_le_bytes()[..size], "{dtype}");
            assert_eq!(back[i].to_bits(), bits_to_f32(dtype, bits).to_bits(), "{dtype}");
        }
    }
}

#[test]
fn uninitialised_memory_is_nan_or_a_pattern() {
    for &dtype in DType::ALL {
        let value = bits_to_f32(dtype, dtype.uninitialized_bits());
        if let Some(element) = dtype.mx_element() {
            let four = element.unpack(dtype.uninitialized_bits());
            assert!(four.iter().all(|x| x.is_nan() || element == MxElement::E2M1FN && *x == 2.0), "{dtype}");
            continue;
        }
        assert!(if dtype.is_float() { value.is_nan() } else { value == 4.0 || dtype == DType::Bool });
    }
}
