//! The command in a separate folder, for tests.

#![allow(dead_code, unreachable_pub, missing_docs, reason = "each test takes what it needs")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub struct Session {
    pub folder: tempfile::TempDir,
}

impl Session {
    pub fn new() -> Self {
        Session { folder: tempfile::tempdir().expect("temporary directory") }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).expect("writable");
        path
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nki-sim"));
        command.args(args).current_dir(self.folder.path());
        const VARIABLES: [&str; 9] = [
            "NEURON_PLATFORM_TARGET_OVERRIDE",
            "NKI_NC_VERSION",
            "NEURON_LOGICAL_NC_CONFIG",
            "NKI_PRECISE_FP",
            "NKI_SIM_LOG",
            "NKI_SIM_UNWRITTEN",
            "NKI_SIM_DENY",
            "NKI_SIM_WARN",
            "NKI_SIM_ALLOW",
        ];
        for name in VARIABLES {
            command.env_remove(name);
        }
        command
    }

    pub fn run(&self, args: &[&str]) -> Ran {
        Ran::from(self.command(args).output().expect("runs"))
    }
}

pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl From<Output> for Ran {
    fn from(o: Output) -> Self {
        Ran {
            code: o.status.code(),
            stdout: String::from_utf8_lossy(&o.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&o.stderr).into_owned(),
        }
    }
}

impl Ran {
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    #[track_caller]
    pub fn says(self, text: &str) -> Self {
        assert!(
            self.stdout.contains(text) || self.stderr.contains(text),
            "`{text}` is not in\nstdout:\n{}\nstderr:\n{}",
            self.stdout,
            self.stderr
        );
        self
    }
}

impl Ran {
    #[track_caller]
    pub fn keeps_quiet_about(self, text: &str) -> Self {
        assert!(
            !self.stdout.contains(text) && !self.stderr.contains(text),
            "`{text}` is in\nstdout:\n{}\nstderr:\n{}",
            self.stdout,
            self.stderr
        );
        self
    }
}

pub fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(name);
    path.to_string_lossy().into_owned()
}

pub const ADD_ONE: &str = "\
import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def add_one(x, amount=1.0):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x)
    nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0=amount)
    nisa.dma_copy(dst=out, src=t)
    return out
";
