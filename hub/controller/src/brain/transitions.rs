//! What a change of a Workload's status means for measurements: read from its conditions, so that it holds however the
//! change came about.

use std::sync::Arc;

use fairlead_api::conditions::{WorkloadCondition, find};
use fairlead_api::kueue::WorkloadStatus;
use fairlead_model::{Millis, ObjectKey};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::Brain;
use super::run::{Run, Workload, read_time};
use crate::jobs::json;
use crate::jobs::view::GVK;
use crate::measure::{Measurement, Subject};

/// A Workload before and after a change.
struct Transition<'w> {
    old: &'w WorkloadStatus,
    new: &'w WorkloadStatus,
    created: Millis,
    of: Subject,
}

impl Brain {
    /// Measures a Workload's change. What is listed at the start was measured by an earlier leader.
    pub(crate) fn measure_change(&mut self, run: &Run, new: &Workload) {
        if !self.is_ready() {
            return;
        }
        let Some(old) = run.workload.as_ref().filter(|old| old.uid == new.uid) else {
            let took = run.job.as_ref().and_then(|job| creation_latency(&job.json, self.now.wall));
            let created = took.map(|took_ms| Measurement::Created { job_kind: GVK.2.into(), took_ms });
            self.out.extend(created.map(super::Effect::Measure));
            return;
        };
        if old.status.conditions == new.status.conditions {
            return;
        }
        let created = json::text(&new.json, &["metadata", "creationTimestamp"]).map_or(Millis(0), read_time);
        let of = self.subject_of(old, new);
        let transition = Transition { old: &old.status, new: &new.status, created, of };
        self.out.extend(transition.happenings().into_iter().map(super::Effect::Measure));
    }

    fn subject_of(&self, old: &Workload, new: &Workload) -> Subject {
        let local_queue = ObjectKey::new(Arc::clone(&new.key.namespace), new.queue());
        let admission = new.status.admission.as_ref().or(old.status.admission.as_ref());
        let cluster_queue = match admission {
            Some(admission) => admission.cluster_queue.as_str().into(),
            None => self.catalog.cluster_queue_of(&local_queue).unwrap_or_default(),
        };
        let class = json::text(&new.json, &["spec", "priorityClassRef", "name"]).unwrap_or_default();
        Subject { cluster_queue, local_queue, priority_class: class.into() }
    }
}

