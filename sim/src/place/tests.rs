use nki_isa::ids::RegId;
use nki_isa::program::{Bound, Control, NodeKind};
use nki_isa::{DType, Space};

use super::*;
use crate::testing::*;

/// `n` iterations of: load a tile of `columns` fp32, add it to itself, store.
fn unrolled(n: u32, columns: u32) -> Builder {
    let mut b = Builder::new();
    let x = b.input("x", &[128, columns], DType::F32);
    let out = b.output("out", &[128, columns], DType::F32);
    for _ in 0..n {
        let [t, u] = ["t", "u"].map(|name| b.tensor(name, Space::Sbuf, &[128, columns], DType::F32));
        b.push(dma(b.whole(t), b.whole(x)));
        b.push(add(b.whole(u), b.whole(t), b.whole(t)));
        b.push(dma(b.whole(out), b.whole(u)));
    }
    b
}

fn byte(p: &Placement, i: u32) -> u32 {
    p.address(TensorId(i)).expect("on chip").byte
}

#[test]
fn iterations_get_different_buffers_while_there_is_room() {
    let b = unrolled(100, 1024);
    let p = place(&b.program).expect("fits");
    // 56 tiles of 4 KiB fit: no address is reused before all others have been used.
    let mut unique: Vec<u32> = (2..58).map(|i| byte(&p, i)).collect();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), 56);
    assert_eq!(p.sbuf_peak_bytes, 8192);
}

#[test]
fn no_two_tensors_alive_at_one_time_overlap() {
    let b = unrolled(300, 13_000);
    let p = place(&b.program).expect("fits");
    for i in 2..602 {
        for j in (i + 1)..602 {
            let (a, c) = (p.lifetimes[i].expect("used"), p.lifetimes[j].expect("used"));
            let (x, y) = (byte(&p, i as u32), byte(&p, j as u32));
            assert!(!a.overlaps(&c) || x + 52_000 <= y || y + 52_000 <= x);
            assert_eq!(x % 32, 0);
        }
    }
}

#[test]
fn too_much_names_the_peak_and_what_is_alive() {
    let b = chunks(1, 40_000, true);
    let errors = place(&b.program).expect_err("two tiles of 160000 bytes");
    assert_eq!(errors[0].id, "sbuf-overflow");
    assert_eq!(
        errors[0].message,
        "SBUF is too small: 320000 bytes per partition are live at line 4, but trn2 has 229376 bytes"
    );
    assert_eq!(errors[0].notes.len(), 2);
    assert_eq!(errors[0].notes[0], "live: `t` [128, 40000] float32, line 3: 160000 bytes");
}

#[test]
fn psum_tensors_start_on_banks_and_there_are_eight() {
    let mut b = Builder::new();
    let ids: Vec<TensorId> = (0..8).map(|_| b.tensor("p", Space::Psum, &[128, 100], DType::F32)).collect();
    for w in ids.windows(2) {
        b.push(add(b.whole(w[0]), b.whole(w[1]), b.whole(w[1])));
    }
    b.push(add(b.whole(ids[0]), b.whole(ids[7]), b.whole(ids[7])));
    let p = place(&b.program).expect("fits");
    assert!(ids.iter().all(|i| byte(&p, i.0).is_multiple_of(2048)));
    assert_eq!(p.psum_peak_banks, 3);
    let errors = place(&together(&[512; 9]).program).expect_err("nine banks");
    assert_eq!(errors[0].id, "psum-overflow");
    assert!(errors[0].message.contains("(9 banks)"), "{}", errors[0].message);
}

/// PSUM tiles with these numbers of fp32 columns, all alive together.
fn together(columns: &[u32]) -> Builder {
    let mut b = Builder::new();
    let ids: Vec<TensorId> = columns.iter().map(|&n| b.tensor("p", Space::Psum, &[128, n], DType::F32)).collect();
    for _ in 0..2 {
        for &id in &ids {
            b.push(add(b.whole(id), b.whole(id), b.whole(id)));
        }
    }
    b
}

