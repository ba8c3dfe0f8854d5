//! Laws of the view algebra: every method against an explicit table of element addresses.

use std::rc::Rc;
use std::sync::Arc;

use nki_isa::{DType, Declaration, Index, Loc, Space, TensorId, View};
use proptest::prelude::*;

use super::{DynamicOffset, Key, Storage, Tensor};

/// Elements of an n-dimensional array, each an address `(partition, first byte)`.
#[derive(Debug, Clone, PartialEq)]
struct Naive {
    shape: Vec<usize>,
    cells: Vec<(i64, i64)>,
}

impl Naive {
    fn at(&self, index: &[usize]) -> (i64, i64) {
        let flat = index.iter().zip(&self.shape).fold(0, |f, (i, n)| f * n + i);
        self.cells[flat]
    }

    /// The array of this shape whose element at an index is given by `source`.
    fn gather(&self, shape: Vec<usize>, source: impl Fn(&[usize]) -> Vec<usize>) -> Naive {
        let cells = indices(&shape).map(|i| self.at(&source(&i))).collect();
        Naive { shape, cells }
    }
}

fn indices(shape: &[usize]) -> impl Iterator<Item = Vec<usize>> + use<> {
    let shape = shape.to_vec();
    let total: usize = shape.iter().product();
    (0..total).map(move |mut flat| {
        let mut out = vec![0; shape.len()];
        for d in (0..shape.len()).rev() {
            out[d] = flat % shape[d];
            flat /= shape[d];
        }
        out
    })
}

/// The addresses of a view, by definition.
fn table(view: &View) -> Naive {
    let shape: Vec<usize> = view.dims.iter().map(|d| d.count as usize).collect();
    let on_chip = view.space.is_on_chip();
    let size = view.dtype.size() as i64;
    let cells = indices(&shape)
        .map(|index| {
            let (mut p, mut e) = (i64::from(view.partition), view.offset);
            for (d, (&i, dim)) in index.iter().zip(&view.dims).enumerate() {
                if d == 0 && on_chip {
                    p += i as i64 * dim.stride;
                } else {
                    e += i as i64 * dim.stride;
                }
            }
            (p, e * size)
        })
        .collect();
    Naive { shape, cells }
}

fn tensor(space: Space, shape: &[u32], dtype: DType) -> Tensor {
    Tensor::whole(Rc::new(Storage {
        id: TensorId(0),
        declaration: Arc::new(Declaration {
            name: "t".into(),
            space,
            shape: shape.into(),
            dtype,
            unnamed: false,
            address: None,
            core: 0,
            data: None,
            loops: 0,
            loc: Loc::default(),
        }),
    }))
}

/// One step of a chain; numbers are reduced to the valid range.
#[derive(Debug, Clone)]
enum Move {
    Slice(usize, usize, usize, usize),
    At(usize, usize),
    Select(usize, usize),
    Permute(Vec<usize>),
    Expand(usize),
    Broadcast(usize, usize),
    Split(usize, usize),
    Flatten(usize),
    Reshape(usize),
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let n = 0usize..100;
    let one = prop_oneof![
        (n.clone(), n.clone(), n.clone(), 1usize..4).prop_map(|(d, a, b, s)| Move::Slice(d, a, b, s)),
        (n.clone(), n.clone()).prop_map(|(d, i)| Move::At(d, i)),
        (n.clone(), n.clone()).prop_map(|(d, i)| Move::Select(d, i)),
        proptest::collection::vec(n.clone(), 8).prop_map(Move::Permute),
        n.clone().prop_map(Move::Expand),
        (n.clone(), 1usize..4).prop_map(|(d, s)| Move::Broadcast(d, s)),
        (n.clone(), 1usize..5).prop_map(|(d, s)| Move::Split(d, s)),
        n.clone().prop_map(Move::Flatten),
        n.prop_map(Move::Reshape),
    ];
    proptest::collection::vec(one, 0..7)
}

