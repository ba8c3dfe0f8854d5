//! Text to program.

mod operand;

use std::sync::Arc;

use smallvec::SmallVec;

use super::cursor::{Cursor, Parsed, Problem};
use super::{VERSION, base64};
use crate::arch::Target;
use crate::arg::{Arg, Imm};
use crate::dtype::DType;
use crate::ids::{Address, Loc, RegId, TagId, TensorId, TrailId};
use crate::inst::{self, Inst};
use crate::names::{Named, Space};
use crate::program::{Bound, Control, Input, Node, NodeKind, Output, Program, Step, Tag, Trail};
use crate::tensor::{Declaration, Tensor};
use crate::view::{Dim, Dims, Index, Indirect, MAX_DIMS, View};

/// A mistake in the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {message}")]
pub struct ParseError {
    /// 1-based line.
    pub line: usize,
    /// 1-based column in characters.
    pub column: usize,
    /// Describes what was expected and what was found.
    pub message: String,
}

/// Limits on a text's content, so that address arithmetic cannot overflow.
const MAX_BYTES: u128 = 1 << 40;
const MAX_STRIDE: i64 = 1 << 40;
const MAX_DEPTH: usize = 200;
const MOST_REGISTERS: u32 = 1 << 20;
const MAX_ERRORS: usize = 50;

/// Reads a program. Instructions are built but not validated: see [`Program::validate`].
///
/// # Errors
/// All mistakes found, in order of lines (at most 50).
pub fn parse(text: &str) -> Result<Program, Vec<ParseError>> {
    read(text, None)
}

/// As [`parse`], for a hand-written text in the file `path`: statements without a location are located in that file.
///
/// # Errors
/// As [`parse`].
pub fn parse_file(path: &str, text: &str) -> Result<Program, Vec<ParseError>> {
    read(text, Some(path))
}

fn read(text: &str, path: Option<&str>) -> Result<Program, Vec<ParseError>> {
    // The text's own file follows the files that it declares.
    let own_file = text.lines().filter(|l| l.trim_start().starts_with("file ")).count() as u32;
    let mut parser = Parser {
        program: Program {
            name: "".into(),
            target: Target::DEFAULT,
            files: Vec::new(),
            tensors: Vec::new(),
            registers: 0,
            inputs: Vec::new(),
            outputs: Vec::new(),
            trails: vec![Trail { parent: None, step: Step::Root }],
            tags: Vec::new(),
            cores: Vec::new(),
        },
        blocks: Vec::new(),
        started: false,
        tags_named: 0,
        here: Loc::default(),
        here_used: false,
    };
    let mut errors = Vec::new();
    let mut lines = 0;
    let mut next_line = 0;
    for (index, whole) in text.split_inclusive('\n').enumerate() {
        lines = index + 1;
        let start = next_line;
        next_line += whole.len();
        let line = whole.strip_suffix('\n').map_or(whole, |l| l.strip_suffix('\r').unwrap_or(l));
        if path.is_some() {
            parser.here = statement_loc(line, own_file, lines, start);
        }
        if line.trim().is_empty() || line.trim_start().starts_with("//") {
            continue;
        }
        if let Err(problem) = parser.line(line, lines) {
            let column = line.char_indices().take_while(|(at, _)| *at < problem.at).count() + 1;
            errors.push(ParseError { line: lines, column, message: problem.message });
            // Without the header all other errors are noise.
            if errors.len() >= MAX_ERRORS || !parser.started {
                return Err(errors);
            }
        }
    }
    if !parser.started {
        errors.push(ParseError {
            line: 1,
            column: 1,
            message: format!("expected `nkir {VERSION}`, found an empty file"),
        });
    }
    let open = parser.blocks.last().map(|b| b.line);
    if let Some(opened) = open {
        errors.push(ParseError {
            line: lines + 1,
            column: 1,
            message: format!("expected `}}` to close the block of line {opened}, found the end of the file"),
        });
    }
    let tags = parser.program.tags.len();
    if parser.tags_named as usize > tags {
        let message = format!("a tag must come after tag {}, which is not declared", parser.tags_named - 1);
        errors.push(ParseError { line: lines + 1, column: 1, message });
    }
    if parser.here_used
        && let Some(path) = path
    {
        parser.program.files.push(path.into());
    }
    if errors.is_empty() { Ok(parser.program) } else { Err(errors) }
}

