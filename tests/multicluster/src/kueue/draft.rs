//! Objects of Kueue's kinds as users write them.

use anyhow::Result;
use serde_json::{Value, json};

use super::at::{At, KUEUE};

/// An object in the making.
#[derive(Clone, Debug)]
pub struct Draft(Value);

impl Draft {
    /// Any object.
    pub fn new(object: Value) -> Self {
        Self(object)
    }

    /// Sets a field by JSON pointer (`/spec/cohortName`). Objects on the way are made; an index must exist.
    #[must_use]
    pub fn set(mut self, pointer: &str, value: Value) -> Self {
        let mut place = &mut self.0;
        for key in pointer.trim_start_matches('/').split('/') {
            let key = key.replace("~1", "/").replace("~0", "~");
            place = match key.parse::<usize>() {
                Ok(index) if place.is_array() => &mut place[index],
                _ => &mut place[key.as_str()],
            };
        }
        *place = value;
        self
    }

    /// Takes a field of the spec away.
    #[must_use]
    pub fn without(mut self, field: &str) -> Self {
        if let Some(spec) = self.0["spec"].as_object_mut() {
            spec.remove(field);
        }
        self
    }

    /// The object.
    pub fn object(&self) -> &Value {
        &self.0
    }

    /// Where it belongs.
    ///
    /// # Errors
    ///
    /// When it lacks a kind, a version or a name.
    pub fn at(&self) -> Result<At> {
        At::of(&self.0)
    }
}

fn kueue(kind: &str, namespace: &str, name: &str, spec: &Value) -> Draft {
    let mut object = json!({"apiVersion": KUEUE, "kind": kind, "metadata": {"name": name}, "spec": spec});
    if !namespace.is_empty() {
        object["metadata"]["namespace"] = json!(namespace);
    }
    Draft(object)
}

/// A ResourceFlavor without labels and taints.
pub fn resource_flavor(name: &str) -> Draft {
    kueue("ResourceFlavor", "", name, &json!({}))
}

/// A ClusterQueue for every namespace with one resource group: flavors in order, each with its nominal quotas. All
/// flavors name the same resources in the same order.
pub fn cluster_queue(name: &str, flavors: &[(&str, &[(&str, &str)])]) -> Draft {
    kueue("ClusterQueue", "", name, &json!({"namespaceSelector": {}, "resourceGroups": groups(flavors)}))
}

/// A Cohort with quota of its own; without `flavors` it has none.
pub fn cohort(name: &str, flavors: &[(&str, &[(&str, &str)])]) -> Draft {
    let draft = kueue("Cohort", "", name, &json!({}));
    if flavors.is_empty() { draft } else { draft.set("/spec/resourceGroups", groups(flavors)) }
}

fn groups(flavors: &[(&str, &[(&str, &str)])]) -> Value {
    let covered: Vec<&str> =
        flavors.first().map(|(_, quotas)| quotas.iter().map(|(name, _)| *name).collect()).unwrap_or_default();
    let flavors: Vec<Value> = flavors
        .iter()
        .map(|(flavor, quotas)| {
            let resources: Vec<Value> = quotas
                .iter()
                .map(|(name, quantity)| json!({"name": name, "nominalQuota": quantity}))
                .collect();
            json!({"name": flavor, "resources": resources})
        })
        .collect();
    json!([{"coveredResources": covered, "flavors": flavors}])
}

/// A LocalQueue.
pub fn local_queue(namespace: &str, name: &str, cluster_queue: &str) -> Draft {
    kueue("LocalQueue", namespace, name, &json!({"clusterQueue": cluster_queue}))
}

/// A Workload that no job owns: as a third-party controller makes it.
pub fn workload(namespace: &str, name: &str, queue: &str, pod_sets: &[Value]) -> Draft {
    kueue("Workload", namespace, name, &json!({"queueName": queue, "podSets": pod_sets}))
}

/// A pod set of so many pods with one container each that asks for this.
pub fn pod_set(name: &str, count: u32, requests: &[(&str, &str)]) -> Value {
    let requests: serde_json::Map<String, Value> =
        requests.iter().map(|(resource, quantity)| ((*resource).to_owned(), json!(quantity))).collect();
    json!({
        "name": name, "count": count,
        "template": {"spec": {"restartPolicy": "Never", "containers": [{
            "name": "main", "image": "registry.local/worker:1", "resources": {"requests": requests},
        }]}},
    })
}

/// An AdmissionCheck.
pub fn admission_check(name: &str, controller: &str) -> Draft {
    kueue("AdmissionCheck", "", name, &json!({"controllerName": controller}))
}

/// A Topology with these levels, widest first.
pub fn topology(name: &str, levels: &[&str]) -> Draft {
    let levels: Vec<Value> = levels.iter().map(|label| json!({"nodeLabel": label})).collect();
    kueue("Topology", "", name, &json!({"levels": levels}))
}

/// A WorkloadPriorityClass.
pub fn priority_class(name: &str, value: i32) -> Draft {
    Draft(json!({
        "apiVersion": KUEUE, "kind": "WorkloadPriorityClass", "metadata": {"name": name}, "value": value,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_set_by_pointer_through_lists_and_missing_objects() {
        let draft = cluster_queue("q", &[("f", &[("cpu", "1")])])
            .set("/spec/resourceGroups/0/flavors/0/resources/0/borrowingLimit", json!("2"))
            .set("/metadata/labels/a.b~1c", json!("d"));
        let quota = &draft.object()["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0];
        assert_eq!(*quota, json!({"name": "cpu", "nominalQuota": "1", "borrowingLimit": "2"}));
        assert_eq!(draft.object()["metadata"]["labels"], json!({"a.b/c": "d"}));
    }
}
