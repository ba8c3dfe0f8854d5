//! Every value-returning operation lowers to instructions that pass validation.

use nki_isa::ids::TrailId;
use nki_isa::program::NodeKind;
use nki_isa::{DType, Imm, Loc, Program, Space, Target};

use super::{Lower, Operand};
use crate::build::Result;
use crate::build::builder::{Builder, Request, Sharing, Site};
use crate::build::ops::{OPS, OpKind};
use crate::build::tensor::Tensor;

const SITE: Site = Site { loc: Loc { file: 0, line: 1, column: 1, start: 0, end: 1 }, trail: TrailId::ROOT };

fn make(builder: &mut Builder, space: Space, shape: &[i64], dtype: DType) -> Tensor {
    let request = Request { name: "x", sharing: Sharing::Order, space, shape, dtype, address: None, data: None };
    builder.alloc(&request, SITE).unwrap()
}

/// The instruction names that `run` emits, and its result.
fn names(target: Target, run: impl FnOnce(&mut Lower<'_>) -> Result<Tensor>) -> (Vec<&'static str>, Tensor) {
    let mut builder = Builder::new("k", target, 1);
    let result = run(&mut Lower { builder: &mut builder, site: SITE, name: "r" });
    let result = result.unwrap_or_else(|v| panic!("{}: {v}", v.id));
    (instructions(&builder.finish(Vec::new(), Vec::new())), result)
}

fn instructions(program: &Program) -> Vec<&'static str> {
    program.cores[0]
        .iter()
        .map(|n| match &n.kind {
            NodeKind::Inst(i) => i.schema().name,
            _ => "?",
        })
        .collect()
}

#[test]
fn every_function_of_one_or_two_tiles_lowers() {
    let mut refused = Vec::new();
    for target in [Target::Trn1, Target::Trn2, Target::Trn3] {
        for op in OPS {
            let integers = op.name.starts_with("bitwise") || op.name.contains("shift") || op.name == "invert";
            let dtype = if integers { DType::I32 } else { DType::F32 };
            let mut builder = Builder::new("k", target, 1);
            let x = make(&mut builder, Space::Sbuf, &[128, 64], dtype);
            let column = make(&mut builder, Space::Sbuf, &[128, 1], dtype);
            let mut lower = Lower { builder: &mut builder, site: SITE, name: "r" };
            let number = if integers { Imm::Int(3) } else { Imm::Float(3.0) };
            let tile = || Operand::Tile(x.clone());
            let results = match op.kind {
                OpKind::Name => vec![],
                OpKind::Unary if op.name == "copy" => vec![lower.copy(&x, None)],
                OpKind::Unary => vec![lower.unary(op.name, &x, None)],
                OpKind::Binary(alu) => vec![
                    lower.binary(op.name, alu, &tile(), &tile(), None),
                    lower.binary(op.name, alu, &tile(), &Operand::Number(number), None),
                    lower.binary(op.name, alu, &Operand::Number(number), &tile(), None),
                    lower.binary(op.name, alu, &tile(), &Operand::Tile(column.clone()), None),
                ],
            };
            for r in results {
                match r {
                    Ok(t) => assert_eq!(t.shape_text(), "(128, 64)", "{}", op.name),
                    Err(v) => refused.push(format!("{target} nl.{}: {} {v}", op.name, v.id)),
                }
            }
        }
    }
    // Only operations that the machine lacks may be rejected.
    refused.retain(|r| !r.contains("abs_m") && !r.contains("arithmetic_left_shift"));
    assert!(refused.is_empty(), "{refused:#?}");
}

#[test]
fn scalars_and_columns_take_tensor_scalar() {
    let (list, r) = names(Target::Trn2, |l| {
        let x = make(l.builder, Space::Sbuf, &[128, 64], DType::BF16);
        let c = make(l.builder, Space::Sbuf, &[128, 1], DType::F32);
        l.binary("add", nki_isa::names::AluOp::Add, &Operand::Tile(c), &Operand::Tile(x), None)
    });
    assert_eq!((list, r.view.dtype), (vec!["tensor_scalar"], DType::F32));
    let (list, r) = names(Target::Trn2, |l| {
        let x = make(l.builder, Space::Sbuf, &[128, 4, 64], DType::F32);
        let y = make(l.builder, Space::Sbuf, &[128, 1, 64], DType::F32);
        l.binary("add", nki_isa::names::AluOp::Add, &Operand::Tile(x), &Operand::Tile(y), None)
    });
    assert_eq!((list, r.shape_text()), (vec!["tensor_tensor"], "(128, 4, 64)".into()));
}

