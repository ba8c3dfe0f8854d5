//! `nki.collectives`: operations of several ranks.

use std::collections::BTreeMap;

use nki_isa::Arg;
use nki_isa::inst::REGISTRY;

use super::alloc::named;
use super::enums::partition_op;
use super::instruction;
use crate::dialect::common::enums::{ApiEnum, EnumClass};
use crate::dialect::common::errors::raise;
use crate::dialect::common::handles::{Handle, ReplicaGroup};
use crate::dialect::common::registers::{Register, emit};
use crate::dialect::common::state::{site, state};
use crate::dialect::common::values::to_arg;
use crate::eval::Interp;
use crate::eval::convert::{int, wrong};
use crate::eval::error::{EvalResult, Raise};
use crate::eval::foreign::Object;
use crate::eval::native::CallArgs;
use crate::eval::value::Value;

pub(super) const PROCESSING: &str = "collective_permute_implicit_current_processing_rank_id";

/// `nki.collectives.<attr>`
pub(super) fn attr(attr: &str) -> Option<Value> {
    let name = || format!("nki.collectives.{attr}");
    match attr {
        "ReplicaGroup" => Some(Value::object(ReplicaGroupClass)),
        "rg_partition_op" => Some(Value::object(EnumClass(partition_op()))),
        "rank_id" => Some(Value::native(name(), rank_id, 0)),
        "all_to_all_v_trigger" => Some(Value::native(name(), |i, a| trigger(i, a, "all_to_all_v_trigger"), 0)),
        "all_gather_v_trigger" => Some(Value::native(name(), |i, a| trigger(i, a, "all_gather_v_trigger"), 0)),
        PROCESSING => Some(Value::native(name(), processing_rank_id, 0)),
        _ => {
            let index = REGISTRY.iter().position(|e| e.collective && e.public && e.schema.name == attr)?;
            Some(Value::native(name(), instruction::call, index as u32))
        }
    }
}

/// Names for "did you mean".
pub(super) fn names() -> Vec<&'static str> {
    REGISTRY.iter().filter(|e| e.collective).map(|e| e.schema.name).chain(["ReplicaGroup", "rg_partition_op"]).collect()
}

/// `nki.collectives.ReplicaGroup`: makes groups of ranks.
#[derive(Debug)]
struct ReplicaGroupClass;

impl Object for ReplicaGroupClass {
    fn type_name(&self) -> &'static str {
        "type"
    }

    fn repr(&self) -> String {
        "<class 'nki.collectives.ReplicaGroup'>".to_owned()
    }

    fn is_callable(&self) -> bool {
        true
    }

    fn call(&self, interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
        replica_group(interp, args)
    }

    fn methods(&self) -> &'static [&'static str] {
        &["from_partition_op"]
    }

    fn call_method(&self, interp: &mut Interp<'_>, _this: &Value, name: &str, args: CallArgs) -> EvalResult<Value> {
        match name {
            "from_partition_op" => from_partition_op(interp, args),
            _ => Err(self.no_attribute(interp, name, args.span)),
        }
    }

    fn equals(&self, other: &Value) -> bool {
        other.downcast::<ReplicaGroupClass>().is_some()
    }

    fn has_instance(&self, value: &Value) -> bool {
        value.downcast::<ReplicaGroup>().is_some()
    }
}

/// Maximum number of ranks of a partition.
const RANKS_MAX: i64 = 1 << 16;

/// The groups of `ReplicaGroup.from_partition_op`: the ranks below `world_size` with the same `op(rank, operand)` are a group, and groups follow
/// the order of this result (reference of `ReplicaGroup`). `op` is the name of a member of `rg_partition_op`.
///
/// # Errors
/// What is wrong with `world_size` or `operand`.
pub fn partition(world_size: i64, op: &str, operand: i64) -> Result<Vec<Vec<i64>>, String> {
    if !(1..=RANKS_MAX).contains(&world_size) {
        return Err(format!("`world_size` is {world_size}; it must be 1 to {RANKS_MAX}"));
    }
    let id: fn(i64, i64) -> i64 = match op {
        "bitwise_and" => |rank, operand| rank & operand,
        "div" => |rank, operand| rank / operand,
        _ => |rank, operand| rank % operand,
    };
    let least = i64::from(op != "bitwise_and");
    if operand < least {
        return Err(format!("`operand` is {operand}; for {op} it must be at least {least}"));
    }
    let mut groups: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    for rank in 0..world_size {
        groups.entry(id(rank, operand)).or_default().push(rank);
    }
    Ok(groups.into_values().collect())
}

