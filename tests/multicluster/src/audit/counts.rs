//! How often each client did what to which kind.

use std::{collections::BTreeMap, fmt};

use super::{AuditEvent, Verb};

/// What is counted apart.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CountKey {
    /// Plural name: `jobs`.
    pub resource: String,
    /// `status`, or empty.
    pub subresource: String,
    /// The client program ([`AuditEvent::agent`]).
    pub agent: String,
    /// What it did.
    pub verb: Verb,
}

/// Numbers of requests. Prints as a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts(BTreeMap<CountKey, u64>);

impl Counts {
    /// Counts requests that were carried out; a watch counts when it starts.
    pub fn of<'a>(events: impl IntoIterator<Item = &'a AuditEvent>) -> Self {
        Self::all(events.into_iter().filter(|event| event.succeeded()))
    }

    /// Counts requests whatever their outcome.
    pub fn all<'a>(events: impl IntoIterator<Item = &'a AuditEvent>) -> Self {
        let mut counts = BTreeMap::new();
        for event in events {
            if event.verb == Verb::Watch && !event.watch_start {
                continue;
            }
            let key = CountKey {
                resource: event.object.resource.clone(),
                subresource: event.object.subresource.clone(),
                agent: event.agent.clone(),
                verb: event.verb,
            };
            *counts.entry(key).or_default() += 1;
        }
        Self(counts)
    }

    /// Only what `wanted` selects.
    #[must_use]
    pub fn only(&self, wanted: impl Fn(&CountKey) -> bool) -> Self {
        Self(self.0.iter().filter(|(key, _)| wanted(key)).map(|(key, count)| (key.clone(), *count)).collect())
    }

    /// Only what one client program did.
    #[must_use]
    pub fn by(&self, agent: &str) -> Self {
        self.only(|key| key.agent == agent)
    }

    /// Only what was done to these resources.
    #[must_use]
    pub fn on(&self, resources: &[&str]) -> Self {
        self.only(|key| resources.contains(&key.resource.as_str()))
    }

    /// Writes in all.
    pub fn writes(&self) -> u64 {
        self.sum(|key| key.verb.is_write())
    }

    /// Reads in all: gets, lists and watches started.
    pub fn reads(&self) -> u64 {
        self.sum(|key| key.verb.is_read())
    }

    /// The sum of what `wanted` selects.
    pub fn sum(&self, wanted: impl Fn(&CountKey) -> bool) -> u64 {
        self.0.iter().filter(|(key, _)| wanted(key)).map(|(_, count)| count).sum()
    }

    /// Every number with what it counts, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&CountKey, u64)> {
        self.0.iter().map(|(key, count)| (key, *count))
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<40} {:<28} {:<16} {:>7}", "RESOURCE", "AGENT", "VERB", "COUNT")?;
        for (key, count) in self.iter() {
            let slash = if key.subresource.is_empty() { "" } else { "/" };
            let resource = format!("{}{slash}{}", key.resource, key.subresource);
            // A verb is padded as text: its own Display ignores widths.
            writeln!(f, "{resource:<40} {:<28} {:<16} {count:>7}", key.agent, key.verb.to_string())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(verb: &str, resource: &str, agent: &str, code: u16, stage: &str) -> AuditEvent {
        let line = serde_json::json!({
            "stage": stage, "verb": verb, "userAgent": agent, "objectRef": {"resource": resource},
            "responseStatus": {"code": code},
            "requestReceivedTimestamp": "2026-12-01T08:00:00Z", "stageTimestamp": "2026-12-01T08:00:00Z",
        });
        AuditEvent::parse(line.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn counts_what_was_carried_out_by_program_kind_and_verb() {
        let done = "ResponseComplete";
        let events = [
            event("create", "jobs", "fairlead-hub/0.1", 201, done),
            event("create", "jobs", "fairlead-hub/0.2", 409, done),
            event("patch", "jobs", "fairlead-hub/0.1", 200, done),
            event("patch", "workloads", "kubectl/v1", 200, done),
            event("watch", "jobs", "fairlead-hub/0.1", 200, "ResponseStarted"),
            event("watch", "jobs", "fairlead-hub/0.1", 200, done),
            event("list", "jobs", "fairlead-hub/0.1", 200, done),
        ];
        let counts = Counts::of(&events);
        assert_eq!(counts.writes(), 3);
        assert_eq!(counts.by("fairlead-hub").writes(), 2);
        assert_eq!(counts.by("fairlead-hub").reads(), 2);
        assert_eq!(counts.on(&["workloads"]).writes(), 1);
        assert_eq!(Counts::all(&events).writes(), 4);
        assert_eq!(counts.to_string().lines().count(), 1 + counts.iter().count());
    }
}
