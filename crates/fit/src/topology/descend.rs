//! From the chosen domains down to the leaves [TAS-4], step 5.

use super::choose::{Chosen, Need, Profile};
use super::counts::Store;
use super::request::Ask;
use super::view::View;

/// Pods that a domain gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) ix: u32,
    pub(super) pods: u32,
    /// It hosts the leader too.
    pub(super) leader: bool,
}

/// In what pods are handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// Outermost slices of this many pods, at and above their level.
    Slice(u32),
    /// This many pods at once, below.
    Pods(u32),
}

impl Unit {
    pub(super) const fn pods(self) -> u32 {
        match self {
            Self::Slice(size) | Self::Pods(size) => size,
        }
    }
}

/// A domain that may get a share.
#[derive(Clone, Copy, Debug)]
struct Item {
    units: u32,
    led_units: u32,
    pods: u32,
    leads: bool,
    ix: u32,
}

/// How a pool of domains is used up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    pub(super) level: usize,
    pub(super) unit: Unit,
    pub(super) profile: Profile,
}

impl Rule {
    fn item(self, view: &View<'_>, ix: u32) -> Item {
        let count = view.get(self.level, ix);
        let (units, led_units) = match self.unit {
            Unit::Slice(_) => (count.slices, count.led_slices),
            Unit::Pods(size) => {
                let whole = |pods: u32| pods.checked_div(size).unwrap_or(0);
                (whole(count.pods), whole(count.led_pods))
            }
        };
        Item { units, led_units, pods: count.pods, leads: count.leads, ix }
    }

    /// The order in which domains are used up. Below the slices' level those with the fewest pods come first under either
    /// profile [TAS-4 of spec/15], also where inner slices are handed out.
    fn sort(self, items: &mut [Item]) {
        items.sort_unstable_by_key(|item| {
            let units = match (self.unit, self.profile) {
                (Unit::Pods(_), _) => 0,
                (Unit::Slice(_), Profile::LeastFree) => item.units,
                (Unit::Slice(_), Profile::BestFit) => u32::MAX.saturating_sub(item.units),
            };
            (units, item.pods, item.ix)
        });
    }

    /// Uses up the domains of a pool in their order; none if they are not enough.
    pub(super) fn share_sorted(
        self,
        view: &View<'_>,
        pool: impl Iterator<Item = u32>,
        need: Need,
    ) -> Option<Vec<Share>> {
        let mut items: Vec<Item> = pool.map(|ix| self.item(view, ix)).collect();
        self.sort(&mut items);
        if need.leader {
            leader_to_front(&mut items, need.units)?;
        }
        self.consume(&items, need)
    }

    /// Uses up domains in the order given.
    pub(super) fn share(self, view: &View<'_>, domains: &[u32], need: Need) -> Option<Vec<Share>> {
        let items: Vec<Item> = domains.iter().map(|ix| self.item(view, *ix)).collect();
        self.consume(&items, need)
    }

    fn consume(self, items: &[Item], need: Need) -> Option<Vec<Share>> {
        let mut shares = Vec::new();
        let Need { units: mut left, mut leader } = need;
        let share = |item: &Item, units: u32, leader| {
            let pods = units.saturating_mul(self.unit.pods());
            Share { ix: item.ix, pods, leader }
        };
        for (position, item) in items.iter().enumerate() {
            if left == 0 && !leader {
                break;
            }
            let takes = item.takes(leader)?;
            if takes >= left {
                // Under LeastFree this is the smallest that is enough already.
                let rest = items.get(position..).unwrap_or_default();
                shares.push(share(smallest(rest, left, leader).unwrap_or(item), left, leader));
                return Some(shares);
            }
            if takes > 0 || leader {
                shares.push(share(item, takes, leader));
            }
            left = left.saturating_sub(takes);
            leader = false;
        }
        (left == 0 && !leader).then_some(shares)
    }
}

impl Item {
    /// Units it takes, beside a leader if it is to host one; none when it cannot.
    fn takes(&self, leader: bool) -> Option<u32> {
        match (leader, self.leads) {
            (false, _) => Some(self.units),
            (true, true) => Some(self.led_units),
            (true, false) => None,
        }
    }
}

/// The first of the domains with the fewest units that are enough.
fn smallest(items: &[Item], units: u32, leader: bool) -> Option<&Item> {
    let enough = items.iter().filter_map(|item| Some((item, item.takes(leader)?)));
    enough.filter(|(_, takes)| *takes >= units).min_by_key(|(_, takes)| *takes).map(|(item, _)| item)
}

/// Moves the first domain that can host the leader, without losing too many units, to the front.
fn leader_to_front(items: &mut [Item], units: u32) -> Option<()> {
    let total = items.iter().fold(0_u64, |sum, item| sum.saturating_add(u64::from(item.units)));
    let enough = |item: &Item| {
        let lost = item.units.saturating_sub(item.led_units);
        item.leads && total.saturating_sub(u64::from(lost)) >= u64::from(units)
    };
    let host = items.iter().position(enough)?;
    items.get_mut(..=host)?.rotate_right(1);
    Some(())
}

/// Hands everything down to leaves; none only if counts and choice contradict each other.
pub(super) fn descend(
    view: &View<'_>,
    ask: &Ask,
    need: Need,
    (chosen, profile): (&Chosen, Profile),
) -> Option<Vec<Share>> {
    let slice = Unit::Slice(ask.cut.size);
    let mut level = chosen.level;
    let mut shares = Rule { level, unit: slice, profile }.share(view, &chosen.domains, need)?;
    while level < ask.cut.level {
        // Above the slices' level the children of all chosen domains are one pool.
        let pool: Vec<u32> = shares.iter().flat_map(|share| view.tree.children(level, share.ix)).collect();
        level = level.saturating_add(1);
        shares = Rule { level, unit: slice, profile }.share_sorted(view, pool.into_iter(), need)?;
    }
    hand_down(view, ask, (level, shares), profile)
}

/// From shares of one level down to leaves, each domain to its own children.
pub(super) fn hand_down(
    view: &View<'_>,
    ask: &Ask,
    (mut level, mut shares): (usize, Vec<Share>),
    profile: Profile,
) -> Option<Vec<Share>> {
    while level < view.tree.lowest() {
        let below = level.saturating_add(1);
        let inner = ask.cut.inner.get(below).copied().unwrap_or(1);
        let unit = if below <= ask.cut.level { Unit::Slice(ask.cut.size) } else { Unit::Pods(inner) };
        let rule = Rule { level: below, unit, profile };
        let mut next = Vec::new();
        for share in &shares {
            let units = share.pods.checked_div(unit.pods()).unwrap_or(0);
            let need = Need { units, leader: share.leader };
            next.extend(rule.share_sorted(view, view.tree.children(level, share.ix), need)?);
        }
        (level, shares) = (below, next);
    }
    Some(shares)
}