impl Transition<'_> {
    fn happenings(self) -> Vec<Measurement> {
        use WorkloadCondition::{Admitted, Evicted, Finished, PodsReady, QuotaReserved};
        let mut happened = Vec::new();
        let of = || self.of.clone();
        if let Some(evicted) = self.begun(Evicted) {
            happened.push(self.evicted(evicted));
        }
        if let Some(reserved) = self.begun(QuotaReserved) {
            happened.push(Measurement::QuotaReserved { of: of(), waited_ms: self.waited(time(reserved)) });
        }
        if let Some(admitted) = self.begun(Admitted) {
            let at = time(admitted);
            let checks_ms = self.holds(QuotaReserved).map_or(0, |reserved| since(at, time(reserved)));
            let cluster = self.new.cluster_name.as_deref().map(Arc::from);
            happened.push(Measurement::Admitted { of: of(), cluster, waited_ms: self.waited(at), checks_ms });
        }
        if let Some(ready) = self.begun(PodsReady) {
            let at = time(ready);
            let started_ms = self.holds(Admitted).map_or(0, |admitted| since(at, time(admitted)));
            happened.push(Measurement::PodsReady { of: of(), waited_ms: self.waited(at), started_ms });
        }
        if let Some(finished) = self.begun(Finished) {
            let admitted = find(&self.old.conditions, Admitted.as_str()).filter(|admitted| is_true(admitted));
            let ran_ms = admitted.map(|admitted| since(time(finished), time(admitted)));
            happened.push(Measurement::Finished { of: of(), ran_ms });
        }
        happened.extend(self.released());
        happened
    }

    /// The condition, where it holds now and did not, or did for another reason since an earlier time.
    fn begun(&self, which: WorkloadCondition) -> Option<&Condition> {
        let old = find(&self.old.conditions, which.as_str()).filter(|old| is_true(old));
        self.holds(which).filter(|_| old.is_none())
    }

    fn holds(&self, which: WorkloadCondition) -> Option<&Condition> {
        find(&self.new.conditions, which.as_str()).filter(|new| is_true(new))
    }

    /// How long it waited: since it was created, or since it was queued again after an eviction.
    fn waited(&self, until: Millis) -> i64 {
        let requeued = find(&self.new.conditions, WorkloadCondition::Requeued.as_str());
        let evicted = find(&self.old.conditions, WorkloadCondition::Evicted.as_str());
        let again =
            [requeued, evicted].into_iter().flatten().filter(|condition| is_true(condition)).map(time);
        since(until, again.max().unwrap_or(self.created))
    }

    fn evicted(&self, evicted: &Condition) -> Measurement {
        let of_stats = |status: &WorkloadStatus, reason: &str, cause: &str| {
            let stats = status.scheduling_stats.iter().flat_map(|stats| &stats.evictions);
            stats
                .filter(|one| one.reason == reason && one.underlying_cause == cause)
                .map(|one| one.count)
                .sum()
        };
        let stats = self.new.scheduling_stats.iter().flat_map(|stats| &stats.evictions);
        let counted: Option<(&str, &str, i32)> = stats
            .map(|one| (one.reason.as_str(), one.underlying_cause.as_str(), one.count))
            .find(|(reason, cause, count)| *count > of_stats(self.old, reason, cause));
        let (reason, cause, count) = counted.unwrap_or((evicted.reason.as_str(), "", 1));
        let ready = find(&self.old.conditions, WorkloadCondition::PodsReady.as_str());
        let ready_ms = ready.filter(|ready| is_true(ready)).map(|ready| since(time(evicted), time(ready)));
        Measurement::Evicted {
            of: self.of.clone(),
            reason: reason.into(),
            cause: cause.into(),
            first: count <= 1,
            ready_ms,
        }
    }

    /// Its quota went back after an eviction.
    fn released(&self) -> Option<Measurement> {
        let reserved = WorkloadCondition::QuotaReserved.as_str();
        find(&self.old.conditions, reserved).filter(|old| is_true(old))?;
        let gone = find(&self.new.conditions, reserved).filter(|new| !is_true(new))?;
        let evicted = self.holds(WorkloadCondition::Evicted)?;
        Some(Measurement::Released {
            cluster_queue: Arc::clone(&self.of.cluster_queue),
            reason: evicted.reason.as_str().into(),
            took_ms: since(time(gone), time(evicted)),
        })
    }
}

/// From the creation of a job until `now`; none for one whose spec has been changed since, which may be old.
fn creation_latency(job: &serde_json::Value, now: Millis) -> Option<i64> {
    let created = json::text(job, &["metadata", "creationTimestamp"]).map(read_time)?;
    (json::integer(job, &["metadata", "generation"]) == Some(1)).then(|| since(now, created))
}

fn is_true(condition: &Condition) -> bool {
    condition.status == "True"
}

fn time(condition: &Condition) -> Millis {
    Millis(condition.last_transition_time.0.as_millisecond())
}

/// Never negative: conditions may come from two clocks.
fn since(later: Millis, earlier: Millis) -> i64 {
    later.since(earlier).max(0)
}

#[cfg(test)]
mod tests {
    use fairlead_api::kueue::{Eviction, SchedulingStats};

    use super::*;

    fn status(conditions: &[(WorkloadCondition, bool, &str, i64)]) -> WorkloadStatus {
        let conditions = conditions.iter().map(|(which, holds, reason, at)| Condition {
            type_: which.as_str().to_owned(),
            status: if *holds { "True" } else { "False" }.to_owned(),
            reason: (*reason).to_owned(),
            message: String::new(),
            last_transition_time: crate::brain::run::api_time(Millis(at * 1000)),
            observed_generation: None,
        });
        WorkloadStatus { conditions: conditions.collect(), ..WorkloadStatus::default() }
    }

    fn subject() -> Subject {
        Subject {
            cluster_queue: "cq".into(),
            local_queue: ObjectKey::new("team", "q"),
            priority_class: "high".into(),
        }
    }

    fn happenings(old: &WorkloadStatus, new: &WorkloadStatus) -> Vec<Measurement> {
        Transition { old, new, created: Millis(10_000), of: subject() }.happenings()
    }

    use WorkloadCondition::{Admitted, Evicted, Finished, PodsReady, QuotaReserved, Requeued};

