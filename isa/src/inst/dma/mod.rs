//! Instructions that the DMA engines carry out.

pub mod dma_copy;
