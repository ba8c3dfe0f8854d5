//! The Pareto-optimal points, and a plot of them.

use std::fmt::Write as _;

use crate::markup::xml;
use crate::row::{Rank, Row};

/// The objectives to minimise: latency, peak SBUF, and the error if outputs were compared. `None` for points that do not rank.
fn objectives(row: &Row) -> Option<[f64; 3]> {
    let latency = row.latency_us.filter(|_| row.rank() == Rank::Good)?;
    Some([latency, f64::from(row.sbuf_peak_bytes_per_partition), row.max_error().unwrap_or(0.0)])
}

/// Positions of the Pareto-optimal rows, which no other row dominates. Of equal rows, the first.
pub(crate) fn front(rows: &[Row]) -> Vec<usize> {
    let mut sorted: Vec<(usize, [f64; 3])> =
        rows.iter().enumerate().filter_map(|(at, row)| Some((at, objectives(row)?))).collect();
    let order = |a: &[f64; 3], b: &[f64; 3]| {
        a.iter().zip(b).map(|(a, b)| a.total_cmp(b)).find(|o| o.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
    };
    sorted.sort_by(|a, b| order(&a.1, &b.1).then(a.0.cmp(&b.0)));
    // A row that dominates another one precedes it.
    let mut front: Vec<(usize, [f64; 3])> = Vec::new();
    for (at, mine) in sorted {
        if !front.iter().any(|(_, other)| other.iter().zip(&mine).all(|(o, m)| o <= m)) {
            front.push((at, mine));
        }
    }
    front.into_iter().map(|(at, _)| at).collect()
}

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 70.0;
const BOTTOM: f64 = 50.0;
const MARGIN: f64 = 20.0;
/// Labels along an axis.
const TICKS: usize = 5;

/// An axis of the plot.
struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
        if !low.is_finite() {
            return Scale { low: 0.0, high: 1.0 };
        }
        let room = if high > low { (high - low) * 0.05 } else { high.abs().max(1.0) * 0.05 };
        Scale { low: (low - room).max(0.0), high: high + room }
    }

    /// Between 0 and 1.
    fn at(&self, value: f64) -> f64 {
        (value - self.low) / (self.high - self.low)
    }
}

/// A plot of latency and peak SBUF of all ranked points, with the front in colour and connected. Points have their values as tooltips.
pub(crate) fn svg(rows: &[Row]) -> String {
    let front = front(rows);
    let points: Vec<(usize, [f64; 3])> =
        rows.iter().enumerate().filter_map(|(at, row)| Some((at, objectives(row)?))).collect();
    let (x, y) = (Scale::of(points.iter().map(|p| p.1[0])), Scale::of(points.iter().map(|p| p.1[1])));
    let across = |v: f64| LEFT + x.at(v) * (WIDTH - LEFT - MARGIN);
    let down = |v: f64| HEIGHT - BOTTOM - y.at(v) * (HEIGHT - BOTTOM - MARGIN);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    for tick in 0..=TICKS {
        let part = tick as f64 / TICKS as f64;
        let (at_x, at_y) = (x.low + part * (x.high - x.low), y.low + part * (y.high - y.low));
        let (px, py) = (across(at_x), down(at_y));
        let (base, right) = (HEIGHT - BOTTOM, WIDTH - MARGIN);
        let _ = writeln!(out, "<path d=\"M{px:.1} {MARGIN}V{base}M{LEFT} {py:.1}H{right}\" stroke=\"#ddd\"/>");
        let _ = writeln!(out, "<text x=\"{px:.1}\" y=\"{}\" text-anchor=\"middle\">{at_x:.2}</text>", base + 18.0);
        let _ = writeln!(out, "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{at_y:.0}</text>", LEFT - 6.0, py + 4.0);
    }
    let _ = writeln!(
        out,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">latency, us</text>\n\
         <text transform=\"translate(14 {}) rotate(-90)\" text-anchor=\"middle\">peak SBUF, bytes per partition</text>",
        (WIDTH + LEFT) / 2.0,
        HEIGHT - 8.0,
        (HEIGHT - BOTTOM) / 2.0
    );
    let joined: Vec<String> = front
        .iter()
        .filter_map(|at| objectives(&rows[*at]))
        .map(|o| format!("{:.1},{:.1}", across(o[0]), down(o[1])))
        .collect();
    let _ = writeln!(out, "<polyline points=\"{}\" fill=\"none\" stroke=\"#c2410c\"/>", joined.join(" "));
    // The front is drawn last, above the others.
    let (others, best): (Vec<_>, Vec<_>) = points.iter().partition(|(at, _)| !front.contains(at));
    for (list, colour, radius) in [(others, "#94a3b8", 3.0), (best, "#c2410c", 5.0)] {
        for (at, o) in list {
            let error = rows[at].max_error().map_or_else(String::new, |e| format!(", max error {e:.3e}"));
            let label = format!("{}: {:.2} us, {} bytes{error}", rows[at].place(), o[0], o[1]);
            let _ = writeln!(
                out,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"{radius}\" fill=\"{colour}\"><title>{}</title></circle>",
                across(o[0]),
                down(o[1]),
                xml(&label, false)
            );
        }
    }
    out + "</svg>\n"
}

/// [`front`] and [`svg`] of rows as JSON, for Python.
///
/// # Errors
/// If `rows` is not valid.
pub(crate) fn of_json(rows: &str) -> Result<(Vec<usize>, String), String> {
    let rows: Vec<Row> = serde_json::from_str(rows).map_err(|e| format!("not rows of a sweep: {e}"))?;
    Ok((front(&rows), svg(&rows)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Compared;

    fn row(latency: Option<f64>, sbuf: u32, error: Option<f64>) -> Row {
        let compared = |e| Compared {
            name: "out".into(),
            passed: e < 1.0,
            max_abs_error: Some(e),
            max_rel_error: None,
            mismatches: 0,
            elements: 1,
        };
        Row {
            point: vec![("n".into(), "<1>".into())],
            latency_us: latency,
            latency_valid: true,
            sbuf_peak_bytes_per_partition: sbuf,
            expected: error.map(compared).into_iter().collect(),
            ..Row::default()
        }
    }

    #[test]
    fn the_front_has_what_nothing_beats() {
        let rows = [
            row(Some(3.0), 10, None),
            row(Some(1.0), 30, None),
            row(Some(2.0), 20, None),
            row(Some(2.5), 20, None),
            row(Some(3.0), 10, None),
            row(None, 1, None),
            Row { latency_valid: false, ..row(Some(0.5), 1, None) },
            Row { pruned: true, ..row(Some(0.5), 1, None) },
            Row { incomplete: true, ..row(Some(0.5), 1, None) },
        ];
        assert_eq!(front(&rows), [1, 2, 0]);
        // Of two equally fast points, the more accurate one is included, and no wrong one.
        assert_eq!(
            front(&[row(Some(1.0), 5, Some(0.5)), row(Some(1.0), 5, Some(0.1)), row(Some(0.5), 5, Some(2.0))]),
            [1]
        );
        assert_eq!(front(&[]), [0usize; 0]);
        let plot = svg(&rows);
        assert_eq!(plot.matches("<circle").count(), 5);
        assert!(plot.contains("n=&lt;1&gt;: 1.00 us, 30 bytes") && !plot.contains("NaN"));
        assert!(!svg(&[]).contains("NaN") && !svg(&rows[..1]).contains("NaN"));
    }
}
