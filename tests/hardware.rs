//! `replay`, `calibrate` and `compare` with hardware profiles, from the command line.

mod command;

use command::{ADD_ONE, Session};

/// A synthetic profile: a load, a copy that waits for it, and a store that waits for the copy.
fn profile() -> String {
    let instruction = |at: u32, length: u32, label: &str, pc: u32, opcode: &str, operands: &str| {
        format!(
            r#"{{"timestamp": {at}, "duration": {length}, "label": "{label}", "pc": {pc}, "opcode": "{opcode}", "operands": "{operands}",
                "instruction_type": "REGULAR", "subgraph": "sg00"}}"#
        )
    };
    let side = |name: &str, step: u32, address: &str| {
        format!("{name}_elem_size=2048 {name}_pattern=[{step},1][128,1] {name}_addr_imm={address}")
    };
    let (hbm, sbuf) = ("0x8005c03b0000", "0x802000036500");
    let load = format!("semaphore=8 sem_increment=16 {} {}", side("src", 2048, hbm), side("dst", 262_144, sbuf));
    let store = format!(
        "S[6] (Vector)>=1 semaphore=9 sem_increment=16 {} {}",
        side("src", 262_144, sbuf),
        side("dst", 2048, hbm)
    );
    let copy = "S[8] (qSyncDynamicHW)>=16 S[6] (Vector)++@complete src=fp32@0x4000[1,1][512,1] dst=fp32@0x4800[1,1][512,1] channels=128";
    let instructions = [
        instruction(13_450, 565, "Sync", 1, "DMA_DIRECT2D", &load),
        instruction(16_600, 422, "Vector", 1, "COPY", copy),
        instruction(17_060, 565, "Sync", 2, "DMA_DIRECT2D", &store),
    ];
    let mut packets = Vec::new();
    // One DMA engine of the load is slow: a packet takes 580 ns instead of 80.
    for (first, tail) in [(14_766, 500), (18_190, 0)] {
        for engine in 0..16 {
            for n in 0..9 {
                let late = if engine == 15 { tail } else { 0 };
                let (bytes, length) = match n {
                    8 => (4, 9),
                    3 => (2048, 80 + late),
                    _ => (2048, 80),
                };
                let behind = if n > 3 { late } else { 0 };
                packets.push(format!(
                    r#"{{"timestamp": {}, "duration": {length}, "dma_queue": "0", "dma_engine": "{engine}", "transfer_size": {bytes},
                        "queue_type": "hardware_dynamic", "subgraph": "sg00"}}"#,
                    first + n * 80 + behind
                ));
            }
        }
    }
    format!(
        r#"{{"instruction": [{}], "dma": [{}], "dma_queues_info": [{{"q_idx": 0, "q_name": "qSyncDynamicHW", "subgraph": "sg00"}}],
            "semaphore_update": [{{"timestamp": 16570, "id": "S[8] (qSyncDynamicHW)", "value": 16, "subgraph": "sg00"}}],
            "summary": [{{"total_time": 2.15e-05, "instance_type": "trn2.48xlarge", "dma_active_time_percent": 0.25}}]}}"#,
        instructions.join(","),
        packets.join(",")
    )
}

#[test]
fn a_profile_is_replayed() {
    let s = Session::new();
    s.write("p.json", profile());
    s.run(&["replay", "p.json", "--json", "r.json"])
        .exits(0)
        .says("total 21.50 us recorded")
        .says("replayed as trn2")
        .says("3 of 3 instructions of the program timed by the laws (100.0%)");
    let report = std::fs::read_to_string(s.path("r.json")).unwrap();
    for key in
        ["\"total_us\"", "\"drift\"", "\"opcodes\"", "\"transfers\"", "\"limiter\"", "\"coverage\"", "\"instructions\""]
    {
        assert!(report.contains(key), "{key}");
    }
    // With other parameters, the time differs.
    s.run(&["replay", "p.json", "--set", "dma.load_dispatch_ns=50751"]).exits(0).says("us replayed as trn2 (+2");
    s.run(&["replay", "p.json", "--set", "dma.none=1"]).exits(2).says("no timing parameter `dma.none`");
    s.run(&["replay", "p.json", "--target", "trn1"]).exits(0).says("replayed as trn1");
}

