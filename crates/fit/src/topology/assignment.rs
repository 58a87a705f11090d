//! Where the pods of a pod set run, in full and in the compressed form that Workloads store.

use std::sync::Arc;

/// Most domains in one compressed slice.
const MAX_SLICE: usize = 100_000;

/// Where the pods of a pod set run.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Assignment {
    /// Label keys from the widest level; only the hostname where that is the narrowest.
    pub levels: Vec<Arc<str>>,
    /// Label values per domain and the pods there, none of them zero, in the order of all their level values.
    pub domains: Vec<(Vec<Arc<str>>, u32)>,
}

/// The values of one level for the domains of a slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LevelValues {
    /// One value for all.
    Universal(Arc<str>),
    /// `prefix + root + suffix` for each.
    Individual {
        /// What all values begin with.
        prefix: Arc<str>,
        /// What all values end with.
        suffix: Arc<str>,
        /// What is between, per domain.
        roots: Vec<Arc<str>>,
    },
}

/// The pods of the domains of a slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PodCounts {
    /// The same everywhere.
    Universal(u32),
    /// Per domain.
    Individual(Vec<u32>),
}

/// Domains of a compressed assignment that are written together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompressedSlice {
    /// How many domains.
    pub domain_count: u32,
    /// Values by level.
    pub values: Vec<LevelValues>,
    /// Pods per domain.
    pub pod_counts: PodCounts,
}

/// An assignment as `status.admission.podSetAssignments[].topologyAssignment` stores it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compressed {
    /// Label keys.
    pub levels: Vec<Arc<str>>,
    /// The domains, in slices.
    pub slices: Vec<CompressedSlice>,
}

/// A stored assignment that contradicts itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// A slice has not one entry of values for each level.
    Levels {
        /// Which slice.
        slice: usize,
    },
    /// A slice has not as many roots or pod counts as it says it has domains.
    Domains {
        /// Which slice.
        slice: usize,
    },
}

impl std::fmt::Display for DecodeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Levels { slice } => write!(f, "slice {slice} does not have values for each level"),
            Self::Domains { slice } => write!(f, "slice {slice} does not list as many domains as it counts"),
        }
    }
}

impl std::error::Error for DecodeError {}

impl Assignment {
    /// How many pods it places.
    pub fn pods(&self) -> u32 {
        self.domains.iter().fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }

    /// The compressed form: one slice as long as the API allows its length.
    pub fn encode(&self) -> Compressed {
        let slices = self.domains.chunks(MAX_SLICE).map(|domains| self.slice(domains)).collect();
        Compressed { levels: self.levels.clone(), slices }
    }

    fn slice(&self, domains: &[(Vec<Arc<str>>, u32)]) -> CompressedSlice {
        let level = |level: usize| -> Vec<&str> {
            domains.iter().map(|(values, _)| values.get(level).map_or("", AsRef::as_ref)).collect()
        };
        let first = domains.first().map_or(0, |(_, count)| *count);
        let pod_counts = if domains.iter().all(|(_, count)| *count == first) {
            PodCounts::Universal(first)
        } else {
            PodCounts::Individual(domains.iter().map(|(_, count)| *count).collect())
        };
        CompressedSlice {
            domain_count: u32::try_from(domains.len()).unwrap_or(u32::MAX),
            values: (0..self.levels.len()).map(|ix| compress(&level(ix))).collect(),
            pod_counts,
        }
    }
}

/// The shortest form of the values of one level.
fn compress(values: &[&str]) -> LevelValues {
    let first = values.first().copied().unwrap_or_default();
    if values.iter().all(|value| *value == first) {
        return LevelValues::Universal(first.into());
    }
    let prefix = values.iter().fold(first, |common, value| common_prefix(common, value));
    let rest = |value: &'_ str| value.get(prefix.len()..).unwrap_or_default().to_owned();
    let rests: Vec<String> = values.iter().map(|value| rest(value)).collect();
    let end = rests.first().map_or("", String::as_str);
    let suffix = rests.iter().fold(end, |common, value| common_suffix(common, value));
    let root = |value: &String| value.strip_suffix(suffix).unwrap_or(value).into();
    LevelValues::Individual {
        prefix: prefix.into(),
        suffix: suffix.into(),
        roots: rests.iter().map(root).collect(),
    }
}

fn common_prefix<'a>(a: &'a str, b: &str) -> &'a str {
    let mut end = 0;
    for ((at, x), y) in a.char_indices().zip(b.chars()) {
        if x != y {
            break;
        }
        end = at.saturating_add(x.len_utf8());
    }
    a.get(..end).unwrap_or_default()
}

fn common_suffix<'a>(a: &'a str, b: &str) -> &'a str {
    let mut start = a.len();
    for ((at, x), y) in a.char_indices().rev().zip(b.chars().rev()) {
        if x != y {
            break;
        }
        start = at;
    }
    a.get(start..).unwrap_or_default()
}