/// Applies a move to both; `None` when it does not apply.
#[expect(clippy::too_many_lines, reason = "one arm for each kind of move")]
fn apply(t: &Tensor, m: &Naive, step: &Move) -> Option<(Tensor, Naive)> {
    let n = m.shape.len();
    let on_chip = t.on_chip();
    let first = usize::from(on_chip);
    let least = first + 1;
    let removed = |shape: &[usize], d: usize| {
        let mut s = shape.to_vec();
        s.remove(d);
        s
    };
    match *step {
        Move::Slice(d, a, b, s) => {
            let d = d % n;
            let size = m.shape[d];
            let a = a % size;
            let b = a + 1 + b % (size - a);
            let count = (b - a).div_ceil(s);
            let mut shape = m.shape.clone();
            shape[d] = count;
            let naive = m.gather(shape, |i| {
                let mut i = i.to_vec();
                i[d] = a + i[d] * s;
                i
            });
            let mut keys = vec![Key::Slice(None, None, None); d];
            keys.push(Key::Slice(Some(a as i64), Some(b as i64), Some(s as i64)));
            let by_key = t.index(&keys).unwrap();
            let by_method = t.slice(d as i64, a as i64, b as i64, s as i64).unwrap();
            assert_eq!(by_key.view, by_method.view);
            Some((by_key, naive))
        }
        Move::At(d, i) | Move::Select(d, i) => {
            let d = d % n;
            let i = i % m.shape[d];
            let keep = d < first || n <= least;
            let naive = if keep {
                let mut shape = m.shape.clone();
                shape[d] = 1;
                m.gather(shape, |at| {
                    let mut at = at.to_vec();
                    at[d] = i;
                    at
                })
            } else {
                m.gather(removed(&m.shape, d), |at| {
                    let mut at = at.to_vec();
                    at.insert(d, i);
                    at
                })
            };
            let out = if matches!(step, Move::At(..)) {
                let mut keys = vec![Key::Slice(None, None, None); d];
                keys.push(Key::At(i as i64 - m.shape[d] as i64));
                t.index(&keys).unwrap()
            } else {
                t.select(d as i64, i as i64).unwrap()
            };
            Some((out, naive))
        }
        Move::Permute(ref order) => {
            let mut left: Vec<usize> = (first..n).collect();
            let mut dims: Vec<usize> = (0..first).collect();
            for o in order {
                if !left.is_empty() {
                    dims.push(left.remove(o % left.len()));
                }
            }
            let shape = dims.iter().map(|&d| m.shape[d]).collect();
            let naive = m.gather(shape, |i| {
                let mut at = vec![0; n];
                for (k, &d) in dims.iter().enumerate() {
                    at[d] = i[k];
                }
                at
            });
            let dims: Vec<i64> = dims.iter().map(|&d| d as i64).collect();
            Some((t.permute(&dims).unwrap(), naive))
        }
        Move::Expand(d) => {
            let d = first + d % (n + 1 - first);
            if n == 8 {
                assert!(t.expand_dim(d as i64).is_err());
                return None;
            }
            let mut shape = m.shape.clone();
            shape.insert(d, 1);
            let out = t.expand_dim(d as i64).unwrap();
            assert_eq!(table(&out.squeeze_dim(d as i64).unwrap().view), *m);
            Some((out, m.gather(shape, |i| removed(i, d))))
        }
        Move::Broadcast(d, s) => {
            let d = d % n;
            if m.shape[d] != 1 || d < first {
                assert!(t.broadcast(d as i64, s as i64).is_err());
                return None;
            }
            let mut shape = m.shape.clone();
            shape[d] = s;
            let naive = m.gather(shape, |i| {
                let mut i = i.to_vec();
                i[d] = 0;
                i
            });
            Some((t.broadcast(d as i64, s as i64).unwrap(), naive))
        }
        Move::Split(d, s) => {
            let d = d % n;
            if d < first || !m.shape[d].is_multiple_of(s) || n == 8 {
                return None;
            }
            let inner = m.shape[d] / s;
            let mut shape = removed(&m.shape, d);
            shape.insert(d, inner);
            shape.insert(d, s);
            let naive = m.gather(shape, |i| {
                let mut at = removed(i, d + 1);
                at[d] = i[d] * inner + i[d + 1];
                at
            });
            let out = t.reshape_dim(d as i64, &[s as i64, -1]).unwrap();
            assert_eq!(table(&out.flatten_dims(d as i64, d as i64 + 1).unwrap().view), *m);
            Some((out, naive))
        }
        Move::Flatten(d) => {
            let d = first + d % (n - first);
            if d + 1 >= n {
                return None;
            }
            let mut shape = removed(&m.shape, d);
            shape[d] = m.shape[d] * m.shape[d + 1];
            let inner = m.shape[d + 1];
            let naive = m.gather(shape, |i| {
                let mut at = i.to_vec();
                at[d] = i[d] / inner;
                at.insert(d + 1, i[d] % inner);
                at
            });
            // Rejected only if strides cannot express it.
            match t.flatten_dims(d as i64, d as i64 + 1) {
                Ok(out) => Some((out, naive)),
                Err(v) => {
                    assert_eq!(v.id, "not-contiguous");
                    let steps: Vec<i64> = naive.cells.iter().map(|c| c.1).collect();
                    let regular = n == first + 2
                        && steps[..m.shape[first..].iter().product()]
                            .windows(2)
                            .map(|w| w[1] - w[0])
                            .collect::<Vec<_>>()
                            .windows(2)
                            .all(|w| w[0] == w[1]);
                    assert!(!regular, "a regular run was refused");
                    None
                }
            }
        }
        Move::Reshape(k) => {
            // All free elements in two dimensions.
            let free: usize = m.shape[first..].iter().product();
            let divisors: Vec<usize> = (1..=free).filter(|k| free.is_multiple_of(*k)).collect();
            let a = divisors[k % divisors.len()];
            let mut shape = m.shape[..first].to_vec();
            shape.extend([a, free / a]);
            let wanted: Vec<i64> = shape.iter().map(|&s| s as i64).collect();
            let naive = Naive { shape, cells: m.cells.clone() };
            match t.reshape(&wanted) {
                Ok(out) => Some((out, naive)),
                Err(v) => {
                    assert_eq!(v.id, "not-contiguous");
                    assert!(!t.is_contiguous(), "a contiguous view cannot fail to reshape");
                    None
                }
            }
        }
    }
}

