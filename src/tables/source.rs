//! Tables of the program: KernelInstructions, KernelStackFrames, KernelIterationVariables.

use nki_isa::Program;
use nki_isa::ids::TrailId;
use nki_isa::program::{NodeKind, Step};
use nki_sim_core::trace::index_nodes;

use super::table::{self, ints, some_ints, some_texts, texts};
use super::{Profile, schema};

/// The name of a statement in KernelInstructions.
pub(super) fn name(statement: u32) -> String {
    format!("I-{statement}:0")
}

/// The steps from a place outwards, innermost first.
fn steps(program: &Program, trail: TrailId) -> impl Iterator<Item = (TrailId, &Step)> {
    let mut at = Some(trail);
    std::iter::from_fn(move || {
        let id = at?;
        let trail = program.trails.get(id.0 as usize)?;
        at = trail.parent;
        Some((id, &trail.step))
    })
}

fn is_frame(step: &Step) -> bool {
    matches!(step, Step::Root | Step::Call { .. })
}

fn is_iteration(step: &Step) -> bool {
    matches!(step, Step::Iteration { .. })
}

/// The innermost call around a place; the kernel itself counts as one.
pub(super) fn frame(program: &Program, trail: TrailId) -> u32 {
    steps(program, trail).find(|(_, step)| is_frame(step)).map_or(0, |(id, _)| id.0)
}

/// Table KernelInstructions.
pub(super) fn statements(p: &Profile<'_>) -> Result<Vec<u8>, String> {
    let program = p.run.analysis.program;
    let mut rows = Vec::new();
    for (core, stream) in program.cores.iter().enumerate() {
        for (statement, node) in index_nodes(stream).into_iter().enumerate() {
            if matches!(node.kind, NodeKind::Inst(_)) {
                rows.push((core, statement as u32, node.loc, node.trail));
            }
        }
    }
    let depth = |trail, of: fn(&Step) -> bool| steps(program, trail).filter(|(_, step)| of(step)).count();
    let file = |file: u32| program.files.get(file as usize);
    table::write(&schema::KERNEL_INSTRUCTIONS, rows.len(), |column| {
        Some(match column {
            "kernel_instruction_name" => texts(rows.iter().map(|r| name(r.1))),
            "stack_frame_id" => ints(rows.iter().map(|r| frame(program, r.3))),
            "stack_frame_depth" => ints(rows.iter().map(|r| depth(r.3, is_frame))),
            "iteration_variables_id" => some_ints(
                rows.iter().map(|r| steps(program, r.3).find(|(_, step)| is_iteration(step)).map(|(id, _)| id.0)),
            ),
            "iteration_variable_depth" => ints(rows.iter().map(|r| depth(r.3, is_iteration))),
            "pcore_idx" => ints(rows.iter().map(|r| r.0)),
            "file_path" => some_texts(rows.iter().map(|r| file(r.2.file))),
            "line_number" => some_ints(rows.iter().map(|r| Some(r.2.line).filter(|line| *line > 0))),
            _ => return None,
        })
    })
}

/// The nearest enclosing step of a kind.
fn around(program: &Program, id: TrailId, of: fn(&Step) -> bool) -> Option<u32> {
    steps(program, id).skip(1).find(|(_, step)| of(step)).map(|(id, _)| id.0)
}

/// Table KernelStackFrames.
pub(super) fn frames(p: &Profile<'_>) -> Result<Vec<u8>, String> {
    let program = p.run.analysis.program;
    let named = |(id, trail): (usize, &nki_isa::program::Trail)| match &trail.step {
        Step::Root => Some((TrailId(id as u32), program.name.to_string())),
        Step::Call { function, .. } => Some((TrailId(id as u32), function.to_string())),
        Step::Iteration { .. } => None,
    };
    let rows: Vec<(TrailId, String)> = program.trails.iter().enumerate().filter_map(named).collect();
    table::write(&schema::KERNEL_STACK_FRAMES, rows.len(), |column| {
        Some(match column {
            "stack_frame_id" => ints(rows.iter().map(|r| r.0.0)),
            "fully_qualified_function_name" => texts(rows.iter().map(|r| &r.1)),
            "parent_stack_frame_id" => some_ints(rows.iter().map(|r| around(program, r.0, is_frame))),
            _ => return None,
        })
    })
}

/// Table KernelIterationVariables.
pub(super) fn iterations(p: &Profile<'_>) -> Result<Vec<u8>, String> {
    let program = p.run.analysis.program;
    let iteration = |(id, trail): (usize, &'_ nki_isa::program::Trail)| match &trail.step {
        Step::Iteration { variable, value, loc, .. } => Some((TrailId(id as u32), variable.clone(), *value, *loc)),
        _ => None,
    };
    let rows: Vec<_> = program.trails.iter().enumerate().filter_map(iteration).collect();
    table::write(&schema::KERNEL_ITERATION_VARIABLES, rows.len(), |column| {
        Some(match column {
            "iteration_variable_id" => ints(rows.iter().map(|r| r.0.0)),
            "variable_name" => texts(rows.iter().map(|r| &r.1)),
            "variable_value" => ints(rows.iter().map(|r| r.2)),
            "parent_iteration_variable_id" => some_ints(rows.iter().map(|r| around(program, r.0, is_iteration))),
            "file_path" => some_texts(rows.iter().map(|r| program.files.get(r.3.file as usize))),
            "line_number" => some_ints(rows.iter().map(|r| Some(r.3.line).filter(|line| *line > 0))),
            _ => return None,
        })
    })
}
