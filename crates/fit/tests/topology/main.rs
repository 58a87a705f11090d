//! Topology-aware placement through its public interface: the rules one by one, and random worlds against a slow,
//! obvious reference.

#[cfg(test)]
mod capacity;
#[cfg(test)]
mod lab;
#[cfg(test)]
mod naive;
#[cfg(test)]
mod placement;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod replacement;
#[cfg(test)]
mod requests;
#[cfg(test)]
mod ungating;
#[cfg(test)]
mod world;
