//! Rules of the rings of `collective_permute_implicit` and its reducing form.

use crate::arg::{Channels, Ints, Views};
use crate::machine::Context;
use crate::violation::Violation;

/// Most channels (`collective_permute_implicit` reference).
const CHANNELS: usize = 4;

pub(crate) fn check_channel(channel: i64) -> Result<(), Violation> {
    if (0..CHANNELS as i64).contains(&channel) {
        return Ok(());
    }
    Err(Violation::new("operand-value", "channel_id", format!("channel {channel} is not 0 to {}", CHANNELS - 1)))
}

pub(crate) fn check(
    context: &Context<'_>,
    srcs: &[&Channels],
    dsts: &Channels,
    ids: &Ints,
    priority: Option<i64>,
) -> Result<(), Violation> {
    let n = dsts.0.len();
    if ids.0.len() > CHANNELS || ids.0.iter().enumerate().any(|(i, &id)| id != i as i64) {
        return Err(Violation::new(
            "operand-value",
            "channel_ids",
            format!("`channel_ids` is {:?}: channels are consecutive from 0, at most {CHANNELS}", ids.0),
        ));
    }
    if ids.0.len() != n {
        return Err(Violation::new(
            "operand-value",
            "channel_ids",
            format!("`channel_ids` has {} channels, but `dsts_by_channel` has {n}", ids.0.len()),
        ));
    }
    for list in srcs {
        if list.0.len() != n {
            return Err(Violation::new(
                "operand-value",
                "dsts_by_channel",
                format!("the sources have {} channels, but `dsts_by_channel` has {n}", list.0.len()),
            ));
        }
        for (s, d) in list.0.iter().zip(&dsts.0) {
            let one = |v: &crate::view::View| Views(vec![v.clone()]);
            super::check_tensors(context, &one(s), &one(d), priority, true)?;
            super::check_shapes(&one(s), &one(d), 0, 1, 1)?;
        }
    }
    Ok(())
}
