//! Names of things: cheap to clone, ordered, and not interchangeable.

use std::fmt;
use std::sync::Arc;

/// Defines a string newtype that clones by reference count.
macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Wraps the given text; it is compared byte for byte and never interpreted.
            pub fn new(text: impl Into<Arc<str>>) -> Self {
                Self(text.into())
            }

            /// The text as given.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), &self.0)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self::new(text)
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self::new(text)
            }
        }
    };
}

text_id!(
    /// The `metadata.uid` of a Kubernetes object.
    Uid
);
text_id!(
    /// A *run*: the UID of the user's job on the hub. Every copy of the job, on any spoke, belongs to this run;
    /// two live copies of one run must never exist.
    RunId
);
text_id!(
    /// A *placement*: one promise that a run runs on one spoke. Unique for ever, because it is made from the
    /// promise's [`Epoch`](crate::Epoch) (see [`PlacementId::of`]).
    PlacementId
);
text_id!(
    /// A *spoke*: the UID of the `Cluster` object on the hub. Names may be reused; UIDs are not.
    SpokeId
);

impl PlacementId {
    /// The id of the promise made at `epoch`. Epochs are never reused, so neither are ids.
    pub fn of(epoch: crate::Epoch) -> Self {
        Self::new(format!("p{}-{}", epoch.term.0, epoch.seq))
    }
}

/// Namespace and name of an object; the namespace is empty for cluster-scoped kinds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// The namespace, or empty.
    pub namespace: Arc<str>,
    /// The name.
    pub name: Arc<str>,
}

impl ObjectKey {
    /// A key from its two parts.
    pub fn new(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            f.write_str(&self.name)
        } else {
            write!(f, "{}/{}", self.namespace, self.name)
        }
    }
}