/// The location of a line's statement in the text: `start` is the line's first byte, `line_number` counts from 1.
fn statement_loc(line: &str, file: u32, line_number: usize, start: usize) -> Loc {
    let indent = line.len() - line.trim_start().len();
    let byte = |n: usize| u32::try_from(start + n).unwrap_or(u32::MAX);
    Loc {
        file,
        line: line_number as u32,
        column: indent as u32 + 1,
        start: byte(indent),
        end: byte(line.trim_end().len().max(indent)),
    }
}

/// A block that is still open.
struct Block {
    /// The statement it will become.
    kind: Open,
    /// Statements so far.
    nodes: Vec<Node>,
    loc: Loc,
    trail: TrailId,
    /// Where it was opened.
    line: usize,
}

enum Open {
    Core,
    For {
        variable: RegId,
        lower: Bound,
        upper: Bound,
        step: i64,
    },
    While {
        condition: RegId,
    },
    Then {
        condition: RegId,
    },
    Else {
        condition: RegId,
        then: Vec<Node>,
    },
    /// Opened by a line with a mistake: parsed, then dropped.
    Broken,
}

struct Parser {
    program: Program,
    blocks: Vec<Block>,
    started: bool,
    /// Upper bound of the tags named in `after` lists.
    tags_named: u32,
    /// Default location of a statement on the current line: unknown, or in this text.
    here: Loc,
    /// Whether `here` was used.
    here_used: bool,
}

impl Parser {
    fn line(&mut self, line: &str, number: usize) -> Parsed<()> {
        let mut c = Cursor::new(line);
        if !self.started {
            if !c.keyword("nkir") {
                return c.expected(format_args!("`nkir {VERSION}`"));
            }
            let at = c.mark();
            let version: i64 = c.int("a version")?;
            if version != VERSION {
                return c.problem_at(
                    at,
                    format!("version {version} of the format is not supported; this program reads version {VERSION}"),
                );
            }
            self.started = true;
            return end(&mut c);
        }
        if !self.blocks.is_empty() {
            return self.statement(&mut c, line, number);
        }
        let at = c.mark();
        match c.word("a declaration (kernel, target, file, trail, tag, tensor, input, output, registers or core)")? {
            "kernel" => self.program.name = c.name("a name")?.into(),
            "target" => self.program.target = named(&mut c)?,
            "file" => {
                self.index(&mut c, self.program.files.len(), "file")?;
                let file = c.string()?;
                self.program.files.push(file.into());
            }
            "trail" => return self.trail(&mut c),
            "tag" => self.tag(&mut c)?,
            "tensor" => return self.tensor(&mut c),
            "input" => {
                let name: Arc<str> = c.name("a name")?.into();
                let tensor = self.hbm_tensor(&mut c)?;
                self.program.inputs.push(Input { name, tensor });
            }
            "output" => {
                let name: Arc<str> = c.name("a name")?.into();
                let tensor = self.hbm_tensor(&mut c)?;
                self.program.outputs.push(Output { name, tensor });
            }
            "registers" => {
                let at = c.mark();
                let registers = c.int("a number of registers")?;
                if registers > MOST_REGISTERS {
                    return c
                        .problem_at(at, format!("{registers} registers are too many; the limit is {MOST_REGISTERS}"));
                }
                self.program.registers = registers;
            }
            "core" => {
                c.expect("{")?;
                self.open(Open::Core, Loc::default(), TrailId::ROOT, number);
            }
            other => {
                return c.problem_at(
                    at,
                    format!("unknown declaration `{other}`: expected kernel, target, file, trail, tag, tensor, input, output, registers or core"),
                );
            }
        }
        end(&mut c)
    }

    fn open(&mut self, kind: Open, loc: Loc, trail: TrailId, line: usize) {
        self.blocks.push(Block { kind, nodes: Vec::new(), loc, trail, line });
    }

    /// Reads the index of a table entry, which must be `want`.
    fn index(&self, c: &mut Cursor<'_>, want: usize, what: &str) -> Parsed<()> {
        let at = c.mark();
        let got: usize = c.int(&format!("the number of the {what}"))?;
        if got == want { Ok(()) } else { c.problem_at(at, format!("{what} {got} is out of order: the next is {want}")) }
    }

