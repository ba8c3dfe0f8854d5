use proptest::prelude::*;

use super::{parse, parse_file, print};
use crate::inst::Inst;
use crate::program::NodeKind;
use crate::testing::{Random, program};

const EXAMPLE: &str = r#"nkir 1
kernel add
target trn2
file 0 "kernel.py"
trail 1 < 0 i = 0  # 4:5 80..140
trail 2 < 1 call load  # 5:5 90..100
tag 0 "first \"copy\""
tag 1 "" after 2, 0
tag 2 ""
tensor %0 a: hbm float32[128, 512]
tensor %1 a_tile: sbuf float32[128, 512] @(0, 4096)  # 5:9 97..120 t1
tensor %2 ident: sbuf uint8[1, 4] core 1 = "AQIDBA=="
tensor %3 "b \"c\"": psum float32[128, 512]
input a %0
output a %0
registers 2
core {
  register_move(dst=r0, src=5)  # 6:1 0..4
  for r1 in 0..r0 step 2 {  # 7:1 1..2 t2
    dma_copy(dst=%1, src=%0[+512; 0x128, 1x512; by r1 x512 < 128]) !0
    if r0 {
      iota(dst=%1:int32[p 0..64; +8; 1x16], pattern=[[1, 16]], offset=-3) !1  # t1
    } else {
      while r0 {
      }
    }
  }
  affine_select(dst=%1, pattern=[[-1, 512]], channel_multiplier=1, on_true_tile=%1, on_false_value=-1e30, cmp_op=greater_equal)
}
"#;

#[test]
fn the_example_comes_back() {
    let program = parse(EXAMPLE).unwrap();
    assert_eq!(print(&program), EXAMPLE);
    assert_eq!(program.cores[0].len(), 3);
    assert_eq!(program.tensors[2].data.as_deref(), Some(&[1, 2, 3, 4][..]));
    assert_eq!(program.validate(), []);
}

#[test]
fn comments_blank_lines_and_any_spacing_are_accepted() {
    let text = "\n// a comment\nnkir 1\nregisters 1\ncore{\nregister_move ( dst = r0 , src=1 )# t0\n\n  // done\n}\n";
    let program = parse(text).unwrap();
    let NodeKind::Inst(Inst::RegisterMove(_)) = &program.cores[0][0].kind else { panic!("{program:?}") };
}

#[test]
fn what_says_nothing_of_its_place_is_in_the_text_itself() {
    let text = "nkir 1\nfile 0 \"k.py\"\r\ntensor %0 s: sbuf float32[8, 8]\nregisters 1\ncore {\n  register_move(dst=r0, src=1)  # 6:1 0..4\n  register_move(dst=r0, src=2) \n}\n";
    let program = parse_file("by_hand.nkir", text).unwrap();
    assert_eq!(program.files.iter().map(|f| &**f).collect::<Vec<_>>(), ["k.py", "by_hand.nkir"]);
    let [given, own] = &program.cores[0][..] else { panic!("{program:?}") };
    assert_eq!((given.loc.file, given.loc.line), (0, 6));
    assert_eq!((own.loc.file, own.loc.line, own.loc.column), (1, 7, 3));
    assert_eq!(&text[own.loc.start as usize..own.loc.end as usize], "register_move(dst=r0, src=2)");
    assert_eq!(program.tensors[0].loc.line, 3);
    assert_eq!(parse(&print(&program)).as_ref(), Ok(&program));

    let located = "nkir 1\nfile 0 \"k.py\"\nregisters 1\ncore {\n  register_move(dst=r0, src=1)  # 6:1 0..4\n}\n";
    assert_eq!(parse_file("by_hand.nkir", located), parse(located));
}

/// The only error of a text, as `line:column: message`.
fn error(text: &str) -> String {
    let errors = parse(text).unwrap_err();
    assert_eq!(errors.len(), 1, "{errors:?}");
    errors[0].to_string()
}

/// The only error of a core that contains this line.
fn error_in(line: &str) -> String {
    error(&format!(
        "nkir 1\ntensor %0 h: hbm float32[8, 8]\ntensor %1 s: sbuf float32[8, 8]\nregisters 1\ncore {{\n{line}\n}}\n"
    ))
}

