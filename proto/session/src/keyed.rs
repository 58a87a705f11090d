//! A map by placement that always knows the hashes of its buckets.

use std::collections::BTreeMap;

use fairlead_model::PlacementId;

use crate::digest::{Canonical, Digest};
use crate::message::BucketHashes;

/// How many buckets a map is hashed into.
const BUCKETS: usize = 64;

/// Entries by placement, with one hash per bucket: the XOR of the hashes of its entries, kept up to date with
/// each change.
#[derive(Debug)]
pub(crate) struct KeyedMap<V> {
    entries: BTreeMap<PlacementId, (V, u64)>,
    hashes: [u64; BUCKETS],
}

impl<V: Canonical + PartialEq> KeyedMap<V> {
    pub(crate) const fn new() -> Self {
        Self { entries: BTreeMap::new(), hashes: [0; BUCKETS] }
    }

    /// Sets an entry; false when it has this very value already.
    pub(crate) fn insert(&mut self, key: &PlacementId, value: V) -> bool {
        if self.get(key) == Some(&value) {
            return false;
        }
        let hash = Digest::of_entry(key, &value);
        self.toggle(key, hash);
        if let Some((_, old)) = self.entries.insert(key.clone(), (value, hash)) {
            self.toggle(key, old);
        }
        true
    }

    /// Removes an entry; false when there is none.
    pub(crate) fn remove(&mut self, key: &PlacementId) -> bool {
        let Some((_, hash)) = self.entries.remove(key) else {
            return false;
        };
        self.toggle(key, hash);
        true
    }

    pub(crate) fn get(&self, key: &PlacementId) -> Option<&V> {
        self.entries.get(key).map(|(value, _)| value)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&PlacementId, &V)> {
        self.entries.iter().map(|(key, (value, _))| (key, value))
    }

    pub(crate) fn hashes(&self) -> BucketHashes {
        BucketHashes(self.hashes.to_vec())
    }

    /// The keys that lie in the given buckets, in order.
    pub(crate) fn keys_in(&self, buckets: Buckets) -> impl Iterator<Item = &PlacementId> {
        self.entries.keys().filter(move |key| buckets.contains(key))
    }

    fn toggle(&mut self, key: &PlacementId, hash: u64) {
        if let Some(bucket) = self.hashes.get_mut(bucket_of(key)) {
            *bucket ^= hash;
        }
    }
}

/// A set of buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Buckets(u64);

impl Buckets {
    /// Where two maps differ. A peer that hashes into another number of buckets differs everywhere.
    pub(crate) fn differing(a: &BucketHashes, b: &BucketHashes) -> Self {
        if a.0.len() != BUCKETS || b.0.len() != BUCKETS {
            return Self(u64::MAX);
        }
        let bits = a.0.iter().zip(&b.0).rev();
        Self(bits.fold(0, |set, (a, b)| (set << 1) | u64::from(a != b)))
    }

    pub(crate) fn contains(self, key: &PlacementId) -> bool {
        (self.0 >> bucket_of(key)) & 1 == 1
    }
}

fn bucket_of(key: &PlacementId) -> usize {
    // Six bits, so the conversion cannot fail.
    usize::try_from(Digest::of_key(key) >> 58).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairlead_model::{Epoch, RunId};

    use crate::message::{Command, Desired, Intent, StopCause};

    fn command(revision: u64) -> Command {
        Command { run: RunId::new("r"), epoch: Epoch::new(1, 1), revision, desired: Desired::Keep }
    }

    fn key(i: u64) -> PlacementId {
        PlacementId::of(Epoch::new(1, i))
    }

    #[test]
    fn hashes_depend_on_content_not_on_history() {
        let mut a = KeyedMap::new();
        let mut b = KeyedMap::new();
        for i in 0..500 {
            a.insert(&key(i), command(i));
            b.insert(&key(499 - i), command(7));
        }
        for i in 0..500 {
            b.insert(&key(i), command(i));
            b.insert(&key(1000 + i), command(i));
        }
        for i in 0..500 {
            assert!(b.remove(&key(1000 + i)));
        }
        assert_eq!(a.hashes(), b.hashes());
        assert!(!a.insert(&key(3), command(3)), "the same value is no change");
        assert!(a.insert(&key(3), command(4)));
        let differing = Buckets::differing(&a.hashes(), &b.hashes());
        assert_eq!(differing.0.count_ones(), 1);
        assert!(differing.contains(&key(3)));
        assert!(a.keys_in(differing).any(|k| *k == key(3)));
    }

    #[test]
    fn an_empty_map_hashes_to_zero_and_entries_spread() {
        let mut map = KeyedMap::new();
        assert_eq!(map.hashes(), BucketHashes(vec![0; BUCKETS]));
        for i in 0..2000 {
            map.insert(&key(i), command(0));
        }
        assert!(map.hashes().0.iter().all(|hash| *hash != 0), "a bucket stays empty over 2000 keys");
        for i in 0..2000 {
            map.remove(&key(i));
        }
        assert_eq!(map.hashes(), BucketHashes(vec![0; BUCKETS]));
    }

    #[test]
    fn another_number_of_buckets_differs_everywhere() {
        let odd = BucketHashes(vec![0; 32]);
        let ours = KeyedMap::<Command>::new().hashes();
        assert!((0..200).all(|i| Buckets::differing(&ours, &odd).contains(&key(i))));
        assert_eq!(Buckets::differing(&ours, &ours), Buckets(0));
    }

    /// Values that a careless encoding would confuse.
    #[test]
    fn similar_values_hash_apart() {
        let intent = |namespace: &str, name: &str, manifest: &[u8]| Intent {
            kind: "batch/v1/Job".into(),
            namespace: namespace.into(),
            name: name.into(),
            manifest: manifest.into(),
            demand: Vec::new(),
        };
        let with = |desired| Command { desired, ..command(1) };
        let variants = [
            with(Desired::Keep),
            with(Desired::Prepare(intent("a", "bc", b""))),
            with(Desired::Prepare(intent("ab", "c", b""))),
            with(Desired::Start(intent("ab", "c", b""))),
            with(Desired::Start(intent("ab", "c", b"x"))),
            with(Desired::Stop(StopCause::Deleted)),
            with(Desired::Stop(StopCause::Evicted)),
            Command { run: RunId::new("s"), ..command(1) },
            Command { epoch: Epoch::new(1, 2), ..command(1) },
            Command { epoch: Epoch::new(2, 1), ..command(1) },
            command(2),
        ];
        let mut hashes: Vec<u64> = variants.iter().map(|v| Digest::of_entry(&key(1), v)).collect();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), variants.len());
    }
}
