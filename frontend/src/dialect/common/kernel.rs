//! Kernels: `nki.jit`, which declares a kernel, and `kernel.with_schedule(edges)`, which orders its instructions.
//!
//! Source: guide "How to Use the NKI Scheduling APIs". An edge `(later, earlier)` is what `later.depends_on(earlier)` adds; the second
//! part may be a list. Instructions are issued in program order, so an edge against that order is rejected.

use std::rc::Rc;

use nki_diag::{Diagnostic, Span};
use nki_isa::Target;
use nki_isa::names::Named;

use super::config;
use crate::eval::Interp;
use crate::eval::error::{EvalResult, Raise, closest};
use crate::eval::native::CallArgs;
use crate::eval::value::{Kernel, Partial, Value};

/// Options that code passes to the decorators; some have no effect.
const OPTIONS: &[&str] = &[
    "additional_compile_opt",
    "artifacts_dir",
    "compile_config",
    "config",
    "debug_kernel",
    "disable_allocation_opt",
    "enable_cache",
    "enable_out_of_bound_check",
    "experimental_flags",
    "grid",
    "iters",
    "kernel_return",
    "mode",
    "num_execs",
    "overwrite",
    "platform_target",
    "profile_nth",
    "save_neff_name",
    "save_trace_name",
    "show_compiler_tb",
    "specialization_config",
    "strict",
    "target",
    "warmup",
    "working_directory",
];

/// Warns of options that no decorator accepts: a misspelled one would have no effect.
fn warn_of_unknown(interp: &mut Interp<'_>, args: &CallArgs) {
    for (name, _) in &args.keyword {
        if let Some(message) = unknown_option("nki.jit", &interp.name(*name)) {
            let finding = Diagnostic::warning("ignored-argument", message).at(args.span, "in this call");
            interp.report_once(finding, args.span);
        }
    }
}

/// The problem with an option, if the decorator has none of this name.
pub fn unknown_option(decorator: &str, name: &str) -> Option<String> {
    if OPTIONS.contains(&name) {
        return None;
    }
    let meant = closest(name, OPTIONS.iter().copied());
    let meant = meant.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
    Some(format!("{decorator} has no parameter `{name}`{meant}"))
}

/// `nki.jit`, with or without arguments.
pub(crate) fn jit(interp: &mut Interp<'_>, mut args: CallArgs) -> EvalResult<Value> {
    if let Some((name, _)) = args.keyword.iter().find(|(_, v)| matches!(v, Value::Object(o) if o.is_device_data())) {
        let message = format!("nki.jit decorates a kernel and does not take a tensor: `{}`", interp.name(*name));
        return Err(Raise::at("type-error", message, args.span, "this call does nothing")
            .help("call an instruction by its name: nisa.tensor_copy(dst=..., src=...)"));
    }
    if args.keyword.iter().any(|(name, _)| &*interp.name(*name) == "grid") {
        let finding = Diagnostic::warning("ignored-argument", "nki.jit: `grid=` has no effect")
            .at(args.span, "in this call")
            .help("give the grid in the call: kernel[2](x) runs two cores");
        interp.report_once(finding, args.span);
    }
    warn_of_unknown(interp, &args);
    let target = platform_target(interp, &args)?;
    let compile_config = config::given(interp, &args, "compile_config", &config::COMPILE)?;
    let specialization_config = config::given(interp, &args, "specialization_config", &config::SPECIALIZATION)?;
    match args.positional.first() {
        // Called with options only, it returns a decorator with these options.
        None => {
            let function = Value::native("nki.jit", jit, 0);
            let keyword = std::mem::take(&mut args.keyword).into_vec();
            Ok(Value::Partial(Rc::new(Partial { function, positional: Vec::new(), keyword })))
        }
        Some(function @ (Value::Function(_) | Value::Partial(_))) => Ok(Value::Kernel(Rc::new(Kernel {
            function: function.clone(),
            schedule: Rc::default(),
            target,
            as_written: false,
            compile_config,
            specialization_config,
            has_grid: false,
        }))),
        Some(kernel @ Value::Kernel(_)) => Ok(kernel.clone()),
        Some(Value::Host(host)) => Ok(interp.host(host.path.clone(), args.span)),
        Some(other) => {
            Err(Raise::at("type-error", format!("nki.jit needs a function, not {}", other.a_type()), args.span, "here"))
        }
    }
}

/// The target of `platform_target=` (or `target=`), if it is given.
fn platform_target(interp: &Interp<'_>, args: &CallArgs) -> EvalResult<Option<Target>> {
    let named = args.keyword.iter().find(|(name, _)| matches!(&*interp.name(*name), "platform_target" | "target"));
    let Some((name, Value::Str(text))) = named else { return Ok(None) };
    let target = Target::from_name(text).ok_or_else(|| {
        let message =
            format!("nki.jit: {}=\"{text}\" is not a target; the targets are {}", interp.name(*name), Target::NAMES);
        Raise::at("value-error", message, args.span, "here")
    })?;
    Ok(Some(target))
}

/// The kernel with these edges added.
pub(crate) fn with_schedule(interp: &Interp<'_>, kernel: &Kernel, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [edges] = args.bind(interp, "with_schedule", ["edges"], 1)?;
    let edges = edges.unwrap_or(Value::None);
    let mut schedule = kernel.schedule.to_vec();
    let Some(pairs) = edges.sequence() else { return Err(refuse(&edges, span)) };
    for pair in pairs {
        let Some([Value::Str(later), earlier]) = &pair.sequence().and_then(|p| <[Value; 2]>::try_from(p).ok()) else {
            return Err(refuse(&pair, span));
        };
        let several = match earlier {
            Value::Str(_) => vec![earlier.clone()],
            other => other.sequence().ok_or_else(|| refuse(other, span))?,
        };
        for one in several {
            let Value::Str(name) = &one else { return Err(refuse(&one, span)) };
            schedule.push((later.clone(), name.clone()));
        }
    }
    Ok(Value::Kernel(Rc::new(Kernel { schedule: schedule.into(), ..kernel.clone() })))
}

/// A decorator that disables the compiler's middle end for a kernel.
pub(crate) fn as_written(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    Ok(match jit(interp, args)? {
        Value::Kernel(ref kernel) => Value::Kernel(Rc::new(Kernel { as_written: true, ..(**kernel).clone() })),
        other => other,
    })
}

fn refuse(value: &Value, span: Span) -> Box<Raise> {
    let message = format!("with_schedule takes a list of pairs of instruction names, got {}", value.a_type());
    Raise::at("depends-on", message, span, "in this call")
        .help("kernel.with_schedule([(\"later\", \"earlier\"), (\"later\", [\"first\", \"second\"])])")
}
