//! `nki-sim worker`: performs tasks for another process of this command, one line of JSON each.

use std::any::Any;
use std::io::{self, BufRead};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::channel;

use crate::Failure;
use crate::jobs::work::{Reply, Status, Task, perform};
use crate::output::print;

/// Reads tasks from standard input and writes one reply per line.
pub(crate) fn run() -> Result<(), Failure> {
    let (send, lines) = channel();
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines() {
            let Ok(line) = line else { break };
            if send.send(line).is_err() {
                break;
            }
        }
        // The requesting process is gone, and a task may never end.
        std::process::exit(0);
    });
    for line in lines {
        let task: Task = serde_json::from_str(&line).map_err(|e| format!("not a task: {e}"))?;
        let reply = catch_unwind(AssertUnwindSafe(|| perform(&task))).unwrap_or_else(|panic| {
            let bug = format!(
                "this is a bug in nki-sim {}; please report it with the job: {}",
                crate::VERSION,
                message(&*panic)
            );
            Reply::without(Status::Crashed, bug)
        });
        let text = serde_json::to_string(&reply).map_err(|e| e.to_string())?;
        print(&format!("{text}\n"));
    }
    Ok(())
}

/// The message of a panic.
fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked")
}
