//! Rewinding restores the state of the builder.

use nki_isa::ids::TrailId;
use nki_isa::program::{Bound, Control};
use nki_isa::{DType, Imm, Loc, Space, Target, text};

use super::{Builder, Request, Sharing, Site};
use crate::build::lower::Lower;
use crate::build::tensor::Tensor;

const SITE: Site = Site { loc: Loc { file: 0, line: 1, column: 1, start: 0, end: 1 }, trail: TrailId::ROOT };

fn tile(builder: &mut Builder, space: Space, address: Option<&[i64]>) -> Tensor {
    let request =
        Request { name: "t", sharing: Sharing::Order, space, shape: &[16, 8], dtype: DType::F32, address, data: None };
    builder.alloc(&request, SITE).expect("fits")
}

/// Creates one of each kind, including a dynamic loop with a local tile and an address in HBM that only one tensor may have.
fn make(builder: &mut Builder) {
    let in_sbuf = tile(builder, Space::Sbuf, None);
    for space in [Space::Psum, Space::SharedHbm, Space::Hbm] {
        tile(builder, space, None);
    }
    tile(builder, Space::Hbm, Some(&[1 << 20]));
    let data = Some(vec![7; 16 * 8 * 4].into());
    let constant = Request {
        name: "c",
        sharing: Sharing::Order,
        space: Space::SharedHbm,
        shape: &[16, 8],
        dtype: DType::F32,
        address: None,
        data,
    };
    builder.constant(&constant, SITE).expect("fits");
    fill(builder, &in_sbuf);
    let variable = builder.register();
    builder.open(true);
    let inside = tile(builder, Space::Sbuf, None);
    fill(builder, &inside);
    let body = builder.close_function("nl.fori_loop", SITE);
    let (lower, upper) = (Bound::Static(0), Bound::Static(2));
    builder.statement(Control::For { variable, lower, upper, step: 1, body }, SITE);
}

fn fill(builder: &mut Builder, tile: &Tensor) {
    Lower { builder, site: SITE, name: "fill" }.fill(tile, Imm::Float(1.0)).expect("writes a tile");
}

/// The program of two cores with the same statements before and after `detour`, within a loop if `nested`.
fn program(nested: bool, detour: impl Fn(&mut Builder)) -> String {
    let mut builder = Builder::new("k", Target::Trn2, 2);
    for core in 0..2 {
        if core > 0 {
            builder.next_core();
        }
        let outside = tile(&mut builder, Space::Sbuf, None);
        let shared = tile(&mut builder, Space::SharedHbm, None);
        let variable = nested.then(|| builder.register());
        if nested {
            builder.open(true);
        }
        fill(&mut builder, &outside);
        detour(&mut builder);
        make(&mut builder);
        builder.check_alive(outside.storage.id).expect("made outside of the loop");
        builder.check_alive(shared.storage.id).expect("made outside of the loop");
        if let Some(variable) = variable {
            let body = builder.close();
            let (lower, upper) = (Bound::Static(0), Bound::Static(4));
            builder.statement(Control::For { variable, lower, upper, step: 1, body }, SITE);
        }
        assert_eq!(builder.statements(), if nested { 1 } else { 3 });
    }
    text::print(&builder.finish(Vec::new(), Vec::new()))
}

#[test]
fn what_is_taken_back_leaves_no_trace() {
    for nested in [false, true] {
        let straight = program(nested, |_| {});
        let once = |builder: &mut Builder| {
            let (mark, position, statements) = (builder.mark(), builder.position(), builder.statements());
            make(builder);
            assert!(builder.position() > position && builder.statements() > statements);
            builder.rewind(&mark);
            assert_eq!((builder.position(), builder.statements()), (position, statements));
        };
        assert_eq!(straight, program(nested, once));
        let thrice = |builder: &mut Builder| (0..3).for_each(|_| once(builder));
        assert_eq!(straight, program(nested, thrice));
        assert_eq!(straight, program(nested, |builder| builder.rehearse(make)));
        // Without a rewind, the statements remain.
        assert_ne!(straight, program(nested, fill_again));
    }
}

fn fill_again(builder: &mut Builder) {
    let mark = builder.mark();
    let made = tile(builder, Space::Sbuf, None);
    fill(builder, &made);
    builder.rewind(&mark);
    tile(builder, Space::Sbuf, None);
}

#[test]
fn the_end_of_a_body_is_taken_back_with_it() {
    let mut builder = Builder::new("k", Target::Trn2, 1);
    let mark = builder.mark();
    builder.open(true);
    let inside = tile(&mut builder, Space::Sbuf, None);
    builder.close_function("nl.fori_loop", SITE);
    assert_eq!(builder.check_alive(inside.storage.id).expect_err("its region has ended").id, "dynamic-loop");
    builder.rewind(&mark);
    // The next tensor has the number of the removed one, and belongs to no ended region.
    let outside = tile(&mut builder, Space::Sbuf, None);
    assert_eq!(outside.storage.id, inside.storage.id);
    builder.check_alive(outside.storage.id).expect("made outside of any loop");
}
