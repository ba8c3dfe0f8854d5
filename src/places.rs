//! Output files of a command: distinct, and never one of its inputs.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use nki_diag::{FileId, SourceMap};
use nki_frontend::Loader as _;

use crate::cli::{KernelArgs, TimingArgs};
use crate::kernel::Disk;
use crate::value::{self, TensorSpec, Value};
use crate::{output, project, run_line};

/// A file's identity, independent of path, symbolic or hard links.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Identity {
    /// Device and number.
    #[cfg(unix)]
    Node(u64, u64),
    /// On systems without such a number, or for a file that does not exist.
    Path(PathBuf),
}

/// The identity of an existing regular file.
fn identity(path: &Path) -> Option<Identity> {
    let known = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        Some(Identity::Node(known.dev(), known.ino()))
    }
    #[cfg(not(unix))]
    {
        let _ = known;
        fs::canonicalize(path).ok().map(Identity::Path)
    }
}

/// The identity of an output file, which may not exist. `None` for a pipe or a device, which several outputs may share.
fn place(path: &Path) -> Option<Identity> {
    if fs::metadata(path).is_ok() {
        return identity(path);
    }
    Some(Identity::Path(resolved(path)))
}

/// The absolute path, without links, of a folder or file that may not exist: the nearest existing ancestor, and the rest.
pub(crate) fn resolved(path: &Path) -> PathBuf {
    if let Ok(known) = fs::canonicalize(path) {
        return known;
    }
    let path = output::link_target(path).unwrap_or_else(|_| path.to_path_buf());
    let parent = path.parent().map(|p| if p.as_os_str().is_empty() { Path::new(".") } else { p });
    match (path.components().next_back(), parent) {
        (Some(Component::Normal(name)), Some(parent)) => resolved(parent).join(name),
        (Some(Component::ParentDir), Some(parent)) => {
            let mut parent = resolved(parent);
            parent.pop();
            parent
        }
        _ => path,
    }
}

/// The files that kernels of this process have read: arrays of `nl.shared_constant`.
static CONSTANTS: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Notes a file that a kernel reads, so that no output replaces it.
pub(crate) fn note_constant(path: &Path) {
    CONSTANTS.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned());
}

/// The input files of a command, which no output may replace.
#[derive(Debug, Default, Clone)]
pub(crate) struct Inputs {
    /// A description of each file.
    files: HashMap<Identity, String>,
}

impl Inputs {
    /// The kernel's file, and the arrays among its arguments.
    pub(crate) fn of_kernel(args: &KernelArgs) -> Self {
        Inputs::default().and_kernel(args)
    }

    /// Adds a kernel's file, and the arrays among its arguments; without arguments, those in the file's run lines.
    pub(crate) fn and_kernel(mut self, args: &KernelArgs) -> Self {
        self.add("the kernel's file", &args.file);
        for path in project::candidates(&args.file).iter().filter(|path| path.is_file()) {
            self.add(&format!("the project file `{}`", path.display()), path);
        }
        for (name, text) in &args.args {
            // An invalid value is reported when it is read.
            if let Ok(value) = value::parse(text) {
                self.add_arrays(&format!("--arg {name}"), &value);
            }
        }
        if args.args.is_empty()
            && let Ok(text) = Disk.read(&args.file)
        {
            for path in run_line::files(&text, args.file.parent().unwrap_or(Path::new(""))) {
                self.add(&format!("`{}`, which a run line names", path.display()), &path);
            }
        }
        self
    }

    /// The source files of a kernel, including imported ones.
    pub(crate) fn of_sources(sources: &SourceMap) -> Self {
        Inputs::default().and_sources(sources)
    }

    /// Adds the source files of a kernel, and the files of arrays that kernels have read.
    pub(crate) fn and_sources(mut self, sources: &SourceMap) -> Self {
        for path in CONSTANTS.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            self.add(&format!("`{}`, which the kernel reads", path.display()), path);
        }
        for file in 0..sources.len() as u32 {
            let path = sources.path(FileId(file));
            self.add(&format!("`{path}`, which the kernel is compiled from"), path.as_ref());
        }
        self
    }

    /// With the file of `--params`.
    pub(crate) fn and_timing(mut self, args: &TimingArgs) -> Self {
        if let Some(path) = &args.changes.params {
            self.add("--params", path);
        }
        self
    }

    /// With the files of `--expect`.
    pub(crate) fn and_expected(mut self, expect: &[(String, String)]) -> Self {
        for (name, file) in expect {
            self.add(&format!("--expect {name}"), file.as_ref());
        }
        self
    }

    /// Adds a file, or all files of a directory; `what` names it in a message.
    pub(crate) fn add(&mut self, what: &str, path: &Path) {
        if let Ok(entries) = fs::read_dir(path) {
            for identity in entries.flatten().filter_map(|entry| identity(&entry.path())) {
                self.files.entry(identity).or_insert_with(|| what.to_owned());
            }
        } else if let Some(identity) = identity(path) {
            self.files.entry(identity).or_insert_with(|| what.to_owned());
        }
    }

    /// Adds a file that may not exist.
    pub(crate) fn add_place(&mut self, what: &str, path: &Path) {
        if let Some(place) = place(path) {
            self.files.entry(place).or_insert_with(|| what.to_owned());
        }
    }

    /// The description of the file at a path, if it is one of the inputs.
    pub(crate) fn find(&self, path: &Path) -> Option<&str> {
        self.files.get(&place(path)?).map(String::as_str)
    }

    /// Adds the arrays among the values of a parameter.
    pub(crate) fn and_values(mut self, what: &str, values: &[String]) -> Self {
        // An invalid value is reported when it is read.
        for value in values.iter().filter_map(|text| value::parse(text).ok()) {
            self.add_arrays(what, &value);
        }
        self
    }

    fn add_arrays(&mut self, what: &str, value: &Value) {
        match value {
            Value::Tensor(TensorSpec::File { path, .. }) => self.add(what, path),
            Value::Tuple(items) | Value::List(items) => items.iter().for_each(|v| self.add_arrays(what, v)),
            Value::Dict(entries) => entries.iter().for_each(|(_, v)| self.add_arrays(what, v)),
            _ => {}
        }
    }

    /// Checks that writing `path` replaces none of the inputs.
    ///
    /// # Errors
    /// If it would, with the option and the description of the input.
    pub(crate) fn check(&self, option: &str, path: &Path) -> Result<(), String> {
        match self.find(path) {
            Some(what) => Err(format!("{option} {} would overwrite {what}; give another file", path.display())),
            None => Ok(()),
        }
    }
}

