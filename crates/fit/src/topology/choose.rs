//! Which domains of which level take a pod set [TAS-4], steps 1 to 4.

use super::counter::Key;
use super::counts::Store;
use super::request::Ask;
use super::view::View;

/// How domains are preferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Profile {
    /// The smallest that is enough; else the largest first.
    BestFit,
    /// The smallest first.
    LeastFree,
}

/// What is to be placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Need {
    /// Slices, or pods below their level.
    pub(super) units: u32,
    /// And a leader.
    pub(super) leader: bool,
}

/// Domains of one level that together take everything, the leader's first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chosen {
    pub(super) level: usize,
    pub(super) domains: Vec<u32>,
}

/// How many units would have fitted, at which level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Short {
    pub(super) level: usize,
    pub(super) fits: u64,
}

/// Chooses domains for what is asked.
pub(super) fn choose(view: &View<'_>, ask: &Ask, need: Need, profile: Profile) -> Result<Chosen, Short> {
    let mut level = ask.level;
    loop {
        // The smallest sufficient domain is what both profiles take first.
        let single = view.few_first(level, need.units, need.leader).next();
        if let Some((_, _, ix)) = single {
            return Ok(Chosen { level, domains: vec![ix] });
        }
        if ask.required {
            let best = view.many_first(level, need.leader).next();
            return Err(Short { level, fits: best.map_or(0, |(slices, _, _)| u64::from(slices)) });
        }
        match level.checked_sub(1) {
            Some(above) if !ask.unconstrained => level = above,
            _ => break,
        }
    }
    let total = view.total(level);
    if total < u64::from(need.units) {
        return Err(Short { level, fits: total });
    }
    let mut taken = Taken { domains: Vec::new(), led: None, left: need.units };
    if need.leader {
        taken.take_leader(view, level, total, need.units)?;
    }
    taken.take_rest(view, level, profile);
    if taken.left > 0 {
        let missing = u64::from(taken.left);
        return Err(Short { level, fits: u64::from(need.units).saturating_sub(missing) });
    }
    Ok(Chosen { level, domains: taken.domains })
}

/// Domains that were taken so far.
struct Taken {
    domains: Vec<u32>,
    /// The one that hosts the leader.
    led: Option<u32>,
    left: u32,
}

impl Taken {
    fn take(&mut self, ix: u32, units: u32) {
        self.domains.push(ix);
        self.left = self.left.saturating_sub(units);
    }

    /// The first domain that can host the leader and whose loss of room still leaves enough in all.
    fn take_leader(&mut self, view: &View<'_>, level: usize, total: u64, units: u32) -> Result<(), Short> {
        let enough = |key: &Key| {
            let count = view.get(level, key.2);
            let lost = count.slices.saturating_sub(count.led_slices);
            total.saturating_sub(u64::from(lost)) >= u64::from(units)
        };
        let host = view.many_first(level, true).find(enough);
        let (slices, _, ix) = host.ok_or(Short { level, fits: 0 })?;
        self.led = Some(ix);
        self.take(ix, slices);
        Ok(())
    }

    fn take_rest(&mut self, view: &View<'_>, level: usize, profile: Profile) {
        let led = self.led;
        let free = move |key: &Key| led != Some(key.2);
        if profile == Profile::LeastFree {
            let mut domains = view.few_first(level, 1, false).filter(free);
            while self.left > 0 {
                let Some((slices, _, ix)) = domains.next() else { break };
                self.take(ix, slices);
            }
            return;
        }
        let mut domains = view.many_first(level, false).filter(free);
        while self.left > 0 {
            let Some((slices, _, ix)) = domains.next() else { break };
            if slices < self.left {
                self.take(ix, slices);
                continue;
            }
            // The last one is the smallest that is enough. Of those with as many slices as this one, this is the first
            // that is still free.
            let least = view.few_first(level, self.left, false).find(free);
            let smaller = least.filter(|least| least.0 < slices);
            let (slices, _, ix) = smaller.unwrap_or((slices, 0, ix));
            self.take(ix, slices);
        }
    }
}
