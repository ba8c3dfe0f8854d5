//! Messages over standard input and output, one line of JSON each. Invalid lines are answered here, because the library's transport ignores them.

use std::future::Future;
use std::io::{self, Write as _};

use rmcp::RoleServer;
use rmcp::model::ErrorCode;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::mpsc::{Receiver, channel};

use crate::cmd::batch;

type Received = RxJsonRpcMessage<RoleServer>;
type Sent = TxJsonRpcMessage<RoleServer>;

/// Lines that are read ahead.
const AHEAD: usize = 64;

/// Standard input and output.
pub(super) struct Lines {
    /// Lines; invalid UTF-8 and overlong lines are errors.
    input: Receiver<Result<String, String>>,
}

impl Lines {
    pub(super) fn new() -> Self {
        let (send, input) = channel(AHEAD);
        std::thread::spawn(move || {
            let mut from = io::stdin().lock();
            while let Ok(Some(line)) = batch::line(&mut from) {
                if send.blocking_send(line).is_err() {
                    break;
                }
            }
        });
        Lines { input }
    }
}

impl Transport<RoleServer> for Lines {
    type Error = io::Error;

    fn send(&mut self, message: Sent) -> impl Future<Output = io::Result<()>> + Send + 'static {
        write(message)
    }

    async fn receive(&mut self) -> Option<Received> {
        loop {
            match read(self.input.recv().await?) {
                Ok(Some(message)) => return Some(message),
                Ok(None) => {}
                Err(answer) => write(answer).await.ok()?,
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes a message without blocking other tasks.
async fn write(message: impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(&message)?;
    line.push(b'\n');
    let written = tokio::task::spawn_blocking(move || {
        let mut out = io::stdout().lock();
        out.write_all(&line).and_then(|()| out.flush())
    });
    written.await.map_err(io::Error::other)?
}

/// The message of a line, `None` for an empty line, or the response to an invalid line.
fn read(line: Result<String, String>) -> Result<Option<Received>, Value> {
    let line = line.map_err(|why| wrong(ErrorCode::PARSE_ERROR, &why, &Value::Null))?;
    let line = line.trim();
    if line.is_empty() {
        return Ok(None);
    }
    let unreadable = match serde_json::from_str(line) {
        Ok(message) => return Ok(Some(message)),
        Err(e) => e,
    };
    let value: Value = serde_json::from_str(line)
        .map_err(|e| wrong(ErrorCode::PARSE_ERROR, &format!("not valid JSON: {e}"), &Value::Null))?;
    // A notification has no answer.
    if value["method"].is_string() && value.get("id").is_none() {
        return Ok(None);
    }
    let known = value["method"].is_string() && value["jsonrpc"] == "2.0";
    if known && value.get("params").is_some_and(|params| !params.is_object()) {
        return Err(wrong(ErrorCode::INVALID_PARAMS, "`params` is a JSON object", &value["id"]));
    }
    Err(wrong(ErrorCode::INVALID_REQUEST, &format!("not a message: {unreadable}"), &value["id"]))
}

/// An error response; the library would omit a null id.
fn wrong(code: ErrorCode, message: &str, id: &Value) -> Value {
    let id = if id.is_string() || id.is_number() { id } else { &Value::Null };
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code.0, "message": message } })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(line: &str) -> Value {
        read(Ok(line.into())).unwrap_err()
    }

    #[test]
    fn lines_that_are_no_message_are_answered() {
        let broken = answer("{\"jsonrpc\": ");
        assert_eq!((&broken["error"]["code"], broken.get("id")), (&Value::from(-32700), Some(&Value::Null)));
        assert_eq!(answer("[1, 2]")["error"]["code"], -32600);
        let listed = answer(r#"{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": []}"#);
        assert_eq!((&listed["error"]["code"], &listed["id"]), (&Value::from(-32602), &Value::from(7)));
        let nameless = answer(r#"{"jsonrpc": "2.0", "id": 7}"#);
        assert_eq!((&nameless["error"]["code"], &nameless["id"]), (&Value::from(-32600), &Value::from(7)));
        assert!(read(Err("the line is not UTF-8".into())).is_err());
        assert!(read(Ok("  ".into())).unwrap().is_none());
        assert!(read(Ok(r#"{"jsonrpc": "2.0", "id": 1, "method": "ping"}"#.into())).unwrap().is_some());
    }
}