    fn trail(&mut self, c: &mut Cursor<'_>) -> Parsed<()> {
        self.index(c, self.program.trails.len(), "trail")?;
        c.expect("<")?;
        let parent = self.trail_id(c)?;
        let name_at_string = c.is_string();
        let name = c.name("a loop variable, `call` or `root`")?;
        let step = if c.take("=") {
            let value = c.int("the value of the loop variable")?;
            let is_count = c.take("count");
            let independent = c.take("independent");
            let (loc, _) = self.place(c)?;
            Step::Iteration { variable: name.into(), value, is_count, loc, independent }
        } else if name == "call" && !name_at_string {
            let function = c.name("the name of the function")?;
            let (loc, _) = self.place(c)?;
            Step::Call { function: function.into(), loc }
        } else if name == "root" && !name_at_string {
            Step::Root
        } else {
            return c.expected("`=` and the value of the loop variable");
        };
        self.program.trails.push(Trail { parent: Some(parent), step });
        end(c)
    }

    /// `N "name" after A, B issued after C in BLOCK`. A tag may follow one that is declared later.
    fn tag(&mut self, c: &mut Cursor<'_>) -> Parsed<()> {
        self.index(c, self.program.tags.len(), "tag")?;
        let name = c.string()?.into();
        let after = if c.keyword("after") { self.tags_before(c)? } else { Vec::new() };
        let issued_after = match c.keyword("issued") {
            true if c.keyword("after") => self.tags_before(c)?,
            true => return c.problem("expected `after`"),
            false => Vec::new(),
        };
        let block = if c.keyword("in") { Some(c.int("the number of a block")?) } else { None };
        self.program.tags.push(Tag { name, after, issued_after, block });
        Ok(())
    }

    fn tags_before(&mut self, c: &mut Cursor<'_>) -> Parsed<Vec<TagId>> {
        let mut before = Vec::new();
        loop {
            let id: u32 = c.int("the number of a tag")?;
            self.tags_named = self.tags_named.max(id.saturating_add(1));
            before.push(TagId(id));
            if !c.take(",") {
                return Ok(before);
            }
        }
    }

    fn trail_id(&self, c: &mut Cursor<'_>) -> Parsed<TrailId> {
        let at = c.mark();
        let id: u32 = c.int("the number of a trail")?;
        if (id as usize) < self.program.trails.len() {
            Ok(TrailId(id))
        } else {
            c.problem_at(at, format!("trail {id} is not declared above"))
        }
    }

    fn tensor(&mut self, c: &mut Cursor<'_>) -> Parsed<()> {
        c.expect("%")?;
        self.index(c, self.program.tensors.len(), "tensor")?;
        let name = c.name("the tensor's name")?;
        c.expect(":")?;
        let space: Space = named(c)?;
        let dtype: DType = named(c)?;
        let at = c.mark();
        let mut shape = SmallVec::new();
        let mut bytes = dtype.size() as u128;
        c.expect("[")?;
        loop {
            let n: u32 = c.int("an extent")?;
            shape.push(n);
            bytes = bytes.saturating_mul(u128::from(n));
            if !c.take(",") {
                break;
            }
        }
        c.expect("]")?;
        if bytes == 0 || bytes > MAX_BYTES || shape.len() > MAX_DIMS {
            return c.problem_at(
                at,
                format!("shape {:?} is empty or too large (limits: {MAX_DIMS} dimensions, 2**40 bytes)", &shape[..]),
            );
        }
        let address = if c.take("@") {
            c.expect("(")?;
            let partition = c.int("a partition")?;
            c.expect(",")?;
            let byte = c.int("a byte")?;
            c.expect(")")?;
            Some(Address { partition, byte })
        } else {
            None
        };
        let unnamed = c.keyword("unnamed");
        let core = if c.keyword("core") { c.int("the number of a core")? } else { 0 };
        let loops = if c.keyword("loops") { c.int("the number of dynamic loops")? } else { 0 };
        let data = if c.take("=") {
            let (at, text) = c.raw_string()?;
            let data = match base64::decode(text) {
                Ok(data) => data,
                Err(digit) => return c.problem_at(at + digit, "the data is not base64"),
            };
            if data.len() as u128 != bytes {
                return c.problem_at(at, format!("the data has {} bytes, but the tensor has {bytes}", data.len()));
            }
            Some(data.into())
        } else {
            None
        };
        let (loc, trail) = self.place(c)?;
        let declaration =
            Declaration { name: name.into(), space, shape, dtype, unnamed, address, core, data, loops, loc };
        self.program.tensors.push(Tensor::new(declaration, trail));
        end(c)
    }

