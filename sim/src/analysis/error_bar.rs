//! The error bar of a predicted latency: the deviation of hardware from predictions for the most similar measured kernels.
//!
//! `timing/errors.toml` has the errors of groups of measured kernels, each predicted with parameters fitted without the group, and
//! the features for matching a run to its group. It contains only statistics of groups, no measured latency. `tools/accuracy.py --errors` writes it.
//!
//! Two kernels are similar if they have the same target and number of cores, agree on having DMA with run-time addresses and on having
//! collectives, and are at most [`SIMILAR`] apart (collectives of 2 ranks are not similar to those of 64). Of several similar groups the nearest is used.
//!
//! 90% of the runs of a group have an `|ln(predicted / measured)|` of at most `error_90`, so hardware is within
//! `predicted * exp(±error_90)` for a kernel of the group. For another kernel the interval is wider: [`WIDENING`]. The bias of the group is
//! included in `error_90` and must not be subtracted as well.

use std::sync::LazyLock;

use nki_isa::Program;
use nki_isa::inst::Footprint;
use nki_isa::names::{Engine, Named as _};
use nki_isa::program::NodeKind;
use serde::{Deserialize, Serialize};

use crate::timeline::{Ps, RowKind, Timeline};
use crate::timing::Params;
use crate::trace::index_nodes;

/// Maximum distance of a similar group: half of the latency is spent on another engine, or the latency is ten times as long.
const SIMILAR: f64 = 0.5;
/// Distance of a tenfold latency, and of ten times as many ranks; differences in shares of the latency are added unscaled.
const TENFOLD: f64 = 0.5;
/// Added error per unit of distance, combined like standard deviations of independent errors. The smallest multiple of 0.1 with which the interval
/// of the nearest other group contains 90% of the runs for 90% of the groups in `errors.toml`: 26 of 29 groups with 1.2, 23 without widening.
const WIDENING: f64 = 1.3;
/// A smaller group has no meaningful 90% quantile.
const ENOUGH_ROWS: u32 = 10;
/// Minimum width of an interval: hardware itself varies by this much between two sessions with the same kernels (fused MoE of nki-moe-megakernel:
/// -4 to 5%; a matmul alone and inside a graph: 7%).
const LEAST_ERROR: f64 = 0.05;

/// The features by which kernels are compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Features {
    /// The target's name.
    pub target: String,
    /// Physical cores per logical core.
    pub cores: usize,
    /// Whether the address of a transfer is known only at run time.
    pub indirect_dma: bool,
    /// Ranks in the largest group that communicates; 0 if none does.
    pub ranks: u32,
    /// Share of the latency in which the tensor engine is active, on its busiest core.
    pub tensor_share: f64,
    /// Share of the latency in which a transfer moves bytes.
    pub dma_share: f64,
    /// Predicted latency.
    pub latency_us: f64,
}

/// The interval that contains the latency on hardware with a probability of 90%.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ErrorBar {
    /// The most similar group of measured kernels. `None` if no group is similar: then the interval is the widest of all groups, and a lower bound
    /// of the error.
    pub group: Option<String>,
    /// Lower end.
    pub low_us: f64,
    /// Upper end.
    pub high_us: f64,
    /// Number of measured runs behind the interval.
    pub rows: u32,
    /// How the group was found.
    pub features: Features,
}

/// The errors of one group of measured kernels.
#[derive(Debug, Deserialize)]
struct Group {
    name: String,
    #[serde(flatten)]
    errors: Errors,
    #[serde(flatten)]
    features: Features,
}

#[derive(Debug, Clone, Copy, Deserialize)]
struct Errors {
    /// Measured runs.
    rows: u32,
    /// 90% of them have an `|ln(predicted / measured)|` of at most this.
    error_90: f64,
}

/// `errors.toml`.
#[derive(Debug, Deserialize)]
struct Table {
    group: Vec<Group>,
    /// All runs, with equal weight per group.
    other: Errors,
}

static MEASURED: LazyLock<Table> = LazyLock::new(|| {
    // The file is compiled in; a test loads it.
    toml::from_str(include_str!("../timing/errors.toml")).unwrap_or_else(|e| panic!("errors.toml: {e}"))
});

/// The error bar of a run. `None` if the errors do not apply: the kernel does not fit into the memories, or `params` differ from those
/// of the measured errors.
pub fn error_bar(program: &Program, params: &Params, timeline: &Timeline) -> Option<ErrorBar> {
    if timeline.over_capacity || timeline.elapsed == 0 || params.is_changed() {
        return None;
    }
    Some(MEASURED.bar(features(program, timeline)))
}

fn features(program: &Program, timeline: &Timeline) -> Features {
    let (indirect_dma, ranks) = kind(program);
    let tensor = timeline.rows.iter().filter(|r| r.kind == RowKind::Engine(Engine::Tensor));
    let share = |time: Ps| time as f64 / timeline.elapsed as f64;
    Features {
        target: program.target.name().to_owned(),
        cores: program.cores.len(),
        indirect_dma,
        ranks,
        tensor_share: share(tensor.map(|r| r.active()).max().unwrap_or(0)),
        dma_share: share(timeline.dma.active),
        latency_us: timeline.elapsed as f64 / 1e6,
    }
}

