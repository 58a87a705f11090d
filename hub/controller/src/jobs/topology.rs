//! What a pod template asks of the topology [TAS-2], and what is asked wrongly.

use fairlead_api::labels;
use serde_json::{Map, Value, json};

use super::json;

/// The `topologyRequest` of a pod set of this many pods, by the annotations of its template; none without any.
///
/// # Errors
///
/// The annotation that cannot be meant, and what stands there.
pub fn request(template: &Value, count: i64) -> Result<Option<Value>, (&'static str, String)> {
    let annotation = |key: &str| json::text(template, &["metadata", "annotations", key]);
    let mut request = Map::new();
    let mut levels = [
        (labels::REQUIRED_TOPOLOGY, "required"),
        (labels::PREFERRED_TOPOLOGY, "preferred"),
        (labels::UNCONSTRAINED_TOPOLOGY, "unconstrained"),
    ]
    .into_iter()
    .filter_map(|(key, field)| Some((key, field, annotation(key)?)));
    if let Some((key, field, level)) = levels.next() {
        let value = if field == "unconstrained" { json!(level == labels::TRUE) } else { json!(level) };
        request.insert(field.into(), value);
        if let Some((_, _, second)) = levels.next() {
            return Err((key, format!("{level} beside {second}")));
        }
    }
    slices(&annotation, count, &mut request)?;
    if let Some(group) = annotation(labels::POD_SET_GROUP) {
        return Err((labels::POD_SET_GROUP, format!("{group} on a job with one pod set")));
    }
    if request.is_empty() {
        return Ok(None);
    }
    request.insert("podIndexLabel".into(), labels::JOB_COMPLETION_INDEX.into());
    Ok(Some(Value::Object(request)))
}

fn slices<'a>(
    annotation: &impl Fn(&str) -> Option<&'a str>,
    count: i64,
    request: &mut Map<String, Value>,
) -> Result<(), (&'static str, String)> {
    let size = annotation(labels::SLICE_SIZE);
    match (annotation(labels::SLICE_TOPOLOGY), size) {
        (None, None) => {}
        (Some(level), Some(text)) => {
            let size = text.parse::<i64>().ok().filter(|size| (1..=count).contains(size));
            let size = size.ok_or_else(|| (labels::SLICE_SIZE, text.to_owned()))?;
            request.insert("podSetSliceRequiredTopology".into(), level.into());
            request.insert("podSetSliceSize".into(), size.into());
        }
        (Some(level), None) => return Err((labels::SLICE_TOPOLOGY, format!("{level} without a size"))),
        (None, Some(size)) => return Err((labels::SLICE_SIZE, format!("{size} without a topology"))),
    }
    if let Some(text) = annotation(labels::SLICE_CONSTRAINTS) {
        let wrong = || (labels::SLICE_CONSTRAINTS, text.to_owned());
        let layers: Value = serde_json::from_str(text).map_err(|_unreadable| wrong())?;
        let fits = |layer: &Value| {
            let size = json::integer(layer, &["size"]).unwrap_or(0);
            json::text(layer, &["topology"]).is_some_and(|level| !level.is_empty())
                && (1..=count).contains(&size)
        };
        let known = layers.as_array().filter(|layers| (1..=3).contains(&layers.len()));
        if size.is_some() || !known.is_some_and(|layers| layers.iter().all(fits)) {
            return Err(wrong());
        }
        request.insert("podsetSliceRequiredTopologyConstraints".into(), layers);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(annotations: &Value) -> Result<Option<Value>, (&'static str, String)> {
        request(&json!({"metadata": {"annotations": annotations}}), 8)
    }

    #[test]
    fn tas2_annotations_become_a_request() {
        let prefix = "kueue.x-k8s.io/podset";
        assert_eq!(asked(&json!({"other": "x"})), Ok(None));
        let request = asked(&json!({(format!("{prefix}-required-topology")): "rack"})).unwrap().unwrap();
        let index = "batch.kubernetes.io/job-completion-index";
        assert_eq!(request, json!({"required": "rack", "podIndexLabel": index}));
        let request = asked(&json!({
            (format!("{prefix}-unconstrained-topology")): "true",
            (format!("{prefix}-slice-required-topology")): "rack", (format!("{prefix}-slice-size")): "4",
        }));
        assert_eq!(
            request.unwrap().unwrap(),
            json!({"unconstrained": true, "podSetSliceRequiredTopology": "rack", "podSetSliceSize": 4,
                   "podIndexLabel": index})
        );
        let layers = r#"[{"topology": "block", "size": 4}, {"topology": "rack", "size": 2}]"#;
        let request = asked(&json!({(format!("{prefix}-slice-required-topology-constraints")): layers}));
        let layers: Value = serde_json::from_str(layers).unwrap();
        assert_eq!(request.unwrap().unwrap()["podsetSliceRequiredTopologyConstraints"], layers);
    }

    #[test]
    fn tas2_annotations_that_contradict_each_other_or_the_count_are_named() {
        let prefix = "kueue.x-k8s.io/podset";
        let wrong = |annotations: Value| asked(&annotations).unwrap_err().0;
        let two = json!({(format!("{prefix}-required-topology")): "a", (format!("{prefix}-preferred-topology")): "b"});
        assert_eq!(wrong(two), labels::REQUIRED_TOPOLOGY);
        for size in ["9", "0", "few"] {
            let slices = json!({(format!("{prefix}-slice-required-topology")): "a", (format!("{prefix}-slice-size")): size});
            assert_eq!(wrong(slices), labels::SLICE_SIZE, "{size}");
        }
        assert_eq!(
            wrong(json!({(format!("{prefix}-slice-required-topology")): "a"})),
            labels::SLICE_TOPOLOGY
        );
        for layers in ["[]", "{}", "x", r#"[{"size": 2}]"#, r#"[{"topology": "a", "size": 9}]"#] {
            let annotations = json!({(format!("{prefix}-slice-required-topology-constraints")): layers});
            assert_eq!(wrong(annotations), labels::SLICE_CONSTRAINTS, "{layers}");
        }
    }
}
