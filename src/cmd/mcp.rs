//! `nki-sim mcp`: the commands as tools for agents, over standard input and output.

mod transport;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest, CustomResult, ErrorCode,
    Implementation, JsonObject, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, ServerInitializeError};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::cli::McpArgs;
use crate::jobs::pool::{INTERVAL, Launcher, Limits, WorkerSlot, cores};
use crate::jobs::work::{Reply, Status, Task};
use crate::jobs::{self, CheckJob, CompareJob, ExplainJob, Job, JobLimits, SweepJob};
use crate::{Failure, VERSION};

/// The description of the server for agents.
const INSTRUCTIONS: &str = "A simulator of the AWS NeuronCore for NKI kernels: check a kernel for errors, run it to get its outputs' correctness, \
its latency with an error bar, what bounds it and what was found; sweep arguments; compare two versions; explain any name in a result. \
Give kernels as `source` text or as `file`.";

/// Serves until the client disconnects.
pub(crate) fn run(args: &McpArgs) -> Result<(), Failure> {
    let workers = args.limits.jobs.map_or_else(cores, |n| n as usize);
    let limits = Limits::of_run(&args.limits, workers)?;
    // A client usually waits for one call, so a worker may use all processors.
    let launcher = Launcher::new(cores())?;
    let workers = (0..workers).map(|_| WorkerSlot::new(launcher.clone())).collect();
    let server = Server { workers: Arc::new(Workers { free: Mutex::new(workers), returned: Condvar::new() }), limits };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(|e| format!("cannot serve: {e}"))?;
    let served: Result<(), String> = runtime.block_on(async {
        let service = server.serve(transport::Lines::new()).await.map_err(|e| match e {
            ServerInitializeError::ExpectedInitializeRequest(_) => "its first message is not `initialize`".to_owned(),
            other => other.to_string(),
        })?;
        service.waiting().await.map_err(|e| e.to_string())?;
        Ok(())
    });
    // Calls in progress no longer have a recipient.
    runtime.shutdown_background();
    served.map_err(|e| Failure::Call(format!("the client did not start a session of the Model Context Protocol: {e}")))
}

/// The workers.
struct Workers {
    free: Mutex<Vec<WorkerSlot>>,
    returned: Condvar,
}

impl Workers {
    /// Performs a task once a worker is free, unless it is cancelled.
    fn perform(&self, task: &Task, limits: Limits, cancelled: &AtomicBool) -> Reply {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let mut slot = loop {
            match free.pop() {
                Some(slot) => break slot,
                None if cancelled.load(Ordering::Relaxed) => return Reply::cancelled(),
                None => free = self.returned.wait_timeout(free, INTERVAL).unwrap_or_else(PoisonError::into_inner).0,
            }
        };
        drop(free);
        let reply = slot.perform_unless(task, limits, cancelled);
        self.free.lock().unwrap_or_else(PoisonError::into_inner).push(slot);
        self.returned.notify_one();
        reply
    }
}

/// The tools.
struct Server {
    workers: Arc<Workers>,
    limits: Limits,
}

/// A valid call: the task, and its limits.
type Call = Result<(Task, Limits), String>;

impl Server {
    /// Parses the arguments of a tool; `None` if there is no such tool.
    fn call(&self, tool: &str, arguments: JsonObject) -> Option<Call> {
        let json = Value::Object(arguments).to_string();
        let limits = self.limits;
        Some(match tool {
            "check" => jobs::read::<CheckJob>(&json).and_then(|mut job| {
                let limits = limits.for_job(job.limits())?;
                job.max_memory = Some(limits.memory.to_string());
                Ok((Task::Check(Box::new(job)), limits))
            }),
            "run" => jobs::read::<Job>(&json).and_then(|mut job| {
                let limits = limits.for_job(job.limits())?;
                job.max_memory = Some(limits.memory.to_string());
                Ok((Task::Run(Box::new(job), Vec::new()), limits))
            }),
            "sweep" => jobs::read::<SweepJob>(&json).and_then(|mut job| {
                let limits = limits.for_job(job.limits())?;
                job.max_memory = Some(limits.memory.to_string());
                Ok((Task::Sweep(Box::new(job)), limits))
            }),
            "compare" => jobs::read::<CompareJob>(&json).and_then(|job| {
                let limits = limits.for_job(JobLimits { seconds: job.max_seconds, memory: None })?;
                Ok((Task::Compare(Box::new(job)), limits))
            }),
            "explain" => jobs::read::<ExplainJob>(&json).map(|job| (Task::Explain(job), limits)),
            _ => return None,
        })
    }
}

