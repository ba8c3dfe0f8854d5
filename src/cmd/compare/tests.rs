use std::path::Path;

use super::lines::Line;
use super::*;

fn profile(latency: f64) -> Profile {
    let mut p = Profile { causes_of: Some(CausesOf::Rows), ..Profile::default() };
    p.metrics.insert("latency_us".into(), latency);
    p.metrics.insert("dma.bytes".into(), 1024.0);
    p.engines.insert("vector".into(), latency / 2.0);
    p.causes.insert("vector: semaphore from dma-sync (RAW)".into(), latency / 4.0);
    p.lines.push(Line {
        place: "k.py:7".into(),
        instruction: "tensor_copy".into(),
        critical: Some(latency / 3.0),
        ..Line::default()
    });
    p
}

fn checked(condition: &str, before: f64, after: f64) -> Result<bool, String> {
    let gates = [gate::parse(condition)?];
    let r = compare(&profile(before), &profile(after), &gates, (Path::new("a"), Path::new("b")))?;
    Ok(r.fail_if[0].failed)
}

#[test]
fn conditions_mean_what_the_grammar_says() {
    assert_eq!(checked("latency > +2%", 100.0, 102.5), Ok(true));
    assert_eq!(checked("latency > +2%", 100.0, 102.0), Ok(false));
    assert_eq!(checked("latency>=+2%", 100.0, 102.0), Ok(true));
    assert_eq!(checked("latency < -5%", 100.0, 90.0), Ok(true));
    assert_eq!(checked("latency > +3us", 100.0, 102.5), Ok(false));
    assert_eq!(checked("latency > 0.102ms", 100.0, 102.5), Ok(true));
    assert_eq!(checked("latency_us > 103", 100.0, 102.5), Ok(false));
    assert_eq!(checked("engine.vector > +0%", 100.0, 102.5), Ok(true));
    assert_eq!(checked("cause.semaphore > +0.5", 100.0, 104.0), Ok(true));
    assert_eq!(checked("line.k.py:7 > +1%", 100.0, 104.0), Ok(true));
    assert_eq!(checked("dma.bytes > +0%", 100.0, 104.0), Ok(false));
    // A value that both runs lack counts as 0.
    assert_eq!(checked("cause.table-load > +1us", 100.0, 104.0), Ok(false));
    assert_eq!(checked("line.k.py:9 > +1us", 100.0, 104.0), Ok(false));
}

#[test]
fn wrong_conditions_say_what_is_wrong() {
    for (text, why) in [
        ("latency", "no <, <=, > or >="),
        ("> 3", "metric is missing"),
        ("latency > 2%", "needs a sign"),
        ("latency > fast", "is not a number"),
        ("speed > 3", "both files must have `speed`"),
        ("engine.pool > 3", "they have vector"),
        ("cause.semafore > +1us", "`semafore` is not a cause of a stall; the causes are "),
        ("line.k2.py:7 > +1us", "no line is in `k2.py`; the files are k.py"),
        ("line.7 > +1us", "expected line.FILE:LINE"),
        ("dma.bytes > 1us", "`dma.bytes` is not a time in us"),
    ] {
        let e = checked(text, 1.0, 1.0).unwrap_err();
        assert!(e.contains(why), "{e}");
    }
}

#[test]
fn what_a_file_does_not_say_is_not_zero() {
    let mut sum = Profile::default();
    sum.metrics.insert("latency_us".into(), 100.0);
    let whole = profile(100.0);
    let paths = (Path::new("a"), Path::new("b"));
    for (before, after) in [(&whole, &sum), (&sum, &whole), (&sum, &sum)] {
        let r = compare(before, after, &[], paths).unwrap();
        assert!([&r.engines, &r.causes, &r.lines, &r.opcodes, &r.counts].iter().all(|rows| rows.is_empty()));
        for (text, what) in [
            ("engine.vector < +0%", "times of engines"),
            ("cause.semaphore > +1us", "causes of stalls"),
            ("cause.vector: event wait > +1us", "times of waits"),
            ("line.k.py:7 > +1us", "source lines"),
        ] {
            let e = compare(before, after, &[gate::parse(text).unwrap()], paths).unwrap_err();
            assert!(e.contains(&format!("both files must have {what}, and `")), "{e}");
        }
    }
}

#[test]
fn causes_of_a_report_and_of_a_table_are_not_compared() {
    let report = profile(100.0);
    let table = Profile { causes_of: Some(CausesOf::Instructions), ..profile(100.0) };
    let paths = (Path::new("a"), Path::new("b"));
    for (before, after, file) in [(&report, &table, "b"), (&table, &report, "a")] {
        let r = compare(before, after, &[], paths).unwrap();
        assert!(r.causes.is_empty() && !r.lines.is_empty());
        let why = format!("`{file}` has only the waits before instructions");
        assert_eq!(r.notes.len(), 1);
        assert!(r.notes[0].starts_with(&format!("causes of stalls are not compared: {why}")), "{:?}", r.notes);
        let gate = gate::parse("cause.semaphore > +1us").unwrap();
        let e = compare(before, after, &[gate], paths).unwrap_err();
        assert!(e.contains(&why), "{e}");
    }
    assert_eq!(compare(&table, &table, &[], paths).unwrap().causes.len(), 1);
}

