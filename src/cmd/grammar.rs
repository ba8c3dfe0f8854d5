//! `nki-sim completions SHELL` and `nki-sim man [COMMAND]`: shell completions and manual pages from the grammar.

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::Failure;
use crate::cli::Cli;
use crate::output::print;

const NAME: &str = "nki-sim";

/// Prints the completions of a shell.
pub(crate) fn completions(shell: Shell) {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), NAME, &mut script);
    print(&String::from_utf8_lossy(&script));
}

/// Prints the manual page of the whole command or of one subcommand.
pub(crate) fn man(name: Option<&str>) -> Result<(), Failure> {
    let mut whole = Cli::command();
    // Adds the global options to each subcommand.
    whole.build();
    let title = name.map_or_else(|| NAME.to_owned(), |name| format!("{NAME}-{name}"));
    let page = match name {
        None => whole,
        Some(name) => {
            let found = whole.get_subcommands().find(|c| c.get_name() == name).cloned();
            let shown = whole.get_subcommands().filter(|c| !c.is_hide_set());
            let known: Vec<&str> = shown.map(clap::Command::get_name).collect();
            let unknown = || Failure::Call(format!("no subcommand is called `{name}`; they are {}", known.join(", ")));
            found.ok_or_else(unknown)?
        }
    };
    let mut text = Vec::new();
    clap_mangen::Man::new(page).title(title).render(&mut text).map_err(|e| format!("cannot make the page: {e}"))?;
    print(&String::from_utf8_lossy(&text));
    Ok(())
}