/// The tools with the fields of their jobs.
fn tools() -> Vec<Tool> {
    vec![
        tool::<CheckJob>(
            "check",
            "Compile a kernel and report errors and findings with their lines, without running it. The fastest way to learn whether a kernel is valid.",
        ),
        tool::<Job>(
            "run",
            "Run a kernel: its latency on the device with an error bar, what bounds it, memory use, findings, and whether its outputs equal `expect`. \
             `no_numerics` gives the latency alone, faster.",
        ),
        tool::<SweepJob>(
            "sweep",
            "Time a kernel for every combination of the values in `grid` (arguments or constants of the file), fastest first, with the Pareto front of \
             latency and SBUF.",
        ),
        tool::<CompareJob>(
            "compare",
            "Compare two runs, given as jobs or as report files: latency, engines, stalls and source lines that changed; `fail_if` states conditions.",
        ),
        tool::<ExplainJob>(
            "explain",
            "Explain a diagnostic, an instruction or function of NKI with its operands, a cause of a stall, or a timing parameter.",
        ),
    ]
}

fn tool<T: DeserializeOwned + JsonSchema>(name: &'static str, description: &'static str) -> Tool {
    let schema = match schemars::schema_for!(T).to_value() {
        Value::Object(schema) => schema,
        _ => JsonObject::new(),
    };
    Tool::new(name, description, Arc::new(schema))
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::new(ServerCapabilities::builder().enable_tools().build());
        info.server_info = Implementation::new("nki-sim", VERSION);
        info.instructions = Some(INSTRUCTIONS.into());
        info
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(call) = self.call(&request.name, request.arguments.unwrap_or_default()) else {
            return Err(ErrorData::invalid_params(format!("there is no tool `{}`", request.name), None));
        };
        let reply = match call {
            Err(why) => Reply::without(Status::Refused, why),
            Ok((task, limits)) => {
                let workers = self.workers.clone();
                let cancelled = Arc::new(AtomicBool::new(false));
                let shared = cancelled.clone();
                // Cancelled by the client, or because it disconnected.
                let watch = tokio::spawn(async move {
                    context.ct.cancelled().await;
                    shared.store(true, Ordering::Relaxed);
                });
                let performed = tokio::task::spawn_blocking(move || workers.perform(&task, limits, &cancelled)).await;
                watch.abort();
                performed.unwrap_or_else(|e| Reply::without(Status::Crashed, e.to_string()))
            }
        };
        let text = reply.result.get().to_owned();
        let structured: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
        let failed = reply.status.is_failure();
        let content = vec![ContentBlock::text(text)];
        let mut result = if failed { CallToolResult::error(content) } else { CallToolResult::success(content) };
        result.structured_content = Some(structured);
        Ok(result.into())
    }

    /// Requests that the library cannot parse: a tool call with malformed parameters arrives here.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        if request.method != "tools/call" {
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None));
        }
        let params = request.params.unwrap_or_default();
        let why = match (params["name"].is_string(), &params["arguments"]) {
            (false, _) => "`params` needs the `name` of a tool",
            (true, Value::Object(_) | Value::Null) => "`params` of a call are `name` and `arguments`",
            (true, _) => "`arguments` is a JSON object",
        };
        Err(ErrorData::invalid_params(why, None))
    }
}
