//! Signals to the command end kernels that Python executes, scripts, and the processes of a search.

#![cfg(unix)]

mod command;

use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use command::{ADD_ONE, Session};

/// A stand-in for an interpreter with the package, which writes its process id instead of running
/// anything.
const PYTHON: &str = "#!/bin/sh\n[ \"$1\" = -c ] && exit 0\necho $$ > pid.new\nmv pid.new pid\nexec sleep 60\n";

fn wait_for<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(30) {
        if let Some(found) = found() {
            return found;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{what} in vain");
}

fn end(mut child: Child) {
    child.kill().expect("it runs");
    child.wait().expect("it ends");
}

#[test]
fn python_has_the_process_of_the_command() {
    let s = Session::new();
    let python = s.write("python", PYTHON);
    std::fs::set_permissions(&python, std::fs::Permissions::from_mode(0o755)).expect("ours");
    s.write("k.py", ADD_ONE);
    s.write("script.py", "if __name__ == \"__main__\":\n    print(1)\n");
    for words in [
        &["run", "k.py", "--frontend", "python", "--arg", "x=float32[4,4]"][..],
        &["run", "script.py"],
        &["sweep", "k.py", "--search", "--trials", "2", "--grid", "amount=1.0,2.0", "--arg", "x=float32[4,4]"],
    ] {
        let _ = std::fs::remove_file(s.path("pid"));
        let child = s.command(words).env("NKI_SIM_PYTHON", &python).spawn().expect("runs");
        let process = wait_for("Python starts", || std::fs::read_to_string(s.path("pid")).ok());
        assert_eq!(process.trim(), child.id().to_string(), "{words:?}");
        end(child);
    }
}

#[test]
fn a_batch_ends_with_the_process_that_wants_its_results() {
    let s = Session::new();
    let start = |parent: u32| {
        let parent = parent.to_string();
        let words = ["batch", "-", "--parent", &parent];
        s.command(&words).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("runs")
    };
    let (mut orphan, mut ours) = (start(u32::MAX), start(std::process::id()));
    wait_for("the batch ends", || orphan.try_wait().expect("known"));
    assert_eq!(ours.try_wait().expect("known"), None);
    end(ours);
}
