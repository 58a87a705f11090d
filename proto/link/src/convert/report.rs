//! Capacity reports. Shapes of one node class share it, here and on the wire.

use std::sync::Arc;

use fairlead_model::{NodeClass, Shape, Taint, TaintEffect};
use fairlead_session::Report;

use super::{WireError, common, present};
use crate::wire;

pub(super) fn encode(report: &Report) -> wire::Report {
    let mut classes: Vec<Arc<NodeClass>> = report.free.iter().chain(&report.empty).map(class_of).collect();
    classes.sort_unstable();
    classes.dedup();
    let shapes = |shapes: &[Shape]| shapes.iter().map(|shape| shape_out(shape, &classes)).collect();
    let bound = report.bound.iter();
    wire::Report {
        version: report.version,
        free: shapes(&report.free),
        empty: shapes(&report.empty),
        bound: bound.map(|(placement, amounts)| (placement.to_string(), resources_out(amounts))).collect(),
        nodes: report.nodes,
        classes: classes.iter().map(|class| node_class_out(class)).collect(),
    }
}

pub(super) fn decode(wire: wire::Report) -> Result<Report, WireError> {
    let classes: Vec<Arc<NodeClass>> =
        wire.classes.into_iter().map(|class| Arc::new(node_class(class))).collect();
    let shapes = |shapes: Vec<wire::Shape>| -> Result<Vec<Shape>, WireError> {
        shapes.into_iter().map(|wire| shape(wire, &classes)).collect()
    };
    let bound = wire.bound.into_iter();
    Ok(Report {
        version: wire.version,
        free: shapes(wire.free)?,
        empty: shapes(wire.empty)?,
        bound: bound
            .map(|(placement, wire)| Ok((common::placement(placement)?, common::amounts(wire.amounts))))
            .collect::<Result<_, WireError>>()?,
        nodes: wire.nodes,
    })
}

fn class_of(shape: &Shape) -> Arc<NodeClass> {
    Arc::clone(&shape.class)
}

fn resources_out(resources: &fairlead_model::Resources) -> wire::Resources {
    wire::Resources { amounts: common::amounts_out(resources) }
}

fn shape_out(shape: &Shape, classes: &[Arc<NodeClass>]) -> wire::Shape {
    // Every class is in the table, which has fewer entries than the report has shapes.
    let position = classes.binary_search(&shape.class).unwrap_or_default();
    wire::Shape {
        class: u32::try_from(position).unwrap_or(u32::MAX),
        free: Some(resources_out(&shape.free)),
        count: shape.count,
    }
}

fn shape(wire: wire::Shape, classes: &[Arc<NodeClass>]) -> Result<Shape, WireError> {
    let class = usize::try_from(wire.class).ok().and_then(|index| classes.get(index));
    Ok(Shape {
        class: class
            .map(Arc::clone)
            .ok_or(WireError::NoSuchClass { index: wire.class, count: classes.len() })?,
        free: common::amounts(present(wire.free, "the free vector of a shape")?.amounts),
        count: wire.count,
    })
}

fn node_class_out(class: &NodeClass) -> wire::NodeClass {
    wire::NodeClass {
        labels: class.labels.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect(),
        taints: class.taints.iter().map(taint_out).collect(),
    }
}

fn node_class(wire: wire::NodeClass) -> NodeClass {
    NodeClass {
        labels: wire.labels.into_iter().map(|(key, value)| (key.into(), value.into())).collect(),
        taints: wire.taints.into_iter().map(taint).collect(),
    }
}

fn taint_out(taint: &Taint) -> wire::Taint {
    let effect = match taint.effect {
        TaintEffect::NoSchedule => wire::TaintEffect::NoSchedule,
        TaintEffect::PreferNoSchedule => wire::TaintEffect::PreferNoSchedule,
        TaintEffect::NoExecute => wire::TaintEffect::NoExecute,
    };
    wire::Taint { key: taint.key.to_string(), value: taint.value.to_string(), effect: effect.into() }
}

/// An effect that this build does not know keeps pods away, which is the safe reading.
fn taint(wire: wire::Taint) -> Taint {
    let effect = match wire::TaintEffect::try_from(wire.effect) {
        Ok(wire::TaintEffect::PreferNoSchedule) => TaintEffect::PreferNoSchedule,
        Ok(wire::TaintEffect::NoExecute) => TaintEffect::NoExecute,
        Ok(wire::TaintEffect::NoSchedule | wire::TaintEffect::Unspecified) | Err(_) => {
            TaintEffect::NoSchedule
        }
    };
    Taint { key: wire.key.into(), value: wire.value.into(), effect }
}
