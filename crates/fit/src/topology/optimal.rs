//! The fewest domains with the least spare room, for balanced placement.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::balanced::{Candidate, greedy};
use super::choose::Need;
use super::counter::Count;

/// How many states are looked at before balancing is given up; a few milliseconds.
const BUDGET: usize = 1_000_000;

/// What is left to be placed: the leader, and pods (negative when there is room to spare).
type Left = (bool, i64);

/// Domains taken so far, as a list that shares its tail.
struct Taken {
    candidate: usize,
    before: Option<usize>,
}

/// All that can be left after some of the candidates.
struct Search {
    taken: Vec<Taken>,
    /// By how many domains were taken, what is left, and the last domain taken.
    states: Vec<BTreeMap<Left, Option<usize>>>,
}

impl Search {
    /// Adds a candidate to the states of one domain fewer than `many`; returns how many those are. The first way to a
    /// state is kept.
    fn extend(&mut self, many: usize, (candidate, count): (usize, &Count)) -> Option<usize> {
        let [fewer, more] = self.states.get_mut(many.saturating_sub(1)..=many)? else { return None };
        for ((leader, left), before) in fewer.iter() {
            let with =
                (*leader && count.leads).then(|| (false, left.saturating_sub(i64::from(count.led_pods))));
            let without = (count.slices > 0 && (*leader || *left > 0))
                .then(|| (*leader, left.saturating_sub(i64::from(count.pods))));
            for state in with.into_iter().chain(without) {
                let Entry::Vacant(entry) = more.entry(state) else { continue };
                self.taken.push(Taken { candidate, before: *before });
                entry.insert(self.taken.len().checked_sub(1));
            }
        }
        Some(fewer.len())
    }
}

/// Of all sets of as few domains as are needed, the one with the least spare room; of equals the first in the order of
/// the candidates. None if they are not enough, or the search is too long.
pub(super) fn set(candidates: &[Candidate], need: Need, size: u32) -> Option<Vec<Candidate>> {
    let used = greedy(candidates, need)?.used;
    let pods = i64::from(need.units).saturating_mul(i64::from(size));
    let mut search = Search { taken: Vec::new(), states: vec![BTreeMap::new(); used.saturating_add(1)] };
    search.states.first_mut()?.insert((need.leader, pods), None);
    let mut work = 0_usize;
    for (candidate, (_, count)) in candidates.iter().enumerate() {
        for many in (1..=used).rev() {
            work = work.saturating_add(search.extend(many, (candidate, count))?);
        }
        if work > BUDGET {
            return None;
        }
    }
    let Search { taken, states } = search;
    let (_, best) = states.get(used)?.range((false, i64::MIN)..=(false, 0)).next_back()?;
    let mut chosen = Vec::with_capacity(used);
    let mut next = *best;
    while let Some(step) = next.and_then(|ix| taken.get(ix)) {
        chosen.push(*candidates.get(step.candidate)?);
        next = step.before;
    }
    Some(chosen)
}

/// How evenly pods spread over domains: the entropy of their shares in units of 2⁻³² bits.
pub(super) fn entropy(pods: impl Iterator<Item = u32>) -> u128 {
    let (mut total, mut weighted) = (0_u128, 0_u128);
    for pods in pods.filter(|pods| *pods > 0) {
        total = total.saturating_add(u128::from(pods));
        weighted = weighted.saturating_add(u128::from(pods).saturating_mul(log2(u128::from(pods))));
    }
    // Σ −p/t·log(p/t) = log t − Σ p·log p / t
    log2(total).saturating_sub(weighted.checked_div(total).unwrap_or(0))
}

/// The binary logarithm of a number below 2⁶⁴, in units of 2⁻³²; 0 of nothing.
fn log2(value: u128) -> u128 {
    let Some(whole) = value.checked_ilog2() else { return 0 };
    // The value scaled to [1, 2) with 63 bits behind the point, squared once for each bit of the fraction.
    let shift = 63_u32.saturating_sub(whole.min(63));
    let mut scaled = value << shift;
    let mut log = u128::from(whole);
    for _ in 0..32 {
        scaled = scaled.saturating_mul(scaled) >> 63;
        log <<= 1;
        if scaled >> 64 > 0 {
            scaled >>= 1;
            log |= 1;
        }
    }
    log
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(ix: u32, slices: u32) -> Candidate {
        let count = Count { pods: slices, slices, led_pods: slices, led_slices: slices, leads: true };
        (ix, count)
    }

    /// [TAS-4]: the fewest domains, with the least room to spare.
    #[test]
    fn finds_the_tightest_set() {
        let all = [candidate(0, 5), candidate(1, 4), candidate(2, 3), candidate(3, 3)];
        let need = |units| Need { units, leader: false };
        let mut found = set(&all, need(7), 1).expect("enough room");
        found.sort_unstable_by_key(|(ix, _)| *ix);
        assert_eq!(found, [candidate(1, 4), candidate(2, 3)]);
        assert_eq!(set(&all, need(16), 1), None);
        assert_eq!(set(&all, need(5), 1), Some(vec![candidate(0, 5)]));
    }

    /// [TAS-4]: entropy without floating point.
    #[test]
    fn even_shares_have_the_most_entropy() {
        let one = 1_u128 << 32;
        assert_eq!(log2(8), 3 * one);
        assert_eq!(entropy([4, 4].into_iter()), one);
        assert_eq!(entropy([7].into_iter()), 0);
        assert_eq!(entropy(std::iter::empty()), 0);
        assert!(entropy([4, 4].into_iter()) > entropy([5, 3].into_iter()));
        assert!(entropy([3, 3, 2].into_iter()) > entropy([4, 4].into_iter()));
        // log2(3) = 1.58496…
        assert_eq!(log2(3) * 100_000 / one, 158_496);
    }
}
