//! Comments above a kernel that supply its arguments.

mod command;

use command::{ADD_ONE, Session};

fn with_line(line: &str) -> String {
    ADD_ONE.replace("@nki.jit", &format!("{line}\n@nki.jit"))
}

#[test]
fn every_command_takes_the_arguments_of_the_line() {
    let s = Session::new();
    s.write("k.py", with_line("# nki-sim: x=float32[64,32]:ones amount=2.5"));
    s.run(&["run", "k.py", "--out", "."]).exits(0);
    let bytes = std::fs::read(s.path("out.npy")).expect("written");
    assert!(bytes.ends_with(&3.5f32.to_le_bytes()), "1 + 2.5");
    s.run(&["check", "k.py"]).exits(0).says("add_one: no errors");
    s.run(&["whatif", "k.py", "--top", "1"]).exits(0);
    s.run(&["lower", "k.py", "-o", "k.nkir"]).exits(0);
    s.run(&["sweep", "k.py", "--grid", "amount=1.0,2.0"]).exits(0).says("2.0");
    s.run(&["sweep", "k.py", "--grid", "x=float32[64,32],float32[128,32]"]).exits(0).says("float32[128,32]");
}

#[test]
fn an_argument_of_the_call_replaces_the_whole_line() {
    let s = Session::new();
    s.write("k.py", with_line("# nki-sim: x=float32[64,32]:ones amount=2.5"));
    s.run(&["run", "k.py", "--out", ".", "--arg", "x=float32[16,8]:ones"]).exits(0);
    let bytes = std::fs::read(s.path("out.npy")).expect("written");
    assert!(bytes.ends_with(&2f32.to_le_bytes()), "the default of `amount` is 1");
    s.run(&["run", "k.py", "--arg", "amount=1.0"])
        .exits(2)
        .says("needs argument `x`")
        .says("the `# nki-sim:` comment above the kernel counts only without --arg: repeat what it supplies");
    // A run line that is not needed is not parsed.
    s.write("k.py", with_line("# nki-sim: nonsense"));
    s.run(&["run", "k.py", "--arg", "x=float32[16,8]"]).exits(0);
}

#[test]
fn each_kernel_has_its_own_lines() {
    let s = Session::new();
    let second = ADD_ONE.split_once("@nki.jit").expect("a kernel").1.replace("add_one", "add_two");
    let first = with_line("# nki-sim: x=float32[64,32]\n# More arguments:\n# nki-sim: amount=1.0");
    s.write("k.py", format!("{first}\n# nki-sim: x=bfloat16[32,8]\n@nki.jit{second}"));
    s.run(&["run", "k.py", "--kernel", "add_one"]).exits(0).says("16384 bytes in 2 transfers");
    s.run(&["run", "k.py", "--kernel", "add_two"]).exits(0).says("1024 bytes in 2 transfers");
    s.run(&["run", "k.py"]).exits(2).says("2 kernels");
}

#[test]
fn arrays_are_beside_the_kernel_and_never_overwritten() {
    let s = Session::new();
    std::fs::create_dir(s.path("d")).expect("writable");
    s.write("d/make.py", with_line("# nki-sim: x=float32[16,8]:ones"));
    s.run(&["run", "d/make.py", "--out", "d"]).exits(0);
    s.write("d/k.py", with_line("# nki-sim: x=out.npy"));
    s.run(&["run", "d/k.py"]).exits(0);
    s.run(&["run", "d/k.py", "--json", "d/out.npy"])
        .exits(2)
        .says("would overwrite `d/out.npy`, which a run line names");
    s.run(&["run", "d/k.py", "--out", "d"]).exits(2).says("would overwrite --arg x");
}

#[test]
fn a_malformed_line_is_reported_at_its_place() {
    let s = Session::new();
    for (line, says) in [
        ("# nki-sim:", "a run line without arguments"),
        ("# nki-sim: float32[64,32]", "`float32[64,32]` is not an argument"),
        ("# nki-sim: x = float32[64,32]", "`x` is not an argument"),
        ("# nki-sim: x=float33[64,32]", "the value of `x` cannot be read"),
        ("# nki-sim: x=float32[64,32] x=float32[64,32]", "`x` is given twice"),
        ("# nki-sim: x=float32[64,32] mount=1", "kernel `add_one` has no parameter `mount`"),
    ] {
        s.write("k.py", with_line(line));
        for command in ["run", "check", "whatif"] {
            s.run(&[command, "k.py"]).exits(1).says(says).says("--> k.py:5:");
        }
        s.run(&["check", "k.py", "--json", "k.json"]).exits(1);
        let report = std::fs::read_to_string(s.path("k.json")).expect("written");
        assert!(report.contains("\"line\": 5"), "{report}");
    }
}
