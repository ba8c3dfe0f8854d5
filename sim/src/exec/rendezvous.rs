//! Rendezvous: instructions of several cores, of one or several ranks, that wait for each other. Advances the cores and pairs them.
//!
//! Each core advances until it waits. A rendezvous completes when all of its members wait at one of its kind. If no core can proceed, cores that wait
//! at an exchange post it and continue: exchanges on different pipes do not wait for each other.

use nki_isa::Participants;

use crate::trace::{CoreId, Rendezvous};

/// The common properties of a rendezvous' members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Cores of one rank.
    Cores,
    /// Cores of one rank, each of which sends to another.
    Exchange { pipe: i64 },
    /// A collective of a group of ranks.
    Group { whole: bool },
    /// A collective of pairs of ranks.
    Pairs { whole: bool },
}

impl Kind {
    pub(super) fn of(participants: &Participants<'_>) -> Self {
        match participants {
            Participants::Cores(_) => Kind::Cores,
            Participants::Exchange { pipe, .. } => Kind::Exchange { pipe: *pipe },
            Participants::Group { whole, .. } => Kind::Group { whole: *whole },
            Participants::Pairs { whole, .. } => Kind::Pairs { whole: *whole },
        }
    }
}

/// Whether an instruction waits for these participants if each rank has so many cores. Without a second core, a barrier has nothing to wait for
/// (manual of NKI 0.7: "applies at LNC degree 1 and 2").
pub(super) fn waits(participants: &Participants<'_>, cores: usize) -> bool {
    !(matches!(participants, Participants::Cores(_)) && cores == 1)
}

/// The members of a rendezvous, including `me`, and the names of missing ones. `cores` is the number of cores by rank.
pub(super) fn members(participants: &Participants<'_>, me: CoreId, cores: &[usize]) -> (Vec<CoreId>, Vec<String>) {
    let of_ranks = participants.is_of_ranks();
    let whole = participants.is_of_whole_cores();
    let mut there = Vec::new();
    let mut missing = Vec::new();
    for member in participants.members(if of_ranks { me.rank as u32 } else { me.core }) {
        let others = match (of_ranks, whole) {
            (false, _) => vec![CoreId { rank: me.rank, core: member }],
            (true, false) => vec![CoreId { rank: member as usize, core: me.core }],
            // The other rank must have as many cores as this one, else the rendezvous is impossible.
            (true, true) => {
                let count = cores.get(me.rank).copied().unwrap_or(1) as u32;
                (0..count).map(|core| CoreId { rank: member as usize, core }).collect()
            }
        };
        for other in others {
            let exist = cores.get(other.rank).copied().unwrap_or(0);
            if (other.core as usize) < exist {
                there.push(other);
            } else if !of_ranks {
                missing.push(format!("core {member}"));
            } else if exist == 0 {
                missing.push(format!("rank {member}"));
            } else {
                missing.push(format!("core {} of rank {member}", other.core));
            }
        }
    }
    (there, missing)
}

/// The reason why a core stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// Its stream has ended.
    Done,
    /// It waits for others.
    Waits,
    /// Its next statement needs one of its posted exchanges.
    Blocked,
}

/// The instruction at which a core waits.
#[derive(Debug, Clone)]
pub(super) struct RendezvousPoint {
    /// Its position among the events of the core.
    pub(super) event: u32,
    pub(super) kind: Kind,
    /// The members, including the core itself; `None` if some do not exist.
    pub(super) members: Option<Vec<CoreId>>,
}

/// The cores of all ranks while they advance.
pub(super) trait Cores {
    /// The reason why the run cannot continue.
    type Stopped;

    /// Cores by rank.
    fn counts(&self) -> Vec<usize>;
    /// Lets a core advance until it ends or waits.
    fn advance(&mut self, core: CoreId) -> Result<Stop, Self::Stopped>;
    /// The place of a core that stopped with [`Stop::Waits`].
    fn place(&self, core: CoreId) -> Option<RendezvousPoint>;
    /// Completes the rendezvous at which `core` waits: all members have arrived or posted it.
    fn complete(&mut self, core: CoreId, members: &[CoreId]) -> Result<(), Self::Stopped>;
    /// Posts the exchange at which a core waits: it sends its data and proceeds.
    fn post(&mut self, core: CoreId) -> Result<(), Self::Stopped>;
    /// The error if no core can proceed.
    fn deadlock(&self) -> Self::Stopped;
}

/// The position of one core.
#[derive(Debug, Default)]
struct RendezvousState {
    waits: Option<RendezvousPoint>,
    /// Its posted exchanges.
    posted: Vec<RendezvousPoint>,
    completed: Vec<Rendezvous>,
}

