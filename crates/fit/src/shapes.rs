//! How many pods fit into shapes, and what is left after some were put there.

use fairlead_model::{Resources, Shape};

use crate::Pod;

/// How a gang stands against a list of shapes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Room {
    /// All of them fit.
    Fits,
    /// Each would fit somewhere, but not all together; this many did.
    Short(u64),
    /// Not even one fits on any node. The node class that allows it and comes closest has this much free, if any
    /// class allows it at all.
    NoNode(Option<Resources>),
}

/// How many of these pods fit into the shapes.
pub fn capacity(shapes: &[Shape], pod: &Pod<'_>) -> u64 {
    shapes.iter().fold(0, |sum: u64, shape| sum.saturating_add(on_shape(shape, pod)))
}

/// How many of these pods fit on one node of the shape.
fn on_node(shape: &Shape, pod: &Pod<'_>) -> u64 {
    if shape.count == 0 || !pod.allows(&shape.class) {
        return 0;
    }
    u64::try_from(shape.free.times_fits(pod.requests)).unwrap_or(0)
}

fn on_shape(shape: &Shape, pod: &Pod<'_>) -> u64 {
    on_node(shape, pod).saturating_mul(u64::from(shape.count))
}

/// Puts up to `count` pods into the shapes, tightest nodes first, and says how many went in. Shapes whose nodes come
/// to differ are split.
pub fn place(shapes: &mut Vec<Shape>, pod: &Pod<'_>, count: u32) -> u32 {
    let mut order: Vec<(u64, usize)> = Vec::new();
    for (position, shape) in shapes.iter().enumerate() {
        let fits = on_node(shape, pod);
        if fits > 0 {
            order.push((fits, position));
        }
    }
    order.sort_unstable();
    let mut left = count;
    for (per_node, position) in order {
        if left == 0 {
            break;
        }
        left = fill(shapes, position, pod.requests, (per_node, left));
    }
    count.saturating_sub(left)
}

/// Fills nodes of one shape with up to `left` pods, `per_node` on each, and returns how many pods are left.
fn fill(shapes: &mut Vec<Shape>, position: usize, requests: &Resources, (per_node, left): (u64, u32)) -> u32 {
    let Some(shape) = shapes.get(position).cloned() else {
        return left;
    };
    let per_node = u32::try_from(per_node).unwrap_or(u32::MAX).max(1);
    let full_nodes = left.checked_div(per_node).unwrap_or(0).min(shape.count);
    let after_full = left.saturating_sub(full_nodes.saturating_mul(per_node));
    let on_last = if full_nodes < shape.count { after_full } else { 0 };
    let used = |pods: u32, count: u32| {
        let mut free = shape.free.clone();
        free.subtract(&requests.times(i64::from(pods)));
        Shape { class: std::sync::Arc::clone(&shape.class), free, count }
    };
    let touched = full_nodes.saturating_add(u32::from(on_last > 0));
    if let Some(rest) = shapes.get_mut(position) {
        rest.count = shape.count.saturating_sub(touched);
    }
    if full_nodes > 0 {
        shapes.push(used(per_node, full_nodes));
    }
    if on_last > 0 {
        shapes.push(used(on_last, 1));
    }
    after_full.saturating_sub(on_last)
}

