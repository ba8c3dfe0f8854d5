//! What the evaluator knows of languages and programs that are not Python's.
//!
//! [`Dialect`] is the rules and modules of the language that a file is written in, and [`Backend`] what evaluation produces.

use std::any::Any;
use std::rc::Rc;
use std::sync::Arc;

use nki_diag::{Diagnostic, Span};
use nki_isa::program::Trail;
use nki_isa::{DType, Loc, Program};

use super::Interp;
use super::error::EvalResult;
use super::foreign::{Acts, Iterations};
use super::native::{CallArgs, Native};
use super::value::{Function, Value};
use crate::syntax::{BinOp, ClassDef, CmpOp, Expr, Param, UnaryOp};

/// The language of a file: the modules it can import, and its rules for tensors, and for Python where they differ.
///
/// A dialect belongs to a module, and applies to what the functions of that module do: a program may mix dialects.
pub(crate) trait Dialect {
    /// Its name, different for each dialect.
    fn name(&self) -> &'static str;

    /// The dialect that it follows in what it does not say itself; one that has none says everything.
    fn base(&self) -> &'static dyn Dialect;

    /// Packages whose modules this dialect provides: what is not among them does not exist.
    fn packages(&self) -> &'static [&'static str] {
        self.base().packages()
    }

    /// Whether it provides a module of this dotted name.
    fn has_module(&self, path: &str) -> bool {
        self.base().has_module(path)
    }

    /// `module.name`; `None` if there is no such name. Called once per module and name; submodules are found by the evaluator.
    fn attribute(&self, interp: &mut Interp<'_>, module: &str, name: &str, span: Span) -> Option<Value> {
        self.base().attribute(interp, module, name, span)
    }

    /// Names of a module, for "did you mean".
    fn names(&self, module: &str) -> Vec<&'static str> {
        self.base().names(module)
    }

    /// What a name means that nothing binds.
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

    /// `left op= right` in place where the left side is a tensor: what the target holds then; `None` computes a new value.
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

    /// `left op right` where one side is a tensor or a register; `None` compares identities.
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

    /// Whether a dict or a tensor counts as true; `None` where that is Python's rule.
    fn truth(&self, interp: &mut Interp<'_>, value: &Value, span: Span) -> EvalResult<Option<bool>> {
        self.base().truth(interp, value, span)
    }

    /// `base.name(...)` of a list, dict, kernel or tensor, where it differs from what the evaluator or the tensor does; `None` where it does not.
    fn method(&self, interp: &mut Interp<'_>, base: &Value, name: &str, args: &CallArgs) -> EvalResult<Option<Value>> {
        self.base().method(interp, base, name, args)
    }

    /// The function of the language that NumPy's function `name` stands for where it is called with tensors; `None` if it stands for none.
    fn array_function(&self, _interp: &mut Interp<'_>, _name: &str) -> Option<Value> {
        None
    }

    /// Names of the methods of tensors that only this dialect has.
    fn tensor_methods(&self) -> &'static [&'static str] {
        &[]
    }

    /// A kernel with this `compile_config` (None without) is about to be called at `span` inside of another one.
    ///
    /// # Errors
    /// If the two do not fit together.
    fn nested_kernel(&self, interp: &mut Interp<'_>, config: &Value, span: Span) -> EvalResult<()> {
        self.base().nested_kernel(interp, config, span)
    }

    /// Reports, in a kernel compiled with [`crate::Options::strict`], what the official compiler of this dialect rejects in a construct.
    fn check_strictly(&self, interp: &mut Interp<'_>, construct: &Construct<'_>) {
        self.base().check_strictly(interp, construct);
    }

    /// What a kernel may return.
    fn outputs(&self) -> Outputs {
        Outputs::default()
    }

    /// What the kernel at `span` gives for a value that it returns under this name.
    ///
    /// # Errors
    /// If it cannot be stored.
    fn output(&self, _interp: &mut Interp<'_>, _name: &str, value: &Value, _span: Span) -> EvalResult<Value> {
        Ok(value.clone())
    }

    /// Whether the compiler reads the body of a loop over this once: Python's numbers that the body updates do not add up.
    fn reads_body_once(&self, _interp: &Interp<'_>, _iterable: &Expr) -> bool {
        false
    }

    /// Whether who loops over this says that no iteration depends on another one.
    fn is_independent(&self, _interp: &Interp<'_>, _iterable: &Expr) -> bool {
        false
    }

    /// What copies the iterations of a loop that is about to be unrolled; `None` where they have to be evaluated.
    fn iterations(&self, _interp: &mut Interp<'_>) -> Option<Box<dyn Iterations>> {
        None
    }

    /// What a function of this dialect does, if it does nothing else.
    fn acts(&self, _function: &Native) -> Option<Acts> {
        None
    }

    /// Whether it is a tensor, whose views begin at the numbers that index it.
    fn is_tensor(&self, _value: &Value) -> bool {
        false
    }

    /// Whether a name that held the tile or the register `old` and holds `now` was bound to another one.
    fn is_other_storage(&self, _old: &Value, _now: &Value) -> bool {
        false
    }

    /// A kernel with these parameters returns `outputs` and writes to its arguments `written`: reports what the language does not allow.
    fn check_written(
        &self,
        _interp: &mut Interp<'_>,
        _params: &[Param],
        _written: &[(String, Value)],
        _outputs: &[(String, Value)],
    ) {
    }

    /// The check of a value whose variable is annotated `class[index]`: gets class, index and value.
    fn annotated(&self) -> Option<Annotated> {
        None
    }

    /// Whether the compiler of `neuronxcc.nki` compiles its kernels.
    fn is_older(&self) -> bool {
        false
    }

    /// How to correct an error of the evaluator, with names of this dialect.
    fn hint(&self, hint: Hint) -> &'static str {
        self.base().hint(hint)
    }

    /// `str(value)` where it differs from Python's; `None` where it does not.
    fn text(&self, _interp: &mut Interp<'_>, _value: &Value) -> EvalResult<Option<String>> {
        Ok(None)
    }
}

