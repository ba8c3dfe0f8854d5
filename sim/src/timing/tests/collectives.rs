//! Collectives against closed forms and measurements.

use nki_isa::Target;
use nki_isa::names::Engine;
use nki_isa::work::{Collective, CollectiveKind, RendezvousWork, Work, WorkKind};
use proptest::prelude::*;

use crate::timing::cost::{CostKind, Place};
use crate::timing::{CostModel, Laws, Params};

/// Nanoseconds from the trigger to the results; `bytes` is the total gathered, scattered or reduced.
fn time(params: &Params, kind: CollectiveKind, bytes: u64, ranks: u32) -> f64 {
    let laws = Laws::new(params).unwrap();
    let chunk_bytes = bytes / u64::from(ranks);
    let kind = WorkKind::Rendezvous(RendezvousWork::Collective(Collective { kind, chunk_bytes, ranks }));
    let cost = laws.cost(&Work { engine: Engine::Sync, kind }, Place::default());
    let CostKind::Collective { time, .. } = cost.kind else { panic!("{cost:?}") };
    time as f64 / 1e3
}

const KINDS: [CollectiveKind; 4] =
    [CollectiveKind::AllGather, CollectiveKind::ReduceScatter, CollectiveKind::AllReduce, CollectiveKind::AllToAll];

proptest! {
    /// An all-reduce is a reduce-scatter and an all-gather; a reduction has a cost.
    #[test]
    fn all_reduce_is_both_of_its_parts(ranks in 2u32..128, megabytes in 0u64..4096) {
        let params = Params::of(Target::Trn2);
        let bytes = (megabytes << 20) + u64::from(ranks);
        let [gather, scatter, reduce, exchange] = KINDS.map(|kind| time(&params, kind, bytes, ranks));
        prop_assert!((reduce - gather - scatter).abs() < 0.01);
        prop_assert!(scatter >= gather);
        prop_assert_eq!(exchange, gather);
    }

    /// More bytes never take less time, also where the algorithm changes.
    #[test]
    fn larger_messages_are_not_faster(ranks in 2u32..128, bits in 0u32..32, more in 1.0f64..2.0) {
        let params = Params::of(Target::Trn2);
        let bytes = u64::from(ranks) << bits;
        let larger = (bytes as f64 * more) as u64;
        for kind in KINDS {
            prop_assert!(time(&params, kind, larger, ranks) >= time(&params, kind, bytes, ranks));
        }
    }

    /// One rank has nothing to send.
    #[test]
    fn a_group_of_one_waits_for_nobody(bytes in 0u64..1 << 40) {
        let params = Params::of(Target::Trn2);
        for kind in KINDS {
            prop_assert_eq!(time(&params, kind, bytes, 1), 0.0);
        }
    }
}

#[test]
fn steps_depend_on_the_algorithm() {
    let with = |hop_us, reduction_us| {
        let mut params = Params::of(Target::Trn2);
        params.set("collectives.hop_us", hop_us).unwrap();
        params.set("collectives.reduction_us", reduction_us).unwrap();
        params
    };
    let (fast, slow) = (with(1.0, 10.0), with(2.0, 20.0));
    let steps =
        |kind, bytes, ranks| ((time(&slow, kind, bytes, ranks) - time(&fast, kind, bytes, ranks)) / 1e3).round();
    let (gather, scatter) = (CollectiveKind::AllGather, CollectiveKind::ReduceScatter);
    // Mesh: two steps for any number of ranks.
    assert_eq!([2, 16, 64].map(|ranks| steps(gather, 1 << 20, ranks)), [2.0; 3]);
    // Recursive doubling: the logarithm; halving adds the reduction of each step.
    assert_eq!([4, 16, 64].map(|ranks| steps(gather, 8 << 20, ranks)), [2.0, 4.0, 6.0]);
    assert_eq!([4, 16, 64].map(|ranks| steps(scatter, 8 << 20, ranks)), [22.0, 44.0, 66.0]);
    // KangaRing: half of the ranks; it hides the reductions.
    assert_eq!([4, 16, 64].map(|ranks| steps(gather, 256 << 20, ranks)), [2.0, 8.0, 32.0]);
    assert_eq!(steps(scatter, 256 << 20, 64), 32.0);
}

/// Rows of a public report of nccom-test (64 ranks of a trn2.48xlarge), minus head and tail of a device benchmark.
#[test]
fn measured_collectives() {
    let params = Params::of(Target::Trn2);
    let fixed = params.kernel.device_head_us.value + params.kernel.tail_us.value;
    let rows = [
        (CollectiveKind::AllGather, 2, 34.55),
        (CollectiveKind::AllGather, 8, 69.48),
        (CollectiveKind::AllGather, 1024, 2777.8),
        (CollectiveKind::ReduceScatter, 4, 65.4),
        (CollectiveKind::ReduceScatter, 32, 252.0),
        (CollectiveKind::ReduceScatter, 2048, 7805.9),
        (CollectiveKind::AllReduce, 4, 106.2),
        (CollectiveKind::AllReduce, 512, 3467.4),
    ];
    for (kind, megabytes, measured) in rows {
        let predicted = time(&params, kind, megabytes << 20, 64) / 1e3 + fixed;
        assert!((predicted / measured - 1.0).abs() < 0.08, "{kind:?} of {megabytes} MB: {predicted} for {measured}");
    }
}
