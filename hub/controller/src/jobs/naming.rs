//! Names of Workloads.

use sha2::{Digest, Sha256};

/// Longest name of an object.
const MAX_NAME: usize = 253;
/// Hexadecimal digits of the hash that a name ends in.
const HASH_DIGITS: usize = 5;

/// The name of the Workload of a job: `<kind>-<name>-<hash>`, as Kueue's users know it from lists and scripts.
///
/// The hash is over kind, group, name and UID of the job, so a job that is deleted and made anew gets another
/// Workload. Kueue hashes with SHA-1 and so gets other digits; nobody can have predicted them, and the link from a
/// Workload to its job is its owner reference and its label, never its name.
pub fn workload_name(kind: &str, group: &str, name: &str, uid: &str) -> String {
    let hash = hex::encode(Sha256::digest(format!("{kind}\n{group}\n{name}\n{uid}")));
    let digits = hash.get(..HASH_DIGITS).unwrap_or_default();
    let prefix = format!("{}-{name}", kind.to_lowercase());
    let room = MAX_NAME.saturating_sub(HASH_DIGITS + 1);
    // Names of objects are ASCII, so cutting bytes cuts characters.
    let prefix = prefix.get(..room.min(prefix.len())).unwrap_or_default();
    format!("{prefix}-{digits}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_uids_apart_and_stay_within_the_limit() {
        let first = workload_name("Job", "batch", "train", "u1");
        assert!(first.starts_with("job-train-"));
        assert_eq!(first.len(), "job-train-".len() + 5);
        assert_eq!(first, workload_name("Job", "batch", "train", "u1"));
        assert_ne!(first, workload_name("Job", "batch", "train", "u2"));
        assert_eq!(workload_name("Job", "batch", &"x".repeat(300), "u").len(), 253);
    }
}
