//! What others may read of lines and trees.

#[path = "build/lib.rs"]
mod build;

use build::{Hub, flavor, holding, queue, workload};
use fairlead_engine::NodeView;
use fairlead_engine::fact::{ClusterQueue, Workload};
use fairlead_model::{Amount, Millis, ObjectKey};

fn with(priority: i64, created: i64, workload: Workload) -> Workload {
    Workload { priority, created: Millis(created), ..workload }
}

#[test]
fn the_line_is_queue_order_over_the_tried_and_the_untried() {
    let mut hub = Hub::new(&[flavor("default")], &[queue("q", &[("default", 2000)])]);
    hub.submit(with(0, 1, workload("too-big", "q", (1, 4000))));
    hub.submit(holding(workload("runs", "q", (1, 2000)), "q", ("default", 2000)));
    hub.rounds();
    hub.submit(with(5, 3, workload("urgent", "q", (1, 2000))));
    hub.submit(with(0, 2, workload("later", "q", (3, 1000))));
    let names: Vec<String> = hub
        .world
        .line("q")
        .unwrap()
        .iter()
        .map(|one| format!("{} of {}", one.key.name, one.local_queue))
        .collect();
    assert_eq!(names, ["urgent of q", "too-big of q", "later of q"]);
    assert_eq!(hub.world.line("other"), None);

    let lines = hub.world.lines();
    let line = &lines["q"];
    assert_eq!((line.active, line.parked), (2, 1));
    let local = ObjectKey::new(build::NAMESPACE, "q");
    assert_eq!(line.active_by_local_queue, [(local, 2)].into());
    assert_eq!((line.active_classes, line.parked_classes), (2, 1));
    assert_eq!(line.requested["cpu"], 2000 + 4000 + 3000);
}

#[test]
fn nodes_say_what_is_guaranteed_below_them_and_what_is_reserved() {
    let pooled = |queue: ClusterQueue| ClusterQueue { cohort: Some("pool".into()), ..queue };
    let queues = [pooled(queue("a", &[("default", 1000)])), pooled(queue("b", &[("default", 0)]))];
    let mut hub = Hub::new(&[flavor("default")], &queues);
    hub.submit(holding(workload("borrows", "b", (1, 600)), "b", ("default", 600)));
    hub.rounds();
    let nodes = hub.world.nodes();
    let node = |name: &str| -> &NodeView { nodes.iter().find(|node| &*node.name == name).unwrap() };
    assert_eq!((&*node("b").root, node("b").parent.as_deref()), ("pool", Some("pool")));
    assert!(node("b").is_queue && !node("pool").is_queue);
    let cell =
        |name: &str| (node(name).cells[0].nominal, node(name).cells[0].subtree, node(name).cells[0].reserved);
    assert_eq!(cell("a"), (Amount::Finite(1000), Amount::Finite(1000), 0));
    assert_eq!(cell("b"), (Amount::Finite(0), Amount::Finite(0), 600), "a quota of nothing is a quota");
    assert_eq!(cell("pool"), (Amount::ZERO, Amount::Finite(1000), 600));
    assert_eq!(node("b").share, Some(600));
    assert_eq!(node("a").share, Some(0));
}
