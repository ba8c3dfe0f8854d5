//! The language of a file, determined by its imports.

use super::*;

/// Index tiles, which only the language of `neuronxcc.nki` has.
const BODY: &str = "    i = nl.arange(128)[:, None]\n    j = nl.arange(8)[None, :]\n    out = nl.ndarray((128, 8), dtype=nl.float32, buffer=nl.shared_hbm)\n    nl.store(out[i, j], nl.zeros((128, 8), nl.float32)[i, j])\n    print('done')\n    return out\n";

#[track_caller]
fn is_older(files: &[(&str, &str)]) {
    assert_eq!(run_files(files, &[], &Options::default()), "done", "{}", files[0].1);
}

#[test]
fn imports_in_blocks_choose_the_language() {
    for import in [
        "if True:\n    import neuronxcc.nki as nki, neuronxcc.nki.language as nl\n",
        "with suppress(ImportError):\n    import neuronxcc.nki as nki\n    import neuronxcc.nki.language as nl\n",
        "try:\n    pass\nfinally:\n    import neuronxcc.nki as nki\n    import neuronxcc.nki.language as nl\n",
        "for _ in range(1):\n    import neuronxcc.nki as nki\n    import neuronxcc.nki.language as nl\n",
        "class Api:\n    import neuronxcc.nki as nki\n    import neuronxcc.nki.language as nl\nnki, nl = Api.nki, Api.nl\n",
        "class Api:\n    def get(self):\n        import neuronxcc.nki as nki\n        import neuronxcc.nki.language as nl\n        return nki, nl\nnki, nl = Api().get()\n",
        "match 1:\n    case 1:\n        import neuronxcc.nki as nki\n        import neuronxcc.nki.language as nl\n",
    ] {
        let source = format!("from contextlib import suppress\n{import}@nki.jit\ndef k():\n{BODY}");
        is_older(&[("k.py", &source)]);
    }
}

#[test]
fn names_of_other_files_choose_the_language() {
    let kernel = format!("@nki.jit\ndef k():\n{BODY}");
    let api = "import neuronxcc.nki as nki\nimport neuronxcc.nki.language as nl\n";
    for (import, helper) in [
        ("from helper import nki, nl\n", api),
        ("from helper import *\n", api),
        ("import helper\nnki, nl = helper.nki, helper.nl\n", api),
        (
            "from helper import *\nfrom helper import nki\nimport sys\nnl = language\n",
            "from neuronxcc.nki import *\nimport neuronxcc.nki as nki\n",
        ),
    ] {
        is_older(&[("k.py", &format!("{import}{kernel}")), ("helper.py", helper)]);
    }
    // A file that imports a language itself keeps that language.
    let both = "import nki\nfrom helper import twice\n@nki.jit\ndef k():\n    print(twice(3))\n";
    let helper = "import neuronxcc.nki.language as nl\ndef twice(x):\n    return 2 * x\n";
    assert_eq!(run_files(&[("k.py", both), ("helper.py", helper)], &[], &Options::default()), "6");
}

#[test]
fn star_imports_take_the_place_of_pythons_functions() {
    let body = BODY.replace("nl.", "");
    let source = format!(
        "from neuronxcc import nki\nfrom neuronxcc.nki.language import *\n@nki.jit\ndef k():\n    t = zeros((128, 8), float32)\n    s = sum(t, axis=1)\n    u = max(abs(t), axis=[1])\n{body}"
    );
    is_older(&[("k.py", &source)]);
    // Also through another file, with names that the other file does not use itself.
    let source =
        format!("from helper import *\n@nki.jit\ndef k():\n    t = max(zeros((128, 8), float32), axis=1)\n{body}");
    is_older(&[("k.py", &source), ("helper.py", "from neuronxcc import nki\nfrom neuronxcc.nki.language import *\n")]);
}