/// Checks, before the work, that reports can be written: to distinct files in existing directories,
/// and not over an input. If one of them is standard output, the command's messages go to standard error from now on.
///
/// # Errors
/// With the invalid option.
pub(crate) fn check_places(options: &[(&str, Option<&Path>)], inputs: &Inputs) -> Result<(), String> {
    let given: Vec<(&str, &Path)> = options.iter().filter_map(|(name, path)| Some((*name, (*path)?))).collect();
    let places: Vec<Option<Identity>> = given.iter().map(|(_, path)| place(path)).collect();
    for (i, (name, path)) in given.iter().enumerate() {
        if let Some(at) = places[..i].iter().position(|p| p.is_some() && *p == places[i]) {
            return Err(format!("{} and {name} name the same file, `{}`", given[at].0, path.display()));
        }
        let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
        if let Some(parent) = parent.filter(|p| !p.is_dir()) {
            return Err(format!("{name} {}: there is no directory `{}`", path.display(), parent.display()));
        }
        inputs.check(name, path)?;
    }
    output::reserve_stdout(given.iter().map(|(_, path)| *path));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_is_known_by_any_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("k.py"), "x").unwrap();
        fs::write(path("other"), "x").unwrap();
        fs::create_dir(path("d")).unwrap();
        let mut inputs = Inputs::default();
        inputs.add("the kernel's file", &path("k.py"));
        inputs.add("--params", &path("missing"));
        for same in ["k.py", "d/../k.py", "./k.py"] {
            let error = inputs.check("--json", &path(same)).unwrap_err();
            assert!(error.contains("would overwrite the kernel's file"), "{error}");
        }
        for fine in ["other", "missing", "d"] {
            inputs.check("--json", &path(fine)).unwrap();
        }
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(path("k.py"), path("symbolic")).unwrap();
            fs::hard_link(path("k.py"), path("hard")).unwrap();
            assert!(inputs.check("--json", &path("symbolic")).is_err());
            assert!(inputs.check("--json", &path("hard")).is_err());
            inputs.check("--json", Path::new("/dev/null")).unwrap();
        }
    }

    #[test]
    fn a_folder_that_is_not_there_has_one_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| resolved(&folder.path().join(name));
        fs::create_dir(folder.path().join("d")).unwrap();
        for same in ["a/b/", "./a/b", "a/./b", "d/../a/b", "a/c/../b"] {
            assert_eq!(path(same), path("a/b"), "{same}");
        }
        assert_ne!(path("d/b"), path("a/b"));
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("d", folder.path().join("to-d")).unwrap();
            std::os::unix::fs::symlink("a/b", folder.path().join("to-b")).unwrap();
            assert_eq!(path("to-d/b"), path("d/b"));
            assert_eq!(path("to-b"), path("a/b"));
        }
        let mut inputs = Inputs::default();
        inputs.add_place("--json-lines", &folder.path().join("d/new"));
        assert!(inputs.check("--out", &folder.path().join("d/./new")).is_err());
    }

    #[test]
    fn two_reports_have_two_places() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("d")).unwrap();
        let places = |a: &str, b: &str| {
            let (a, b) = (path(a), path(b));
            check_places(&[("--json", Some(&a)), ("--csv", None), ("--html", Some(&b))], &Inputs::default())
        };
        assert!(places("new", "d/../new").unwrap_err().contains("--json and --html name the same file"));
        assert!(places("new", "none/new").unwrap_err().contains("there is no directory"));
        places("new", "d/new").unwrap();
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("new", path("link")).unwrap();
            assert!(places("link", "new").unwrap_err().contains("name the same file"));
            places("link", "d/new").unwrap();
        }
        let null = Path::new("/dev/null");
        check_places(&[("--json", Some(null)), ("--csv", Some(null))], &Inputs::default()).unwrap();
    }
}
