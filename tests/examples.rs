//! Every example and test kernel, run through the command with `.npy` files, agrees with NumPy.

use std::path::Path;
use std::process::Command;

const PACKAGES: &str = "python3 with numpy and ml_dtypes is needed: \
    python3 -m venv target/venv && target/venv/bin/pip install numpy ml_dtypes";

/// Runs the cases of a directory. Returns the line that explains why there are none.
fn check(directory: &str) -> Option<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let venv = root.join("target/venv/bin/python");
    let python = if venv.exists() { venv } else { "python3".into() };
    let has = Command::new(&python).args(["-c", "import numpy, ml_dtypes"]).output();
    assert!(has.is_ok_and(|o| o.status.success()), "{PACKAGES}");
    let out = Command::new(&python)
        .arg("tests/numpy_check.py")
        .arg(directory)
        .current_dir(root)
        .env("NKI_SIM", env!("CARGO_BIN_EXE_nki-sim"))
        .env_remove("NEURON_PLATFORM_TARGET_OVERRIDE")
        .env_remove("NKI_NC_VERSION")
        .env_remove("NKI_PRECISE_FP")
        .output()
        .expect("python runs");
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success(), "{text}\n{}", String::from_utf8_lossy(&out.stderr));
    let optional = directory.ends_with("tutorials");
    assert!(optional || text.lines().filter(|l| l.starts_with("ok ")).count() > 5, "too few cases ran:\n{text}");
    text.lines().find(|l| l.starts_with("skipped")).map(String::from)
}

#[test]
fn examples_agree_with_numpy() {
    check("examples");
}

#[test]
fn kernels_agree_with_numpy() {
    check("tests/kernels");
}

/// The ports of the kernels that docs/accuracy.md compares with measurements.
#[test]
fn ports_agree_with_numpy() {
    check("tests/ports");
}

/// The kernels of the AWS manual, if $NKI_TUTORIALS or $NKI_MANUAL names a downloaded copy;
/// otherwise a line reports that they are skipped.
#[test]
fn tutorials_agree_with_numpy() {
    if let Some(line) = check("tests/tutorials") {
        println!("{line}");
    }
}

#[test]
fn instructions_agree_with_numpy() {
    check("tests/corpus");
}

#[test]
fn kernels_for_the_older_interface() {
    check("tests/beta1");
}
