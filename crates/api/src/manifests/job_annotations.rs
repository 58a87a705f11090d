//! The admission policy that refuses annotations on Jobs which cannot be meant.

use serde_json::json;

use super::admission::{VALIDATING, condition, elsewhere, jobs, labelled, pair, validation, variable};
use crate::labels::{
    JOB_MIN_PARALLELISM, PREFERRED_TOPOLOGY, REQUIRED_TOPOLOGY, SLICE_SIZE, SLICE_TOPOLOGY,
    UNCONSTRAINED_TOPOLOGY,
};

const TEXT: &str = "\
Refuses Jobs whose annotations contradict each other or their number of pods: two ways to ask for a topology,
slices without a size or larger than the Job, a least number of pods that is not below the Job's own.
Only new Jobs are looked at: the hub itself lowers the parallelism of a Job that is admitted in part.";

/// The policy and its binding.
pub(super) fn policy() -> String {
    let number = |key: &str, map: &str, most: &str| {
        format!(
            "!('{key}' in {map}) || ({map}['{key}'].matches('^[0-9]{{1,9}}$') && int({map}['{key}']) >= 1 \
             && int({map}['{key}']) <= {most})"
        )
    };
    let levels = [REQUIRED_TOPOLOGY, PREFERRED_TOPOLOGY, UNCONSTRAINED_TOPOLOGY];
    let policy = json!({
        "failurePolicy": "Fail",
        "matchConstraints": jobs(&["CREATE"], &labelled()),
        "matchConditions": [
            elsewhere(),
            condition(
                "annotated",
                &format!(
                    "'{JOB_MIN_PARALLELISM}' in object.metadata.?annotations.orValue({{}}) || \
                     object.spec.template.?metadata.?annotations.orValue({{}})\
                     .exists(key, key.startsWith('kueue.x-k8s.io/podset-'))"
                ),
            ),
        ],
        "variables": [
            variable("own", "object.metadata.?annotations.orValue({})"),
            variable("pods", "object.spec.template.?metadata.?annotations.orValue({})"),
            variable("parallelism", "object.spec.?parallelism.orValue(1)"),
            variable("completions", "object.spec.?completions.orValue(variables.parallelism)"),
            variable(
                "count",
                "variables.completions < variables.parallelism ? variables.completions : variables.parallelism",
            ),
        ],
        "validations": [
            validation(
                &format!("{levels:?}.filter(key, key in variables.pods).size() <= 1"),
                "ask for one topology: required, preferred or unconstrained",
            ),
            validation(
                &format!("('{SLICE_TOPOLOGY}' in variables.pods) == ('{SLICE_SIZE}' in variables.pods)"),
                &format!("{SLICE_TOPOLOGY} and {SLICE_SIZE} are given together"),
            ),
            validation(
                &number(SLICE_SIZE, "variables.pods", "variables.count"),
                &format!("{SLICE_SIZE} is a number from 1 to the Job's number of pods"),
            ),
            validation(
                &number(JOB_MIN_PARALLELISM, "variables.own", "variables.parallelism - 1"),
                &format!("{JOB_MIN_PARALLELISM} is a number from 1 to one below the parallelism"),
            ),
        ],
    });
    pair(VALIDATING, "fairlead-job-annotations", TEXT, policy, json!({ "validationActions": ["Deny"] }))
}
