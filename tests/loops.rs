//! The cost of an iteration of a dynamic loop, compared with a published measurement.

mod command;

use command::Session;

/// Each iteration loads a tile of x, multiplies it, copies the result from PSUM and stores it.
const STREAM: &str = r"
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def stream(weights, x, tiles):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    w = nl.ndarray((128, 128), dtype=weights.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=w, src=weights)
    for i in nl.dynamic_range(tiles):
        tile = nl.ndarray((128, 1024), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=x.ap([[1024, 128], [1, 1024]], scalar_offset=i, indirect_dim=0))
        done = nl.ndarray((128, 1024), dtype=x.dtype, buffer=nl.sbuf)
        for half in range(2):
            columns = nl.ds(half * 512, 512)
            sums = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
            nisa.nc_matmul(dst=sums, stationary=w, moving=tile[:, columns])
            nisa.tensor_copy(dst=done[:, columns], src=sums)
        nisa.dma_copy(dst=out.ap([[1024, 128], [1, 1024]], scalar_offset=i, indirect_dim=0), src=done)
    return out
";

/// Source: sample-spectral-dns-on-aws-neuron (trn1): 11.94 us per tile with one tile in the body;
/// the unrolled kernel takes 3.18 us.
#[test]
fn an_iteration_costs_what_was_measured() {
    let s = Session::new();
    s.write("stream.py", STREAM);
    let time = |tiles: u32| {
        let tiles = format!("tiles={tiles}");
        let inputs = ["--arg", "weights=float32[128,128]", "--arg", "x=float32[64,128,1024]", "--arg", &tiles];
        let options = ["run", "stream.py", "--target", "trn1", "--no-numerics", "--json", "r.json"];
        s.run(&[&options[..], &inputs].concat()).exits(0);
        let report = std::fs::read_to_string(s.path("r.json")).expect("a report");
        let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
        report["latency_us"].as_f64().expect("a latency")
    };
    let iteration = (time(64) - time(32)) / 32.0;
    assert!((iteration / 11.94 - 1.0).abs() < 0.1, "{iteration} us for an iteration that took 11.94 us");
}
