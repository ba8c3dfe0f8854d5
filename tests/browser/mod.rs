//! A headless browser, driven over its DevTools protocol: JSON messages, each terminated by a zero
//! byte, through two pipes.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Longer than any operation takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) struct Browser {
    process: Child,
    input: ChildStdin,
    messages: Receiver<Value>,
    session: String,
    number: u64,
    /// Uncaught exceptions on the page.
    errors: Vec<String>,
    _profile: tempfile::TempDir,
}

impl Browser {
    /// Starts the browser; `None`, with a message, if this machine has none.
    #[expect(clippy::print_stderr, reason = "says why the test is skipped")]
    pub(crate) fn start() -> Option<Browser> {
        let names = ["chromium", "chromium-browser", "google-chrome"];
        let installed = |name: &&&str| Command::new(name).arg("--version").output().is_ok_and(|o| o.status.success());
        let Some(name) = names.iter().find(installed) else {
            eprintln!("no chromium: the page was written, but not opened");
            return None;
        };
        let profile = tempfile::tempdir().expect("temporary directory");
        // The browser reads from descriptor 3 and writes to 4.
        let mut process = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 1>/dev/null 2>/dev/null", name])
            .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
            .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
            .args(["--remote-debugging-pipe", "--hide-scrollbars"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the browser starts");
        let input = process.stdin.take().expect("a pipe");
        let mut output = BufReader::new(process.stdout.take().expect("a pipe"));
        let (send, messages) = channel();
        std::thread::spawn(move || {
            let mut text = Vec::new();
            while output.read_until(0, &mut text).is_ok_and(|n| n > 0) {
                text.pop();
                let Ok(message) = serde_json::from_slice(&text) else { return };
                if send.send(message).is_err() {
                    return;
                }
                text.clear();
            }
        });
        let session = String::new();
        let mut out = Browser { process, input, messages, session, number: 0, errors: Vec::new(), _profile: profile };
        let target = out.call("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        out.session = out.call("Target.attachToTarget", attach)["sessionId"].as_str().expect("a session").to_owned();
        out.call("Page.enable", json!({}));
        out.call("Runtime.enable", json!({}));
        Some(out)
    }

    /// Calls a method of the protocol and waits for its result.
    #[track_caller]
    fn call(&mut self, method: &str, params: Value) -> Value {
        let answer = self.answer(method, params);
        assert!(answer.get("error").is_none(), "{method}: {}", answer["error"]);
        answer["result"].clone()
    }

    /// Calls a method of the protocol and waits for the answer: a result or an error.
    #[track_caller]
    fn answer(&mut self, method: &str, params: Value) -> Value {
        self.number += 1;
        let mut message = json!({"id": self.number, "method": method, "params": params});
        if !self.session.is_empty() {
            message["sessionId"] = self.session.as_str().into();
        }
        self.input.write_all(message.to_string().as_bytes()).expect("the browser reads");
        self.input.write_all(&[0]).expect("the browser reads");
        loop {
            let answer = self.messages.recv_timeout(PATIENCE).expect("the browser answers");
            if answer["method"] == "Runtime.exceptionThrown" {
                self.errors.push(answer["params"]["exceptionDetails"]["exception"]["description"].to_string());
            }
            if answer["id"] == self.number {
                return answer;
            }
        }
    }

    /// Opens a page in a window of this size and waits until it is ready.
    #[track_caller]
    pub(crate) fn open(&mut self, url: &str, (width, height): (u32, u32), dark: bool) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500});
        self.call("Emulation.setDeviceMetricsOverride", size);
        let scheme = if dark { "dark" } else { "light" };
        let media = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.call("Emulation.setEmulatedMedia", media);
        // A new hash alone would not reload the page, and the previous page may count as ready for
        // a while after the call.
        self.call("Page.navigate", json!({"url": "about:blank"}));
        self.wait_until("location.href === 'about:blank'");
        self.call("Page.navigate", json!({"url": url}));
        self.wait_until_ready();
    }

    /// Waits until the page reports that it is ready.
    #[track_caller]
    pub(crate) fn wait_until_ready(&mut self) {
        self.wait_until("document.body?.dataset.ready === '1'");
    }

    /// Waits until an expression is true. The protocol rejects an expression whose page is closed
    /// meanwhile.
    #[track_caller]
    fn wait_until(&mut self, condition: &str) {
        let start = Instant::now();
        let params = json!({"expression": condition, "returnByValue": true});
        while self.answer("Runtime.evaluate", params.clone())["result"]["result"]["value"] != true {
            assert!(start.elapsed() < PATIENCE, "not so in time: {condition}: {:?}", self.errors);
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The value of an expression on the page; of a promise, its result.
    #[track_caller]
    pub(crate) fn eval(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let result = self.call("Runtime.evaluate", params);
        assert!(result.get("exceptionDetails").is_none(), "{expression}: {}", result["exceptionDetails"]);
        result["result"]["value"].clone()
    }

    /// The text that an element shows.
    #[track_caller]
    pub(crate) fn text(&mut self, id: &str) -> String {
        self.eval(&format!("document.getElementById('{id}').innerText")).as_str().unwrap_or_default().to_owned()
    }

    /// A property that the page records about itself: `data-NAME` of the body.
    #[track_caller]
    pub(crate) fn note(&mut self, name: &str) -> String {
        self.eval(&format!("document.body?.dataset.{name} ?? ''")).as_str().unwrap_or_default().to_owned()
    }

    /// Errors since the last call.
    pub(crate) fn errors(&mut self) -> Vec<String> {
        std::mem::take(&mut self.errors)
    }

    fn mouse(&mut self, kind: &str, (x, y): (f64, f64), pressed: bool) {
        let (button, buttons) = if pressed { ("left", 1) } else { ("none", 0) };
        let params = json!({"type": kind, "x": x, "y": y, "button": button, "buttons": buttons, "clickCount": 1});
        self.call("Input.dispatchMouseEvent", params);
    }

    pub(crate) fn hover(&mut self, at: (f64, f64)) {
        self.mouse("mouseMoved", at, false);
    }

    pub(crate) fn click(&mut self, at: (f64, f64)) {
        self.hover(at);
        self.mouse("mousePressed", at, true);
        self.mouse("mouseReleased", at, true);
    }

    pub(crate) fn drag(&mut self, from: (f64, f64), to: (f64, f64)) {
        self.hover(from);
        self.mouse("mousePressed", from, true);
        for part in 1..=4 {
            let part = f64::from(part) / 4.0;
            self.mouse("mouseMoved", (from.0 + (to.0 - from.0) * part, from.1 + (to.1 - from.1) * part), true);
        }
        self.mouse("mouseReleased", to, true);
    }

    /// Types text into the focused element.
    pub(crate) fn type_text(&mut self, text: &str) {
        self.call("Input.insertText", json!({"text": text}));
    }

    pub(crate) fn press(&mut self, key: &str) {
        for kind in ["keyDown", "keyUp"] {
            self.call("Input.dispatchKeyEvent", json!({"type": kind, "key": key}));
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