#[test]
fn an_invalid_latency_and_another_machine_are_noted() {
    let read = |text: &str| {
        let file = tempfile::Builder::new().suffix(".json").tempfile().unwrap();
        std::fs::write(file.path(), text).unwrap();
        Profile::read(file.path()).unwrap()
    };
    let before = read(r#"{"latency_us": 10.0, "latency_valid": true, "target": "trn2", "lnc": 1}"#);
    let after =
        read(r#"{"latency_us": 8.0, "latency_valid": false, "target": "trn3", "ranks": [{"lnc": 2}, {"lnc": 2}]}"#);
    let r = compare(&before, &after, &[], (Path::new("a"), Path::new("b"))).unwrap();
    let text = render::text(&r, 8);
    for words in [
        "latency 10.00 us -> 8.00 us (not valid) (-20.00%)",
        "the latency of `b` is not valid",
        "the target differs: trn2 in `a`, trn3 in `b`",
        "the number of ranks differs: 1 in `a`, 2 in `b`",
        "the number of cores (--lnc) differs: 1 in `a`, 2 in `b`",
    ] {
        assert!(text.contains(words), "{text}");
    }
    let github = render::github(&r);
    assert!(github.contains("8.00 us (not valid)") && github.contains("the latency of `b` is not valid"), "{github}");
    let same = compare(&before, &before, &[], (Path::new("a"), Path::new("b"))).unwrap();
    assert!(same.notes.is_empty() && same.latency_valid == (true, true));
}

#[test]
fn lines_are_named_by_file_and_annotated_by_path() {
    let read = |folder: &str, us: f64| {
        let file = tempfile::Builder::new().suffix(".json").tempfile().unwrap();
        let line = format!(r#"{{"file": "{folder}/k.py", "line": 7, "instruction": "exp", "critical_us": {us}}}"#);
        std::fs::write(file.path(), format!(r#"{{"latency_us": {us}, "lines": [{line}]}}"#)).unwrap();
        Profile::read(file.path()).unwrap()
    };
    for written in ["line.k.py:7 > +1us", "line.new/k.py:7 > +1us"] {
        let gates = [gate::parse(written).unwrap()];
        let r = compare(&read("old", 5.0), &read("new", 9.0), &gates, (Path::new("a"), Path::new("b"))).unwrap();
        let github = render::github(&r);
        assert!(github.contains("::error file=new/k.py,line=7,"), "{github}");
        assert!(github.contains("::warning file=new/k.py,line=7,"), "{github}");
    }
}

#[test]
fn what_was_nothing_before_is_new() {
    let c = Change { name: "x".into(), before: 0.0, after: 2.0 };
    assert_eq!(c.percent(), f64::INFINITY);
    assert_eq!(Change { after: 0.0, ..c }.percent(), 0.0);
}

#[test]
fn the_forms_are_escaped() {
    let gates = [gate::parse("latency > +2%").unwrap(), gate::parse("dma.bytes > +0%").unwrap()];
    let r = compare(&profile(100.0), &profile(110.0), &gates, (Path::new("a<b"), Path::new("b&c"))).unwrap();
    let xml = render::junit(&r);
    assert!(xml.contains("tests=\"2\" failures=\"1\"") && xml.contains("a&lt;b") && !xml.contains("a<b"), "{xml}");
    let github = render::github(&r);
    assert!(github.contains("::error title=nki-sim%3A limit failed::fail if latency > +2%25"), "{github}");
    assert!(github.contains("::warning file=k.py,line=7,"), "{github}");
}

#[test]
fn the_tables_of_ranks_are_in_directories_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("rank0")).unwrap();
    assert!(Profile::read(folder.path()).unwrap_err().contains("give the directory of one, such as `"));
}

#[test]
fn tables_of_a_hardware_profile_are_read() {
    let text = "start_ts,end_ts,engine,opcode,nki_source_location,evt_wait_time_ns\n0,100,Vector,COPY,\"['/x/k.py:7']\",50\n50,150,Vector,COPY,k.py:8,\n";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("i.csv");
    std::fs::write(&path, text).unwrap();
    let p = Profile::read(&path).unwrap();
    assert_eq!(p.engines["vector"], 0.15);
    assert_eq!(p.waits["vector: event wait"], 0.05);
    let busy: Vec<(&str, f64)> = p.lines.iter().map(|l| (l.place.as_str(), l.busy)).collect();
    assert_eq!(busy, [("k.py:7", 0.1), ("k.py:8", 0.1)]);
    assert_eq!(p.metrics["span_us"], 0.15);
    let path = folder.path().join("s.json");
    std::fs::write(&path, r#"{"Summary": [{"total_time": 2e-5, "vector_engine_active_time": 1e-5}]}"#).unwrap();
    let p = Profile::read(&path).unwrap();
    assert_eq!((p.metrics["latency_us"], p.engines["vector"]), (20.0, 10.0));
    std::fs::write(&path, r#"{"a": 1}"#).unwrap();
    assert!(Profile::read(&path).unwrap_err().contains("total_time"));
    std::fs::write(folder.path().join("bad.csv"), "a,b\n1\n").unwrap();
    assert!(Profile::read(&folder.path().join("bad.csv")).unwrap_err().contains("record 2 has 1 fields"));
}