/// The completed rendezvous of all cores.
#[derive(Debug, Default)]
pub(super) struct Pairing {
    /// By rank and core.
    standing: Vec<Vec<RendezvousState>>,
    count: u32,
}

impl Pairing {
    /// The rendezvous of `core`, in the order of its events.
    pub(super) fn take(&mut self, core: CoreId) -> Vec<Rendezvous> {
        let mut completed = std::mem::take(&mut self.of(core).completed);
        completed.sort_unstable_by_key(|r| r.event);
        completed
    }

    fn of(&mut self, core: CoreId) -> &mut RendezvousState {
        &mut self.standing[core.rank][core.core as usize]
    }

    /// All cores in order.
    fn cores(&self) -> Vec<CoreId> {
        let of_rank = |(rank, cores): (usize, &Vec<RendezvousState>)| {
            (0..cores.len() as u32).map(move |core| CoreId { rank, core })
        };
        self.standing.iter().enumerate().flat_map(of_rank).collect()
    }

    /// The members of the rendezvous at which `core` waits, if all of them wait at one of its kind or have posted it.
    fn ready_members(&self, core: CoreId) -> Option<Vec<CoreId>> {
        let of = |core: &CoreId| &self.standing[core.rank][core.core as usize];
        let place = of(&core).waits.as_ref()?;
        let members = place.members.as_ref()?;
        let here = |s: &RendezvousState| s.posted.iter().chain(&s.waits).any(|p| p.kind == place.kind);
        members.iter().all(|m| here(of(m))).then(|| members.clone())
    }

    /// Completes the rendezvous at which `core` waits; returns the members that had posted it.
    fn complete(&mut self, core: CoreId, members: &[CoreId]) -> Vec<CoreId> {
        let number = self.count;
        let Some(kind) = self.of(core).waits.as_ref().map(|p| p.kind) else { return Vec::new() };
        let mut left = Vec::new();
        for &member in members {
            let standing = self.of(member);
            let posted = standing.posted.iter().position(|p| p.kind == kind);
            let place = match posted {
                Some(at) => {
                    left.push(member);
                    Some(standing.posted.remove(at))
                }
                None => standing.waits.take(),
            };
            if let Some(place) = place.filter(|_| members.len() > 1) {
                standing.completed.push(Rendezvous { event: place.event, number, posted: posted.is_some() });
            }
        }
        self.count += u32::from(members.len() > 1);
        left
    }

    /// Whether no core waits or has a posted exchange.
    fn is_empty(&self) -> bool {
        self.standing.iter().flatten().all(|s| s.waits.is_none() && s.posted.is_empty())
    }
}

/// Lets all cores advance to their end.
///
/// # Errors
/// If a core cannot proceed, or cores deadlock; `pairing` then has the rendezvous so far.
pub(super) fn run<C: Cores + ?Sized>(cores: &mut C, pairing: &mut Pairing) -> Result<(), C::Stopped> {
    let standing = |n: usize| (0..n).map(|_| RendezvousState::default()).collect();
    *pairing = Pairing { standing: cores.counts().into_iter().map(standing).collect(), count: 0 };
    let mut ready = pairing.cores();
    // Cores whose next statement needs one of their posted exchanges.
    let mut blocked: Vec<CoreId> = Vec::new();
    loop {
        for core in std::mem::take(&mut ready) {
            match cores.advance(core)? {
                Stop::Done => {}
                Stop::Waits => pairing.of(core).waits = cores.place(core),
                Stop::Blocked => blocked.push(core),
            }
        }
        if blocked.is_empty() && pairing.is_empty() {
            return Ok(());
        }
        // In a fixed order, so that runs are deterministic.
        let mut received: Vec<CoreId> = Vec::new();
        for core in pairing.cores() {
            let Some(members) = pairing.ready_members(core) else { continue };
            cores.complete(core, &members)?;
            let left = pairing.complete(core, &members);
            ready.extend(members.into_iter().filter(|m| !left.contains(m)));
            received.extend(left);
        }
        if ready.is_empty() {
            for core in pairing.cores() {
                let standing = pairing.of(core);
                if let Some(place) = standing.waits.take_if(|p| matches!(p.kind, Kind::Exchange { .. })) {
                    standing.posted.push(place);
                    ready.push(core);
                }
            }
            if ready.is_empty() {
                return Err(cores.deadlock());
            }
            for &core in &ready {
                cores.post(core)?;
            }
        }
        ready.extend(blocked.extract_if(.., |core| received.contains(core)));
        ready.sort_unstable();
    }
}
