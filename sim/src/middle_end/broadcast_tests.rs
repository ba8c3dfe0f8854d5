use nki_isa::inst::vector::memset::Memset;
use nki_isa::names::Engine;
use nki_isa::{DType, Imm, Program, Space};

use super::tests::{counted, results, rewritten};
use super::*;
use crate::testing::*;

const ONLY: Passes = Passes { broadcasts: true, ..Passes::NONE };

/// What happens between two broadcasts of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Between {
    Nothing,
    /// The row is written.
    Written,
    /// The row is loaded again, to another tile.
    Loaded,
    /// A tile of 190 KiB in each partition is in use throughout.
    Full,
}

/// Adds a broadcast row of 600 columns to two blocks of `x`. The matmuls of the second block have the lines of the first if `same_line`.
fn program(between: Between, same_line: bool) -> Program {
    let mut b = Builder::new();
    let x = b.input("x", &[256, 600], DType::F32);
    let given = b.input("row", &[1, 600], DType::F32);
    let out = b.output("out", &[256, 600], DType::F32);
    let mut row = b.tensor("row", Space::Sbuf, &[1, 600], DType::F32);
    let full = b.tensor("full", Space::Sbuf, &[128, 48_600], DType::F32);
    let fill = |dst| Memset { dst, value: Imm::Float(1.0), engine: Engine::Unknown };
    b.push(dma(b.whole(row), b.whole(given)));
    if between == Between::Full {
        b.push(fill(b.whole(full)));
    }
    let mut lines = Vec::new();
    for block in 0..2 {
        let [ones, tile, wide] = [("ones", 1), ("tile", 128), ("wide", 128)].map(|(name, rows)| {
            let columns = if rows == 1 { 128 } else { 600 };
            b.tensor(name, Space::Sbuf, &[rows, columns], DType::F32)
        });
        let rows = pattern(b.whole(x), 0, block * 128 * 600, &[(600, 128), (1, 600)]);
        b.push(dma(b.whole(tile), rows));
        b.push(fill(b.whole(ones)));
        for (part, (from, columns)) in [(0, 512), (512, 88)].into_iter().enumerate() {
            let product = b.tensor("product", Space::Psum, &[128, columns], DType::F32);
            b.push(matmul(
                b.whole(product),
                b.whole(ones),
                pattern(b.whole(row), 0, from, &[(1, 1), (1, columns)]),
                None,
            ));
            let node = b.program.cores[0].last_mut().expect("pushed");
            match lines.get(part) {
                Some(loc) if same_line => node.loc = *loc,
                _ => lines.push(node.loc),
            }
            b.push(copy(pattern(b.whole(wide), 0, from, &[(1, 128), (1, columns)]), b.whole(product)));
        }
        b.push(add(b.whole(tile), b.whole(tile), b.whole(wide)));
        let result = pattern(b.whole(out), 0, block * 128 * 600, &[(600, 128), (1, 600)]);
        b.push(dma(result, b.whole(tile)));
        match between {
            Between::Nothing => {}
            Between::Written => b.push(fill(b.whole(row))),
            Between::Loaded => {
                row = b.tensor("row", Space::Sbuf, &[1, 600], DType::F32);
                b.push(dma(b.whole(row), b.whole(given)));
            }
            Between::Full => {
                let first = pattern(b.whole(full), 0, 0, &[(1, 128), (1, 600)]);
                b.push(add(first.clone(), first, b.whole(tile)));
            }
        }
    }
    b.program
}

/// The number of instructions of this name.
fn number(program: &Program, name: &str) -> usize {
    program.cores[0].iter().filter(|node| inst(node).is_some_and(|i| i.schema().name == name)).count()
}

#[test]
fn a_row_is_broadcast_once_for_all_iterations() {
    for (between, same_line, drops) in [
        (Between::Nothing, true, 1),
        (Between::Nothing, false, 0),
        (Between::Written, true, 0),
        // Nine tenths of the compiler's 208 KiB of each partition are 187.
        (Between::Full, true, 0),
    ] {
        let program = program(between, same_line);
        let (less, changes) = rewritten(&program, ONLY);
        assert_eq!(counted(&changes, ChangeKind::DroppedBroadcast), drops, "{between:?} {same_line}");
        let left = 2 - drops as usize;
        assert_eq!(number(&less, "nc_matmul"), 2 * left);
        assert_eq!(number(&less, "tensor_copy"), 2 * left);
        assert_eq!(number(&program, "memset") - number(&less, "memset"), drops as usize);
        assert_eq!(results(&less), results(&program));
    }
}

#[test]
fn a_row_that_is_loaded_again_is_broadcast_again() {
    let program = program(Between::Loaded, true);
    let (less, changes) = rewritten(&program, Passes { reloads: true, ..ONLY });
    assert_eq!(counted(&changes, ChangeKind::DroppedBroadcast), 0);
    assert!(counted(&changes, ChangeKind::DroppedLoad) >= 1);
    assert_eq!(number(&less, "nc_matmul"), number(&program, "nc_matmul"));
    assert_eq!(results(&less), results(&program));
}
