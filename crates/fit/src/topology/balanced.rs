//! Balanced placement of preferred pod sets (gate TASBalancedPlacement): over the fewest domains, as evenly as possible.
//!
//! The *threshold* is the fewest slices that a used domain gets; it is made as large as it can be. Where slices are cut at
//! a narrower level than the one preferred, the level below that one is balanced. Whatever does not work out gives none,
//! and the pod set is placed like any other.

use std::cmp::Reverse;
use std::ops::Range;

use super::choose::{Need, Profile};
use super::counter::Count;
use super::counts::Store;
use super::descend::{Share, hand_down};
use super::optimal;
use super::request::Ask;
use super::view::View;

/// A domain that may be used, with what fits there.
pub(super) type Candidate = (u32, Count);

/// Siblings at the preferred level that together have room, less what lies below the threshold.
struct Siblings {
    threshold: u32,
    /// How many of them are needed.
    used: usize,
    upper: Vec<Candidate>,
    /// Their children, where those are balanced; ordinals of the parents' children lie side by side.
    lower: Option<Vec<Candidate>>,
}

/// What taking the largest domains first would use.
pub(super) struct Greedy {
    pub(super) used: usize,
    /// The last one used for workers alone.
    last: Option<Count>,
    /// The one that hosts the leader.
    host: Option<Count>,
}

/// Takes the largest domains first, the leader's before others; none if all are not enough.
pub(super) fn greedy(candidates: &[Candidate], need: Need) -> Option<Greedy> {
    let mut found = Greedy { used: 0, last: None, host: None };
    let mut left = need.units;
    let mut host = None;
    if need.leader {
        let hosts = candidates.iter().filter(|(_, count)| count.leads);
        let (ix, count) = hosts.min_by_key(|(ix, count)| led_order(*ix, count))?;
        left = left.saturating_sub(count.led_slices);
        host = Some(*ix);
        found = Greedy { used: 1, host: Some(*count), ..found };
    }
    let mut rest: Vec<&Candidate> = candidates.iter().filter(|(ix, _)| Some(*ix) != host).collect();
    rest.sort_unstable_by_key(|(ix, count)| (Reverse(count.slices), count.pods, *ix));
    for (_, count) in rest {
        if left == 0 || count.slices == 0 {
            break;
        }
        left = left.saturating_sub(count.slices);
        found.used = found.used.saturating_add(1);
        found.last = Some(*count);
    }
    (left == 0 && found.used > 0).then_some(found)
}

fn led_order(ix: u32, count: &Count) -> (bool, Reverse<u32>, u32, u32) {
    (!count.leads, Reverse(count.led_slices), count.led_pods, ix)
}

impl Greedy {
    /// The largest threshold that these domains allow.
    fn threshold(&self, slices: u32) -> u32 {
        let even = slices.checked_div(u32::try_from(self.used).unwrap_or(u32::MAX)).unwrap_or(0);
        let host = self.host.map_or(even, |count| count.led_slices);
        let last = self.last.map_or(even, |count| count.slices);
        even.min(host).min(last)
    }

    /// The same if the last domain had to be able to host the leader too.
    fn cautious_threshold(&self, slices: u32) -> u32 {
        let last = if self.host.is_some() { self.last } else { None };
        last.map_or(u32::MAX, |count| count.led_slices).min(self.threshold(slices))
    }
}

/// A domain's count without what lies below the threshold.
fn pruned(count: Count, threshold: u32) -> Count {
    if count.slices < threshold {
        return Count::default();
    }
    if count.led_slices < threshold {
        return Count { leads: false, led_pods: 0, led_slices: 0, ..count };
    }
    count
}

fn candidates(view: &View<'_>, level: usize, range: Range<u32>) -> Vec<Candidate> {
    range.clone().zip(view.run(level, range)).collect()
}

/// The best siblings: the largest threshold, then the fewest domains, then the first.
fn best_siblings(view: &View<'_>, ask: &Ask, need: Need) -> Option<Siblings> {
    let mut best: Option<Siblings> = None;
    let groups: Vec<Range<u32>> = match ask.level.checked_sub(1) {
        None => vec![view.tree.top()],
        Some(above) => {
            let parents = view.tree.domains.get(above).into_iter().flatten();
            parents.map(|domain| domain.children.clone()).collect()
        }
    };
    for group in groups {
        let at_least = best.as_ref().map_or(1, |best| best.threshold);
        let Some(found) = siblings(view, ask, need, (group, at_least)) else { continue };
        let better = best
            .as_ref()
            .is_none_or(|best| (Reverse(found.threshold), found.used) < (Reverse(best.threshold), best.used));
        if better {
            best = Some(found);
        }
    }
    best
}

