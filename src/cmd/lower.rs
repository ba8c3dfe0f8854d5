//! `nki-sim lower FILE [-o FILE.nkir]`: the compiled kernel as text.

use nki_diag::Mode;

use crate::Failure;
use crate::cli::LowerArgs;
use crate::kernel::{Disk, Sink, add_run_line, compile_from, conclude, finish, session};
use crate::output::{eprint, print, write_file};
use crate::places::{Inputs, check_places};
use crate::session::Numerics;

/// Compiles the kernel and writes its program.
pub(crate) fn run(mut args: LowerArgs) -> Result<(), Failure> {
    let session = session(&args.kernel, Mode::Run, Numerics::Never, None)?;
    add_run_line(&session, &mut args.kernel, Sink::default())?;
    let places = [("--output", args.output.as_deref())];
    check_places(&places, &Inputs::of_kernel(&args.kernel))?;
    let (compiled, _) = compile_from("lower", &session, &args.kernel, &Disk)?;
    // Standard output may contain the program.
    compiled.prints.iter().for_each(|line| eprint(&format!("{line}\n")));
    check_places(&places, &Inputs::of_sources(&compiled.sources))?;
    let applied = conclude(&session, compiled.diagnostics, &compiled.sources);
    finish(&applied)?;
    let Some(program) = &compiled.program else { return Err(Failure::Kernel) };
    if compiled.older_compiler {
        eprint(
            "note: the program does not say that it is for neuronxcc.nki: give --beta1 to the commands that read it\n",
        );
    }
    let text = nki_isa::text::print(program);
    match &args.output {
        Some(path) => write_file(path, &[text.as_bytes()])?,
        None => print(&text),
    }
    Ok(())
}
