//! `--search`: Optuna, in the Python package, selects the points.

use serde::Serialize;

use super::grid::Axis;
use crate::cli::SweepArgs;
use crate::jobs::Job;
use crate::jobs::pool::cores;
use crate::row::Row;
use crate::{Failure, memory, python};

/// A search request for the package.
#[derive(Serialize)]
struct Request {
    job: Job,
    /// The values of each axis, as text.
    space: Vec<(String, Vec<String>)>,
    trials: Option<u64>,
    seconds: Option<f64>,
    sampler: String,
    seed: u32,
    prune: bool,
    storage: Option<String>,
    study: Option<String>,
    workers: usize,
}

/// The points timed by a search.
pub(super) fn rows(args: &SweepArgs, axes: &[Axis]) -> Result<Vec<Row>, Failure> {
    let tracer = python::offered().ok_or_else(|| "--search needs the process of the Python package".to_owned())?;
    let workers = args.jobs.map_or_else(cores, |n| n as usize);
    let memory = memory::limit(args.kernel.max_memory.as_deref())?.shared_by(workers);
    let request = Request {
        job: Job { max_memory: Some(memory.bytes.to_string()), ..Job::of_sweep(args)? },
        space: axes.iter().map(|a| (a.name.clone(), a.values.clone())).collect(),
        trials: args.trials,
        seconds: args.seconds,
        sampler: args.sampler.clone(),
        seed: args.seed,
        prune: !args.no_prune,
        storage: args.storage.clone(),
        study: args.study.clone(),
        workers,
    };
    let request = serde_json::to_string(&request).map_err(|e| e.to_string())?;
    let rows = tracer.search(&request)?;
    Ok(serde_json::from_str(&rows).map_err(|e| format!("the search gave no rows: {e}"))?)
}