#[test]
fn small_psum_tiles_share_banks_if_they_must() {
    let bank = |p: &Placement, i: usize| byte(p, i as u32) / 2048;
    // Eight tiles have separate banks.
    let p = place(&together(&[128; 8]).program).expect("fits");
    assert_eq!(p.psum_peak_banks, 8);
    for columns in
        [&[128; 9][..], &[128; 32], &[1, 512, 1, 300, 128, 1, 1024, 128, 512, 100, 300, 512], &[257; 8], &[16; 200]]
    {
        let p = place(&together(columns).program).expect("fits");
        for (i, &n) in columns.iter().enumerate() {
            let (start, end) = (byte(&p, i as u32), byte(&p, i as u32) + 4 * n);
            assert!(start % 2048 == 0 || start / 2048 == (end - 1) / 2048, "{columns:?}: {i} crosses a bank");
            for (j, &m) in columns.iter().enumerate().skip(i + 1) {
                let other = byte(&p, j as u32);
                assert!(end <= other || other + 4 * m <= start, "{columns:?}: {i} and {j} overlap");
            }
        }
        let banks: std::collections::BTreeSet<u32> = (0..columns.len()).map(|i| bank(&p, i)).collect();
        assert!(p.psum_peak_banks >= banks.len() as u32 && p.psum_peak_banks <= 8);
    }
    // Two tiles larger than half a bank cannot share one.
    let errors = place(&together(&[257; 9]).program).expect_err("nine banks");
    assert!(errors[0].message.contains("but the rest is fragmented"), "{}", errors[0].message);
    assert_eq!(place(&together(&[128; 33]).program).expect_err("33 quarters")[0].id, "psum-overflow");
}

#[test]
fn explicit_addresses_are_honoured_and_avoided() {
    let mut b = Builder::new();
    let x = b.input("x", &[128, 512], DType::F32);
    let fixed = b.placed("fixed", Space::Sbuf, &[128, 512], DType::F32, (0, 1024));
    let ids: Vec<TensorId> = (0..200).map(|_| b.tensor("t", Space::Sbuf, &[128, 512], DType::F32)).collect();
    b.push(dma(b.whole(fixed), b.whole(x)));
    for &t in &ids {
        b.push(add(b.whole(t), b.whole(fixed), b.whole(fixed)));
    }
    let p = place(&b.program).expect("fits");
    assert_eq!(p.address(fixed), Some(Address { partition: 0, byte: 1024 }));
    assert!(ids.iter().all(|t| byte(&p, t.0) + 2048 <= 1024 || byte(&p, t.0) >= 3072));
    assert!(p.findings.is_empty());
    assert_eq!(p.sbuf_peak_bytes, 4096);
}

#[test]
fn explicit_addresses_are_checked() {
    for (space, shape, at, id) in [
        (Space::Sbuf, [128, 512], (0, 229_376 - 2044), "bad-address"),
        (Space::Sbuf, [128, 512], (32, 0), "bad-address"),
        (Space::Psum, [128, 512], (0, 1024), "psum-alignment"),
        (Space::Psum, [128, 512], (0, 16_384), "bad-address"),
    ] {
        let mut b = Builder::new();
        let t = b.placed("t", space, &shape, DType::F32, at);
        b.push(add(b.whole(t), b.whole(t), b.whole(t)));
        assert_eq!(place(&b.program).expect_err("bad address")[0].id, id);
    }
}

#[test]
fn interleaved_use_of_the_same_bytes_is_found() {
    let build = |interleaved: bool| {
        let mut b = Builder::new();
        let x = b.input("x", &[128, 512], DType::F32);
        let one = b.placed("one", Space::Sbuf, &[128, 512], DType::F32, (0, 0));
        let two = b.placed("two", Space::Sbuf, &[128, 512], DType::F32, (0, 1024));
        b.push(dma(b.whole(one), b.whole(x)));
        b.push(dma(b.whole(two), b.whole(x)));
        if interleaved {
            b.push(add(b.whole(two), b.whole(one), b.whole(one)));
        }
        place(&b.program).expect("fits")
    };
    assert!(build(false).findings.is_empty());
    let p = build(true);
    assert_eq!(p.findings[0].id, "overlapping-tensors");
    assert!(p.findings[0].message.contains("`two`") && p.findings[0].message.contains("`one`"));
    assert_eq!(p.sbuf_peak_bytes, 3072);
}

#[test]
fn large_programs_are_placed_quickly() {
    let b = unrolled(25_000, 128);
    let start = std::time::Instant::now();
    let p = place(&b.program).expect("fits");
    // A hundred times the expected time: only a different order of growth exceeds it.
    assert!(start.elapsed().as_secs() < 5);
    assert_eq!(p.sbuf_peak_bytes, 1024);
}