/// `ReplicaGroup.from_partition_op(world_size, op, operand)`
fn from_partition_op(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let what = "ReplicaGroup.from_partition_op";
    let [world, op, operand] = args.bind(interp, what, ["world_size", "op", "operand"], 3)?;
    let value = |given: Option<Value>| given.unwrap_or(Value::None);
    let world = int(&value(world), format_args!("{what}: `world_size`"), span)?;
    let operand = int(&value(operand), format_args!("{what}: `operand`"), span)?;
    let op = value(op);
    let member = op.downcast::<ApiEnum>().filter(|member| std::ptr::eq(member.class, partition_op()));
    let Some(member) = member else {
        return Err(wrong(format_args!("{what}: `op`"), "a member of rg_partition_op", &op, span));
    };
    let groups = partition(world, member.name(), operand)
        .map_err(|message| Raise::at("value-error", format!("{what}: {message}"), span, "in this call"))?;
    Ok(Value::object(ReplicaGroup(groups)))
}

fn replica_group(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let [groups] = args.bind(interp, "ReplicaGroup", ["groups"], 1)?;
    let value = groups.unwrap_or(Value::None);
    if value.downcast::<ReplicaGroup>().is_some() {
        return Ok(value);
    }
    let what = "ReplicaGroup";
    let refuse = || wrong(what, "a list of lists of ranks, for example [[0, 1], [2, 3]]", &value, span);
    let mut lists = Vec::new();
    for group in value.sequence().ok_or_else(refuse)?.iter() {
        let mut ranks = Vec::new();
        for rank in group.sequence().ok_or_else(refuse)?.iter() {
            ranks.push(int(rank, what, span)?);
        }
        lists.push(ranks);
    }
    Ok(Value::object(ReplicaGroup(lists)))
}

/// `all_to_all_v_trigger(prepare_instr, name=None)` and `all_gather_v_trigger`
fn trigger(interp: &mut Interp<'_>, args: CallArgs, start: &'static str) -> EvalResult<Value> {
    let span = args.span;
    let [prepared, name] = args.bind(interp, start, ["prepare_instr", "name"], 1)?;
    let prepared = prepared.unwrap_or(Value::None);
    let Some(Handle(at)) = prepared.downcast::<Handle>() else {
        return Err(wrong(format_args!("{start}: prepare_instr"), "what the preparation returned", &prepared, span));
    };
    let name = named(name, start, span)?;
    let place = site(interp, span);
    let builder = &mut state(interp).builder;
    let started = builder.start_prepared(start, *at, place);
    let made = builder.last_node();
    let started = started.and_then(|()| name.map_or(Ok(()), |name| builder.name_node(made, &name)));
    started.map_err(|v| raise("", &v, span, &[]))?;
    Ok(Value::object(Handle(made)))
}

fn rank_id(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let _: [Option<Value>; 1] = args.bind(interp, "nki.collectives.rank_id", ["name"], 0)?;
    let id = state(interp).builder.register();
    emit(interp, "rank_id", &[("dst", Arg::Register(id))], span)?;
    Ok(Register::value(id))
}

fn processing_rank_id(interp: &mut Interp<'_>, args: CallArgs) -> EvalResult<Value> {
    let span = args.span;
    let what = "nki.collectives.collective_permute_implicit_current_processing_rank_id";
    let given = args.bind(interp, what, ["iteration_id", "replica_group", "channel_id", "name"], 2)?;
    let [iteration, group, channel, _] = given;
    let id = state(interp).builder.register();
    let mut operands = vec![("dst", Arg::Register(id))];
    for (name, value) in [("iteration_id", iteration), ("replica_group", group), ("channel_id", channel)] {
        let Some(value) = value else { continue };
        match to_arg(&value) {
            Some(arg) => operands.push((name, arg)),
            None => {
                let message = format!("{what}: `{name}` has a value of type {}", value.type_name());
                return Err(crate::eval::error::Raise::at("operand-kind", message, span, "here"));
            }
        }
    }
    emit(interp, PROCESSING, &operands, span)?;
    Ok(Register::value(id))
}
