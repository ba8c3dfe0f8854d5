//! The evaluator's interfaces to the language of a file and to the program being built.
//!
//! [`Dialect`] provides the rules and modules of the language in which a file is written.
//! [`Backend`] receives the output of evaluation.

use std::any::Any;
use std::rc::Rc;
use std::sync::Arc;

use nki_diag::{Diagnostic, Span};
use nki_isa::program::Trail;
use nki_isa::{DType, Loc, Program, TensorId};

use super::Interp;
use super::error::EvalResult;
use super::foreign::{Acts, Iterations};
use super::native::{CallArgs, Native};
use super::value::{Function, Value};
use crate::syntax::{BinOp, ClassDef, CmpOp, Expr, Param, UnaryOp};

/// The language of a file: the modules that it can import, its rules for tensors, and its
/// deviations from Python.
///
/// A dialect belongs to a module, and applies to the code of the module's functions: a program may
/// mix dialects.
pub(crate) trait Dialect {
    /// Its name, unique among dialects.
    fn name(&self) -> &'static str;

    /// The dialect that provides the defaults of its methods. A dialect without a base overrides
    /// them all.
    fn base(&self) -> &'static dyn Dialect;

    /// The packages whose modules this dialect provides. Other modules in them do not exist.
    fn packages(&self) -> &'static [&'static str] {
        self.base().packages()
    }

    /// Whether it provides a module with this dotted name.
    fn has_module(&self, path: &str) -> bool {
        self.base().has_module(path)
    }

    /// `module.name`; `None` if there is no such name. Called once per module and name. The
    /// evaluator handles submodules.
    fn attribute(&self, interp: &mut Interp<'_>, module: &str, name: &str, span: Span) -> Option<Value> {
        self.base().attribute(interp, module, name, span)
    }

    /// Names of a module, for "did you mean".
    fn names(&self, module: &str) -> Vec<&'static str> {
        self.base().names(module)
    }

    /// The meaning of an unbound name.
    fn undefined(&self, interp: &mut Interp<'_>, name: &str, span: Span) -> Option<Value> {
        self.base().undefined(interp, name, span)
    }

    /// `base[index]` where `base` is a tensor.
    fn index(&self, interp: &mut Interp<'_>, base: &Value, index: &Value, span: Span) -> EvalResult<Value> {
        self.base().index(interp, base, index, span)
    }

    /// `base[index] = value` where `base` is a tensor.
    fn assign(
        &self,
        interp: &mut Interp<'_>,
        base: &Value,
        index: &Value,
        value: &Value,
        span: Span,
    ) -> EvalResult<()> {
        self.base().assign(interp, base, index, value, span)
    }

    /// `left op right` where one side is a tensor or a register.
    fn binary(
        &self,
        interp: &mut Interp<'_>,
        op: BinOp,
        left: &Value,
        right: &Value,
        span: Span,
    ) -> EvalResult<Option<Value>> {
        self.base().binary(interp, op, left, right, span)
    }

    /// `left op= right` in place, where the left operand is a tensor: the new value of the target;
    /// `None` computes a new value.
    fn in_place(
        &self,
        _interp: &mut Interp<'_>,
        _op: BinOp,
        _left: &Value,
        _right: &Value,
        _span: Span,
    ) -> EvalResult<Option<Value>> {
        Ok(None)
    }

    /// `op value` where the value is a tensor or a register.
    fn unary(&self, interp: &mut Interp<'_>, op: UnaryOp, value: &Value, span: Span) -> EvalResult<Value> {
        self.base().unary(interp, op, value, span)
    }

    /// `left op right` where one operand is a tensor or a register; `None` compares identities.
    fn compare(
        &self,
        interp: &mut Interp<'_>,
        op: CmpOp,
        left: &Value,
        right: &Value,
        span: Span,
    ) -> EvalResult<Option<Value>> {
        self.base().compare(interp, op, left, right, span)
    }

    /// The truth value of a dict or a tensor; `None` applies Python's rule.
    fn truth(&self, interp: &mut Interp<'_>, value: &Value, span: Span) -> EvalResult<Option<bool>> {
        self.base().truth(interp, value, span)
    }

    /// `base.name(...)` of a list, dict, kernel or tensor, if it differs from the evaluator's or
    /// the tensor's own method; otherwise `None`.
    fn method(&self, interp: &mut Interp<'_>, base: &Value, name: &str, args: &CallArgs) -> EvalResult<Option<Value>> {
        self.base().method(interp, base, name, args)
    }

    /// The function of the language that replaces NumPy's function `name` when it is called with
    /// tensors; `None` if there is none.
    fn array_function(&self, _interp: &mut Interp<'_>, _name: &str) -> Option<Value> {
        None
    }

    /// The names of the tensor methods that only this dialect has.
    fn tensor_methods(&self) -> &'static [&'static str] {
        &[]
    }

    /// Checks a call at `span` of a kernel with this `compile_config` (None without) inside another
    /// kernel.
    ///
    /// # Errors
    /// If the two configurations are incompatible.
    fn nested_kernel(&self, interp: &mut Interp<'_>, config: &Value, span: Span) -> EvalResult<()> {
        self.base().nested_kernel(interp, config, span)
    }

    /// Reports, in a kernel compiled with [`crate::Options::strict`], a construct that the official
    /// compiler of this dialect rejects.
    fn check_strictly(&self, interp: &mut Interp<'_>, construct: &Construct<'_>) {
        self.base().check_strictly(interp, construct);
    }

    /// The values that a kernel may return.
    fn outputs(&self) -> Outputs {
        Outputs::default()
    }

    /// The output for a value that the kernel at `span` returns under this name.
    ///
    /// # Errors
    /// If the value cannot be stored.
    fn output(&self, _interp: &mut Interp<'_>, _name: &str, value: &Value, _span: Span) -> EvalResult<Value> {
        Ok(value.clone())
    }

    /// Whether the compiler evaluates the body of a loop over this iterable once, so that updates
    /// of Python numbers in the body do not accumulate.
    fn reads_body_once(&self, _interp: &Interp<'_>, _iterable: &Expr) -> bool {
        false
    }

    /// Whether the iterable declares that no iteration of the loop depends on another.
    fn is_independent(&self, _interp: &Interp<'_>, _iterable: &Expr) -> bool {
        false
    }

    /// The copier for the iterations of a loop that is about to be unrolled; `None` if they have to
    /// be evaluated.
    fn iterations(&self, _interp: &mut Interp<'_>) -> Option<Box<dyn Iterations>> {
        None
    }

    /// The effect of a function of this dialect, if that is its only effect.
    fn acts(&self, _function: &Native) -> Option<Acts> {
        None
    }

    /// Whether this is a tensor, whose views start at the indices given.
    fn is_tensor(&self, _value: &Value) -> bool {
        false
    }

    /// Whether a name whose value was the tile or register `old` and is now `now` refers to
    /// different storage.
    fn is_other_storage(&self, _old: &Value, _now: &Value) -> bool {
        false
    }

    /// Checks that the language allows a kernel with these parameters to return `outputs` and write
    /// its arguments `written`.
    fn check_written(
        &self,
        _interp: &mut Interp<'_>,
        _params: &[Param],
        _written: &[(String, Value)],
        _outputs: &[(String, Value)],
    ) {
    }

    /// The check for a value whose variable is annotated `class[index]`; it receives class, index
    /// and value.
    fn annotated(&self) -> Option<Annotated> {
        None
    }

    /// Whether its kernels are for the compiler of `neuronxcc.nki`.
    fn is_older(&self) -> bool {
        false
    }

    /// Advice on an error of the evaluator, in terms of this dialect.
    fn hint(&self, hint: Hint) -> &'static str {
        self.base().hint(hint)
    }

    /// `str(value)` if it differs from Python's, otherwise `None`.
    fn text(&self, _interp: &mut Interp<'_>, _value: &Value) -> EvalResult<Option<String>> {
        Ok(None)
    }
}