/// Whether a program has transfers with run-time addresses, and the ranks of its largest collective.
fn kind(program: &Program) -> (bool, u32) {
    let (mut indirect_dma, mut ranks) = (false, 0);
    let mut footprint = Footprint::default();
    for node in program.cores.iter().flat_map(|core| index_nodes(core)) {
        let NodeKind::Inst(inst) = &node.kind else { continue };
        ranks = ranks.max(inst.participants().map_or(0, |p| p.ranks()));
        if !indirect_dma {
            footprint.clear();
            inst.footprint(&mut footprint);
            // Only DMA reaches HBM.
            let mut views = footprint.reads.iter().chain(&footprint.writes);
            indirect_dma = views.any(|v| v.space.is_hbm() && v.indirect.is_some());
        }
    }
    (indirect_dma, ranks)
}

impl Table {
    fn bar(&self, features: Features) -> ErrorBar {
        let distances = self.group.iter().filter_map(|g| Some((g, features.distance(&g.features)?)));
        let nearest = distances.min_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, distance)| *distance <= SIMILAR);
        let widest = self.group.iter().map(|g| self.error(g.errors)).fold(self.other.error_90, f64::max);
        let (group, rows, error) = match nearest {
            Some((g, distance)) => {
                let error = self.error(g.errors).hypot(WIDENING * distance).min(widest);
                (Some(g.name.clone()), g.errors.rows, error)
            }
            None => (None, self.other.rows, widest),
        };
        let latency = features.latency_us;
        ErrorBar { group, low_us: latency * (-error).exp(), high_us: latency * error.exp(), rows, features }
    }

    /// `error_90` of a group, at least [`LEAST_ERROR`]. A small group's error is at least that of all groups together.
    fn error(&self, errors: Errors) -> f64 {
        let error = if errors.rows < ENOUGH_ROWS { errors.error_90.max(self.other.error_90) } else { errors.error_90 };
        error.max(LEAST_ERROR)
    }
}

