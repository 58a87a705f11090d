//! Playing a record again.

use std::sync::Arc;

use fairlead_model::Millis;

use super::hash::Checksum;
use super::wire::{Get, Reader};
use super::{Fault, MAGIC, VERSION, kind, plan_hash};
use crate::world::checkpoint::Checkpoint;
use crate::{Budget, Plan, Policy, Settings, World, decide};

/// A decision of a record, decided again.
#[derive(Clone, Debug)]
pub struct Decided {
    /// Its number.
    pub number: u64,
    /// What was decided now.
    pub plan: Plan,
    /// The hash of what was decided then.
    pub recorded: u128,
    /// The hash of the plan.
    pub hash: u128,
}

impl Decided {
    /// Whether the same was decided.
    pub const fn is_same(&self) -> bool {
        self.recorded == self.hash
    }
}

/// What playing a record again has shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The number of the first decision.
    pub first: u64,
    /// Decisions that were compared.
    pub decisions: u64,
    /// The number of the first one that came out differently. What follows it is not played: it rests on it.
    pub differs: Option<u64>,
}

/// Plays a record again, to its end or to the first decision that differs.
///
/// # Errors
///
/// The bytes are not a whole record of a known version.
pub fn replay(bytes: &[u8]) -> Result<Report, Fault> {
    let mut player = Player::new(bytes)?;
    let mut report = Report { first: player.next, ..Report::default() };
    while let Some(decided) = player.decide()? {
        report.decisions = report.decisions.saturating_add(1);
        if !decided.is_same() {
            report.differs = Some(decided.number);
            break;
        }
    }
    Ok(report)
}

/// Plays a record, decision by decision.
#[derive(Debug)]
pub struct Player<'a> {
    rest: &'a [u8],
    sum: Checksum,
    texts: Vec<Arc<str>>,
    world: World,
    next: u64,
    /// The last decision, until it is committed.
    plan: Option<Plan>,
}

impl<'a> Player<'a> {
    /// Reads the beginning of a record and makes its world.
    ///
    /// # Errors
    ///
    /// The bytes do not begin as a record of a known version does.
    pub fn new(bytes: &'a [u8]) -> Result<Self, Fault> {
        let rest = bytes.strip_prefix(MAGIC).ok_or(Fault::NotARecord)?;
        let mut player = Self {
            rest,
            sum: Checksum::default(),
            texts: Vec::new(),
            world: World::default(),
            next: 0,
            plan: None,
        };
        player.sum.add(MAGIC);
        let version = player.number()?;
        if version != u128::from(VERSION) {
            return Err(Fault::Version(u64::try_from(version).unwrap_or(u64::MAX)));
        }
        player.begin()?;
        Ok(player)
    }

    /// The number of the next decision.
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// What is known at this point.
    pub const fn world(&self) -> &World {
        &self.world
    }

    /// Plays up to and with the next decision; none at the end.
    ///
    /// # Errors
    ///
    /// The record cannot be read on.
    pub fn decide(&mut self) -> Result<Option<Decided>, Fault> {
        while !self.rest.is_empty() {
            let payload = self.payload()?;
            let mut input = Reader { rest: payload, texts: &mut self.texts };
            let decided = match input.number()? {
                kind::FACT => {
                    let now = Millis::get(&mut input)?;
                    let fact = Get::get(&mut input)?;
                    let _changed = self.world.absorb(fact, now);
                    None
                }
                kind::ADVANCE => {
                    let _changed = self.world.advance(Get::get(&mut input)?);
                    None
                }
                kind::SAMPLE => {
                    self.world.sample();
                    None
                }
                kind::DECIDE => {
                    let policy = Policy::get(&mut input)?;
                    let (now, budget) = (Millis::get(&mut input)?, Budget::get(&mut input)?);
                    let recorded = Get::get(&mut input)?;
                    let plan = decide(&self.world.snapshot(), &policy, now, budget);
                    let hash = plan_hash(&plan);
                    Some(Decided { number: self.next, plan, recorded, hash })
                }
                kind::COMMIT => {
                    let plan = self.plan.take().ok_or(Fault::OutOfOrder)?;
                    self.world.commit(&plan);
                    None
                }
                kind::BEGIN => return Err(Fault::OutOfOrder),
                _ => return Err(Fault::Malformed),
            };
            if !input.rest.is_empty() {
                return Err(Fault::Malformed);
            }
            if let Some(decided) = decided {
                self.next = self.next.saturating_add(1);
                self.plan = Some(decided.plan.clone());
                return Ok(Some(decided));
            }
        }
        Ok(None)
    }

    fn begin(&mut self) -> Result<(), Fault> {
        let payload = self.payload()?;
        let mut input = Reader { rest: payload, texts: &mut self.texts };
        if input.number()? != kind::BEGIN {
            return Err(Fault::OutOfOrder);
        }
        self.next = Get::get(&mut input)?;
        let settings = Settings::get(&mut input)?;
        let checkpoint = Checkpoint::get(&mut input)?;
        if !input.rest.is_empty() {
            return Err(Fault::Malformed);
        }
        self.world = World::restored(settings, checkpoint);
        Ok(())
    }

    /// A number outside of entries.
    fn number(&mut self) -> Result<u128, Fault> {
        let mut input = Reader { rest: self.rest, texts: &mut self.texts };
        let value = input.number().map_err(|_no_number| Fault::Truncated)?;
        let length = self.rest.len().saturating_sub(input.rest.len());
        self.cut(length)?;
        Ok(value)
    }

    /// The payload of the next entry, once its checksum was found right.
    fn payload(&mut self) -> Result<&'a [u8], Fault> {
        let length = usize::try_from(self.number()?).map_err(|_too_long| Fault::Truncated)?;
        let payload = self.cut(length)?;
        let sum = self.sum.bytes();
        if self.cut(sum.len())? == sum { Ok(payload) } else { Err(Fault::Checksum) }
    }

    /// The next bytes, which count for the checksum.
    fn cut(&mut self, length: usize) -> Result<&'a [u8], Fault> {
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or(Fault::Truncated)?;
        self.sum.add(bytes);
        self.rest = rest;
        Ok(bytes)
    }
}
