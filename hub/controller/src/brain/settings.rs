//! What the operator of the hub sets about the life of a workload, as plain values. Times are in milliseconds.

/// How workloads live: readiness, retention.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lifecycle {
    /// `waitForPodsReady`; none does not watch the pods of admitted workloads.
    pub pods_ready: Option<WaitForPodsReady>,
    /// `objectRetentionPolicies.workloads.afterFinished`: how long finished Workloads stay; none is for ever.
    pub retain_finished_workloads_ms: Option<i64>,
    /// `objectRetentionPolicies.workloads.afterDeactivatedByKueue`: how long a job stays whose workload the hub has
    /// deactivated; none is for ever. What users deactivate stays.
    pub retain_deactivated_jobs_ms: Option<i64>,
}

/// `waitForPodsReady`: what happens to admitted workloads whose pods are not ready \[W-1].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitForPodsReady {
    /// `timeout`: how long the pods may take to become ready after admission.
    pub timeout_ms: i64,
    /// `recoveryTimeout`: how long they may stay unready after they were ready; none is for ever.
    pub recovery_timeout_ms: Option<i64>,
    /// `blockAdmission`: a ClusterQueue admits nothing while a workload of its is not ready. Kueue blocks every
    /// queue.
    pub block_admission: bool,
    /// `requeuingStrategy`.
    pub requeuing: Requeuing,
}

/// `requeuingStrategy`: how a workload waits after its pods were not ready in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requeuing {
    /// `timestamp`: its place in line.
    pub timestamp: RequeuingTimestamp,
    /// `backoffLimitCount`: how often it is put back before it is deactivated; none is without end.
    pub limit: Option<i32>,
    /// `backoffBaseSeconds`: the first wait.
    pub base_ms: i64,
    /// `backoffMaxSeconds`: the longest wait.
    pub max_ms: i64,
}

/// By which time an evicted workload is put back in line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RequeuingTimestamp {
    /// By its eviction: it goes to the end.
    #[default]
    Eviction,
    /// By its creation: it keeps its place.
    Creation,
}

impl Default for WaitForPodsReady {
    /// Kueue's defaults.
    fn default() -> Self {
        let timeout_ms = 30 * 60_000;
        Self {
            timeout_ms,
            recovery_timeout_ms: Some(timeout_ms),
            block_admission: false,
            requeuing: Requeuing::default(),
        }
    }
}

impl Default for Requeuing {
    /// Kueue's defaults.
    fn default() -> Self {
        Self { timestamp: RequeuingTimestamp::default(), limit: None, base_ms: 60_000, max_ms: 3_600_000 }
    }
}

impl Requeuing {
    /// The wait after this many evictions, counted from 1.
    pub(crate) fn wait_ms(&self, evictions: i32) -> i64 {
        let doublings = u32::try_from(evictions.saturating_sub(1)).unwrap_or(0);
        let factor = 1_i64.checked_shl(doublings.min(62)).unwrap_or(i64::MAX);
        self.base_ms.saturating_mul(factor).min(self.max_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn w1_waits_double_up_to_the_longest() {
        let requeuing = Requeuing::default();
        let waits: Vec<i64> = (1..=8).map(|evictions| requeuing.wait_ms(evictions) / 1000).collect();
        assert_eq!(waits, [60, 120, 240, 480, 960, 1920, 3600, 3600]);
        assert_eq!(requeuing.wait_ms(i32::MAX), requeuing.max_ms);
    }
}
