//! Jobs: commands as JSON, for `batch`, for the tools of `mcp`, and for searches from Python.
//!
//! A job is converted to the words of its command and parsed by the command's own grammar, so that both have the same meaning. Worker processes
//! ([`pool`]) perform it ([`work`]).

mod fields;
mod messages;
pub(crate) mod pool;
mod read;
pub(crate) mod work;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::cli::{ExpectArgs, InstructionOrder, KernelArgs, LevelArgs, ParamArgs, SweepArgs, TimingArgs};

use fields::{Grid, NOT_OPTIONS, Named, OptionValue, is_default, one_or_more, text};

pub(crate) use read::read;

/// Declares a job about a kernel: its own fields, those of all kernels, and with `timed` those of timing and of expected values.
///
/// Fields are options of the command with `_` instead of `-`, except those of [`NOT_OPTIONS`].
macro_rules! kernel_job {
    (timed $(#[$meta:meta])* $name:ident { $($own:tt)* }) => {
        kernel_job! {
            $(#[$meta])*
            $name {
                $($own)*
                /// Timing parameters to change, e.g. {"tensor.clock_ghz": 2.8}.
                #[schemars(with = "Map<String, Value>")]
                #[serde(skip_serializing_if = "is_default")]
                set: Named,
                /// TOML file with timing parameters to change.
                #[serde(skip_serializing_if = "Option::is_none")]
                params: Option<String>,
                /// Instruction order: "compiler" or "program".
                #[serde(skip_serializing_if = "Option::is_none")]
                schedule: Option<String>,
                /// What the latency is: "profile" or "device".
                #[serde(skip_serializing_if = "Option::is_none")]
                measure: Option<String>,
                /// Arrays that outputs are to equal, by output: a file, or a tensor as in `args`.
                #[schemars(with = "Map<String, Value>")]
                #[serde(skip_serializing_if = "is_default")]
                expect: Named,
                /// Relative tolerance of `expect`; by default that of the dtype.
                #[serde(skip_serializing_if = "Option::is_none")]
                rtol: Option<f64>,
                /// Absolute tolerance of `expect`; by default that of the dtype.
                #[serde(skip_serializing_if = "Option::is_none")]
                atol: Option<f64>,
            }
        }
    };
    ($(#[$meta:meta])* $name:ident { $($own:tt)* }) => {
        kernel_job! {
            @all
            $(#[$meta])*
            $name {
                /// Python file with the kernel, or a lowered kernel (.nkir). With `source`, the name of that text, beside which imports are looked for.
                #[serde(skip_serializing_if = "Option::is_none")]
                file: Option<String>,
                /// The text of the file, if it is not on disk.
                #[serde(skip_serializing_if = "Option::is_none")]
                source: Option<String>,
                /// Name of the kernel; not needed when the file has one.
                #[serde(skip_serializing_if = "Option::is_none")]
                kernel: Option<String>,
                /// Arguments by name. A text is what --arg takes: "FILE.npy", "float32[128,512]" with ":normal", ":zeros" and the like, a dtype, or a
                /// Python literal ("'text'" is a string). {"dtype": "float32", "values": [[1, 2], [3, 4]]} is an array. Other JSON values are literals.
                /// Without arguments, those of the comment `# nki-sim: ...` above the kernel.
                #[schemars(with = "Map<String, Value>")]
                #[serde(skip_serializing_if = "is_default")]
                args: Named,
                /// Chip generation: trn1, trn2 or trn3.
                #[serde(skip_serializing_if = "Option::is_none")]
                target: Option<String>,
                /// Physical cores per logical core: 1 or 2.
                #[serde(skip_serializing_if = "Option::is_none")]
                lnc: Option<u32>,
                /// Evaluate the files as written for neuronxcc.nki (Beta 1), whatever they import.
                #[serde(skip_serializing_if = "is_default")]
                beta1: bool,
                /// Leave a kernel for neuronxcc.nki as it is written.
                #[serde(skip_serializing_if = "is_default")]
                as_written: bool,
                /// Descriptors of DMA transfers are made before the kernel runs, where the kernel does not choose.
                #[serde(skip_serializing_if = "is_default")]
                disable_dge: bool,
                /// Programs along each axis of the launch grid of a kernel for neuronxcc.nki, e.g. "4,2" or "nc2*4".
                #[serde(skip_serializing_if = "Option::is_none")]
                programs: Option<String>,
                /// Also report what the official compiler would reject.
                #[serde(skip_serializing_if = "is_default")]
                strict: bool,
                /// Findings that fail the job: slugs or classes (bug, suspicious, strict), or "warnings".
                #[serde(deserialize_with = "one_or_more", skip_serializing_if = "Vec::is_empty")]
                deny: Vec<String>,
                /// Findings that are warnings: slugs or classes.
                #[serde(deserialize_with = "one_or_more", skip_serializing_if = "Vec::is_empty")]
                warn: Vec<String>,
                /// Findings that are not reported: slugs or classes.
                #[serde(deserialize_with = "one_or_more", skip_serializing_if = "Vec::is_empty")]
                allow: Vec<String>,
                /// Limit of specialisation steps, and of instructions executed in dynamic loops.
                #[serde(skip_serializing_if = "Option::is_none")]
                max_steps: Option<u64>,
                /// Memory limit, e.g. "512MiB"; at most that of the run.
                #[serde(skip_serializing_if = "Option::is_none")]
                max_memory: Option<String>,
                /// Time limit in seconds; at most that of the run.
                #[serde(skip_serializing_if = "Option::is_none")]
                max_seconds: Option<f64>,
                /// "warn" runs a kernel that does not fit into SBUF or PSUM, without a valid latency; "error" rejects it.
                #[serde(skip_serializing_if = "Option::is_none")]
                capacity: Option<String>,
                $($own)*
            }
        }
    };
    (@all $(#[$meta:meta])* $name:ident { $($(#[$field_meta:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        pub(crate) struct $name {
            $($(#[$field_meta])* pub(crate) $field: $type,)*
        }

        impl $name {
            /// The file, or the name of the text.
            pub(crate) fn file(&self) -> Result<&str, String> {
                match (&self.file, &self.source) {
                    (Some(file), _) => Ok(file),
                    (None, Some(_)) => Ok("kernel.py"),
                    (None, None) => Err("a job needs `file` or `source`".into()),
                }
            }

            /// The words of a command.
            fn words_of(&self, command: &str) -> Result<Vec<String>, String> {
                let mut words = vec!["nki-sim".into(), command.into()];
                $(if !NOT_OPTIONS.contains(&stringify!($field)) {
                    self.$field.add_words(stringify!($field), &mut words)?;
                })*
                words.extend(["--".into(), self.file()?.into()]);
                Ok(words)
            }

            /// The job's own limits.
            pub(crate) fn limits(&self) -> JobLimits<'_> {
                JobLimits { seconds: self.max_seconds, memory: self.max_memory.as_deref() }
            }
        }
    };
}

/// Limits that a job states.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct JobLimits<'a> {
    /// Seconds.
    pub(crate) seconds: Option<f64>,
    /// Memory, as --max-memory takes it.
    pub(crate) memory: Option<&'a str>,
}

kernel_job! {
    timed
    /// A kernel to run, time and compare.
    Job {
        /// Anything; the result has it again.
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<Value>,
        /// Values of arguments, or of constants at the top of the file, as `sweep --grid` sets them.
        #[schemars(with = "Map<String, Value>")]
        #[serde(skip_serializing_if = "is_default")]
        point: Named,
        /// Compute the timeline only, without values.
        #[serde(skip_serializing_if = "is_default")]
        no_numerics: bool,
        /// Folder for the outputs, NAME.npy each.
        #[serde(skip_serializing_if = "Option::is_none")]
        out: Option<String>,
    }
}

kernel_job! {
    /// A kernel to check without running it.
    CheckJob {}
}

kernel_job! {
    timed
    /// A kernel to time at each point of a grid. With `expect`, only correct points rank.
    SweepJob {
        /// Lists of values by name: of an argument of the kernel, or of a constant that the file assigns at its top level.
        #[schemars(with = "Map<String, Value>")]
        #[serde(skip_serializing_if = "is_default")]
        grid: Grid,
    }
}

/// A run to compare: the file of a report, or a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Side {
    /// A file of `nki-sim run --json`, --csv or --parquet, or a hardware profile.
    File(String),
    /// A kernel to run.
    Job(Box<Job>),
}

impl Default for Side {
    fn default() -> Self {
        Side::File(String::new())
    }
}

/// Two runs to compare by line, engine and cause.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct CompareJob {
    /// The run before: a job, or a file of `nki-sim run --json`.
    pub(crate) before: Side,
    /// The run after.
    pub(crate) after: Side,
    /// Conditions that fail the comparison, e.g. "latency > +2%".
    pub(crate) fail_if: Vec<String>,
    /// Time limit in seconds; at most that of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_seconds: Option<f64>,
}

/// A name to explain.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ExplainJob {
    /// A diagnostic (uninitialized-read), a name of the API (nc_matmul, nl.softmax), a cause of a stall, a timing parameter or a column of a table;
    /// without a name, all are listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
}

/// Checks that tolerances are given only with expected values.
fn check_tolerances(rtol: Option<f64>, atol: Option<f64>, expect: &Named) -> Result<(), String> {
    let name = if rtol.is_some() { "rtol" } else { "atol" };
    let useless = (rtol.is_some() || atol.is_some()) && expect.0.is_empty();
    if useless { Err(format!("`{name}` has no effect without `expect`")) } else { Ok(()) }
}

impl Job {
    /// The words of `nki-sim run`.
    pub(crate) fn words(&self) -> Result<Vec<String>, String> {
        check_tolerances(self.rtol, self.atol, &self.expect)?;
        if let Some((name, _)) = self.point.0.iter().find(|(name, _)| self.args.0.iter().any(|(arg, _)| arg == name)) {
            return Err(format!("`{name}` is in `args` and in `point`; give it in one of them"));
        }
        self.words_of("run")
    }

    /// The common part of all points of a sweep.
    pub(crate) fn of_sweep(args: &SweepArgs) -> Result<Self, String> {
        let SweepArgs { kernel, timing, expected, .. } = args;
        // Without `..`: an option that is not sent to the workers is a compile error.
        let KernelArgs {
            file,
            kernel,
            args,
            target,
            lnc,
            beta1,
            frontend: _,
            as_written,
            disable_dge,
            programs,
            strict,
            levels: LevelArgs { deny, warn, allow },
            max_steps,
            max_memory,
            capacity,
            of_job: _,
        } = kernel;
        let TimingArgs { schedule, measure, changes: ParamArgs { set, params } } = timing;
        let ExpectArgs { expect, rtol, atol } = expected;
        let texts = |list: &[(String, String)]| {
            Named(list.iter().map(|(name, text)| (name.clone(), Value::String(text.clone()))).collect())
        };
        let file = std::path::absolute(file).map_err(|e| format!("`{}`: {e}", file.display()))?;
        Ok(Job {
            file: Some(file.to_string_lossy().into_owned()),
            source: None,
            kernel: kernel.clone(),
            args: texts(args),
            target: target.map(|t| t.to_string()),
            lnc: *lnc,
            beta1: *beta1,
            as_written: *as_written,
            disable_dge: *disable_dge,
            programs: programs.as_ref().map(ToString::to_string),
            strict: *strict,
            deny: deny.clone(),
            warn: warn.clone(),
            allow: allow.clone(),
            max_steps: *max_steps,
            max_memory: max_memory.clone(),
            max_seconds: None,
            capacity: capacity.map(|c| c.to_string()),
            id: None,
            point: Named::default(),
            no_numerics: expect.is_empty(),
            out: None,
            set: texts(set),
            params: params.as_ref().map(|p| p.to_string_lossy().into_owned()),
            schedule: (*schedule == InstructionOrder::Program).then(|| "program".to_owned()),
            measure: measure.clone(),
            expect: texts(expect),
            rtol: *rtol,
            atol: *atol,
        })
    }
}

impl CheckJob {
    /// The words of `nki-sim check`.
    pub(crate) fn words(&self) -> Result<Vec<String>, String> {
        self.words_of("check")
    }
}

impl SweepJob {
    /// The words of `nki-sim sweep`.
    pub(crate) fn words(&self) -> Result<Vec<String>, String> {
        check_tolerances(self.rtol, self.atol, &self.expect)?;
        if self.grid.0.0.is_empty() {
            return Err(
                "`grid` is empty: give a list of values for each name, such as {\"columns\": [256, 512]}".into()
            );
        }
        self.words_of("sweep")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_named_with_its_field() {
        for (json, why) in [
            ("{\"file\": 3}", "`file`: invalid type"),
            ("{\"file\": \"k.py\", \"lnc\": \"two\"}", "`lnc`: invalid type"),
            ("{\"file\": \"k.py\", \"lnc\": -1}", "`lnc`: invalid value: integer `-1`, expected a whole number from 0"),
            ("{\"max_steps\": \"a\"}", "expected a whole number, at least 0"),
            ("{\"file\": \n", "at line 1 column 8"),
            ("{\"args\": {\"n\": 1}, \"fiel\": 1}", "unknown field `fiel`"),
            ("{\"fiel\": \"k.py\"}", "unknown field `fiel`; did you mean `file`?"),
            ("[1]", "a job is a JSON object"),
            ("[]", "a job is a JSON object"),
            (" 3", "a job is a JSON object"),
            ("{\"deny\": 3}", "`deny`: invalid type"),
            ("{\"file\": ", "not valid JSON"),
            ("{\"args\": [1]}", "`args`: invalid type"),
        ] {
            let e = read::<Job>(json).unwrap_err();
            assert!(e.contains(why), "{json}: {e}");
        }
        let twice = read::<Job>("{\"args\": {\"x\": 1, \"x\": 2}}").unwrap_err();
        assert!(twice.contains("given twice"), "{twice}");
    }

    #[test]
    fn a_job_is_the_command_line() {
        let job: Job = read(
            r#"{"file": "k.py", "args": {"x": "float32[2,3]", "b": {"dtype": "int8", "values": [[1, 2]]}, "a": [1, null, true]},
                "set": {"dma.engines": 8}, "strict": true, "expect": {"out": "o.npy"}, "rtol": 0.5}"#,
        )
        .unwrap();
        assert_eq!(
            job.words().unwrap(),
            [
                "nki-sim",
                "run",
                "--arg=x=float32[2,3]",
                "--arg=b=int8([[1,2]])",
                "--arg=a=[1,None,True]",
                "--strict",
                "--set=dma.engines=8",
                "--expect=out=o.npy",
                "--rtol=0.5",
                "--",
                "k.py"
            ]
        );
        assert!(Job::default().words().unwrap_err().contains("`file` or `source`"));
        let one: Job = read(r#"{"file": "k.py", "deny": "warnings"}"#).unwrap();
        assert_eq!(one.words().unwrap(), ["nki-sim", "run", "--deny=warnings", "--", "k.py"]);
        let useless: Job = read(r#"{"file": "k.py", "atol": 0.5}"#).unwrap();
        assert_eq!(useless.words().unwrap_err(), "`atol` has no effect without `expect`");
        let empty: SweepJob = read(r#"{"file": "k.py", "grid": {}}"#).unwrap();
        assert!(empty.words().unwrap_err().starts_with("`grid` is empty"));
        for (dtype, expected) in [("float33", "`x`: `float33` is not a dtype ("), ("bf16", "; write bfloat16")] {
            let wrong: Job =
                read(&format!(r#"{{"file": "k.py", "args": {{"x": {{"dtype": "{dtype}", "values": [1]}}}}}}"#))
                    .unwrap();
            let message = wrong.words().unwrap_err();
            assert!(message.contains(expected), "{message}");
        }
    }
}
