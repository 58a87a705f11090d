//! Plays every scenario of a folder.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fairlead_model::Millis;
use serde_json::Value;

use super::cluster::Cluster;
use super::compare;
use super::config::Rules;
use super::differences::Differences;

/// What came out of one scenario.
#[derive(Debug)]
struct Played {
    name: String,
    family: String,
    known: bool,
    error: Option<String>,
}

/// What came out of all.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    played: Vec<Played>,
}

impl Summary {
    fn count(&self, wanted: impl Fn(&Played) -> bool) -> usize {
        self.played.iter().filter(|played| wanted(played)).count()
    }

    /// Scenarios that failed and are not known to differ, each with where it first differs.
    pub(crate) fn failures(&self) -> Vec<String> {
        let failed = self.played.iter().filter(|played| !played.known);
        failed.filter_map(|played| Some(format!("{}: {}", played.name, played.error.as_ref()?))).collect()
    }

    /// Scenarios that passed and are not known to differ.
    pub(crate) fn passed(&self) -> usize {
        self.count(|played| !played.known && played.error.is_none())
    }

    /// Scenarios and failures by family.
    pub(crate) fn families(&self) -> BTreeMap<&str, (usize, usize)> {
        let mut families: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for played in &self.played {
            let family = families.entry(&played.family).or_default();
            family.0 += 1;
            family.1 += usize::from(played.error.is_some());
        }
        families
    }

    /// Scenarios that are known to differ, and how many of them agree all the same.
    pub(crate) fn known(&self) -> (usize, usize) {
        (self.count(|played| played.known), self.count(|played| played.known && played.error.is_none()))
    }
}

/// Plays every `*.jsonl` of a folder.
pub(crate) fn run(folder: &Path, rules: Rules) -> Result<Summary, String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/kueue-differences.md");
    let differences = Differences::read(&page);
    let entries = std::fs::read_dir(folder).map_err(|error| error.to_string())?;
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "jsonl"));
    files.sort();
    if files.is_empty() {
        return Err("no *.jsonl in it".to_owned());
    }
    let mut summary = Summary::default();
    for file in files {
        let text = std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let scenario: Value =
                serde_json::from_str(line).map_err(|error| format!("{}: {error}", file.display()))?;
            let text = |key: &str| scenario.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
            let (name, family) = (text("name"), text("family"));
            let known = differences.contains(&name, &family);
            let error = play(&scenario, rules).err();
            summary.played.push(Played { name, family, known, error });
        }
    }
    Ok(summary)
}

/// Plays one scenario; an error says where it first differs.
pub(crate) fn play(scenario: &Value, rules: Rules) -> Result<(), String> {
    let fair = scenario.pointer("/config/fairSharing").is_some_and(|value| !value.is_null());
    let mut cluster = Cluster::new(scenario, rules)?;
    let steps = scenario.get("steps").and_then(Value::as_array).into_iter().flatten();
    for (number, step) in steps.enumerate() {
        let at: jiff::Timestamp = step
            .get("at")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .parse()
            .map_err(|error| format!("step {number}: {error}"))?;
        let at = Millis(at.as_millisecond());
        cluster.set_time(at);
        cluster.sample();
        for action in step.get("do").and_then(Value::as_array).into_iter().flatten() {
            cluster.act(action)?;
        }
        evicted_by_actions(step, &mut cluster).map_err(|error| format!("step {number}: {error}"))?;
        let rounds = step.get("expect").and_then(Value::as_array).into_iter().flatten();
        for (cycle, expected) in (0_i64..).zip(rounds) {
            cluster.set_time(at.plus(cycle.saturating_mul(1000)));
            let plan = cluster.cycle().map_err(|error| format!("step {number} cycle {cycle}: {error}"))?;
            compare::round(expected, &plan)
                .map_err(|error| format!("step {number} cycle {cycle}: {error}{}", told(&plan)))?;
        }
        let _settled = cluster.world.snapshot();
        let after = step.get("after").unwrap_or(&Value::Null);
        compare::after(after, &cluster.world, fair)
            .map_err(|error| format!("step {number} after: {error}"))?;
    }
    Ok(())
}

/// What a plan says of its heads and victims, for whoever looks into a difference.
fn told(plan: &fairlead_engine::Plan) -> String {
    let heads = plan.heads.iter();
    let heads = heads.map(|head| format!("\n    {} {:?}: {}", head.key, head.outcome, head.verdict.message));
    let evictions = plan.evictions.iter();
    let evictions =
        evictions.map(|it| format!("\n    evicts {} ({}) for {}", it.key, it.cause.token(), it.by_key));
    heads.chain(evictions).collect()
}

fn evicted_by_actions(step: &Value, cluster: &mut Cluster) -> Result<(), String> {
    let mut found: Vec<String> =
        std::mem::take(&mut cluster.evicted).into_iter().map(|(name, _)| name).collect();
    let listed = step.get("evictedByActions").and_then(Value::as_array).into_iter().flatten();
    let mut wanted: Vec<String> = listed
        .map(|one| one.get("workload").and_then(Value::as_str).unwrap_or_default().to_owned())
        .collect();
    found.sort();
    wanted.sort();
    if found == wanted {
        Ok(())
    } else {
        Err(format!("evictedByActions: expected {wanted:?}, found {found:?}"))
    }
}