fn chain(t: Tensor, steps: &[Move]) -> (Tensor, Naive) {
    let mut naive = table(&t.view);
    let mut t = t;
    for step in steps {
        if let Some((next, model)) = apply(&t, &naive, step) {
            assert_eq!(table(&next.view), model, "after {step:?}");
            t = next;
            naive = model;
        }
    }
    (t, naive)
}

proptest! {
    #[test]
    fn chains_of_views_address_what_the_definition_says(
        on_chip in any::<bool>(),
        shape in proptest::collection::vec(1u32..7, 2..5),
        steps in moves(),
    ) {
        let space = if on_chip { Space::Sbuf } else { Space::Hbm };
        let (t, naive) = chain(tensor(space, &shape, DType::F32), &steps);
        // Strides and offset as seen by the kernel agree.
        let row = shape[1..].iter().product::<u32>() as i64;
        let strides = t.strides();
        for (index, cell) in indices(&naive.shape).zip(&naive.cells) {
            let flat = t.offset() + index.iter().zip(&strides).map(|(&i, s)| i as i64 * s).sum::<i64>();
            let expect = if on_chip { cell.0 * row + cell.1 / 4 } else { cell.1 / 4 };
            prop_assert_eq!(flat, expect);
        }
        // `.ap(get_pattern())` is the view itself. A partition stride other than the row is rejected on chip.
        if !on_chip || t.view.dims[0].stride == 1 || t.view.dims[0].count == 1 {
            let again = t.ap(&t.pattern(), None, None, 0, None).unwrap();
            prop_assert_eq!(table(&again.view), naive);
        }
    }

    #[test]
    fn a_view_of_another_dtype_covers_the_same_bytes(
        on_chip in any::<bool>(),
        shape in proptest::collection::vec(1u32..5, 2..4),
        steps in moves(),
        to in prop_oneof![Just(DType::U8), Just(DType::BF16), Just(DType::I32)],
    ) {
        let space = if on_chip { Space::Sbuf } else { Space::Hbm };
        let mut shape = shape;
        *shape.last_mut().unwrap() *= 4;
        let (t, naive) = chain(tensor(space, &shape, DType::BF16), &steps);
        let bytes = |n: &Naive, size: i64| -> Vec<(i64, i64)> {
            n.cells.iter().flat_map(|&(p, b)| (0..size).map(move |k| (p, b + k))).collect()
        };
        match t.view_as(to) {
            Ok(v) => {
                prop_assert_eq!(v.view.dtype, to);
                prop_assert_eq!(bytes(&table(&v.view), to.size() as i64), bytes(&naive, 2));
            }
            Err(v) => prop_assert_eq!(v.id, "dtype-view"),
        }
    }

    #[test]
    fn out_of_bounds_is_refused_never_clamped(n in 1u32..9, a in -12i64..12, b in -12i64..12) {
        let t = tensor(Space::Hbm, &[n], DType::F32);
        let size = i64::from(n);
        let (from, to) = (if a < 0 { a + size } else { a }, if b < 0 { b + size } else { b });
        let ok = 0 <= from && from < to && to <= size;
        prop_assert_eq!(t.index(&[Key::Slice(Some(a), Some(b), None)]).is_ok(), ok);
        prop_assert_eq!(t.index(&[Key::At(a)]).is_ok(), (-size..size).contains(&a));
    }
}