impl Features {
    /// The distance of two kernels; `None` if they are not comparable.
    fn distance(&self, other: &Features) -> Option<f64> {
        fn kind(f: &Features) -> (&str, usize, bool, bool) {
            (&f.target, f.cores, f.indirect_dma, f.ranks > 0)
        }
        if kind(self) != kind(other) {
            return None;
        }
        let tensor = self.tensor_share - other.tensor_share;
        let dma = self.dma_share - other.dma_share;
        let latency = TENFOLD * (self.latency_us / other.latency_us).log10();
        let ranks = TENFOLD * (f64::from(self.ranks.max(1)) / f64::from(other.ranks.max(1))).log10();
        Some((tensor * tensor + dma * dma + latency * latency + ranks * ranks).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Builder;
    use crate::timing::tests::{tensor_add, time};
    use nki_isa::Target;

    const TABLE: &str = r#"
        [[group]]
        name = "matmuls"
        rows = 40
        error_90 = 0.1
        target = "trn2"
        cores = 1
        indirect_dma = false
        ranks = 0
        tensor_share = 0.9
        dma_share = 0.4
        latency_us = 1000.0

        [[group]]
        name = "copies"
        rows = 20
        error_90 = 0.3
        target = "trn2"
        cores = 1
        indirect_dma = false
        ranks = 0
        tensor_share = 0.0
        dma_share = 0.9
        latency_us = 100.0

        [[group]]
        name = "few"
        rows = 3
        error_90 = 0.01
        target = "trn2"
        cores = 2
        indirect_dma = true
        ranks = 0
        tensor_share = 0.5
        dma_share = 0.5
        latency_us = 100.0

        [other]
        rows = 63
        error_90 = 0.2
    "#;

    fn table() -> Table {
        toml::from_str(TABLE).unwrap()
    }

    fn matmul(latency_us: f64) -> Features {
        Features {
            target: "trn2".into(),
            cores: 1,
            indirect_dma: false,
            ranks: 0,
            tensor_share: 0.85,
            dma_share: 0.5,
            latency_us,
        }
    }

    /// ln(high / predicted), after checking that the prediction is the geometric mean of the interval's ends.
    fn width(bar: &ErrorBar) -> f64 {
        let latency = bar.features.latency_us;
        assert!((bar.low_us * bar.high_us / latency / latency - 1.0).abs() < 1e-9);
        (bar.high_us / latency).ln()
    }

    /// A kernel with the features of the group "matmuls".
    fn like_matmuls() -> Features {
        Features { tensor_share: 0.9, dma_share: 0.4, ..matmul(1000.0) }
    }

    #[test]
    fn the_nearest_group_gives_the_interval() {
        let bar = table().bar(like_matmuls());
        assert_eq!((bar.group.as_deref(), bar.rows), (Some("matmuls"), 40));
        assert!(
            (bar.low_us - 1000.0 * (-0.1f64).exp()).abs() < 1e-9 && (bar.high_us - 1000.0 * 0.1f64.exp()).abs() < 1e-9
        );
        let copy = Features { tensor_share: 0.1, dma_share: 0.8, ..matmul(100.0) };
        assert_eq!(table().bar(copy).group.as_deref(), Some("copies"));
    }

    #[test]
    fn no_interval_is_narrower_than_hardware_repeats() {
        let mut table = table();
        let sharp = table.group.iter_mut().find(|g| g.name == "matmuls").unwrap();
        sharp.errors.error_90 = 0.01;
        assert!((width(&table.bar(like_matmuls())) - LEAST_ERROR).abs() < 1e-9);
    }

    #[test]
    fn the_interval_widens_with_the_distance_up_to_the_widest() {
        let at = |dma_share: f64| width(&table().bar(Features { dma_share, ..like_matmuls() }));
        assert!((at(0.5) - 0.1f64.hypot(WIDENING * 0.1)).abs() < 1e-9);
        assert!(at(0.4) < at(0.45) && at(0.45) < at(0.5));
        assert!((at(0.8) - 0.3).abs() < 1e-9);
    }

    /// See [`WIDENING`].
    #[test]
    fn other_groups_cover_nine_of_ten_groups() {
        let mut groups: Table = toml::from_str(include_str!("../timing/errors.toml")).unwrap();
        let count = groups.group.len();
        let mut covered = 0;
        for _ in 0..count {
            let left_out = groups.group.remove(0);
            covered += usize::from(left_out.errors.error_90 <= width(&groups.bar(left_out.features.clone())));
            groups.group.push(left_out);
        }
        assert!(covered * 10 >= count * 9, "{covered} of {count}");
    }

    #[test]
    fn the_interval_grows_with_the_latency() {
        let bars: Vec<_> = (0..40).map(|i| table().bar(matmul(400.0 * 1.05f64.powi(i)))).collect();
        for pair in bars.windows(2) {
            assert_eq!(pair[0].group, pair[1].group);
            assert!(pair[0].low_us < pair[1].low_us && pair[0].high_us < pair[1].high_us);
        }
    }

    #[test]
    fn without_a_similar_group_the_interval_is_the_widest() {
        let cases = [
            Features { target: "trn3".into(), ..matmul(1000.0) },
            Features { cores: 2, ..matmul(1000.0) },
            Features { indirect_dma: true, ..matmul(1000.0) },
            Features { ranks: 64, ..matmul(1000.0) },
            Features { tensor_share: 0.35, ..matmul(1000.0) },
            matmul(1000.0 * 11.0),
            matmul(1e-6),
            matmul(1e12),
        ];
        for features in cases {
            let bar = table().bar(features);
            assert_eq!((bar.group.as_deref(), bar.rows), (None, 63), "{bar:?}");
            assert!((width(&bar) - 0.3).abs() < 1e-9);
        }
        let none = Table { group: Vec::new(), other: Errors { rows: 0, error_90: 0.5 } };
        assert!((width(&none.bar(matmul(1.0))) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn a_small_group_is_not_better_than_all_together() {
        let features = Features { cores: 2, indirect_dma: true, tensor_share: 0.5, ..matmul(100.0) };
        let bar = table().bar(features);
        assert_eq!((bar.group.as_deref(), bar.rows), (Some("few"), 3));
        assert!((width(&bar) - 0.2).abs() < 1e-9);
    }

    #[test]
    fn features_of_a_run() {
        let program = tensor_add();
        let t = time(&program);
        let bar = error_bar(&program, &Params::of(Target::Trn2), &t).unwrap();
        let f = &bar.features;
        assert_eq!((&*f.target, f.cores, f.indirect_dma, f.ranks, f.tensor_share), ("trn2", 1, false, 0, 0.0));
        assert_eq!((f.dma_share * t.elapsed as f64).round() as Ps, t.dma.active);
        assert!(bar.low_us < f.latency_us && f.latency_us < bar.high_us);
    }

    #[test]
    fn an_empty_program_has_an_interval_and_no_time_has_none() {
        let program = Builder::new().program;
        let params = Params::of(Target::Trn2);
        let mut t = time(&program);
        let bar = error_bar(&program, &params, &t).unwrap();
        assert!(bar.low_us > 0.0 && bar.high_us.is_finite());
        t.elapsed = 0;
        assert_eq!(error_bar(&program, &params, &t), None);
    }

    #[test]
    fn no_interval_for_what_the_errors_were_not_measured_with() {
        let program = tensor_add();
        let mut t = time(&program);
        let mut params = Params::of(Target::Trn2);
        params.set_text("kernel.measure", "device").unwrap();
        assert!(error_bar(&program, &params, &t).is_some());
        let mut by_file = params.clone();
        by_file.overlay("tensor.clock_ghz = 2.8").unwrap();
        params.set("compiler.tensor_window", 1.0).unwrap();
        for changed in [&params, &by_file] {
            assert_eq!(error_bar(&program, changed, &t), None);
        }
        t.over_capacity = true;
        assert_eq!(error_bar(&program, &Params::of(Target::Trn2), &t), None);
    }
}
