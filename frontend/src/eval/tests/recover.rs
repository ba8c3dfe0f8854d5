//! Evaluation after an error of the API: consequential errors are not reported, and the number of
//! errors is limited.

use super::*;

/// The findings of a kernel whose body starts with an invalid tensor.
fn after_an_error(body: &str) -> String {
    let head = "import nki.language as nl\nimport nki.isa as nisa\np = nl.ndarray((256, 4), nl.float32)\n";
    let body: String = format!("{head}{body}").lines().map(|l| format!("    {l}\n")).collect();
    run(&format!("import nki\nimport math\n@nki.jit\ndef k():\n{body}"))
}

#[test]
fn nothing_follows_from_a_tensor_that_cannot_be_made() {
    let first = "partition-size: `p` has 256 partitions (dimension 0 of (256, 4)), but sbuf has 128";
    for body in [
        "x = p.shape[0] + 1\ny = -p.ndim * 'a'",
        "for a, b in p.shape:\n    nisa.memset(a, value=b)",
        "for i in range(p.shape[0]):\n    nisa.memset(p[i], value=0.0)",
        "a, *b = p.shape\na.anything(b)[3].more",
        "x = [p, 1][0][0:4, nl.ds(0, p.ndim)]",
        "x = {'a': p}['a'].shape\ny = {}\ny['b'] = p\nz = y.get('b').dtype",
        "l = []\nl.append(p)\nl.insert(p.ndim, 1)\nnisa.memset(l[0], value=0.0)",
        "x = min(p.ndim, 4) + max([1, p.ndim]) + math.sqrt(p.ndim) + int(p.ndim) + len(p.shape)",
        "x = f'{p.shape}' + '%d' % p.ndim + ','.join([p.name])\nprint(x)",
        "x = (1 if p.shape[0] > 2 else 3) + 1\ny = p.ndim or 4\nz = 1 < p.ndim < 3",
        "assert p.shape == (256, 4) and p.ndim == 2 and not p.ndim, 'never'\nassert p.ndim in (1, 2)",
        "x = (1, 2)[p.ndim]\ny = [1, 2, 3][p.ndim:]\ny[0] = 4\nz = 'abc'[p.ndim]",
        "p[0:4] = p\np.name = 'x'\nt = nl.ndarray((4, 4), nl.float32)\nt[0:4] = p\nt[p.ndim] = t",
        "t = nl.ndarray(p.shape, p.dtype)\nnisa.tensor_copy(dst=t, src=p)\nu = nl.add(t, 1)\nu.reshape((4, 4))",
        "with nl.no_reorder():\n    nisa.memset(p, value=0.0)\nwith p as q:\n    nisa.memset(q, value=0.0)",
        "for i in nl.dynamic_range(p.ndim):\n    nisa.memset(p[i], value=0.0)\nnisa.memset(p, value=0.0).depends_on(p)",
        "if p.shape[0] > 4:\n    nisa.memset(1, value=0.0)",
        "while p.ndim:\n    pass",
        "x = {p.ndim: 1}",
        "x = sorted([p.ndim, 1])\nfor y in [z for z in p.shape]:\n    nisa.memset(1, value=0.0)",
        "p @ p\np[0]\np.shape\np.reshape((4, 4))\np.ndim == 2",
        "return p.reshape((4, 4))",
    ] {
        assert_eq!(after_an_error(body), first, "{body}");
    }
}

#[test]
fn errors_that_do_not_follow_are_reported() {
    let out = after_an_error("nisa.memset(1, value=0.0)\nx = [1][4]\nnisa.memset(2, value=0.0)");
    let slugs: Vec<&str> = out.lines().filter_map(|l| l.split(':').next()).collect();
    assert_eq!(slugs, ["partition-size", "operand-kind", "index-out-of-range"]);
    let caught = "try:\n    nisa.memset(1, value=0.0)\nexcept Exception as e:\n    print(type(e).__name__)\ntry:\n    pass\nfinally:\n    \
                  nisa.memset(2, value=0.0)\nassert False";
    let out = after_an_error(caught);
    let slugs: Vec<&str> = out.lines().filter_map(|l| l.split(':').next()).collect();
    assert_eq!(slugs.last(), Some(&"assertion-failed"), "{out}");
    assert_eq!(slugs.iter().filter(|s| **s == "operand-kind").count(), 1, "{out}");
}

#[test]
fn a_refusal_that_the_kernel_catches_is_a_warning() {
    let tile = "t = nl.ndarray((128, 4), dtype=nl.float32, buffer=nl.sbuf)\n";
    let findings = |code: &str| {
        let out = after_an_error(&format!("{tile}{code}\nassert False"));
        out.lines().filter(|line| line.contains("caught-error")).count()
    };
    for refused in [
        "t[:, 2:9]",
        "nl.ndarray((129, 4), dtype=nl.float32, buffer=nl.sbuf)",
        "nl.ndarray((128, 10**6), dtype=nl.float32, buffer=nl.sbuf)",
        "nisa.memset(t, value='a')",
    ] {
        assert_eq!(findings(&format!("try:\n    {refused}\nexcept Exception:\n    pass")), 1, "{refused}");
        // Each position is reported once.
        let repeated = format!(
            "for i in range(3):\n    try:\n        {refused}\n    except RuntimeError:\n        pass\n    except Exception:\n        pass"
        );
        assert_eq!(findings(&repeated), 1, "{refused}");
    }
    let swallows = "class Quiet:\n    def __enter__(self):\n        return self\n    def __exit__(self, *args):\n        return True\nwith Quiet():\n    t[:, 2:9]";
    assert_eq!(findings(swallows), 1);
    // Exceptions of Python or of the kernel are not findings.
    for own in ["1 / 0", "{}['a']", "assert False, 'no'", "raise RuntimeError('no')", "[][0]", "t.nothing", "int('x')"]
    {
        assert_eq!(findings(&format!("try:\n    {own}\nexcept Exception:\n    pass")), 0, "{own}");
    }
}

#[test]
fn errors_are_bounded() {
    let lines = "    nisa.memset(1, value=0.0)\n".repeat(25);
    let source = format!("import nki\nimport nki.isa as nisa\n@nki.jit\ndef k():\n{lines}");
    let compiled = crate::compile(Path::new("k.py"), &Files(&[("k.py", &source)]), &[], &Options::default());
    assert_eq!(compiled.diagnostics.len(), 20);
    assert_eq!(compiled.diagnostics[19].notes.last().map(String::as_str), Some("evaluation ends after 20 errors"));
    // A loop that would run for minutes is aborted.
    let source = "import nki\nimport nki.isa as nisa\n@nki.jit\ndef k():\n    for i in range(10**15):\n        nisa.memset(1, value=0.0)\n";
    let out = run(source);
    assert!(out.starts_with("operand-kind") && out.lines().count() == 1, "{out}");
}
