//! Random numbers: `nl.rand`, `nl.dropout`, `nl.random_seed`.

use nki_isa::{Arg, DType, Imm, Space};

use super::{Lower, Operand, extents, view};
use crate::build::Result;
use crate::build::tensor::Tensor;

impl Lower<'_> {
    /// `nl.random_seed`: seeds the vector engine, whose generators [`Lower::rand`] uses.
    pub(crate) fn random_seed(&mut self, seed: &Tensor) -> Result<()> {
        self.emit("set_rng_seed", &[("src_seeds", view(seed))])
    }

    /// `nl.rand`: fills a tensor with numbers uniformly distributed in `[0, 1)`.
    pub(crate) fn rand(&mut self, dst: &Tensor) -> Result<()> {
        if dst.on_chip() {
            return self.rand_tile(dst);
        }
        // HBM is accessible only by DMA: generate a tile at a time and copy it out.
        let flat = dst.reshape(&[dst.view.elements() as i64])?;
        let (total, parts) = (dst.view.elements() as i64, i64::from(self.builder.arch().partitions));
        let width = (total / parts).clamp(1, 2048);
        let mut at = 0;
        while at < total {
            let rows = ((total - at) / width).min(parts);
            let shape = if rows > 0 { [rows, width] } else { [1, total - at] };
            let n = shape[0] * shape[1];
            let tile = self.tile(&shape, dst.view.dtype, Space::Sbuf)?;
            self.rand_tile(&tile)?;
            let to = flat.slice(0, at, at + n, 1)?.reshape(&shape)?;
            self.emit("dma_copy", &[("dst", view(&to)), ("src", view(&tile))])?;
            at += n;
        }
        Ok(())
    }

    fn rand_tile(&mut self, dst: &Tensor) -> Result<()> {
        if nki_isa::inst::find("rand2").is_some_and(|i| i.schema.exists_on(self.builder.arch())) {
            let ends = [("dst", view(dst)), ("min", Arg::Float(0.0)), ("max", Arg::Float(1.0))];
            return self.emit("rand2", &ends);
        }
        // Otherwise the engine generates bits only. As the docstring of nisa.rng advises: 16 of them as an integer, scaled
        // by ALU. By 2^-16, so that 1 is not reached.
        let bits = self.like(dst, DType::U16)?;
        self.emit("rng", &[("dst", view(&bits))])?;
        let scale = Arg::Float(1.0 / 65536.0);
        self.emit(
            "tensor_scalar",
            &[("dst", view(dst)), ("data", view(&bits)), ("op0", super::name("multiply")), ("operand0", scale)],
        )
    }

    /// `nl.dropout`: replaces each element by zero with probability `rate`; the others are not scaled.
    pub(crate) fn dropout(&mut self, x: &Tensor, rate: &Operand, dtype: Option<DType>) -> Result<Tensor> {
        self.on_chip("dropout", x)?;
        let prob = match rate {
            Operand::Tile(t) => view(t),
            Operand::Number(Imm::Int(i)) => Arg::Float(*i as f64),
            Operand::Number(Imm::Float(p)) => Arg::Float(*p),
        };
        let dst = self.tile(&extents(x), x.view.dtype, Space::Sbuf)?;
        self.emit("dropout", &[("dst", view(&dst)), ("data", view(x)), ("prob", prob)])?;
        match dtype {
            Some(d) if d != x.view.dtype => self.copy(&dst, Some(d)),
            _ => Ok(dst),
        }
    }
}