/// The values that a kernel of a dialect may return.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outputs {
    /// If it returns nothing, the arguments that it writes.
    pub(crate) arguments: bool,
    /// Tensors in private HBM.
    pub(crate) private: bool,
}

/// A mistake whose correction depends on the dialect: see [`Dialect::hint`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum Hint {
    /// Arguments for a class that has no constructor.
    Constructor,
    /// `with` on a value that is not a context manager.
    Context,
    /// A function of `math` called with a tensor.
    DeviceMath,
    /// Python code that needs the values of a tensor: `np.asarray(tensor)`.
    DeviceValues,
    /// `range` with a bound that the device computes.
    DeviceRange,
    /// A launch grid whose number of cores differs from the one that the kernel is compiled for.
    LaunchGrid,
    /// A value of the host program used in a kernel.
    HostValue,
    /// A name that a loop changes, although each iteration starts with its initial value.
    LoopCarried,
    /// A function that a statement creates but does not call.
    UnusedFunction,
}

/// A Python construct in a kernel, which [`Dialect::check_strictly`] may report.
pub(crate) enum Construct<'c> {
    /// A call of a function.
    Function(&'c Rc<Function>),
    /// The construction of an object of a class.
    Class(&'c ClassDef),
    /// A call of a value.
    Call(&'c Value, Span),
    /// A call of a method of a built-in value.
    Method(&'c Value, &'c str, Span),
    /// Indexing of a tensor inside the index of its view.
    NestedIndex(Span),
    /// A list as an argument of the kernel.
    ListArgument(Span),
    /// A new dict entry whose key has this type, which is not str.
    DictKey(&'c str, Span),
}

/// See [`Dialect::annotated`].
pub(crate) type Annotated = fn(&mut Interp<'_>, &Value, &Value, &Value, Span) -> EvalResult<()>;

/// The dialect of a file that imports these modules.
pub(crate) type ChooseDialect = fn(&crate::Options, &[&str]) -> &'static dyn Dialect;

/// A dependence between two named instructions: (the later one, the one that it waits for).
pub(crate) type Edge = (Rc<str>, Rc<str>);

/// The receiver of the output of evaluation.
pub(crate) trait Backend: Any {
    /// The number of statements and tensors so far, for which memory is charged.
    fn size(&self) -> (u64, usize);

    /// The number of statements in the open blocks, which shows whether a statement of the kernel
    /// has emitted any.
    fn open_statements(&self) -> usize;

    /// The findings about what was emitted since the last call, each with its span.
    fn take_findings(&mut self) -> Vec<(Diagnostic, Span)>;

    /// The value of a tensor argument: an input with that name, the same for each core.
    ///
    /// # Errors
    /// If the shape breaks a rule.
    fn input(&mut self, name: &str, shape: &[usize], dtype: DType, loc: Loc, span: Span) -> EvalResult<Value>;

    /// Begins the evaluation of this kernel for this core (0, then 1 with `lnc == 2`).
    fn begin_core(&mut self, kernel: &str, core: u32, schedule: &[Edge]);

    /// Begins the evaluation of a program of a launch grid: the number of programs along each axis,
    /// the position of this one, and the number of programs that this core ran before it.
    fn begin_program(&mut self, counts: &[u32], at: &[u32], index: u32);

    /// The arguments that the kernel has written, with their names. They are the outputs of a
    /// kernel that returns nothing.
    fn written_inputs(&self) -> Vec<(String, Value)>;

    /// Receives the values that core 0 returned, by name, for the outputs of the kernel at `span`,
    /// before the next core begins. Returns findings.
    ///
    /// # Errors
    /// `kernel-output` for a value that cannot be an output.
    fn return_outputs(
        &mut self,
        outputs: &[(String, Value)],
        allowed: Outputs,
        span: Span,
        findings: &mut Vec<Diagnostic>,
    ) -> EvalResult<()>;

    /// The storage and the name of a tensor; `None` for another value.
    fn tensor(&self, value: &Value) -> Option<(TensorId, String)>;

    /// The finished program of the kernel at `span`, evaluated from these files.
    ///
    /// # Errors
    /// `depends-on` if no instruction satisfies an edge of the schedule.
    fn finish(&mut self, files: Vec<Arc<str>>, trails: Vec<Trail>, span: Span) -> EvalResult<Program>;
}