/// Whether several kinds of pods fit together. Bigger pods are put first, so that small ones fill the gaps.
pub fn room(shapes: &[Shape], pods: &[(Pod<'_>, u32)]) -> Room {
    for (pod, count) in pods {
        if *count > 0 && shapes.iter().all(|shape| on_node(shape, pod) == 0) {
            return Room::NoNode(closest(shapes, pod));
        }
    }
    let mut left = shapes.to_vec();
    let mut order: Vec<&(Pod<'_>, u32)> = pods.iter().filter(|(_, count)| *count > 0).collect();
    order.sort_by_key(|(pod, _)| capacity(shapes, pod));
    let mut placed: u64 = 0;
    let mut short = false;
    for (pod, count) in order {
        let done = place(&mut left, pod, *count);
        placed = placed.saturating_add(u64::from(done));
        short |= done < *count;
    }
    if short { Room::Short(placed) } else { Room::Fits }
}

/// Of the nodes that allow the pod, the free vector that lacks the fewest resources, the first of equals.
fn closest(shapes: &[Shape], pod: &Pod<'_>) -> Option<Resources> {
    let lacking = |shape: &&Shape| {
        pod.requests.iter().filter(|(name, amount)| *amount > 0 && shape.free.get(name) < *amount).count()
    };
    let allowed = |shape: &&Shape| shape.count > 0 && pod.allows(&shape.class);
    shapes.iter().filter(allowed).min_by_key(lacking).map(|shape| shape.free.clone())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use fairlead_model::{Labels, NodeClass, NodeConstraints, Taint, TaintEffect, Toleration};
    use proptest::prelude::*;

    use super::*;

    fn resources(cpu: i64, gpu: i64, pods: i64) -> Resources {
        [("cpu", cpu), ("gpu", gpu), ("pods", pods)]
            .into_iter()
            .map(|(name, amount)| (name.into(), amount))
            .collect()
    }

    fn shape(free: Resources, count: u32) -> Shape {
        Shape { class: Arc::new(NodeClass::default()), free, count }
    }

    fn pod<'a>(requests: &'a Resources, nodes: &'a NodeConstraints, labels: &'a Labels) -> Pod<'a> {
        Pod { requests, nodes, labels, tolerations: &[] }
    }

    #[test]
    fn tells_never_from_not_now() {
        let (nodes, labels) = (NodeConstraints::default(), Labels::new());
        let big = resources(9000, 0, 1);
        let shapes = [shape(resources(8000, 4, 110), 2)];
        let demand = [(pod(&big, &nodes, &labels), 1)];
        assert_eq!(room(&shapes, &demand), Room::NoNode(Some(resources(8000, 4, 110))));
        let small = resources(3000, 0, 1);
        assert_eq!(room(&shapes, &[(pod(&small, &nodes, &labels), 4)]), Room::Fits);
        assert_eq!(room(&shapes, &[(pod(&small, &nodes, &labels), 5)]), Room::Short(4));
    }

    #[test]
    fn taints_labels_and_flavor_labels_keep_pods_away() {
        let taint = Taint { key: "gpu".into(), value: "".into(), effect: TaintEffect::NoSchedule };
        let class = NodeClass {
            labels: Labels::from([("fairlead.dev/cluster".into(), "a".into())]),
            taints: vec![taint],
        };
        let shapes = [Shape { class: Arc::new(class), free: resources(8000, 4, 110), count: 1 }];
        let one = resources(1000, 1, 1);
        let mut nodes = NodeConstraints::default();
        let labels = Labels::from([("fairlead.dev/cluster".into(), "a".into())]);
        let elsewhere = Labels::from([("fairlead.dev/cluster".into(), "b".into())]);
        assert_eq!(capacity(&shapes, &pod(&one, &nodes, &labels)), 0);
        let toleration = Toleration { key: "gpu".into(), exists: true, value: "".into(), effect: None };
        nodes.tolerations.push(toleration);
        assert_eq!(capacity(&shapes, &pod(&one, &nodes, &labels)), 4);
        assert_eq!(capacity(&shapes, &pod(&one, &nodes, &elsewhere)), 0);
    }

    #[test]
    fn different_pods_share_nodes() {
        let (nodes, labels) = (NodeConstraints::default(), Labels::new());
        let (big, small) = (resources(6000, 0, 1), resources(2000, 0, 1));
        let shapes = [shape(resources(8000, 0, 110), 2)];
        let both = [(pod(&small, &nodes, &labels), 2), (pod(&big, &nodes, &labels), 2)];
        assert_eq!(room(&shapes, &both), Room::Fits);
        let more = [(pod(&small, &nodes, &labels), 3), (pod(&big, &nodes, &labels), 2)];
        assert_eq!(room(&shapes, &more), Room::Short(4));
    }

    proptest! {
        /// What is placed is exactly what is missing afterwards, and nothing goes below zero.
        #[test]
        fn placing_conserves_room(
            frees in prop::collection::vec((0_i64..20, 0_i64..4, 1_i64..5, 0_u32..4), 0..6),
            cpu in 1_i64..6, gpu in 0_i64..3, count in 0_u32..40,
        ) {
            let (nodes, labels) = (NodeConstraints::default(), Labels::new());
            let one = resources(cpu, gpu, 1);
            let pod = pod(&one, &nodes, &labels);
            let mut shapes: Vec<Shape> = frees.iter().map(|(c, g, p, n)| shape(resources(*c, *g, *p), *n)).collect();
            let total = |shapes: &[Shape]| shapes.iter().fold(Resources::new(), |mut sum, shape| {
                sum.add(&shape.free.times(i64::from(shape.count)));
                sum
            });
            let fits = capacity(&shapes, &pod);
            let before = total(&shapes);
            let placed = place(&mut shapes, &pod, count);
            prop_assert_eq!(u64::from(placed), fits.min(u64::from(count)));
            let mut after = total(&shapes);
            after.add(&one.times(i64::from(placed)));
            for name in ["cpu", "gpu", "pods"] {
                prop_assert_eq!(before.get(name), after.get(name));
                prop_assert!(shapes.iter().all(|shape| shape.free.get(name) >= 0));
            }
        }
    }
}
