//! The rules written down in the most obvious way: everything is counted and sorted anew for each question.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Values from the top level.
pub(crate) type Path = Vec<String>;

/// What is free in each leaf: CPU, GPU, pods.
pub(crate) type Free = BTreeMap<Path, [i64; 3]>;

/// One pod set, levels by number.
#[derive(Clone, Debug)]
pub(crate) struct Want {
    pub(crate) pod: [i64; 3],
    pub(crate) leader: Option<[i64; 3]>,
    pub(crate) count: u32,
    pub(crate) level: usize,
    pub(crate) required: bool,
    pub(crate) unconstrained: bool,
    pub(crate) slice_level: usize,
    pub(crate) slice_size: u32,
    /// Level and size of an inner slice.
    pub(crate) inner: Option<(usize, u32)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    pods: u32,
    slices: u32,
    led_pods: u32,
    led_slices: u32,
    leads: bool,
}

pub(crate) struct Naive<'a> {
    pub(crate) free: &'a Free,
    pub(crate) want: &'a Want,
    pub(crate) depth: usize,
}

/// Leaves of the workers, and the leader's.
pub(crate) type Answer = (BTreeMap<Path, u32>, Option<Path>);

fn times(pod: &[i64; 3], free: &[i64; 3]) -> u32 {
    let fits =
        pod.iter().zip(free).filter(|(need, _)| **need > 0).map(|(need, free)| free.max(&0) / need).min();
    u32::try_from(fits.unwrap_or_else(|| i64::from(u32::MAX))).unwrap_or(u32::MAX)
}

