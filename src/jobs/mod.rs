//! Jobs: commands as JSON, for `batch`, for the tools of `mcp`, and for searches from Python.
//!
//! A job is converted to the words of its command and parsed by the command's own grammar, so that both have the same meaning. Worker processes
//! ([`pool`]) perform it ([`work`]).

mod messages;
pub(crate) mod pool;
pub(crate) mod work;

use std::fmt;
use std::marker::PhantomData;

use nki_diag::slugs;
use schemars::JsonSchema;
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::cli::SweepArgs;

/// Named values in the order of the document, which the seeds of generated tensors follow.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Named(pub(crate) Vec<(String, Value)>);

impl Serialize for Named {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl<'de> Deserialize<'de> for Named {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries(PhantomData<Named>);
        impl<'de> Visitor<'de> for Entries {
            type Value = Named;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of names and values")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Named, A::Error> {
                let mut out: Vec<(String, Value)> = Vec::new();
                while let Some((name, value)) = map.next_entry()? {
                    if out.iter().any(|(known, _)| *known == name) {
                        return Err(serde::de::Error::custom(format!("`{name}` is given twice")));
                    }
                    out.push((name, value));
                }
                Ok(Named(out))
            }
        }
        deserializer.deserialize_map(Entries(PhantomData))
    }
}

