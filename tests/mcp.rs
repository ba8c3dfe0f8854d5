//! `nki-sim mcp`: invalid requests of a client, and requests that it cancels.

mod command;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use command::{ADD_ONE, Session};
use serde_json::{Value, json};

/// A server and its client.
struct Talk {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Talk {
    /// A server with one worker, after the handshake.
    fn new(s: &Session) -> Self {
        let mut command = s.command(&["mcp", "--jobs", "1", "--max-seconds", "100"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("starts");
        let (to, from) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        let mut talk = Talk { child, to, from: BufReader::new(from) };
        let client = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        talk.send(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}));
        assert_eq!(talk.receive()["result"]["serverInfo"]["name"], "nki-sim");
        talk.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        talk
    }

    fn line(&mut self, line: &str) {
        writeln!(self.to, "{line}").and_then(|()| self.to.flush()).expect("written");
    }

    fn send(&mut self, message: &Value) {
        self.line(&message.to_string());
    }

    fn call(&mut self, id: u32, params: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
    }

    fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.from.read_line(&mut line).expect("a line");
        serde_json::from_str(&line).expect("JSON")
    }
}

#[test]
fn what_is_no_message_is_answered() {
    let s = Session::new();
    let mut talk = Talk::new(&s);
    for (line, code) in [("{\"jsonrpc\":", -32700), ("nonsense", -32700), ("[]", -32600), ("3", -32600)] {
        talk.line(line);
        let answer = talk.receive();
        assert_eq!(
            (&answer["error"]["code"], answer.get("id")),
            (&json!(code), Some(&Value::Null)),
            "{line}: {answer}"
        );
    }
    for (params, why) in [
        (json!({"name": "run", "arguments": [1]}), "`arguments` is a JSON object"),
        (json!({"name": "run", "arguments": "x"}), "`arguments` is a JSON object"),
        (json!({"arguments": {}}), "`params` needs the `name` of a tool"),
        (json!([]), "`params`"),
        (json!({"name": "fly"}), "there is no tool `fly`"),
    ] {
        talk.call(7, &params);
        let answer = talk.receive();
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32602), &json!(7)), "{params}: {answer}");
        assert!(answer["error"]["message"].as_str().is_some_and(|m| m.contains(why)), "{params}: {answer}");
    }
    talk.send(&json!({"jsonrpc": "2.0", "id": 8, "method": "tools/call"}));
    assert_eq!(talk.receive()["error"]["code"], -32602);
    talk.send(&json!({"jsonrpc": "2.0", "id": 9, "method": "no/such"}));
    assert_eq!(talk.receive()["error"]["code"], -32601);
    // An error in the arguments is a result of the tool, in the tool's terms.
    talk.call(10, &json!({"name": "sweep", "arguments": {"source": ADD_ONE, "grid": {}}}));
    let answer = talk.receive();
    let error = answer["result"]["structuredContent"]["error"].as_str().unwrap_or_default();
    assert!(answer["result"]["isError"] == true && error.starts_with("`grid` is empty"), "{answer}");
    talk.call(11, &json!({"name": "run", "arguments": {"source": ADD_ONE, "args": {"y": 1}}}));
    let answer = talk.receive();
    let error = answer["result"]["structuredContent"]["error"].as_str().unwrap_or_default();
    assert!(
        error.contains("no parameter called `y`") && !error.contains("nki-sim run") && !error.contains('\n'),
        "{answer}"
    );
}

#[test]
fn a_cancelled_request_gives_its_worker_back() {
    let s = Session::new();
    let mut talk = Talk::new(&s);
    let endless = ADD_ONE.replace("    return", "    while True:\n        pass\n    return");
    let run = |source: &str| json!({"name": "run", "arguments": {"source": source, "args": {"x": "float32[4,4]"}, "max_steps": 1_000_000_000_000_000u64}});
    talk.call(1, &run(&endless));
    // These requests wait for the only worker.
    talk.call(2, &run(&format!("{endless}#")));
    for id in [2, 1] {
        talk.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    }
    talk.call(3, &run(ADD_ONE));
    // Without cancellation, the first request would be answered first, after its time limit.
    let answer = talk.receive();
    assert_eq!(
        (&answer["id"], &answer["result"]["structuredContent"]["status"]),
        (&json!(3), &json!("passed")),
        "{answer}"
    );
    // At the end of input, an endless request is cancelled, too.
    talk.call(4, &run(&endless));
    drop(talk.to);
    assert!(talk.child.wait().expect("ends").success());
}

#[test]
fn a_session_begins_with_initialize() {
    let s = Session::new();
    let message = s.write("message", "{\"jsonrpc\": \"2.0\", \"method\": \"notifications/initialized\"}\n");
    let stdin = std::fs::File::open(message).expect("written");
    let out = s.command(&["mcp"]).stdin(stdin).output().expect("runs");
    let text = String::from_utf8_lossy(&out.stderr);
    assert!(
        out.status.code() == Some(2) && text.trim_end().ends_with("its first message is not `initialize`"),
        "{text}"
    );
}