/// What a kernel of a dialect may return.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outputs {
    /// The arguments that it writes, if it returns nothing.
    pub(crate) arguments: bool,
    /// Tensors in private HBM.
    pub(crate) private: bool,
}

/// A mistake whose correction names something of the dialect: see [`Dialect::hint`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum Hint {
    /// Arguments for a class that has no constructor.
    Constructor,
    /// `with` on a value that is no context.
    Context,
    /// A function of `math` called with a tensor.
    DeviceMath,
    /// `range` with a bound that the device computes.
    DeviceRange,
    /// A launch grid over another number of cores than the kernel is compiled for.
    LaunchGrid,
    /// A value of the host program used in a kernel.
    HostValue,
    /// A name that a loop changes although each iteration begins with its first value.
    LoopCarried,
    /// A function that a statement makes and does not call.
    UnusedFunction,
}

/// A construct of Python that a kernel uses, which [`Dialect::check_strictly`] may report.
pub(crate) enum Construct<'c> {
    /// A function is called.
    Function(&'c Rc<Function>),
    /// An object of a class is made.
    Class(&'c ClassDef),
    /// A value is called.
    Call(&'c Value, Span),
    /// A method of a built-in value is called.
    Method(&'c Value, &'c str, Span),
    /// A tensor is indexed in the expression that indexes its view.
    NestedIndex(Span),
    /// A parameter of the kernel gets a list.
    ListArgument(Span),
    /// An entry of a dict gets a key of this type, which is not str.
    DictKey(&'c str, Span),
}

/// See [`Dialect::annotated`].
pub(crate) type Annotated = fn(&mut Interp<'_>, &Value, &Value, &Value, Span) -> EvalResult<()>;

/// The dialect of a file that imports these modules.
pub(crate) type ChooseDialect = fn(&crate::Options, &[&str]) -> &'static dyn Dialect;

/// An instruction that waits for another one: their names, the later one first.
pub(crate) type Edge = (Rc<str>, Rc<str>);

/// What evaluation produces.
pub(crate) trait Backend: Any {
    /// Statements and tensors made so far: memory is charged for them.
    fn size(&self) -> (u64, usize);

    /// Statements in the blocks that are open: whether a statement of the kernel has emitted any.
    fn open_statements(&self) -> usize;

    /// Findings about what was made since the last call, each with its place.
    fn take_findings(&mut self) -> Vec<(Diagnostic, Span)>;

    /// The value of a tensor argument: an input of that name, the same one for each core.
    ///
    /// # Errors
    /// The rule that its shape breaks.
    fn input(&mut self, name: &str, shape: &[usize], dtype: DType, loc: Loc, span: Span) -> EvalResult<Value>;

    /// The kernel of this name is about to be evaluated for this core (0, then 1 with `lnc == 2`).
    fn begin_core(&mut self, kernel: &str, core: u32, schedule: &[Edge]);

    /// A program of a launch grid is about to be evaluated: how many along each axis, its position, and how many this core ran before it.
    fn begin_program(&mut self, counts: &[u32], at: &[u32], index: u32);

    /// Arguments that the kernel has written, with their names: what one returns that returns nothing.
    fn written_inputs(&self) -> Vec<(String, Value)>;

    /// Takes the values that core 0 returned, by name, for outputs of the kernel at `span`, before the next core is begun. Gives findings.
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

    /// The finished program of the kernel at `span`, read from these files.
    ///
    /// # Errors
    /// `depends-on` for an edge of the schedule that no instruction keeps.
    fn finish(&mut self, files: Vec<Arc<str>>, trails: Vec<Trail>, span: Span) -> EvalResult<Program>;
}