#[test]
fn bad_profiles_have_diagnostics() {
    let s = Session::new();
    s.write("k.py", ADD_ONE);
    s.write("empty.json", "");
    s.write("cut.json", &profile()[..700]);
    s.write("foreign.json", "{\"a\": [1, 2]}");
    s.write("deep.json", "[".repeat(100_000));
    s.write("nameless.json", profile().replace("trn2.48xlarge", "p5.48xlarge"));
    s.write("late.json", profile().replacen("16600", "\"soon\"", 1));
    for (file, why) in [
        ("none.json", "cannot read `none.json`"),
        ("empty.json", "`empty.json`: it is empty"),
        ("cut.json", "`cut.json`: it ends in the middle"),
        ("foreign.json", "`foreign.json` is not a hardware profile"),
        ("deep.json", "`deep.json`: it is not JSON"),
        ("k.py", "expected the file of `neuron-profile view --output-format json`"),
        ("late.json", "record 1 of table `instruction` has no time"),
    ] {
        s.run(&["replay", file]).exits(2).says(why);
        s.run(&["calibrate", file, "-o", "out.toml"]).exits(2).says(why);
        assert!(!s.path("out.toml").exists());
    }
    s.run(&["replay", "nameless.json"]).exits(2).says("`p5.48xlarge`, whose generation is unknown").says("--target");
    s.write("p.json", profile());
    for file in ["empty.json", "cut.json", "foreign.json", "deep.json", "late.json"] {
        s.run(&["compare", "p.json", file]).exits(2).says(file);
    }
}

#[test]
fn a_profile_stands_next_to_a_run() {
    let s = Session::new();
    s.write("p.json", profile());
    s.write("k.py", ADD_ONE);
    s.run(&["run", "k.py", "--arg", "x=float32[128,512]", "--json", "run.json"]).exits(0);
    s.run(&["compare", "p.json", "run.json"])
        .exits(0)
        .says("note: `p.json` is a hardware profile (trn2.48xlarge)")
        .says("by instruction, number")
        .says("vector tensor_copy")
        .says("sync dma_copy");
    s.run(&["compare", "p.json", "p.json"]).exits(0).says("no change");
    s.run(&["compare", "p.json", "run.json", "--fail-if", "dma.bytes > 1"]).exits(1);
    s.run(&["compare", "p.json", "p.json", "--fail-if", "dma_active_time_percent > 24", "--format", "json"])
        .exits(1)
        .says("\"before\": 25.0");
}

#[test]
fn calibrated_parameters_are_read_and_replace_no_input() {
    let s = Session::new();
    s.write("k.py", ADD_ONE);
    let text = profile();
    // Three runs of one kernel.
    for (name, copied) in [("a.json", 422), ("b.json", 423), ("c.json", 421)] {
        s.write(name, text.replace("\"duration\": 422", &format!("\"duration\": {copied}")));
    }
    let all = ["calibrate", "a.json", "b.json", "c.json", "-o"];
    s.run(&[&all[..], &["my.toml"]].concat())
        .exits(0)
        .says("parameters of trn2 determined")
        .says("dma.hardware_trigger_ns")
        .says("not determined, so as before")
        .says("replay of these profiles");
    assert!(std::fs::read_to_string(s.path("my.toml")).unwrap().contains("source = \"calibrated: "));
    s.run(&["replay", "a.json", "--params", "my.toml"]).exits(0);
    s.run(&["run", "k.py", "--arg", "x=float32[128,512]", "--params", "my.toml", "--target", "trn1"])
        .exits(2)
        .says("--params `my.toml`: timing parameters: they are for trn2, but the target of this run is trn1");
    // Two copies of a profile are one measurement.
    s.write("again.json", &text);
    s.run(&["calibrate", "a.json", "b.json", "again.json", "-o", "my.toml"])
        .exits(2)
        .says("`again.json` is the same profile as `a.json`");
    s.run(&["run", "k.py", "--arg", "x=float32[128,512]", "--params", "my.toml"]).exits(0);
    // Too few measurements: a file without parameters.
    s.run(&["calibrate", "a.json", "-o", "one.toml"]).exits(0).says("0 parameters of trn2 determined");
    s.run(&[&all[..], &["a.json"]].concat()).exits(2).says("would overwrite a profile");
    assert_eq!(std::fs::read_to_string(s.path("a.json")).unwrap(), text);
    s.write("other.json", text.replace("trn2.48xlarge", "trn1.32xlarge"));
    s.run(&["calibrate", "a.json", "other.json", "-o", "my.toml"])
        .exits(2)
        .says("the parameters must be for one generation");
    s.run(&["calibrate", "a.json", "-o", "none/my.toml"]).exits(2).says("there is no directory");
    // The mark that the Python package's `neuron-profile` writes.
    s.write("ours.json", text.replacen('{', "{\"metadata\": [{\"is_simulation\": true}], ", 1));
    s.run(&["calibrate", "ours.json", "-o", "my.toml"]).exits(2).says("a simulated profile");
    s.run(&["replay", "ours.json"]).exits(2).says("a simulated profile");
    s.run(&["compare", "a.json", "ours.json"]).exits(2).says("a simulated profile");
}