#[test]
fn the_guides_shapes() {
    let t = tensor(Space::Sbuf, &[64, 64, 64], DType::F32);
    let all = Key::Slice(None, None, None);
    let shape = |keys: &[Key]| t.index(keys).unwrap().shape_text();
    assert_eq!(shape(&[Key::At(0), Key::At(0), Key::At(10)]), "(1, 1)");
    assert_eq!(shape(&[all.clone(), Key::At(0)]), "(64, 64)");
    assert_eq!(shape(&[all.clone(), Key::At(0), Key::At(10)]), "(64, 1)");
    assert_eq!(shape(&[all.clone(), all.clone(), Key::Slice(None, None, Some(2))]), "(64, 64, 32)");
    assert_eq!(shape(&[Key::At(0), Key::Ellipsis, all.clone()]), "(1, 64, 64)");
    let h = tensor(Space::SharedHbm, &[4, 128, 32], DType::F32);
    assert_eq!(h.index(&[Key::At(0), all.clone(), all]).unwrap().shape_text(), "(128, 32)");
    assert_eq!(h.index(&[Key::At(0), Key::At(1), Key::At(2)]).unwrap().shape_text(), "(1,)");
}

#[test]
fn the_step_of_a_dimension_of_size_1_never_refuses_another_dtype() {
    let t = tensor(Space::Hbm, &[4, 1], DType::BF16).permute(&[1, 0]).unwrap();
    assert_eq!(t.view_as(DType::F32).unwrap().shape_text(), "(1, 2)");
    let t = tensor(Space::Hbm, &[2, 3], DType::BF16).slice(1, 0, 2, 1).unwrap();
    assert_eq!(t.view_as(DType::F32).unwrap_err().id, "dtype-view");
}

#[test]
fn rearrange_splits_and_reorders() {
    let t = tensor(Space::Sbuf, &[128, 24], DType::F32);
    let u = t.rearrange(&[vec!["b"], vec!["h", "w"]], &[vec!["b"], vec!["w"], vec!["h"]], &[("h", 4)]).unwrap();
    assert_eq!(u.shape_text(), "(128, 6, 4)");
    assert_eq!(u.strides().as_slice(), [24, 1, 6]);
    let back = u.rearrange(&[vec!["b"], vec!["w"], vec!["h"]], &[vec!["b"], vec!["h"], vec!["w"]], &[]).unwrap();
    assert_eq!(back.strides().as_slice(), [24, 6, 1]);
    assert_eq!(
        t.rearrange(&[vec!["b"], vec!["x"]], &[vec!["x"], vec!["b"]], &[]).unwrap_err().id,
        "partition-dimension"
    );
}

