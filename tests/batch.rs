//! `nki-sim batch`: order, limits, duplicates, and invalid jobs.

mod command;

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use command::{ADD_ONE, Session};
use serde_json::{Value, json};

/// The results: one JSON value per line.
fn results(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

fn batch(s: &Session, jobs: &str, more: &[&str], code: i32) -> Vec<Value> {
    s.write("jobs.jsonl", jobs);
    results(&s.run(&[&["batch", "jobs.jsonl"], more].concat()).exits(code).stdout)
}

fn lines(jobs: &[Value]) -> String {
    jobs.iter().map(|job| format!("{job}\n")).collect()
}

/// A loop that takes longer than the limit of any test.
const ENDLESS: &str = "
@nki.jit
def endless(x):
    n = 0
    for i in range(10**15):
        n += i
    return x
";

/// Doubles a list until the memory limit is reached.
const DOUBLING: &str = "
@nki.jit
def doubling(x):
    a = [1]
    for i in range(60):
        a = a + a
    return x
";

fn add_one(width: usize) -> Value {
    json!({"file": "k.py", "args": {"x": format!("float32[128,{width}]")}})
}

#[test]
fn results_have_the_order_of_the_jobs() {
    let s = Session::new();
    s.write("k.py", ADD_ONE);
    // The first job is the largest.
    let widths = [8192, 4, 4096, 8, 2048, 16];
    let jobs: Vec<Value> = widths
        .iter()
        .map(|w| {
            let mut job = add_one(*w);
            job["id"] = json!({ "width": w });
            job
        })
        .collect();
    let all = batch(&s, &lines(&jobs), &["--jobs", "3"], 0);
    assert_eq!(all.len(), widths.len());
    for (i, (result, width)) in all.iter().zip(widths).enumerate() {
        assert_eq!(result["line"], i + 1);
        assert_eq!(result["id"]["width"], width);
        assert_eq!(result["status"], "passed");
        assert_eq!(result["outputs"][0]["shape"][1], width);
        assert!(result["latency_us"].as_f64().is_some_and(|t| t > 0.0));
        assert!(result["latency_error"]["low_us"].as_f64() <= result["latency_us"].as_f64());
    }
    assert!(all[0]["latency_us"].as_f64() > all[1]["latency_us"].as_f64());
    // A second run with a different number of workers produces the same bytes.
    let first = s.run(&["batch", "jobs.jsonl"]).exits(0).stdout;
    s.run(&["batch", "jobs.jsonl", "--jobs", "1", "--json-lines", "out.jsonl"]).exits(0);
    assert_eq!(std::fs::read_to_string(s.path("out.jsonl")).unwrap(), first);
}

#[test]
fn a_job_means_what_the_command_means() {
    let s = Session::new();
    s.write("k.py", ADD_ONE);
    s.run(&["run", "k.py", "--arg", "x=float32[128,64]", "--target", "trn3", "--out", "o", "--json", "r.json"])
        .exits(0);
    let report: Value = serde_json::from_str(&std::fs::read_to_string(s.path("r.json")).unwrap()).unwrap();
    let mut job = add_one(64);
    (job["target"], job["expect"]) = (json!("trn3"), json!({"out": "o/out.npy"}));
    let all = batch(&s, &lines(&[job]), &[], 0);
    for field in ["latency_us", "kernel", "target", "outputs"] {
        assert_eq!(all[0][field], report[field], "{field}");
    }
    assert_eq!(all[0]["latency_error"]["high_us"], report["latency_error"]["high_us"]);
    assert_eq!(all[0]["expected"][0]["passed"], true);
}

#[test]
fn text_arrays_and_expectations_may_be_inline() {
    let s = Session::new();
    let x = json!({"dtype": "float32", "values": [[1, 2], [3, "nan"]]});
    let job =
        |expected: Value| json!({"source": ADD_ONE, "args": {"x": x, "amount": 0.5}, "expect": {"out": expected}});
    let jobs = [
        job(json!({"values": [[1.5, 2.5], [3.5, "nan"]]})),
        job(json!({"values": [[1.5, 2.5], [3.5, 4.5]]})),
        job(json!({"values": [[1.5, 2.5]]})),
        json!({"source": ADD_ONE, "args": {"x": {"dtype": "int8", "values": [[300]]}}}),
        json!({"source": ADD_ONE, "args": {"x": x}, "expect": {"y": "float32[2,2]"}}),
    ];
    let all = batch(&s, &lines(&jobs), &[], 1);
    let status: Vec<&str> = all.iter().map(|r| r["status"].as_str().unwrap()).collect();
    assert_eq!(status, ["passed", "differs", "failed", "refused", "refused"]);
    assert_eq!(all[1]["error"], "output `out`: 1 of 4 elements differ, max abs error not finite");
    assert!(all[2]["error"].as_str().unwrap().contains("has shape (2, 2)"));
    assert_eq!(all[2]["latency_us"], all[0]["latency_us"]);
    assert!(all[3]["error"].as_str().unwrap().contains("300 cannot be held by int8"));
    assert!(all[4]["error"].as_str().unwrap().contains("has no output of that name; it has `out`"));
}

#[test]
fn a_wrong_kernel_has_its_diagnostics() {
    let s = Session::new();
    let wrong = ADD_ONE.replace("op0=nl.add", "op0=nl.addd");
    let all = batch(&s, &lines(&[json!({"source": wrong, "file": "wrong.py", "args": {"x": "float32[4,4]"}})]), &[], 1);
    assert_eq!((all[0]["status"].as_str(), &all[0]["latency_us"]), (Some("failed"), &Value::Null));
    let finding = &all[0]["findings"][0];
    assert_eq!((finding["line"].as_u64(), finding["file"].as_str()), (Some(10), Some("wrong.py")));
    assert!(finding["id"].is_string() && all[0]["error"].as_str().unwrap().contains("(wrong.py:10)"));
    assert!(all[0]["diagnostics"].as_str().unwrap().contains("nl.addd"), "{}", all[0]);
}

#[test]
fn wrong_lines_are_results() {
    let s = Session::new();
    s.write("k.py", ADD_ONE);
    let mut jobs = b"{\"file\": \"k.py\"\n\n[1]\n{\"fiel\": \"k.py\"}\n{\"file\": \"k.py\", \"lnc\": 3}\n{}\n{\"file\": \"none.py\"}\n".to_vec();
    jobs.extend(b"\xff\xfe\n{\"file\": \"k.py\", \"max_seconds\": 1000}\n{\"file\": \"k.py\", \"no_numerics\": true, \"out\": \"o\"}\n");
    jobs.extend(b"{\"file\": \"k.py\", \"args\": {\"x\": \"float32[128,4]\"}}");
    s.write("jobs.jsonl", &jobs);
    let all = results(&s.run(&["batch", "jobs.jsonl"]).exits(1).stdout);
    let said: Vec<(u64, &str)> =
        all.iter().map(|r| (r["line"].as_u64().unwrap(), r["error"].as_str().unwrap_or("passed"))).collect();
    let expected = [
        (1, "not valid JSON"),
        (3, "a job is a JSON object"),
        (4, "unknown field `fiel`; did you mean `file`?"),
        (5, "for `lnc`: 3 is not in 1..=2"),
        (6, "a job needs `file` or `source`"),
        (7, "cannot read `none.py`"),
        (8, "not UTF-8"),
        (9, "`max_seconds`: 1000 is more than the 60 of the run"),
        (10, "cannot be used with"),
        (11, "passed"),
    ];
    assert_eq!(said.len(), expected.len(), "{said:?}");
    for ((line, error), (wanted, why)) in said.iter().zip(expected) {
        assert!(*line == wanted && error.contains(why), "{line}: {error}");
    }
    assert!(batch(&s, "", &[], 0).is_empty());
    assert!(batch(&s, "\n \n", &[], 0).is_empty());
    s.run(&["batch", "missing.jsonl"]).exits(2).says("cannot read `missing.jsonl`");
    s.run(&["batch", "jobs.jsonl", "--json-lines", "jobs.jsonl"]).exits(2).says("would overwrite the file of jobs");
    s.run(&["batch", "jobs.jsonl", "--max-seconds", "0"]).exits(2).says("above 0");
    s.run(&["batch", "jobs.jsonl", "--max-memory", "much"]).exits(2).says("not a size");
}

#[test]
fn results_replace_nothing_that_a_job_reads() {
    let s = Session::new();
    s.write("k.py", ADD_ONE);
    s.write("jobs.jsonl", lines(&[json!({"file": "none.py"}), add_one(4)]));
    s.run(&["batch", "jobs.jsonl", "--json-lines", "k.py"]).exits(2).says("which the job of line 2 reads");
    assert_eq!(std::fs::read_to_string(s.path("k.py")).unwrap(), ADD_ONE);
}

#[test]
fn a_job_is_refused_in_terms_of_jobs() {
    let s = Session::new();
    s.write("k.py", ADD_ONE);
    let x = "float32[128,4]";
    let jobs = [
        json!([]),
        json!(3),
        json!({"file": "k.py", "args": {"x": x, "y": 1}}),
        json!({"file": "k.py", "args": {"y": 1}}),
        json!({"file": "k.py", "args": {"x": x}, "rtol": 0.5}),
        json!({"file": "k.py", "args": {"x": x}, "deny": "warnings"}),
    ];
    let all = batch(&s, &lines(&jobs), &[], 1);
    let errors: Vec<&str> = all.iter().map(|r| r["error"].as_str().unwrap_or("none")).collect();
    let signature = "its signature is add_one(x, amount=1.0)";
    let unknown = format!("kernel `add_one` has no parameter called `y`; {signature}");
    let both = format!(
        "kernel `add_one` has no parameter called `y`; did you mean `x`?; kernel `add_one` needs argument `x`; {signature}"
    );
    let expected = [
        "a job is a JSON object",
        "a job is a JSON object",
        &unknown,
        &both,
        "`rtol` has no effect without `expect`",
        "none",
    ];
    assert_eq!(errors, expected);
}

#[test]
fn a_job_that_skips_work_says_so() {
    let s = Session::new();
    s.write("k.py", ADD_ONE.replace("dst=out, src=t)", "dst=out[0:64, :], src=t[0:64, :])"));
    let all = batch(&s, &lines(&[add_one(4)]), &[], 0);
    assert_eq!((all[0]["status"].as_str(), &all[0]["incomplete"]), (Some("passed"), &json!(true)));
    assert_eq!(all[0]["findings"][0]["id"], "output-partly-written");
}

#[test]
fn a_refused_job_keeps_its_id() {
    let s = Session::new();
    let refused = batch(&s, "{\"id\": \"a\", \"file\": 3}\n", &[], 1);
    assert_eq!(refused[0]["id"], "a");
    assert!(refused[0]["error"].as_str().unwrap().contains("`file`: invalid type"), "{refused:?}");
}

#[test]
fn limits_end_a_job_and_not_the_next() {
    let s = Session::new();
    s.write("k.py", format!("{ADD_ONE}{ENDLESS}{DOUBLING}"));
    let job = |kernel: &str| {
        let mut job = add_one(4);
        job["kernel"] = json!(kernel);
        job
    };
    let (mut endless, mut doubling) = (job("endless"), job("doubling"));
    (endless["max_seconds"], endless["max_steps"]) = (json!(0.5), json!(1_000_000_000_000_000u64));
    (doubling["max_memory"], doubling["max_steps"]) = (json!("64MiB"), json!(1_000_000_000_000_000u64));
    let jobs = [job("add_one"), endless, job("add_one"), doubling, job("add_one")];
    let all = batch(&s, &lines(&jobs), &["--jobs", "1"], 1);
    let status: Vec<&str> = all.iter().map(|r| r["status"].as_str().unwrap()).collect();
    assert_eq!(status, ["passed", "limit", "passed", "limit", "passed"]);
    assert_eq!(all[1]["error"], "not finished within 0.5 seconds");
    assert_eq!(all[3]["findings"][0]["id"], "memory-limit");
    // The limit of the run applies to each job.
    let mut endless = job("endless");
    endless["max_steps"] = json!(1_000_000_000_000_000u64);
    let all = batch(&s, &lines(&[endless]), &["--max-seconds", "0.25"], 1);
    assert_eq!(all[0]["error"], "not finished within 0.25 seconds");
}

#[test]
fn equal_jobs_are_performed_once_while_their_files_are_the_same() {
    let s = Session::new();
    s.write("k.py", ADD_ONE);
    let mut batch = s.command(&["batch", "-", "--jobs", "2"]);
    let mut child = batch.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut jobs = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap());
    // Each answer arrives before the next job is sent.
    let mut ask = |job: &Value| -> Value {
        writeln!(jobs, "{job}").unwrap();
        jobs.flush().unwrap();
        let mut line = String::new();
        answers.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    };
    let job = json!({"file": "k.py", "args": {"x": "float32[128,64]"}});
    let first = ask(&job);
    let second = ask(&job);
    assert_eq!((first["line"].as_u64(), second["line"].as_u64()), (Some(1), Some(2)));
    assert_eq!(first["latency_us"], second["latency_us"]);
    // A job whose file has changed is a different job.
    s.write(
        "k.py",
        ADD_ONE.replace(
            "    nisa.dma_copy(dst=out, src=t)",
            "    nisa.tensor_copy(dst=t, src=t)\n    nisa.dma_copy(dst=out, src=t)",
        ),
    );
    let third = ask(&job);
    assert!(third["latency_us"].as_f64() > first["latency_us"].as_f64(), "{third}");
    // So is a job that looks up a file which did not exist before.
    s.write("k.py", format!("from extra import AMOUNT\n{}", ADD_ONE.replace("operand0=amount", "operand0=AMOUNT")));
    assert_eq!(ask(&job)["status"], "failed");
    s.write("extra.py", "AMOUNT = 1.0\n");
    assert_eq!(ask(&job)["status"], "passed");
    s.write("nki-sim.toml", "deny = [\"no-such-slug\"]\n");
    assert_eq!(ask(&job)["status"], "refused");
    drop(jobs);
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

#[test]
fn two_jobs_cannot_write_to_one_folder() {
    let s = Session::new();
    s.write("k.py", ADD_ONE);
    let job = |out: &str| {
        let mut job = add_one(4);
        job["out"] = json!(out);
        job
    };
    let all = batch(&s, &lines(&["d/o", "./d/o", "d/o/", "d/./o", "p"].map(job)), &[], 1);
    let status: Vec<&str> = all.iter().map(|r| r["status"].as_str().unwrap()).collect();
    assert_eq!(status, ["passed", "refused", "refused", "refused", "passed"]);
    assert!(all[1]["error"].as_str().unwrap().contains("the job of line 1 also writes to `./d/o`"));
    assert!(s.path("d/o/out.npy").is_file());
}

#[test]
fn outputs_replace_no_file_of_the_call_or_of_another_job() {
    let s = Session::new();
    s.write("k.py", ADD_ONE);
    for folder in ["source", "array", "jobs", "results"] {
        std::fs::create_dir(s.path(folder)).unwrap();
    }
    s.write("source/out.npy", ADD_ONE);
    let array = json!({"file": "k.py", "args": {"x": "float32[128,4]"}, "out": "array"});
    batch(&s, &lines(&[array]), &[], 0);
    let written = std::fs::read(s.path("array/out.npy")).unwrap();
    let mut jobs: Vec<Value> = ["source", "array", "jobs", "results", "fine"]
        .map(|out| json!({"file": "k.py", "args": {"x": "float32[128,4]:ones"}, "out": out}))
        .into();
    jobs.push(json!({"file": "source/out.npy", "kernel": "add_one", "args": {"x": "float32[128,4]"}}));
    jobs.push(json!({"file": "k.py", "args": {"x": "array/out.npy"}}));
    // The arrays in run lines are inputs, too.
    std::fs::create_dir(s.path("line")).unwrap();
    std::fs::copy(s.path("array/out.npy"), s.path("line/out.npy")).unwrap();
    s.write("by_line.py", ADD_ONE.replace("@nki.jit", "# nki-sim: x=line/out.npy\n@nki.jit"));
    jobs.push(json!({"file": "k.py", "args": {"x": "float32[128,4]"}, "out": "line"}));
    jobs.push(json!({"file": "by_line.py"}));
    s.write("jobs/out.npy", lines(&jobs));
    s.run(&["batch", "jobs/out.npy", "--json-lines", "results/out.npy"]).exits(1);
    let all = results(&std::fs::read_to_string(s.path("results/out.npy")).unwrap());
    for (result, what) in all.iter().zip(["the job of line 6", "the job of line 7", "the file of jobs", "--json-lines"])
    {
        assert_eq!(result["status"], "refused", "{result}");
        let error = result["error"].as_str().unwrap();
        assert!(error.contains("would overwrite") && error.contains(what), "{error}");
    }
    assert_eq!(all[4]["status"], "passed");
    let error = all[7]["error"].as_str().unwrap();
    assert!(error.contains("would overwrite") && error.contains("the job of line 9"), "{error}");
    assert_eq!(std::fs::read_to_string(s.path("source/out.npy")).unwrap(), ADD_ONE);
    assert_eq!(std::fs::read(s.path("line/out.npy")).unwrap(), written);
    assert_eq!(std::fs::read(s.path("array/out.npy")).unwrap(), written);
    assert_eq!(std::fs::read_to_string(s.path("jobs/out.npy")).unwrap(), lines(&jobs));
}

#[cfg(target_os = "linux")]
#[test]
fn a_worker_that_dies_is_replaced() {
    let s = Session::new();
    s.write("k.py", format!("{ADD_ONE}{ENDLESS}"));
    let mut endless = add_one(4);
    (endless["kernel"], endless["max_steps"]) = (json!("endless"), json!(1_000_000_000_000_000u64));
    let mut small = add_one(4);
    small["kernel"] = json!("add_one");
    s.write("jobs.jsonl", lines(&[endless, small]));
    let child = s.command(&["batch", "jobs.jsonl", "--jobs", "1"]).stdout(Stdio::piped()).spawn().unwrap();
    let worker = loop {
        let children = format!("/proc/{0}/task/{0}/children", child.id());
        let found = std::fs::read_to_string(children).unwrap_or_default();
        // Another thread of the process may have started the worker.
        let found = found.split_whitespace().next().map(str::to_owned).or_else(|| child_of(child.id()));
        if let Some(worker) = found.filter(|w| busy(w)) {
            break worker;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    };
    assert!(std::process::Command::new("kill").args(["-9", &worker]).status().unwrap().success());
    let out = child.wait_with_output().unwrap();
    let all = results(&String::from_utf8(out.stdout).unwrap());
    assert_eq!((all[0]["status"].as_str(), all[1]["status"].as_str()), (Some("crashed"), Some("passed")));
    assert!(all[0]["error"].as_str().unwrap().contains("signal: 9"), "{}", all[0]);
}

/// A child process of this process.
#[cfg(target_os = "linux")]
fn child_of(parent: u32) -> Option<String> {
    let entries = std::fs::read_dir("/proc").ok()?;
    entries.flatten().find_map(|entry| {
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        let after = stat.rsplit_once(") ")?.1;
        let is_child = after.split(' ').nth(1)?.parse::<u32>().ok()? == parent;
        is_child.then(|| entry.file_name().to_string_lossy().into_owned())
    })
}

/// Whether a process has already used processor time, and is therefore running.
#[cfg(target_os = "linux")]
fn busy(process: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let ticks = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(11)?.parse::<u64>().ok());
    ticks.is_some_and(|ticks| ticks > 10)
}

#[test]
fn a_value_has_one_place_and_a_mark_is_skipped() {
    let s = Session::new();
    s.write("k.py", ADD_ONE);
    let mut both = add_one(4);
    both["point"] = json!({"x": "float32[128,8]"});
    let all = batch(&s, &format!("\u{feff}{}{both}\n", lines(&[add_one(4)])), &[], 1);
    assert_eq!((&all[0]["status"], &all[1]["status"]), (&json!("passed"), &json!("refused")));
    assert_eq!(all[1]["error"], "`x` is in `args` and in `point`; give it in one of them");
}