    fn tensor_id(&self, c: &mut Cursor<'_>) -> Parsed<TensorId> {
        let at = c.mark();
        c.expect("%")?;
        let id: u32 = c.int("the number of a tensor")?;
        if (id as usize) < self.program.tensors.len() {
            Ok(TensorId(id))
        } else {
            c.problem_at(at, format!("tensor %{id} is not declared above"))
        }
    }

    fn hbm_tensor(&self, c: &mut Cursor<'_>) -> Parsed<TensorId> {
        let at = c.mark();
        let id = self.tensor_id(c)?;
        let space = self.program.tensor(id).space;
        if space.is_hbm() { Ok(id) } else { c.problem_at(at, format!("%{} is in {space}, but must be in hbm", id.0)) }
    }

    fn register(&self, c: &mut Cursor<'_>) -> Parsed<RegId> {
        let at = c.mark();
        let word = c.peek_word();
        let Some(id) = register_number(word) else { return c.expected("a register (r0, r1, ...)") };
        c.keyword(word);
        if id < self.program.registers {
            Ok(RegId(id))
        } else {
            c.problem_at(at, format!("register r{id} is not declared: `registers` is {}", self.program.registers))
        }
    }

    /// `# line:column start..end tN`, if present.
    fn place(&mut self, c: &mut Cursor<'_>) -> Parsed<(Loc, TrailId)> {
        let (mut loc, mut trail) = (self.here, TrailId::ROOT);
        let marked = c.take("#");
        if !(marked && c.is_number()) {
            self.here_used = true;
        } else {
            loc = Loc::default();
            let at = c.mark();
            let first: u32 = c.int("a line")?;
            c.expect(":")?;
            let second: u32 = c.int("a column")?;
            (loc.file, loc.line, loc.column) =
                if c.take(":") { (first, second, c.int("a column")?) } else { (0, first, second) };
            if loc.file as usize >= self.program.files.len() {
                return c.problem_at(at, format!("file {} is not declared above", loc.file));
            }
            loc.start = c.int("a byte")?;
            c.expect("..")?;
            loc.end = c.int("a byte")?;
        }
        let word = if marked { c.peek_word() } else { "" };
        if let Some(id) = word.strip_prefix('t').and_then(|n| n.parse::<u32>().ok()) {
            if id as usize >= self.program.trails.len() {
                return c.problem(format!("trail {id} is not declared above"));
            }
            c.keyword(word);
            trail = TrailId(id);
        }
        Ok((loc, trail))
    }

    fn statement(&mut self, c: &mut Cursor<'_>, line: &str, number: usize) -> Parsed<()> {
        if c.take("}") {
            return self.close(c, number);
        }
        match self.opening_or_inst(c, number) {
            Err(problem) => {
                // Keep the nesting, so that the nested lines are still checked.
                if line.split('#').next().is_some_and(|code| code.trim_end().ends_with('{')) {
                    self.open(Open::Broken, Loc::default(), TrailId::ROOT, number);
                }
                Err(problem)
            }
            Ok(()) => Ok(()),
        }
    }

    fn opening_or_inst(&mut self, c: &mut Cursor<'_>, number: usize) -> Parsed<()> {
        let kind = if c.keyword("for") {
            let variable = self.register(c)?;
            if !c.keyword("in") {
                return c.expected("`in`");
            }
            let lower = self.bound(c)?;
            c.expect("..")?;
            let upper = self.bound(c)?;
            let mut step: i32 = 1;
            if c.keyword("step") {
                let at = c.mark();
                step = c.int("a step")?;
                if step <= 0 {
                    return c.problem_at(at, format!("the step is {step}, but must be positive"));
                }
            }
            Open::For { variable, lower, upper, step: i64::from(step) }
        } else if c.keyword("while") {
            Open::While { condition: self.register(c)? }
        } else if c.keyword("if") {
            Open::Then { condition: self.register(c)? }
        } else {
            let inst = self.inst(c)?;
            let mut tag = None;
            if c.take("!") {
                let at = c.mark();
                let id: u32 = c.int("the number of a tag")?;
                if id as usize >= self.program.tags.len() {
                    return c.problem_at(at, format!("tag {id} is not declared above"));
                }
                tag = Some(TagId(id));
            }
            let (loc, trail) = self.place(c)?;
            end(c)?;
            if let Some(block) = self.blocks.last_mut() {
                block.nodes.push(Node { kind: NodeKind::Inst(inst), loc, trail, tag });
            }
            return Ok(());
        };
        if self.blocks.len() >= MAX_DEPTH {
            return c.problem(format!("more than {MAX_DEPTH} blocks inside each other"));
        }
        c.expect("{")?;
        let (loc, trail) = self.place(c)?;
        end(c)?;
        self.open(kind, loc, trail, number);
        Ok(())
    }