#[test]
fn ap_adds_its_offset_to_the_views() {
    let t = tensor(Space::Hbm, &[8, 16], DType::F32);
    let v = t.slice(0, 2, 6, 1).unwrap();
    assert_eq!(v.ap(&[(16, 2), (1, 4)], None, None, 0, None).unwrap().offset(), 32);
    assert_eq!(v.ap(&[(16, 2), (1, 4)], Some(3), None, 0, None).unwrap().offset(), 35);
    let s = tensor(Space::Sbuf, &[16, 32], DType::F32);
    assert_eq!(s.ap(&[(64, 8), (1, 32)], None, None, 0, None).unwrap_err().id, "access-pattern");
    let b = s.ap(&[(64, 16), (1, 64)], Some(0), None, 0, Some(DType::BF16)).unwrap();
    assert_eq!((b.shape_text(), b.view.dtype), ("(16, 64)".into(), DType::BF16));
    let low = s.ap(&[(32, 4), (1, 8)], Some(32 * 3 + 5), None, 0, None).unwrap();
    assert_eq!((low.view.partition, low.view.offset), (3, 5));
}

#[test]
fn ap_of_a_slice_may_step_by_the_rows_of_the_slice() {
    let t = tensor(Space::Sbuf, &[16, 64], DType::F32);
    let right = t.slice(0, 4, 12, 1).unwrap().slice(1, 32, 64, 1).unwrap();
    // The same elements as with the storage's 64 elements per partition.
    for (offset, own, storage) in
        [(None, [(32, 8), (1, 32)], [(64, 8), (1, 32)]), (Some(5), [(32, 3), (2, 13)], [(64, 3), (2, 13)])]
    {
        let (own, storage) =
            (right.ap(&own, offset, None, 0, None).unwrap(), right.ap(&storage, offset, None, 0, None).unwrap());
        assert_eq!(table(&own.view), table(&storage.view));
    }
    let half = right.ap(&[(64, 8), (1, 64)], None, None, 0, Some(DType::BF16)).unwrap();
    assert_eq!(
        table(&half.view),
        table(&right.ap(&[(128, 8), (1, 64)], None, None, 0, Some(DType::BF16)).unwrap().view)
    );
    // Patterns outside the slice's rows or partitions would be ambiguous.
    for (pattern, offset) in [
        ([(32, 8), (1, 32)], 1),
        ([(32, 8), (1, 33)], 0),
        ([(32, 9), (1, 1)], 0),
        ([(32, 8), (-1, 2)], 0),
        ([(32, 8), (1, 1)], 32),
    ] {
        assert_eq!(
            right.ap(&pattern, Some(offset), None, 0, None).unwrap_err().id,
            "access-pattern",
            "{pattern:?} at {offset}"
        );
    }
    // A slice with gaps has no contiguous rows, and neither has every other partition.
    let gaps = t.slice(1, 0, 64, 2).unwrap();
    assert_eq!(gaps.ap(&[(32, 16), (1, 32)], None, None, 0, None).unwrap_err().id, "access-pattern");
    let every_other = t.slice(0, 0, 16, 2).unwrap().slice(1, 0, 32, 1).unwrap();
    assert_eq!(every_other.ap(&[(32, 8), (1, 32)], None, None, 0, None).unwrap_err().id, "access-pattern");
}

#[test]
fn an_index_may_name_a_dimension_of_one_by_the_stride_of_another() {
    let t = tensor(Space::Hbm, &[6, 5, 1, 40], DType::F32);
    let pick = |t: &Tensor, dim: i64| {
        let index = DynamicOffset::Scalar(Index::Register(nki_isa::ids::RegId(0)));
        let view = t.ap(&[(200, 6), (1, 40)], None, Some(index), dim, None).unwrap().view;
        let indirect = view.indirect.expect("dynamic");
        (indirect.stride, indirect.bound)
    };
    assert_eq!([0, 1, 2, 3].map(|dim| pick(&t, dim)), [(200, 6), (40, 5), (40, 5), (1, 40)]);
    // No other dimension has the stride.
    let one = tensor(Space::Hbm, &[1, 6, 5, 40], DType::F32);
    assert_eq!(pick(&one, 0), (1200, 1));
}