impl Naive<'_> {
    fn domains(&self, level: usize) -> BTreeSet<Path> {
        self.free.keys().map(|path| path[..=level].to_vec()).collect()
    }

    fn children(&self, domain: &Path) -> Vec<Path> {
        let all = self.domains(domain.len());
        all.into_iter().filter(|child| child.starts_with(domain)).collect()
    }

    fn unit(&self, level: usize) -> u32 {
        let (inner, size) = self.want.inner.unwrap_or((0, 1));
        if level > self.want.slice_level && level <= inner { size } else { 1 }
    }

    fn count(&self, domain: &Path) -> Count {
        let level = domain.len() - 1;
        let mut count = if domain.len() == self.depth { self.leaf(domain) } else { self.sum(domain) };
        if level == self.want.slice_level {
            count.slices = count.pods / self.want.slice_size;
            count.led_slices = count.led_pods / self.want.slice_size;
        }
        count
    }

    fn leaf(&self, domain: &Path) -> Count {
        let free = self.free[domain];
        let pods = times(&self.want.pod, &free);
        let Some(leader) = self.want.leader else {
            return Count { pods, led_pods: pods, leads: true, ..Count::default() };
        };
        let leads = times(&leader, &free) > 0;
        let beside = [free[0] - leader[0], free[1] - leader[1], free[2] - leader[2]];
        Count {
            pods,
            led_pods: if leads { times(&self.want.pod, &beside) } else { 0 },
            leads,
            ..Count::default()
        }
    }

    fn sum(&self, domain: &Path) -> Count {
        let unit = self.unit(domain.len());
        let children: Vec<Count> = self.children(domain).iter().map(|child| self.count(child)).collect();
        let whole = |pods: u32| pods / unit * unit;
        let pods = children.iter().map(|child| whole(child.pods)).sum::<u32>();
        let slices = children.iter().map(|child| child.slices).sum::<u32>();
        let hosts = || children.iter().filter(|child| child.leads);
        let cost = hosts().map(|child| whole(child.pods) - whole(child.led_pods)).min();
        let slice_cost = hosts().map(|child| child.slices - child.led_slices).min();
        Count {
            pods,
            slices,
            led_pods: cost.map_or(0, |cost| pods - cost),
            led_slices: slice_cost.map_or(0, |cost| slices - cost),
            leads: cost.is_some(),
        }
    }

    /// Where everything goes, or nothing.
    pub(crate) fn place(&self) -> Option<Answer> {
        let want = self.want;
        let slices = want.count / want.slice_size;
        let leader = want.leader.is_some();
        let (mut level, chosen) = self.choose(want.level, slices)?;
        let mut shares = self.consume(
            &chosen.iter().map(|path| (path.clone(), self.count(path))).collect::<Vec<_>>(),
            slices,
            leader,
            None,
        )?;
        while level < want.slice_level {
            level += 1;
            let pool: Vec<Path> = shares.iter().flat_map(|(path, _, _)| self.children(path)).collect();
            shares = self.consume(&self.sorted(pool, true, slices, leader), slices, leader, None)?;
        }
        while level + 1 < self.depth {
            level += 1;
            let unit = self.unit(level);
            let mut next = Vec::new();
            for (path, pods, leads) in shares {
                let pool = self.sorted(self.children(&path), false, pods / unit, leads);
                next.extend(self.consume(&pool, pods / unit, leads, Some(unit))?);
            }
            shares = next;
        }
        let host = shares.iter().find(|(_, _, leads)| *leads).map(|(path, _, _)| path.clone());
        let workers = shares.into_iter().filter(|(_, pods, _)| *pods > 0);
        Some((workers.map(|(path, pods, _)| (path, pods)).collect(), host.filter(|_| leader)))
    }

    fn choose(&self, level: usize, slices: u32) -> Option<(usize, Vec<Path>)> {
        let counted: Vec<(Path, Count)> =
            self.domains(level).into_iter().map(|path| (path.clone(), self.count(&path))).collect();
        let enough = counted.iter().filter(|(_, count)| count.leads && count.led_slices >= slices);
        if let Some((path, _)) = enough.min_by_key(|(path, count)| (count.led_slices, count.led_pods, path)) {
            return Some((level, vec![path.clone()]));
        }
        if self.want.required {
            return None;
        }
        if level > 0 && !self.want.unconstrained {
            return self.choose(level - 1, slices);
        }
        let total: u32 = counted.iter().map(|(_, count)| count.slices).sum();
        let mut left = slices;
        let mut chosen: Vec<Path> = Vec::new();
        if self.want.leader.is_some() {
            let host = counted
                .iter()
                .filter(|(_, count)| count.leads && total - (count.slices - count.led_slices) >= slices)
                .min_by_key(|(path, count)| (Reverse(count.led_slices), count.led_pods, path))?;
            left = left.saturating_sub(host.1.led_slices);
            chosen.push(host.0.clone());
        }
        while left > 0 {
            let rest = || counted.iter().filter(|(path, count)| !chosen.contains(path) && count.slices > 0);
            let few = |(path, count): &&(Path, Count)| (count.slices, count.pods, path.clone());
            let many = |(path, count): &&(Path, Count)| (Reverse(count.slices), count.pods, path.clone());
            let next = if self.want.unconstrained {
                rest().min_by_key(few)?
            } else {
                let largest = rest().min_by_key(many)?;
                let enough = rest().filter(|(_, count)| count.slices >= left).min_by_key(few);
                if largest.1.slices >= left { enough? } else { largest }
            };
            left = left.saturating_sub(next.1.slices);
            let path = next.0.clone();
            chosen.push(path);
        }
        Some((level, chosen))
    }

    /// Pools in the order in which they are used up, a domain for the leader first.
    fn sorted(&self, pool: Vec<Path>, slices: bool, need: u32, leader: bool) -> Vec<(Path, Count)> {
        let mut counted: Vec<(Path, Count)> =
            pool.into_iter().map(|path| (path.clone(), self.count(&path))).collect();
        counted.sort_by_key(|(path, count)| {
            let by_slices = i64::from(count.slices) * if self.want.unconstrained { 1 } else { -1 };
            (if slices { by_slices } else { 0 }, count.pods, path.clone())
        });
        if leader {
            let unit = if slices { 1 } else { self.unit(counted[0].0.len() - 1) };
            let units = |count: &Count| {
                if slices {
                    (count.slices, count.led_slices)
                } else {
                    (count.pods / unit, count.led_pods / unit)
                }
            };
            let total: u32 = counted.iter().map(|(_, count)| units(count).0).sum();
            let host = counted.iter().position(|(_, count)| {
                let (all, led) = units(count);
                count.leads && total - (all - led) >= need
            });
            if let Some(host) = host {
                let host = counted.remove(host);
                counted.insert(0, host);
            }
        }
        counted
    }

    /// Uses up a pool in its order; the last domain under BestFit is the smallest that is enough.
    fn consume(
        &self,
        pool: &[(Path, Count)],
        mut left: u32,
        mut leader: bool,
        unit: Option<u32>,
    ) -> Option<Vec<(Path, u32, bool)>> {
        let size = unit.unwrap_or(self.want.slice_size);
        let takes = |count: &Count, leader: bool| match (unit, leader) {
            (None, false) => count.slices,
            (None, true) => count.led_slices,
            (Some(unit), false) => count.pods / unit,
            (Some(unit), true) => count.led_pods / unit,
        };
        let mut shares = Vec::new();
        for (ix, (path, count)) in pool.iter().enumerate() {
            if left == 0 && !leader {
                break;
            }
            if leader && !count.leads {
                return None;
            }
            let units = takes(count, leader);
            if units >= left {
                let enough = pool[ix..].iter().filter(|(_, other)| !leader || other.leads);
                let enough = enough.filter(|(_, other)| takes(other, leader) >= left);
                let smallest = enough.min_by_key(|(_, other)| takes(other, leader))?;
                let last = if self.want.unconstrained { path } else { &smallest.0 };
                shares.push((last.clone(), left * size, leader));
                return Some(shares);
            }
            shares.push((path.clone(), units * size, leader));
            left -= units;
            leader = false;
        }
        (left == 0 && !leader).then_some(shares)
    }
}