/// Two tiles that do not fit together, used alternately: a chunk is loaded, its double is computed and stored.
fn chunks(n: u32, columns: u32, keep: bool) -> Builder {
    let mut b = Builder::new();
    let x = b.input("x", &[128, columns], DType::F32);
    let out = b.output("out", &[128, columns], DType::F32);
    let [t, u] = ["t", "u"].map(|name| b.tensor(name, Space::Sbuf, &[128, columns], DType::F32));
    for _ in 0..n {
        b.push(dma(b.whole(t), b.whole(x)));
        b.push(add(b.whole(u), b.whole(t), b.whole(t)));
        b.push(dma(b.whole(out), b.whole(u)));
        if keep {
            b.push(dma(b.whole(out), b.whole(t)));
        }
    }
    b
}

#[test]
fn tiles_used_by_turns_share_an_address_if_they_must() {
    let p = place(&chunks(3, 40_000, false).program).expect("one takes the place of the other");
    assert_eq!(byte(&p, 2), byte(&p, 3));
    assert_eq!(p.sbuf_peak_bytes, 160_000);
    // There is space for both: no dependence between them.
    let p = place(&chunks(3, 20_000, false).program).expect("fits");
    assert_ne!(byte(&p, 2), byte(&p, 3));
    // The chunk is needed after its double is computed.
    let errors = place(&chunks(3, 40_000, true).program).expect_err("both are needed");
    assert_eq!(errors[0].id, "sbuf-overflow");
}

/// Accesses of [`in_a_loop`] to its tiles.
#[derive(PartialEq)]
enum Reads {
    Always,
    UnderACondition,
    AtARegister,
}

/// A dynamic loop with `tiles` tiles, each loaded and stored before the next one; the first may also be used after the loop.
fn in_a_loop(tiles: u32, used_after: bool, reads: &Reads) -> Builder {
    let mut b = Builder::new();
    let x = b.input("x", &[128, 20_000], DType::F32);
    let out = b.output("out", &[128, 20_000], DType::F32);
    let all: Vec<TensorId> = (0..tiles).map(|_| b.tensor("t", Space::Sbuf, &[128, 20_000], DType::F32)).collect();
    let mut body = Vec::new();
    for &t in &all {
        let mut read = b.whole(t);
        if *reads == Reads::AtARegister {
            let index = nki_isa::view::Index::Register(RegId(0));
            read.indirect = Some(Box::new(nki_isa::view::Indirect { index, stride: 0, bound: 20_000 }));
        }
        let (load, store) = (dma(b.whole(t), b.whole(x)), dma(b.whole(out), read));
        let (load, mut store) = (b.node(NodeKind::Inst(load)), b.node(NodeKind::Inst(store)));
        if *reads == Reads::UnderACondition {
            store = b.node(Control::If { condition: RegId(0), then: vec![store], otherwise: Vec::new() }.into());
        }
        body.extend([load, store]);
    }
    let (lower, upper) = (Bound::Static(0), Bound::Static(3));
    b.push_node(Control::For { variable: RegId(0), lower, upper, step: 1, body }.into());
    if used_after {
        b.push(dma(b.whole(out), b.whole(all[0])));
    }
    b.program.registers = 1;
    b
}

#[test]
fn a_loop_s_own_tiles_live_in_its_body_only() {
    let p = place(&in_a_loop(3, false, &Reads::Always).program).expect("one after the other");
    assert_eq!(p.sbuf_peak_bytes, 80_000);
    // The first is alive until after the loop, together with each of the others.
    let p = place(&in_a_loop(3, true, &Reads::Always).program).expect("two at a time");
    assert_eq!(p.sbuf_peak_bytes, 160_000);
    // A conditional or indexed read may access the value of an earlier iteration.
    for reads in [Reads::UnderACondition, Reads::AtARegister] {
        let errors = place(&in_a_loop(3, false, &reads).program).expect_err("240000 bytes");
        assert_eq!(errors[0].id, "sbuf-overflow");
    }
    // If there is space, a tile of the loop keeps its bytes.
    assert_eq!(place(&in_a_loop(2, false, &Reads::Always).program).expect("both fit").sbuf_peak_bytes, 160_000);
}

