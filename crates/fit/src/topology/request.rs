//! What a pod set asks of a topology, and what the request means in one topology [TAS-2].

use std::fmt;
use std::sync::Arc;

use fairlead_model::{NodeConstraints, Resources};

/// Where a pod set must or should lie together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level<'a> {
    /// In one domain of the level with this label key.
    Required(&'a str),
    /// In one domain of this level if possible, else of a level above, else in as few as possible.
    Preferred(&'a str),
    /// Anywhere. With slices only they are constrained; also what a queue without other flavors implies.
    Unconstrained,
}

/// Groups of `size` pods that must each lie in one domain of `level`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slice {
    /// The label key of the level.
    pub level: Arc<str>,
    /// Pods per slice, at least 1.
    pub size: u32,
}

/// What one pod set asks.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Requests of one pod; `pods: 1` is added here.
    pub requests: &'a Resources,
    /// What a pod demands of its node, with what admission checks add.
    pub nodes: &'a NodeConstraints,
    /// How many pods.
    pub count: u32,
    /// Where they must or should lie together.
    pub level: Level<'a>,
    /// Slices from the outermost to the innermost.
    pub slices: &'a [Slice],
    /// Two pod sets of one group, a leader and workers, are placed in the same domain.
    pub group: Option<&'a str>,
}

/// Switches of placement; the default is Kueue's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// As if no workload held anything [F-11], [TAS-5].
    pub empty: bool,
    /// Unconstrained pod sets take the domains with the least free capacity (gate TASProfileMixed).
    pub mixed_profile: bool,
    /// Preferred pod sets are spread evenly over the fewest domains (gate TASBalancedPlacement).
    pub balanced: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { empty: false, mixed_profile: true, balanced: false }
    }
}

/// Why a pod set could not be placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// The flavor has no topology here.
    NoTopology,
    /// The topology has no level of this label key.
    UnknownLevel(Arc<str>),
    /// The slices' level is wider than the level that the pod set asks for.
    SliceAboveLevel(Arc<str>),
    /// An inner slice's level is not narrower than that of the slice around it.
    SliceNotInside(Arc<str>),
    /// This inner slice size does not divide the size around it, or is zero.
    SliceSize(u32),
    /// The slice size does not divide the pod count [quirk 11].
    Remainder {
        /// Pods of the pod set.
        count: u32,
        /// Pods per slice.
        size: u32,
    },
    /// A group is not one leader and one set of workers.
    BadGroup,
    /// Too little room.
    Short {
        /// The level at which it was looked for last.
        level: Arc<str>,
        /// Slices (pods, when `size` is 1) that would fit: in the best domain if one is required, else in all.
        fits: u64,
        /// Slices wanted.
        wanted: u32,
        /// Pods per slice.
        size: u32,
    },
    /// The assignment to be mended holds a domain that is no longer there.
    Stale(Arc<str>),
}

/// The pod set that could not be placed, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// Position in the list of requests.
    pub pod_set: usize,
    /// The first rule that failed.
    pub why: Why,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoTopology => f.write_str("the flavor has no topology"),
            Self::UnknownLevel(level) => write!(f, "the topology has no level {level}"),
            Self::SliceAboveLevel(level) => {
                write!(f, "slices of {level} are wider than the pod set's own level")
            }
            Self::SliceNotInside(level) => write!(f, "inner slices of {level} are not inside the outer ones"),
            Self::SliceSize(size) => write!(f, "slices of {size} pods do not divide the slices around them"),
            Self::Remainder { count, size } => write!(f, "{count} pods cannot be cut into slices of {size}"),
            Self::BadGroup => f.write_str("a group is one leader pod and one set of workers"),
            Self::Stale(domain) => write!(f, "the assignment names {domain}, which is gone"),
            Self::Short { level, fits, wanted, size } => {
                let unit = if *size == 1 { "pods" } else { "slices" };
                write!(f, "{fits} of {wanted} {unit} fit at level {level}")
            }
        }
    }
}

/// How slices cut a topology.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    /// Level of the outermost slices; the lowest one when none are asked for.
    pub(super) level: usize,
    /// Pods per outermost slice.
    pub(super) size: u32,
    /// Per level, the size in whose multiples pods are handed to domains of that level; 1 at and above `level`.
    pub(super) inner: Vec<u32>,
}

/// A request in terms of one topology.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ask {
    pub(super) level: usize,
    pub(super) required: bool,
    pub(super) unconstrained: bool,
    pub(super) cut: Cut,
    /// Slices wanted.
    pub(super) slices: u32,
}

/// Position of a level.
pub(super) fn position(levels: &[Arc<str>], key: &str) -> Result<usize, Why> {
    levels.iter().position(|level| level.as_ref() == key).ok_or_else(|| Why::UnknownLevel(key.into()))
}

impl Request<'_> {
    /// Resolves the request in a topology with these levels [TAS-2].
    pub(super) fn resolve(&self, levels: &[Arc<str>]) -> Result<Ask, Why> {
        let lowest = levels.len().checked_sub(1).ok_or(Why::NoTopology)?;
        let level = match self.level {
            Level::Required(key) | Level::Preferred(key) => position(levels, key)?,
            Level::Unconstrained if self.slices.is_empty() => lowest,
            Level::Unconstrained => 0,
        };
        let cut = self.cut(levels, lowest)?;
        if cut.level < level {
            let key = levels.get(cut.level).cloned();
            return Err(Why::SliceAboveLevel(key.unwrap_or_default()));
        }
        if !self.count.is_multiple_of(cut.size) {
            return Err(Why::Remainder { count: self.count, size: cut.size });
        }
        Ok(Ask {
            level,
            required: matches!(self.level, Level::Required(_)),
            unconstrained: matches!(self.level, Level::Unconstrained),
            slices: self.count.checked_div(cut.size).unwrap_or(0),
            cut,
        })
    }

    fn cut(&self, levels: &[Arc<str>], lowest: usize) -> Result<Cut, Why> {
        let mut cut = Cut { level: lowest, size: 1, inner: vec![1; levels.len()] };
        let Some((outer, inner)) = self.slices.split_first() else { return Ok(cut) };
        cut.level = position(levels, &outer.level)?;
        cut.size = outer.size;
        if outer.size == 0 {
            return Err(Why::SliceSize(0));
        }
        let (mut above, mut around) = (cut.level, cut.size);
        for slice in inner {
            let level = position(levels, &slice.level)?;
            if level <= above {
                return Err(Why::SliceNotInside(Arc::clone(&slice.level)));
            }
            if slice.size == 0 || !around.is_multiple_of(slice.size) {
                return Err(Why::SliceSize(slice.size));
            }
            // Levels between two layers also hand out pods in multiples of the inner size.
            let between = cut.inner.get_mut(above.saturating_add(1)..=level);
            between.into_iter().flatten().for_each(|size| *size = slice.size);
            (above, around) = (level, slice.size);
        }
        Ok(cut)
    }

    /// Whether the topology has every level that the request names [F-3d].
    pub(super) fn levels_exist(&self, levels: &[Arc<str>]) -> bool {
        let own = match self.level {
            Level::Required(key) | Level::Preferred(key) => Some(key),
            Level::Unconstrained => None,
        };
        let slices = self.slices.iter().map(|slice| slice.level.as_ref());
        own.into_iter().chain(slices).all(|key| position(levels, key).is_ok())
    }
}