    /// After a `}`.
    fn close(&mut self, c: &mut Cursor<'_>, number: usize) -> Parsed<()> {
        let Some(block) = self.blocks.pop() else { return c.problem("nothing to close") };
        let Block { kind, nodes, loc, trail, .. } = block;
        if c.keyword("else") {
            let result = c.expect("{").and_then(|()| end(c));
            return match kind {
                Open::Then { condition } => {
                    self.open(Open::Else { condition, then: nodes }, loc, trail, number);
                    result
                }
                other => {
                    let broken = matches!(other, Open::Broken);
                    self.open(Open::Broken, loc, trail, number);
                    if broken { Ok(()) } else { c.problem("`else` without `if`") }
                }
            };
        }
        let kind = match kind {
            Open::Core => {
                self.program.cores.push(nodes);
                return end(c);
            }
            Open::Broken => return end(c),
            Open::For { variable, lower, upper, step } => {
                Control::For { variable, lower, upper, step, body: nodes }.into()
            }
            Open::While { condition } => Control::While { condition, body: nodes }.into(),
            Open::Then { condition } => Control::If { condition, then: nodes, otherwise: Vec::new() }.into(),
            Open::Else { condition, then } => Control::If { condition, then, otherwise: nodes }.into(),
        };
        if let Some(outer) = self.blocks.last_mut() {
            outer.nodes.push(Node { kind, loc, trail, tag: None });
        }
        end(c)
    }

    /// A loop bound; the loop counter is a 32-bit register.
    fn bound(&self, c: &mut Cursor<'_>) -> Parsed<Bound> {
        if c.is_number() {
            return c.int("a bound").map(|bound: i32| Bound::Static(i64::from(bound)));
        }
        self.register(c).map(Bound::Register)
    }

    fn inst(&self, c: &mut Cursor<'_>) -> Parsed<Inst> {
        let at = c.mark();
        let name = c.word("an instruction, for, while, if or `}`")?;
        let Some(entry) = inst::find(name) else {
            return c.problem_at(at, format!("unknown instruction `{name}`"));
        };
        let mut slots: Vec<Option<Arg>> = entry.schema.operands.iter().map(|_| None).collect();
        c.expect("(")?;
        let mut more = !c.take(")");
        while more {
            let operand_at = c.mark();
            let keyword = c.word("an operand")?;
            let Some(slot) = entry.schema.position(keyword) else {
                let names: Vec<_> = entry.schema.operands.iter().map(|o| o.name).collect();
                return c.problem_at(
                    operand_at,
                    format!("`{name}` has no operand `{keyword}`: it takes {}", names.join(", ")),
                );
            };
            c.expect("=")?;
            let value = self.arg(c, 0)?;
            if slots[slot].replace(value).is_some() {
                return c.problem_at(operand_at, format!("`{keyword}` is given twice"));
            }
            more = c.take(",");
            if !more {
                c.expect(")")?;
            }
        }
        (entry.build)(&mut slots).map_err(|v| Problem { at, message: format!("{name}: {}", v.message) })
    }
}

/// The number in `r12`; only the canonical spelling is accepted.
fn register_number(word: &str) -> Option<u32> {
    let digits = word.strip_prefix('r')?;
    let canonical = digits == "0" || !digits.starts_with('0');
    (canonical && digits.bytes().all(|b| b.is_ascii_digit())).then(|| digits.parse().ok())?
}

/// A member of a vocabulary.
fn named<T: Named>(c: &mut Cursor<'_>) -> Parsed<T> {
    let at = c.mark();
    let word = c.word(T::WHAT)?;
    match T::from_name(word) {
        Some(member) => Ok(member),
        None => {
            let names: Vec<_> = T::ALL.iter().map(|m| m.name()).collect();
            c.problem_at(at, format!("unknown {} `{word}`: one of {}", T::WHAT, names.join(", ")))
        }
    }
}

/// Expects the end of the line.
fn end(c: &mut Cursor<'_>) -> Parsed<()> {
    if c.is_end() { Ok(()) } else { c.expected("the end of the line") }
}