/// What these siblings allow, if their threshold is at least the given one.
fn siblings(
    view: &View<'_>,
    ask: &Ask,
    need: Need,
    (group, at_least): (Range<u32>, u32),
) -> Option<Siblings> {
    let balances_below = ask.level < ask.cut.level;
    let upper = candidates(view, ask.level, group.clone());
    let first = view.tree.children(ask.level, group.start).start;
    let last = view.tree.children(ask.level, group.end.checked_sub(1)?).end;
    let below = ask.level.saturating_add(1);
    let lower = balances_below.then(|| candidates(view, below, first..last));
    let found = greedy(lower.as_ref().unwrap_or(&upper), need)?;
    let (bold, cautious) = (found.threshold(need.units), found.cautious_threshold(need.units));
    let mut thresholds = vec![bold];
    if cautious < bold {
        thresholds.push(cautious);
    }
    thresholds.into_iter().filter(|threshold| *threshold >= at_least.max(1)).find_map(|threshold| {
        let lower = lower.clone().map(|lower| prune(lower, threshold));
        let upper = upper.iter().map(|(ix, count)| {
            let Some(lower) = &lower else { return (*ix, *count) };
            let children = view.tree.children(ask.level, *ix);
            let children = lower.iter().filter(|(child, _)| children.contains(child));
            (*ix, view.combine(ask.level, children.map(|(_, count)| *count)))
        });
        let upper = prune(upper.collect(), threshold);
        let used = greedy(&upper, need)?.used;
        Some(Siblings { threshold, used, upper, lower })
    })
}

fn prune(candidates: Vec<Candidate>, threshold: u32) -> Vec<Candidate> {
    candidates.into_iter().map(|(ix, count)| (ix, pruned(count, threshold))).collect()
}

/// Places a preferred pod set evenly, if that can be done.
pub(super) fn place(view: &View<'_>, ask: &Ask, need: Need) -> Option<Vec<Share>> {
    let siblings = best_siblings(view, ask, need)?;
    let size = ask.cut.size;
    let (level, pool) = match siblings.lower {
        None => (ask.level, siblings.upper),
        Some(lower) => {
            let mut upper = siblings.upper;
            let mixed = |ix: &u32| {
                let children = view.tree.children(ask.level, *ix);
                let children = lower.iter().filter(|(child, _)| children.contains(child));
                optimal::entropy(children.map(|(_, count)| count.pods))
            };
            upper.sort_by_cached_key(|(ix, count)| {
                (!count.leads, Reverse(count.led_slices), Reverse(mixed(ix)), *ix)
            });
            let chosen = optimal::set(&upper, need, size)?;
            let children = chosen.iter().map(|(ix, _)| view.tree.children(ask.level, *ix));
            let children: Vec<Range<u32>> = children.collect();
            let inside = |ix: &u32| children.iter().any(|children| children.contains(ix));
            (ask.level.saturating_add(1), lower.into_iter().filter(|(ix, _)| inside(ix)).collect())
        }
    };
    let shares = share_evenly(&pool, need, (siblings.threshold, size))?;
    hand_down(view, ask, (level, shares), Profile::BestFit)
}

/// The threshold for each of the best domains, and what is left over to the first of them.
fn share_evenly(pool: &[Candidate], need: Need, (threshold, size): (u32, u32)) -> Option<Vec<Share>> {
    let mut chosen = optimal::set(pool, need, size)?;
    chosen.sort_unstable_by_key(|(ix, count)| led_order(*ix, count));
    let used = u32::try_from(chosen.len()).ok()?;
    let mut extra = need.units.checked_sub(used.checked_mul(threshold)?)?;
    let mut leader = need.leader;
    let mut shares = Vec::with_capacity(chosen.len());
    for (ix, count) in chosen {
        if leader && !count.leads {
            return None;
        }
        let room = if leader { count.led_slices } else { count.slices };
        let more = room.checked_sub(threshold)?.min(extra);
        extra = extra.saturating_sub(more);
        let pods = threshold.saturating_add(more).saturating_mul(size);
        shares.push(Share { ix, pods, leader });
        leader = false;
    }
    (extra == 0 && !leader).then_some(shares)
}