/// Declares a job about a kernel: the common fields, and its own.
macro_rules! kernel_job {
    ($(#[$meta:meta])* $name:ident { $($(#[$field_meta:meta])* $field:ident: $type:ty),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        pub(crate) struct $name {
            /// Python file with the kernel, or a lowered kernel (.nkir). With `source`, the name of that text, beside which imports are looked for.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub(crate) file: Option<String>,
            /// The text of the file, if it is not on disk.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub(crate) source: Option<String>,
            /// Name of the kernel; not needed when the file has one.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub(crate) kernel: Option<String>,
            /// Arguments by name. A text is what --arg takes: "FILE.npy", "float32[128,512]" with ":normal", ":zeros" and the like, a dtype, or a
            /// Python literal ("'text'" is a string). {"dtype": "float32", "values": [[1, 2], [3, 4]]} is an array. Other JSON values are literals.
            /// Without arguments, those of the comment `# nki-sim: ...` above the kernel.
            #[schemars(with = "Map<String, Value>")]
            #[serde(skip_serializing_if = "is_default")]
            pub(crate) args: Named,
            /// Chip generation: trn1, trn2 or trn3.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub(crate) target: Option<String>,
            /// Physical cores per logical core: 1 or 2.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub(crate) lnc: Option<u32>,
            /// Evaluate the files as written for neuronxcc.nki (Beta 1), whatever they import.
            #[serde(skip_serializing_if = "is_default")]
            pub(crate) beta1: bool,
            /// Leave a kernel for neuronxcc.nki as it is written.
            #[serde(skip_serializing_if = "is_default")]
            pub(crate) as_written: bool,
            /// Descriptors of DMA transfers are made before the kernel runs, where the kernel does not choose.
            #[serde(skip_serializing_if = "is_default")]
            pub(crate) disable_dge: bool,
            /// Programs along each axis of the launch grid of a kernel for neuronxcc.nki, e.g. "4,2" or "nc2*4".
            #[serde(skip_serializing_if = "Option::is_none")]
            pub(crate) programs: Option<String>,
            /// Also report what the official compiler would reject.
            #[serde(skip_serializing_if = "is_default")]
            pub(crate) strict: bool,
            /// Findings that fail the job: slugs or classes (bug, suspicious, strict), or "warnings".
            #[serde(deserialize_with = "one_or_more", skip_serializing_if = "Vec::is_empty")]
            pub(crate) deny: Vec<String>,
            /// Findings that are warnings: slugs or classes.
            #[serde(deserialize_with = "one_or_more", skip_serializing_if = "Vec::is_empty")]
            pub(crate) warn: Vec<String>,
            /// Findings that are not reported: slugs or classes.
            #[serde(deserialize_with = "one_or_more", skip_serializing_if = "Vec::is_empty")]
            pub(crate) allow: Vec<String>,
            /// Limit of specialisation steps, and of instructions executed in dynamic loops.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub(crate) max_steps: Option<u64>,
            /// Memory limit, e.g. "512MiB"; at most that of the run.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub(crate) max_memory: Option<String>,
            /// Time limit in seconds; at most that of the run.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub(crate) max_seconds: Option<f64>,
            /// "warn" runs a kernel that does not fit into SBUF or PSUM, without a valid latency; "error" rejects it.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub(crate) capacity: Option<String>,
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

            /// Words for the common fields.
            fn kernel_words(&self, words: &mut Words) -> Result<(), String> {
                words.one("--kernel", self.kernel.as_ref());
                words.named("--arg", &self.args)?;
                words.one("--target", self.target.as_ref());
                words.one("--lnc", self.lnc);
                words.flag("--beta1", self.beta1);
                words.flag("--as-written", self.as_written);
                words.flag("--disable-dge", self.disable_dge);
                words.one("--programs", self.programs.as_ref());
                words.flag("--strict", self.strict);
                for (option, list) in [("--deny", &self.deny), ("--warn", &self.warn), ("--allow", &self.allow)] {
                    list.iter().for_each(|word| words.one(option, Some(word)));
                }
                words.one("--max-steps", self.max_steps);
                words.one("--max-memory", self.max_memory.as_ref());
                words.one("--capacity", self.capacity.as_ref());
                Ok(())
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
    /// A kernel to run, time and compare.
    Job {
        /// Anything; the result has it again.
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<Value>,
        /// Values of arguments, or of constants at the top of the file, as `sweep --grid` sets them.
        #[schemars(with = "Map<String, Value>")]
        #[serde(skip_serializing_if = "is_default")]
        point: Named,
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
    /// A kernel to time at each point of a grid.
    SweepJob {
        /// Lists of values by name: of an argument of the kernel, or of a constant that the file assigns at its top level.
        #[schemars(with = "Map<String, Value>")]
        #[serde(skip_serializing_if = "is_default")]
        grid: Named,
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
        /// Arrays that outputs are to equal, by output; only correct points rank.
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

/// A list of strings, or a single string instead of a list of one.
fn one_or_more<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::String(one) => Ok(vec![one]),
        other => serde_json::from_value(other).map_err(serde::de::Error::custom),
    }
}

/// Checks that tolerances are given only with expected values.
fn check_tolerances(rtol: Option<f64>, atol: Option<f64>, expect: &Named) -> Result<(), String> {
    let name = if rtol.is_some() { "rtol" } else { "atol" };
    let useless = (rtol.is_some() || atol.is_some()) && expect.0.is_empty();
    if useless { Err(format!("`{name}` has no effect without `expect`")) } else { Ok(()) }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Job {
    /// The words of `nki-sim run`.
    pub(crate) fn words(&self) -> Result<Vec<String>, String> {
        check_tolerances(self.rtol, self.atol, &self.expect)?;
        if let Some((name, _)) = self.point.0.iter().find(|(name, _)| self.args.0.iter().any(|(arg, _)| arg == name)) {
            return Err(format!("`{name}` is in `args` and in `point`; give it in one of them"));
        }
        let mut words = Words::new("run");
        self.kernel_words(&mut words)?;
        words.named("--set", &self.set)?;
        words.one("--params", self.params.as_ref());
        words.one("--schedule", self.schedule.as_ref());
        words.one("--measure", self.measure.as_ref());
        words.named("--expect", &self.expect)?;
        words.one("--rtol", self.rtol);
        words.one("--atol", self.atol);
        words.flag("--no-numerics", self.no_numerics);
        words.one("--out", self.out.as_ref());
        Ok(words.about(self.file()?))
    }
}

impl Job {
    /// The common part of all points of a sweep.
    pub(crate) fn of_sweep(args: &SweepArgs) -> Result<Self, String> {
        let SweepArgs { kernel, timing, expect, rtol, atol, .. } = args;
        let texts = |list: &[(String, String)]| {
            Named(list.iter().map(|(name, text)| (name.clone(), Value::String(text.clone()))).collect())
        };
        let file = std::path::absolute(&kernel.file).map_err(|e| format!("`{}`: {e}", kernel.file.display()))?;
        Ok(Job {
            file: Some(file.to_string_lossy().into_owned()),
            kernel: kernel.kernel.clone(),
            args: texts(&kernel.args),
            target: kernel.target.map(|t| t.to_string()),
            lnc: (kernel.lnc != 1).then_some(kernel.lnc),
            beta1: kernel.beta1,
            as_written: kernel.as_written,
            disable_dge: kernel.disable_dge,
            programs: kernel.programs.as_ref().map(ToString::to_string),
            strict: kernel.strict,
            deny: kernel.levels.deny.clone(),
            warn: kernel.levels.warn.clone(),
            allow: kernel.levels.allow.clone(),
            max_steps: kernel.max_steps,
            max_memory: kernel.max_memory.clone(),
            capacity: kernel.capacity.clone(),
            set: texts(&timing.set),
            params: timing.params.as_ref().map(|p| p.to_string_lossy().into_owned()),
            schedule: Some(timing.schedule.clone()),
            measure: timing.measure.clone(),
            expect: texts(expect),
            rtol: *rtol,
            atol: *atol,
            no_numerics: expect.is_empty(),
            ..Job::default()
        })
    }
}

impl CheckJob {
    /// The words of `nki-sim check`.
    pub(crate) fn words(&self) -> Result<Vec<String>, String> {
        let mut words = Words::new("check");
        self.kernel_words(&mut words)?;
        Ok(words.about(self.file()?))
    }
}

impl SweepJob {
    /// The words of `nki-sim sweep`.
    pub(crate) fn words(&self) -> Result<Vec<String>, String> {
        check_tolerances(self.rtol, self.atol, &self.expect)?;
        if self.grid.0.is_empty() {
            return Err(
                "`grid` is empty: give a list of values for each name, such as {\"columns\": [256, 512]}".into()
            );
        }
        let mut words = Words::new("sweep");
        self.kernel_words(&mut words)?;
        for (name, values) in &self.grid.0 {
            let Value::Array(values) = values else { return Err(format!("`grid`: `{name}` is not a list of values")) };
            if values.is_empty() {
                return Err(format!("`grid`: `{name}` has no values"));
            }
            let texts = values.iter().map(text).collect::<Result<Vec<_>, _>>()?;
            words.one("--grid", Some(format!("{name}={}", texts.join(","))));
        }
        words.named("--set", &self.set)?;
        words.one("--params", self.params.as_ref());
        words.one("--schedule", self.schedule.as_ref());
        words.one("--measure", self.measure.as_ref());
        words.named("--expect", &self.expect)?;
        words.one("--rtol", self.rtol);
        words.one("--atol", self.atol);
        Ok(words.about(self.file()?))
    }
}

/// Words of a command line.
struct Words(Vec<String>);

impl Words {
    fn new(command: &str) -> Self {
        Words(vec!["nki-sim".into(), command.into()])
    }

    fn flag(&mut self, option: &str, given: bool) {
        if given {
            self.0.push(option.into());
        }
    }

    fn one(&mut self, option: &str, value: Option<impl fmt::Display>) {
        if let Some(value) = value {
            self.0.push(format!("{option}={value}"));
        }
    }

    fn named(&mut self, option: &str, values: &Named) -> Result<(), String> {
        for (name, value) in &values.0 {
            let text = text(value).map_err(|e| format!("`{name}`: {e}"))?;
            self.0.push(format!("{option}={name}={text}"));
        }
        Ok(())
    }

    fn about(mut self, file: &str) -> Vec<String> {
        self.0.extend(["--".into(), file.into()]);
        self.0
    }
}

/// A value in the syntax of `--arg`.
pub(crate) fn text(value: &Value) -> Result<String, String> {
    Ok(match value {
        Value::Null => "None".into(),
        Value::Bool(true) => "True".into(),
        Value::Bool(false) => "False".into(),
        Value::Number(n) => n.to_string(),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(text).collect::<Result<Vec<_>, _>>()?.join(",")),
        Value::Object(map) => match map.get("values") {
            Some(values) => {
                if let Some(other) = map.keys().find(|k| !["dtype", "values"].contains(&k.as_str())) {
                    return Err(format!("unknown field `{other}`: an array has `dtype` and `values`"));
                }
                let dtype = match map.get("dtype") {
                    None => "float32",
                    Some(Value::String(name)) if crate::value::dtype_name(name).is_some() => name,
                    Some(Value::String(other)) => return Err(crate::value::no_dtype(other)),
                    Some(other) => return Err(format!("the dtype of an array is a name, not {other}")),
                };
                format!("{dtype}({})", text(values)?)
            }
            None => {
                let entry = |(key, value): (&String, &Value)| {
                    let key = key.replace('\\', "\\\\").replace('\'', "\\'").replace('\n', "\\n");
                    Ok(format!("'{key}': {}", text(value)?))
                };
                format!("{{{}}}", map.iter().map(entry).collect::<Result<Vec<_>, String>>()?.join(", "))
            }
        },
    })
}

/// The error for JSON other than an object.
const NOT_A_JOB: &str = "a job is a JSON object";

/// Parses a job; errors name the field.
pub(crate) fn read<T: DeserializeOwned + JsonSchema>(json: &str) -> Result<T, String> {
    // Without the line end, so that errors are reported in this line.
    let json = json.trim();
    // serde also accepts a list of fields as a job.
    let is_object = json.starts_with('{');
    let wrong = match serde_json::from_str(json) {
        Ok(job) if is_object => return Ok(job),
        Ok(_) => return Err(NOT_A_JOB.into()),
        Err(wrong) => wrong,
    };
    match serde_json::from_str(json) {
        Ok(Value::Object(fields)) => Err(fault::<T>(fields).unwrap_or_else(|| wrong.to_string())),
        Ok(_) => Err(NOT_A_JOB.into()),
        Err(_) => Err(format!("not valid JSON: {wrong}")),
    }
}

/// The first invalid field.
fn fault<T: DeserializeOwned + JsonSchema>(fields: Map<String, Value>) -> Option<String> {
    let known = fields_of::<T>();
    for (name, value) in fields {
        if !known.contains(&name) {
            let hint = slugs::nearest_of(&name, known.iter().map(String::as_str))
                .map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            return Some(format!("unknown field `{name}`{hint}"));
        }
        let alone = Value::Object(Map::from_iter([(name.clone(), value)]));
        match serde_json::from_value::<T>(alone) {
            Err(e) if !e.to_string().starts_with("missing field") => {
                return Some(format!("`{name}`: {}", in_words(&e.to_string())));
            }
            _ => {}
        }
    }
    None
}

/// A serde error in terms of JSON.
fn in_words(error: &str) -> String {
    let kinds = [
        ("expected u32", "expected a whole number from 0 to 4294967295"),
        ("expected u64", "expected a whole number, at least 0"),
        ("expected f64", "expected a number"),
    ];
    kinds.iter().fold(error.to_owned(), |text, (kind, words)| text.replace(kind, words))
}

/// The names of a job's fields.
fn fields_of<T: JsonSchema>() -> Vec<String> {
    let schema = schemars::schema_for!(T).to_value();
    schema["properties"].as_object().map(|fields| fields.keys().cloned().collect()).unwrap_or_default()
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