#[test]
fn compositions_lower() {
    for target in [Target::Trn1, Target::Trn2, Target::Trn3] {
        for dtype in [DType::F32, DType::BF16] {
            let x = |l: &mut Lower<'_>| make(l.builder, Space::Sbuf, &[128, 64], dtype);
            let deep = |l: &mut Lower<'_>| make(l.builder, Space::Sbuf, &[128, 4, 64], dtype);
            let (list, r) = names(target, |l| {
                let x = x(l);
                l.softmax(&x, &[-1], None)
            });
            assert_eq!(list, ["tensor_reduce", "activation_reduce", "reciprocal", "tensor_scalar"]);
            assert_eq!(r.view.dtype, dtype);
            let (list, r) = names(target, |l| {
                let x = deep(l);
                l.softmax(&x, &[2], None)
            });
            assert_eq!(list.len(), 6);
            assert_eq!(r.shape_text(), "(128, 4, 64)");
            for what in ["sum", "max", "min", "mean", "prod", "var", "all"] {
                let (_, r) = names(target, |l| {
                    let x = deep(l);
                    l.reduce(what, &x, &[2], None, false)
                });
                assert_eq!(r.shape_text(), "(128, 4)", "{what}");
                let (_, r) = names(target, |l| {
                    let x = deep(l);
                    l.reduce(what, &x, &[1, 2], None, false)
                });
                assert_eq!(r.view.free_elements(), 1, "{what}");
            }
            let (_, r) = names(target, |l| {
                let (x, w) = (x(l), x(l));
                l.rms_norm(&x, &w, &[1], 64.0, 1e-6, None)
            });
            assert_eq!(r.shape_text(), "(128, 64)");
            let (_, r) = names(target, |l| {
                let (c, y) = (x(l), x(l));
                l.select(&c, &Operand::Number(Imm::Float(1.0)), &Operand::Tile(y), None)
            });
            assert_eq!(r.view.dtype, dtype);
            let (list, r) = names(target, |l| {
                let (x, y) = (x(l), make(l.builder, Space::Sbuf, &[64, 512], dtype));
                l.matmul(&x, &y, false)
            });
            assert_eq!(list, ["nc_transpose", "tensor_copy", "nc_matmul"]);
            assert_eq!((r.shape_text(), r.view.space, r.view.dtype), ("(128, 512)".into(), Space::Psum, DType::F32));
            let (list, _) = names(target, |l| l.identity(128, dtype, None));
            assert_eq!(list, ["dma_copy"]);
        }
    }
}

#[test]
fn hbm_is_filled_from_a_tile() {
    let (list, _) = names(Target::Trn2, |l| {
        let x = make(l.builder, Space::SharedHbm, &[1000, 777], DType::F32);
        l.fill(&x, Imm::Int(0)).map(|()| x)
    });
    assert_eq!(list[0], "memset");
    assert!(list[1..].iter().all(|n| *n == "dma_copy") && list.len() < 8, "{list:?}");
}

#[test]
fn hbm_operands_are_refused() {
    let mut builder = Builder::new("k", Target::Trn2, 1);
    let x = make(&mut builder, Space::SharedHbm, &[128, 64], DType::F32);
    let mut l = Lower { builder: &mut builder, site: SITE, name: "r" };
    assert_eq!(l.unary("exp", &x, None).unwrap_err().id, "operand-memory");
    assert_eq!(l.softmax(&x, &[1], None).unwrap_err().id, "operand-memory");
    assert_eq!(l.copy(&x, None).unwrap_err().id, "operand-memory");
}

#[test]
fn allocations_are_checked() {
    let mut builder = Builder::new("k", Target::Trn2, 1);
    let mut id = |space, shape: &[i64], dtype, address: Option<&[i64]>| {
        let request = Request { name: "x", sharing: Sharing::Order, space, shape, dtype, address, data: None };
        builder.alloc(&request, SITE).map_or_else(|v| v.id, |_| "ok")
    };
    use Space::{Hbm, Psum, Sbuf};
    assert_eq!(id(Sbuf, &[256, 4], DType::F32, None), "partition-size");
    assert_eq!(id(Sbuf, &[128], DType::F32, None), "bad-shape");
    assert_eq!(id(Sbuf, &[1], DType::I32, None), "ok");
    assert_eq!(id(Sbuf, &[128, 0], DType::F32, None), "bad-shape");
    assert_eq!(id(Sbuf, &[128, -4], DType::F32, None), "bad-shape");
    assert_eq!(id(Sbuf, &[128, 100_000], DType::F32, None), "sbuf-capacity");
    assert_eq!(id(Psum, &[128, 4096], DType::F32, None), "ok");
    assert_eq!(id(Psum, &[128, 4097], DType::F32, None), "psum-capacity");
    assert_eq!(id(Psum, &[128, 512], DType::F32, Some(&[0, 2048 * 3])), "ok");
    assert_eq!(id(Psum, &[128, 512], DType::F32, Some(&[0, 100])), "psum-alignment");
    assert_eq!(id(Psum, &[128, 1024], DType::F32, Some(&[0, 2048 * 7])), "bad-address");
    assert_eq!(id(Sbuf, &[64, 4], DType::F32, Some(&[96, 0])), "bad-address");
    assert_eq!(id(Hbm, &[64, 4], DType::F32, Some(&[0, 0])), "bad-address");
    assert_eq!(id(Hbm, &[64, 4], DType::F32, Some(&[4096])), "ok");
    assert_eq!(id(Hbm, &[64, 4], DType::F32, Some(&[5119])), "bad-address");
    assert_eq!(id(Hbm, &[64, 4], DType::F32, Some(&[5120])), "ok");
    assert_eq!(id(Hbm, &[64, 4], DType::F32, Some(&[-1])), "bad-address");
    assert_eq!(id(Sbuf, &[64, 4], DType::F32, Some(&[0])), "bad-address");
}
