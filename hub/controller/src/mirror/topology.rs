//! Topology assignments as the API stores them: runs of domains in which each level's values are either one for all, or
//! one each with their common ends taken out.

use std::sync::Arc;

use fairlead_api::kueue;
use fairlead_engine::fact::TopologyAssignment;
use serde_json::{Value, json};

use super::read::{count, list, text, texts};

/// Most domains in one stored slice.
const SLICE: usize = 100_000;

/// Reads a stored assignment; none when its parts do not fit together.
pub fn decode(json: &Value) -> Option<TopologyAssignment> {
    let levels = texts(list(json, "/levels"));
    let mut domains = Vec::new();
    for slice in list(json, "/slices") {
        let wanted = usize::try_from(count(slice.get("domainCount"))?).ok()?;
        let values: Vec<Vec<Arc<str>>> = list(slice, "/valuesPerLevel")
            .iter()
            .map(|values| column(values, wanted))
            .collect::<Option<_>>()?;
        let counts = counts(slice.get("podCounts")?, wanted)?;
        if values.len() != levels.len() {
            return None;
        }
        for (position, pods) in counts.into_iter().enumerate() {
            let row =
                values.iter().map(|column| column.get(position).cloned()).collect::<Option<Vec<_>>>()?;
            domains.push((row, pods));
        }
    }
    Some(TopologyAssignment { levels, domains })
}

/// The values of one level.
fn column(json: &Value, wanted: usize) -> Option<Vec<Arc<str>>> {
    if let Some(value) = json.get("universal").and_then(Value::as_str) {
        return Some(vec![Arc::from(value); wanted]);
    }
    let individual = json.get("individual")?;
    let (prefix, suffix) = (text(individual, "/prefix"), text(individual, "/suffix"));
    let roots = list(individual, "/roots").iter().filter_map(Value::as_str);
    let values: Vec<Arc<str>> = roots.map(|root| Arc::from(format!("{prefix}{root}{suffix}"))).collect();
    (values.len() == wanted).then_some(values)
}

fn counts(json: &Value, wanted: usize) -> Option<Vec<u32>> {
    if let Some(pods) = count(json.get("universal")) {
        return Some(vec![pods; wanted]);
    }
    let all: Vec<u32> =
        list(json, "/individual").iter().map(|pods| count(Some(pods))).collect::<Option<_>>()?;
    (all.len() == wanted).then_some(all)
}

/// Reads an assignment from a stored admission.
pub fn read(stored: &kueue::TopologyAssignment) -> Option<TopologyAssignment> {
    decode(&serde_json::to_value(stored).ok()?)
}

/// An assignment for a stored admission.
pub fn stored(assignment: &TopologyAssignment) -> Option<kueue::TopologyAssignment> {
    serde_json::from_value(encode(assignment)).ok()
}

/// Writes an assignment the way the API stores it.
pub fn encode(assignment: &TopologyAssignment) -> Value {
    let slices: Vec<Value> =
        assignment.domains.chunks(SLICE).map(|chunk| encode_slice(assignment, chunk)).collect();
    json!({ "levels": assignment.levels.iter().map(|level| &**level).collect::<Vec<_>>(), "slices": slices })
}

fn encode_slice(assignment: &TopologyAssignment, domains: &[(Vec<Arc<str>>, u32)]) -> Value {
    let levels = 0..assignment.levels.len();
    let values: Vec<Value> = levels
        .map(|level| {
            let column: Vec<&str> =
                domains.iter().map(|(values, _)| values.get(level).map_or("", |value| &**value)).collect();
            encode_column(&column)
        })
        .collect();
    let first = domains.first().map_or(0, |(_, pods)| *pods);
    let pods: Vec<u32> = domains.iter().map(|(_, pods)| *pods).collect();
    let pods = if pods.iter().all(|pods| *pods == first) {
        json!({ "universal": first })
    } else {
        json!({ "individual": pods })
    };
    json!({ "domainCount": domains.len(), "valuesPerLevel": values, "podCounts": pods })
}

fn encode_column(column: &[&str]) -> Value {
    let first = column.first().copied().unwrap_or_default();
    if column.iter().all(|value| *value == first) {
        return json!({ "universal": first });
    }
    let prefix = column.iter().fold(first, |common, value| common_prefix(common, value));
    let cut: Vec<&str> = column.iter().map(|value| value.get(prefix.len()..).unwrap_or_default()).collect();
    let head = cut.first().copied().unwrap_or_default();
    let suffix = cut.iter().fold(head, |common, value| common_suffix(common, value));
    let roots: Vec<&str> = cut
        .iter()
        .map(|value| value.get(..value.len().saturating_sub(suffix.len())).unwrap_or_default())
        .collect();
    let mut individual = json!({ "roots": roots });
    if let Value::Object(map) = &mut individual {
        for (key, end) in [("prefix", prefix), ("suffix", suffix)] {
            if !end.is_empty() {
                map.insert(key.to_owned(), Value::from(end));
            }
        }
    }
    json!({ "individual": individual })
}

fn common_prefix<'a>(a: &'a str, b: &str) -> &'a str {
    let end = a.char_indices().zip(b.chars()).find(|((_, x), y)| x != y).map(|((at, _), _)| at);
    a.get(..end.unwrap_or_else(|| a.len().min(b.len()))).unwrap_or_default()
}

fn common_suffix<'a>(a: &'a str, b: &str) -> &'a str {
    let same = a.chars().rev().zip(b.chars().rev()).take_while(|(x, y)| x == y);
    let length: usize = same.map(|(character, _)| character.len_utf8()).sum();
    a.get(a.len().saturating_sub(length)..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assignment(domains: &[(&[&str], u32)]) -> TopologyAssignment {
        let levels = domains.first().map_or(0, |(values, _)| values.len());
        TopologyAssignment {
            levels: (0..levels).map(|level| Arc::from(format!("l{level}"))).collect(),
            domains: domains
                .iter()
                .map(|(values, pods)| (values.iter().map(|value| Arc::from(*value)).collect(), *pods))
                .collect(),
        }
    }

    #[test]
    fn assignments_survive_encoding() {
        for domains in [
            &[(&["b0", "r1"][..], 3)][..],
            &[(&["b0", "node-1-x"], 1), (&["b0", "node-22-x"], 2)],
            &[(&["a", "aa"], 2), (&["a", "a"], 2), (&["a", ""], 2)],
            &[(&["é1"], 1), (&["è1"], 1)],
        ] {
            let assignment = assignment(domains);
            assert_eq!(decode(&encode(&assignment)), Some(assignment.clone()));
            assert_eq!(read(&stored(&assignment).unwrap()), Some(assignment));
        }
    }

    #[test]
    fn common_ends_are_stored_once() {
        let stored = encode(&assignment(&[(&["b", "node-1-x"], 2), (&["b", "node-22-x"], 2)]));
        let slice = &stored["slices"][0];
        assert_eq!(slice["valuesPerLevel"][0], json!({ "universal": "b" }));
        let individual = json!({ "prefix": "node-", "suffix": "-x", "roots": ["1", "22"] });
        assert_eq!(slice["valuesPerLevel"][1], json!({ "individual": individual }));
        assert_eq!(slice["podCounts"], json!({ "universal": 2 }));
    }

    #[test]
    fn mismatched_parts_are_refused() {
        let stored = json!({ "levels": ["a"], "slices": [{ "domainCount": 2,
            "valuesPerLevel": [{ "individual": { "roots": ["x"] } }], "podCounts": { "universal": 1 } }] });
        assert_eq!(decode(&stored), None);
    }
}
