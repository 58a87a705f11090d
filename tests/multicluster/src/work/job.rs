//! Jobs as users write them.

use serde_json::{Value, json};

/// A `batch/v1` Job in the making.
#[derive(Clone, Debug)]
pub struct JobSpec {
    object: Value,
}

impl JobSpec {
    /// A Job of one pod that asks for 100m CPU and 64Mi and completes at once.
    pub fn new(name: &str) -> Self {
        Self {
            object: json!({
                "apiVersion": "batch/v1", "kind": "Job",
                "metadata": {"name": name, "labels": {}},
                "spec": {
                    "parallelism": 1, "completions": 1, "backoffLimit": 0,
                    "template": {
                        "metadata": {"annotations": {}},
                        "spec": {
                            "restartPolicy": "Never",
                            "containers": [{
                                "name": "main", "image": "registry.local/worker:1",
                                "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
                            }],
                        },
                    },
                },
            }),
        }
    }

    /// The plain sample Job that Kueue's users start from: 3 pods of 1 CPU and 200Mi each.
    pub fn sample(name: &str) -> Self {
        Self::new(name).pods(3).cpu("1").memory("200Mi")
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.object["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// Submits it to a LocalQueue.
    #[must_use]
    pub fn queue(mut self, name: &str) -> Self {
        self.object["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = json!(name);
        self
    }

    /// How many pods, side by side.
    #[must_use]
    pub fn pods(mut self, count: u32) -> Self {
        self.object["spec"]["parallelism"] = json!(count);
        self.object["spec"]["completions"] = json!(count);
        self
    }

    /// CPU of each pod.
    #[must_use]
    pub fn cpu(self, quantity: &str) -> Self {
        self.request("cpu", quantity)
    }

    /// Memory of each pod.
    #[must_use]
    pub fn memory(self, quantity: &str) -> Self {
        self.request("memory", quantity)
    }

    /// GPUs of each pod.
    #[must_use]
    pub fn gpus(mut self, count: u32) -> Self {
        self.container()["resources"]["limits"]["nvidia.com/gpu"] = json!(count.to_string());
        self.request("nvidia.com/gpu", &count.to_string())
    }

    /// A request of each pod.
    #[must_use]
    pub fn request(mut self, resource: &str, quantity: &str) -> Self {
        self.container()["resources"]["requests"][resource] = json!(quantity);
        self
    }

    /// How long each pod runs, as a duration of kwok (`5s`).
    #[must_use]
    pub fn run_for(self, duration: &str) -> Self {
        self.pod_annotation("fairlead.dev/run-for", duration)
    }

    /// How long each pod takes to stop when it is deleted.
    #[must_use]
    pub fn stop_after(self, duration: &str) -> Self {
        self.pod_annotation("fairlead.dev/stop-after", duration)
    }

    /// Each pod ends with exit code 1.
    #[must_use]
    pub fn fails(self) -> Self {
        self.pod_annotation("fairlead.dev/fail", "true")
    }

    /// Mounts a Secret.
    #[must_use]
    pub fn secret(self, name: &str) -> Self {
        self.volume(json!({"name": format!("secret-{name}"), "secret": {"secretName": name}}))
    }

    /// Mounts a ConfigMap.
    #[must_use]
    pub fn config_map(self, name: &str) -> Self {
        self.volume(json!({"name": format!("config-{name}"), "configMap": {"name": name}}))
    }

    /// Sets anything by JSON pointer; the parent must exist.
    #[must_use]
    pub fn set(mut self, parent: &str, key: &str, value: Value) -> Self {
        if let Some(object) = self.object.pointer_mut(parent).and_then(Value::as_object_mut) {
            object.insert(key.to_owned(), value);
        }
        self
    }

    /// The object.
    pub fn object(&self) -> Value {
        self.object.clone()
    }

    fn pod_annotation(mut self, key: &str, value: &str) -> Self {
        self.object["spec"]["template"]["metadata"]["annotations"][key] = json!(value);
        self
    }

    fn volume(mut self, volume: Value) -> Self {
        let volumes = &mut self.object["spec"]["template"]["spec"]["volumes"];
        match volumes.as_array_mut() {
            Some(list) => list.push(volume),
            None => *volumes = json!([volume]),
        }
        self
    }

    fn container(&mut self) -> &mut Value {
        &mut self.object["spec"]["template"]["spec"]["containers"][0]
    }
}