impl Compressed {
    /// The assignment in full.
    pub fn decode(&self) -> Result<Assignment, DecodeError> {
        let mut domains = Vec::new();
        for (ix, slice) in self.slices.iter().enumerate() {
            if slice.values.len() != self.levels.len() {
                return Err(DecodeError::Levels { slice: ix });
            }
            slice.decode(&mut domains).ok_or(DecodeError::Domains { slice: ix })?;
        }
        Ok(Assignment { levels: self.levels.clone(), domains })
    }
}

impl CompressedSlice {
    fn decode(&self, domains: &mut Vec<(Vec<Arc<str>>, u32)>) -> Option<()> {
        let length = usize::try_from(self.domain_count).ok()?;
        if !self.lists_have(length) {
            return None;
        }
        for ix in 0..length {
            let values = self.values.iter().map(|values| values.get(ix)).collect::<Option<Vec<_>>>()?;
            let count = match &self.pod_counts {
                PodCounts::Universal(count) => *count,
                PodCounts::Individual(counts) => *counts.get(ix)?,
            };
            domains.push((values, count));
        }
        Some(())
    }

    /// Whether every list of the slice has this length; checked first, so that a huge count without lists is the only
    /// thing that could make decoding long, and that is refused too.
    fn lists_have(&self, length: usize) -> bool {
        let values = self.values.iter().all(|values| match values {
            LevelValues::Universal(_) => true,
            LevelValues::Individual { roots, .. } => roots.len() == length,
        });
        let counts = match &self.pod_counts {
            PodCounts::Universal(_) => true,
            PodCounts::Individual(counts) => counts.len() == length,
        };
        // Domains differ in some value, so more than one of them needs a list.
        let listed = self.values.iter().any(|values| matches!(values, LevelValues::Individual { .. }));
        values && counts && (listed || length <= 1)
    }
}

impl LevelValues {
    fn get(&self, ix: usize) -> Option<Arc<str>> {
        match self {
            Self::Universal(value) => Some(Arc::clone(value)),
            Self::Individual { prefix, suffix, roots } => {
                Some(format!("{prefix}{}{suffix}", roots.get(ix)?).into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn assignment(levels: &[&str], domains: &[(&[&str], u32)]) -> Assignment {
        let texts = |list: &[&str]| list.iter().map(|text| Arc::from(*text)).collect::<Vec<_>>();
        let domain = |(values, count): &(&[&str], u32)| (texts(values), *count);
        Assignment { levels: texts(levels), domains: domains.iter().map(domain).collect() }
    }

    /// spec/01 §1.6: values and counts are universal or individual with a common prefix and suffix.
    #[test]
    fn compresses_what_is_common() {
        let full = assignment(&["block", "host"], &[(&["b1", "n-1.x"], 2), (&["b1", "n-20.x"], 2)]);
        let compressed = full.encode();
        let [slice] = compressed.slices.as_slice() else { panic!("one slice") };
        assert_eq!(slice.domain_count, 2);
        assert_eq!(slice.pod_counts, PodCounts::Universal(2));
        let host = LevelValues::Individual {
            prefix: "n-".into(),
            suffix: ".x".into(),
            roots: vec!["1".into(), "20".into()],
        };
        assert_eq!(slice.values, vec![LevelValues::Universal("b1".into()), host]);
        assert_eq!(compressed.decode(), Ok(full));
    }

    #[test]
    fn refuses_what_contradicts_itself() {
        let mut compressed = assignment(&["host"], &[(&["a"], 1), (&["b"], 2)]).encode();
        compressed.slices.iter_mut().for_each(|slice| slice.domain_count = 3);
        assert_eq!(compressed.decode(), Err(DecodeError::Domains { slice: 0 }));
        compressed.levels.push("rack".into());
        assert_eq!(compressed.decode(), Err(DecodeError::Levels { slice: 0 }));
        let huge = CompressedSlice {
            domain_count: u32::MAX,
            values: vec![LevelValues::Universal("a".into())],
            pod_counts: PodCounts::Universal(1),
        };
        let huge = Compressed { levels: vec!["host".into()], slices: vec![huge] };
        assert_eq!(huge.decode(), Err(DecodeError::Domains { slice: 0 }));
    }

    proptest! {
        #[test]
        fn decoding_undoes_encoding(
            domains in prop::collection::btree_map(prop::collection::vec("[aé]{0,2}-[0-9]{1,2}", 2), 1_u32..4, 0..9),
        ) {
            let domains = domains.into_iter().map(|(values, count)| {
                (values.into_iter().map(Arc::from).collect(), count)
            });
            let full = Assignment { levels: vec!["rack".into(), "host".into()], domains: domains.collect() };
            prop_assert_eq!(full.encode().decode(), Ok(full));
        }
    }
}