    #[test]
    fn admission_counts_from_the_creation_and_once() {
        let waiting = status(&[(QuotaReserved, false, "Pending", 11)]);
        let admitted =
            status(&[(QuotaReserved, true, "QuotaReserved", 15), (Admitted, true, "Admitted", 17)]);
        let of = subject;
        assert_eq!(
            happenings(&waiting, &admitted),
            [
                Measurement::QuotaReserved { of: of(), waited_ms: 5_000 },
                Measurement::Admitted { of: of(), cluster: None, waited_ms: 7_000, checks_ms: 2_000 },
            ]
        );
        assert_eq!(happenings(&admitted, &admitted), []);
    }

    #[test]
    fn after_an_eviction_the_wait_counts_from_the_new_queueing() {
        let evicted = status(&[(QuotaReserved, false, "Pending", 30), (Evicted, true, "Preempted", 30)]);
        let again = status(&[
            (QuotaReserved, true, "QuotaReserved", 50),
            (Requeued, true, "r", 45),
            (Evicted, false, "r", 45),
        ]);
        assert_eq!(
            happenings(&evicted, &again),
            [Measurement::QuotaReserved { of: subject(), waited_ms: 5_000 }]
        );
    }

    #[test]
    fn an_eviction_tells_reason_cause_first_time_and_how_long_the_quota_took() {
        let ready = (PodsReady, true, "Started", 20);
        let runs =
            status(&[(QuotaReserved, true, "QuotaReserved", 15), (Admitted, true, "Admitted", 15), ready]);
        let mut evicted =
            status(&[(QuotaReserved, false, "Pending", 43), (Evicted, true, "PodsReadyTimeout", 40)]);
        let one = |count| Eviction {
            reason: "PodsReadyTimeout".into(),
            underlying_cause: "WaitForStart".into(),
            count,
        };
        let stats = |count| Some(SchedulingStats { evictions: vec![one(count)] });
        evicted.scheduling_stats = stats(1);
        let happened = |first, cause: &str| {
            [
                Measurement::Evicted {
                    of: subject(),
                    reason: "PodsReadyTimeout".into(),
                    cause: cause.into(),
                    first,
                    ready_ms: Some(20_000),
                },
                Measurement::Released {
                    cluster_queue: "cq".into(),
                    reason: "PodsReadyTimeout".into(),
                    took_ms: 3_000,
                },
            ]
        };
        assert_eq!(happenings(&runs, &evicted), happened(true, "WaitForStart"));
        let mut before = runs.clone();
        before.scheduling_stats = stats(1);
        evicted.scheduling_stats = stats(2);
        assert_eq!(happenings(&before, &evicted), happened(false, "WaitForStart"));
        evicted.scheduling_stats = None;
        assert_eq!(
            happenings(&runs, &evicted),
            happened(true, ""),
            "without counters the condition's reason counts"
        );
    }

    #[test]
    fn only_a_job_that_nobody_changed_tells_how_long_its_workload_took() {
        let job = |generation: i64| serde_json::json!({"metadata": {"creationTimestamp": "1970-01-01T00:00:10Z", "generation": generation}});
        assert_eq!(creation_latency(&job(1), Millis(10_250)), Some(250));
        assert_eq!(creation_latency(&job(1), Millis(9_000)), Some(0), "another clock");
        assert_eq!(creation_latency(&job(2), Millis(10_250)), None);
    }

    #[test]
    fn a_result_tells_how_long_it_ran_and_readiness_how_long_it_took() {
        let admitted = status(&[(QuotaReserved, true, "q", 15), (Admitted, true, "a", 16)]);
        let ready =
            status(&[(QuotaReserved, true, "q", 15), (Admitted, true, "a", 16), (PodsReady, true, "p", 21)]);
        assert_eq!(
            happenings(&admitted, &ready),
            [Measurement::PodsReady { of: subject(), waited_ms: 11_000, started_ms: 5_000 }]
        );
        let finished = status(&[(Admitted, true, "a", 16), (Finished, true, "Succeeded", 46)]);
        assert_eq!(
            happenings(&admitted, &finished),
            [Measurement::Finished { of: subject(), ran_ms: Some(30_000) }]
        );
        let never = status(&[(QuotaReserved, false, "q", 15)]);
        assert_eq!(
            happenings(&never, &finished).last(),
            Some(&Measurement::Finished { of: subject(), ran_ms: None })
        );
    }
}