/// Two pairs of tiles, each pair read together and as large as the memory, and a product of each pair.
fn pairs(partitions: u32, read_crosswise: bool) -> Builder {
    let mut b = Builder::new();
    let x = b.input("x", &[partitions, 24_000], DType::F32);
    let out = b.output("out", &[partitions, 24_000], DType::F32);
    let tiles: Vec<TensorId> =
        ["a", "b", "c", "d"].iter().map(|n| b.tensor(n, Space::Sbuf, &[partitions, 24_000], DType::F32)).collect();
    for &t in &tiles {
        b.push(dma(b.whole(t), b.whole(x)));
    }
    let second = if read_crosswise { 1 } else { 3 };
    for (to, from, with) in [(0, 0, 1), (2, 2, second), (3, 3, if read_crosswise { 2 } else { 3 })] {
        b.push(add(b.whole(tiles[to]), b.whole(tiles[from]), b.whole(tiles[with])));
    }
    for &t in &tiles {
        b.push(dma(b.whole(out), b.whole(t)));
    }
    b
}

#[test]
fn tiles_of_half_the_partitions_lie_above_each_other_if_they_must() {
    let b = pairs(64, false);
    let p = place(&b.program).expect("two pairs of 192000 bytes in half of the partitions each");
    let at: Vec<Address> = (2..6).map(|i| p.address(TensorId(i)).expect("on chip")).collect();
    // Tiles that are read together are in one half; each half has two tiles.
    assert_eq!(at[0].partition, at[1].partition);
    assert_eq!(at[2].partition, at[3].partition);
    assert_eq!(at[0].partition + at[2].partition, 64);
    for (one, other) in [(0, 1), (2, 3)] {
        assert!(at[one].byte.abs_diff(at[other].byte) >= 96_000);
    }
    assert_eq!(p.sbuf_peak_bytes, 192_000);
    // All four must be in one half, or in both.
    assert_eq!(place(&pairs(64, true).program).expect_err("too much")[0].id, "sbuf-overflow");
    assert_eq!(place(&pairs(65, false).program).expect_err("too much")[0].id, "sbuf-overflow");
}

/// A tile of all partitions that is alive throughout, and three of half of them: `b` is computed from `a`, which may also be used later, with `c`.
fn in_place_beside_another(a_used_later: bool) -> Builder {
    let mut b = Builder::new();
    let [wide, half] = [128, 64].map(|partitions| b.input("x", &[partitions, 25_000], DType::F32));
    let [wide_out, half_out] = [128, 64].map(|partitions| b.output("out", &[partitions, 25_000], DType::F32));
    let w = b.tensor("w", Space::Sbuf, &[128, 25_000], DType::F32);
    let [a, product, c] = ["a", "b", "c"].map(|name| b.tensor(name, Space::Sbuf, &[64, 25_000], DType::F32));
    for (tile, from) in [(w, wide), (a, half), (c, half)] {
        b.push(dma(b.whole(tile), b.whole(from)));
    }
    b.push(add(b.whole(product), b.whole(a), b.whole(a)));
    if a_used_later {
        b.push(dma(b.whole(half_out), b.whole(a)));
    }
    for (to, tile) in [(half_out, product), (half_out, c), (wide_out, w)] {
        b.push(dma(b.whole(to), b.whole(tile)));
    }
    b
}

#[test]
fn tiles_above_each_other_may_be_in_each_other_s_place() {
    // 100000 bytes each: `w` and one more tile of all partitions fit; in the latter, `c` is in one half and `a` and `b` in the other.
    let p = place(&in_place_beside_another(false).program).expect("both remedies at once");
    let [w, a, b, c] = [4, 5, 6, 7].map(|i| p.address(TensorId(i)).expect("on chip"));
    assert_eq!(a, b);
    assert_eq!((a.partition + c.partition, a.byte), (64, c.byte));
    assert_eq!(w.partition, 0);
    assert!(w.byte.abs_diff(a.byte) >= 100_000);
    assert_eq!(p.sbuf_peak_bytes, 200_000);
    // `a` is needed after `b` is computed: three tiles of half of the partitions in addition to `w`.
    let errors = place(&in_place_beside_another(true).program).expect_err("no remedy helps");
    assert_eq!(errors[0].id, "sbuf-overflow");
}
