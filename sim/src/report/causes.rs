//! The kinds of stalls, for a kind's page and docs/report.md.

/// A kind of stall.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CauseKind {
    /// Its name in every report.
    pub name: &'static str,
    /// Completes "the row waits because".
    pub because: &'static str,
    /// A change that shortens such waits.
    pub remedy: &'static str,
}

/// All kinds, in the order of docs/report.md.
pub const CAUSES: &[CauseKind] = &[
    CauseKind {
        name: "semaphore",
        because: "the next instruction depends on an instruction of another queue, or on an earlier result of the same engine. Through a \
                  tensor or register: RAW (it reads what the other one writes), WAR (it writes what the other one reads) or WAW (both write); \
                  `order` for an explicit order of the kernel",
        remedy: "Issue the instruction waited for earlier or make it faster (RAW); alternate between two buffers, so that the next \
                 iteration does not wait for the readers of this one (WAR, WAW).",
    },
    CauseKind {
        name: "bank",
        because: "as `semaphore`, but through a PSUM tensor that is still read or written (WAR, WAW): the bank is not free",
        remedy: "Alternate between PSUM banks, and copy results out of PSUM sooner or on an engine that is idle.",
    },
    CauseKind {
        name: "engine-order",
        because: "the engine that triggers the queue is at an earlier instruction, for example generates the descriptors of another transfer",
        remedy: "Trigger the transfer earlier in the program or from another engine (`engine=`); use hardware descriptors \
                 (`dge_mode=nisa.dge_mode.hwdge`).",
    },
    CauseKind {
        name: "dma-bandwidth",
        because: "the transfer shares the DMA engines with other transfers",
        remedy: "Move fewer bytes: keep what is loaded twice in SBUF, use a narrower type. Make descriptors longer: at least 512 bytes per \
                 partition and element run.",
    },
    CauseKind {
        name: "dma-latency",
        because: "a transfer is dispatched but does not move yet, or has moved and its completion is not signalled yet",
        remedy: "Issue transfers before their data is needed, and fewer, larger ones.",
    },
    CauseKind {
        name: "limiter",
        because: "the power limiter slows the tensor engine",
        remedy: "It follows from the rate of matmuls; the remaining work of the kernel decides whether it matters.",
    },
    CauseKind {
        name: "table-load",
        because: "the scalar engine loads a function table",
        remedy: "Group activations by function, so that the table changes less often.",
    },
    CauseKind {
        name: "port",
        because: "the vector and the GpSimd engine share a memory port, and the other one occupies it",
        remedy: "Move one of the two to the scalar engine, or away from the same time.",
    },
    CauseKind {
        name: "barrier",
        because: "all engines synchronise at a dynamic loop or branch",
        remedy: "Put more work into an iteration, or unroll the loop.",
    },
    CauseKind {
        name: "peer",
        because: "another core or rank has not reached a `core_barrier`, a `sendrecv` or a collective",
        remedy: "Balance the work of cores or ranks before they synchronise; synchronise later or less often.",
    },
    CauseKind {
        name: "start-up",
        because: "the kernel is being set up",
        remedy: "It is a fixed cost of a kernel: fuse small kernels.",
    },
    CauseKind {
        name: "finished",
        because: "the row has no more work",
        remedy: "It is idle, not delayed: another row ends last.",
    },
];
