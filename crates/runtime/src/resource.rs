//! Kinds of objects by group, version and plural, and their paths.

use std::borrow::Cow;
use std::fmt;
use std::fmt::Write as _;

/// A kind of object as its URL names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Resource {
    group: Cow<'static, str>,
    version: Cow<'static, str>,
    plural: Cow<'static, str>,
    namespaced: bool,
}

/// A name that cannot be part of a URL path: empty, `.`, `..`, or with a character that no Kubernetes name has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a name")]
pub struct BadName(pub String);

impl Resource {
    /// A kind known at build time. The group of core kinds is empty.
    pub const fn new(
        group: &'static str,
        version: &'static str,
        plural: &'static str,
        namespaced: bool,
    ) -> Self {
        Self {
            group: Cow::Borrowed(group),
            version: Cow::Borrowed(version),
            plural: Cow::Borrowed(plural),
            namespaced,
        }
    }

    /// Whether its objects live in namespaces.
    pub const fn namespaced(&self) -> bool {
        self.namespaced
    }

    /// The plural, as in `jobs`.
    pub fn plural(&self) -> &str {
        &self.plural
    }

    /// The path of the collection, over all namespaces when `namespace` is empty.
    pub fn collection(&self, namespace: &str) -> Result<String, BadName> {
        let mut path = String::with_capacity(96);
        if self.group.is_empty() {
            path.push_str("/api");
        } else {
            path.push_str("/apis");
            push(&mut path, &self.group)?;
        }
        push(&mut path, &self.version)?;
        if self.namespaced && !namespace.is_empty() {
            path.push_str("/namespaces");
            push(&mut path, namespace)?;
        }
        push(&mut path, &self.plural)?;
        Ok(path)
    }

    /// The path of one object.
    pub fn object(&self, namespace: &str, name: &str) -> Result<String, BadName> {
        if self.namespaced && namespace.is_empty() {
            return Err(BadName(String::new()));
        }
        let mut path = self.collection(namespace)?;
        push(&mut path, name)?;
        Ok(path)
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() {
            write!(f, "{}", self.plural)
        } else {
            write!(f, "{}.{}", self.plural, self.group)
        }
    }
}

/// Appends one segment. Names come from other clusters, too, so nothing that could leave the path gets in.
fn push(path: &mut String, segment: &str) -> Result<(), BadName> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | ':');
    if segment.is_empty() || segment == "." || segment == ".." || !segment.chars().all(plain) {
        return Err(BadName(segment.to_owned()));
    }
    path.push('/');
    path.push_str(segment);
    Ok(())
}

/// Percent-encodes the value of a query parameter.
pub(crate) fn encode(value: &str) -> String {
    value.bytes().fold(String::with_capacity(value.len()), |mut text, byte| {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            text.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            write!(text, "%{byte:02X}").unwrap_or_default();
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOBS: Resource = Resource::new("batch", "v1", "jobs", true);
    const NODES: Resource = Resource::new("", "v1", "nodes", false);

    #[test]
    fn paths_follow_group_and_scope() {
        assert_eq!(JOBS.collection("").unwrap(), "/apis/batch/v1/jobs");
        assert_eq!(JOBS.collection("a").unwrap(), "/apis/batch/v1/namespaces/a/jobs");
        assert_eq!(JOBS.object("a", "b").unwrap(), "/apis/batch/v1/namespaces/a/jobs/b");
        assert_eq!(NODES.object("", "n").unwrap(), "/api/v1/nodes/n");
        assert_eq!(JOBS.to_string(), "jobs.batch");
        assert_eq!(NODES.to_string(), "nodes");
    }

    #[test]
    fn no_name_leaves_its_segment() {
        for name in ["", ".", "..", "a/b", "../secrets/x", "a?b", "a%2fb", "a#b", "ä"] {
            assert!(JOBS.object("ns", name).is_err(), "{name}");
            assert!(JOBS.object(name, "job").is_err(), "{name}");
        }
        assert_eq!(encode("a=b,c in (d)"), "a%3Db%2Cc%20in%20%28d%29");
    }
}