#[test]
fn errors_name_the_place_and_what_was_expected() {
    assert_eq!(error(""), "1:1: expected `nkir 1`, found an empty file");
    assert_eq!(error("nkir 7\n"), "1:6: version 7 of the format is not supported; this program reads version 1");
    assert_eq!(error("hello\nworld"), "1:1: expected `nkir 1`, found `hello`");
    assert!(error("nkir 1\nfoo 3\n").starts_with("2:1: unknown declaration `foo`: expected kernel"));
    assert!(error("nkir 1\ntarget trn9\n").starts_with("2:8: unknown target `trn9`: one of trn1, trn2, trn3"));
    assert_eq!(error("nkir 1\ntensor %4 a: hbm float32[8]\n"), "2:9: tensor 4 is out of order: the next is 0");
    assert!(
        error("nkir 1\ntensor %0 a: hbm float32[4] = \"AA==\"\n")
            .contains("the data has 1 bytes, but the tensor has 16")
    );
    assert!(error("nkir 1\ntensor %0 a: hbm float32[4000000000, 4000000000]\n").contains("too large"));
    assert_eq!(error("nkir 1\ncore {\n"), "3:1: expected `}` to close the block of line 2, found the end of the file");

    assert_eq!(error_in("  nc_matmull(dst=%1)"), "6:3: unknown instruction `nc_matmull`");
    assert_eq!(error_in("dma_copy(dst=%1, src=%7)"), "6:22: tensor %7 is not declared above");
    assert_eq!(error_in("dma_copy(dst=%1)"), "6:1: dma_copy: required operand `src` is missing");
    assert!(error_in("dma_copy(dts=%1)").starts_with("6:10: `dma_copy` has no operand `dts`: it takes dst, src,"));
    assert_eq!(error_in("dma_copy(dst=%1, src=%0, dst=%1)"), "6:26: `dst` is given twice");
    assert_eq!(error_in("dma_copy(dst=%1 src=%0)"), "6:17: expected `)`, found `src`");
    assert_eq!(error_in("register_move(dst=r3, src=1)"), "6:19: register r3 is not declared: `registers` is 1");
    assert_eq!(error_in("dma_copy(dst=%1[p 4..2; 1x8], src=%0)"), "6:22: no partitions in 4..2");
    assert_eq!(
        error_in("iota(dst=%1, pattern=[1, 2]) x"),
        "6:1: iota: `pattern` takes a list of [step, count] pairs with counts from 1, got a sequence of 2 values"
    );
    assert_eq!(error_in("register_move(dst=r0, src=1) x"), "6:30: expected the end of the line, found `x`");
    assert_eq!(error_in("for r0 in 0..4 step 0 {\n}"), "6:21: the step is 0, but must be positive");
    assert_eq!(error_in("for r0 in 0..2147483648 {\n}"), "6:14: 2147483648 is out of range for a bound");
    assert_eq!(error_in("for r0 in -2147483649..0 {\n}"), "6:11: -2147483649 is out of range for a bound");
    assert_eq!(error_in("for r0 in 0..4 step 2147483648 {\n}"), "6:21: 2147483648 is out of range for a step");
    assert_eq!(error_in("} else {"), "6:9: `else` without `if`");
}

#[test]
fn a_bad_opening_line_does_not_hide_the_rest() {
    let text = "nkir 1\nregisters 1\ncore {\n  for r9 in 0..4 {\n    foo()\n  }\n  bar()\n}\n";
    let lines: Vec<_> = parse(text).unwrap_err().into_iter().map(|e| e.line).collect();
    assert_eq!(lines, [4, 5, 7]);
}

#[test]
fn deep_nesting_is_refused() {
    let text = format!("nkir 1\nregisters 1\ncore {{\n{}", "while r0 {\n".repeat(100_000));
    assert!(parse(&text).unwrap_err()[0].message.contains("more than 200 blocks"));
    let brackets = "[".repeat(100_000);
    let text = format!("nkir 1\nregisters 1\ncore {{\niota(dst={brackets}\n}}\n");
    assert!(parse(&text).unwrap_err()[0].message.contains("too deeply"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn programs_come_back(seed in any::<u64>()) {
        let program = program(seed);
        let text = print(&program);
        let back = parse(&text);
        prop_assert_eq!(back.as_ref(), Ok(&program), "{}", text);
        prop_assert_eq!(print(&back.unwrap()), text);
    }

    /// Any mutated text is either parsed or rejected; a parsed text round-trips.
    #[test]
    fn mutated_text_never_panics(seed in any::<u64>(), edits in 1usize..12) {
        let mut random = Random::new(seed);
        let mut text: Vec<char> = print(&program(seed)).chars().collect();
        let pieces = ["9", "-1", "{", "}", "\"", "%", "r0", "[", "]", "x0", "..", "\n", "4294967296", "99999999999999999999", "é", "#"];
        for _ in 0..edits {
            let at = random.below(text.len() as u64) as usize;
            let end = (at + random.below(4) as usize).min(text.len());
            let piece: Vec<char> = if random.one_in(3) { Vec::new() } else { random.pick(&pieces).chars().collect() };
            text.splice(at..end, piece);
        }
        let text: String = text.into_iter().collect();
        match parse(&text) {
            Ok(program) => {
                let _ = program.validate();
                let printed = print(&program);
                let again = parse(&printed);
                prop_assert!(again.is_ok(), "{:?}\n{}", again, printed);
                prop_assert_eq!(print(&again.unwrap()), printed);
            }
            Err(errors) => prop_assert!(!errors.is_empty()),
        }
    }
}
