//! The configuration of a scenario as settings and policy.

use std::sync::Arc;

use fairlead_api::Quantity;
use fairlead_engine::policy::{
    AdmissionFairSharing, Factor, FairStrategy, RequestRules, ShareRule, Transformation,
    TransformationStrategy,
};
use fairlead_engine::{Policy, Settings};
use serde_json::Value;

/// Whose rules are played where the two differ and recorded scenarios depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rules {
    /// Kueue's, to the letter.
    Kueue,
    /// Those of a hub.
    Fairlead,
}

/// What shapes the world.
pub(crate) fn settings(config: &Value, rules: Rules) -> Result<Settings, String> {
    let fair = config.get("admissionFairSharing").filter(|value| !value.is_null());
    Ok(Settings {
        requests: requests(config.get("resources").unwrap_or(&Value::Null))?,
        admission_fair_sharing: fair.map(admission_fair_sharing).transpose()?,
        block_admission: false,
        wake_on_drain: rules == Rules::Fairlead,
    })
}

/// What decides.
pub(crate) fn policy(config: &Value, rules: Rules) -> Policy {
    let strategies = config.pointer("/fairSharing/preemptionStrategies").and_then(Value::as_array);
    let strategy = |name: &Value| match name.as_str() {
        Some("LessThanInitialShare") => FairStrategy::LessThanInitialShare,
        _ => FairStrategy::LessThanOrEqualToFinalShare,
    };
    let fair = config.get("fairSharing").filter(|value| !value.is_null());
    Policy {
        fair_sharing: fair.map(|_| strategies.into_iter().flatten().map(strategy).collect()),
        shares: if rules == Rules::Kueue { ShareRule::Float } else { ShareRule::Exact },
        ..Policy::default()
    }
}

fn texts(json: Option<&Value>) -> Vec<Arc<str>> {
    json.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).map(Arc::from).collect()
}

fn requests(json: &Value) -> Result<RequestRules, String> {
    let list = json.get("transformations").and_then(Value::as_array).into_iter().flatten();
    Ok(RequestRules {
        exclude_prefixes: texts(json.get("excludeResourcePrefixes")),
        transformations: list.map(transformation).collect::<Result<_, _>>()?,
        ignore_undeclared: json.get("quotaCheckStrategy").and_then(Value::as_str) == Some("IgnoreUndeclared"),
    })
}

fn transformation(json: &Value) -> Result<Transformation, String> {
    let text = |key: &str| json.get(key).and_then(Value::as_str);
    let outputs = json.get("outputs").and_then(Value::as_object).into_iter().flatten();
    Ok(Transformation {
        input: text("input").unwrap_or_default().into(),
        strategy: if text("strategy") == Some("Replace") {
            TransformationStrategy::Replace
        } else {
            TransformationStrategy::Retain
        },
        multiply_by: text("multiplyBy").map(Arc::from),
        outputs: outputs
            .map(|(name, factor)| {
                let factor = Quantity(factor.as_str().unwrap_or_default().to_owned());
                let factor = factor.billionths().map_err(|error| error.to_string())?;
                Ok((Arc::from(name.as_str()), Factor(i128::from(factor))))
            })
            .collect::<Result<_, String>>()?,
    })
}

fn admission_fair_sharing(json: &Value) -> Result<AdmissionFairSharing, String> {
    let weights = json.get("resourceWeights").and_then(Value::as_object).into_iter().flatten();
    Ok(AdmissionFairSharing {
        half_life_ms: duration(json.get("usageHalfLifeTime"))?,
        sampling_ms: duration(json.get("usageSamplingInterval"))?,
        resource_weights: weights
            .map(|(name, weight)| {
                let weight = Quantity(weight.to_string()).billionths().map_err(|error| error.to_string())?;
                Ok((Arc::from(name.as_str()), weight))
            })
            .collect::<Result<_, String>>()?,
    })
}

/// A Go duration of hours, minutes and seconds, in milliseconds.
fn duration(json: Option<&Value>) -> Result<i64, String> {
    let text = json.and_then(Value::as_str).unwrap_or("0s");
    let mut total: i64 = 0;
    let mut digits = String::new();
    for character in text.chars() {
        let unit = match character {
            'h' => 3_600_000,
            'm' => 60_000,
            's' => 1_000,
            digit => {
                digits.push(digit);
                continue;
            }
        };
        let number: i64 = digits.parse().map_err(|_not_a_number| format!("{text:?} is no duration"))?;
        total = total.saturating_add(number.saturating_mul(unit));
        digits.clear();
    }
    Ok(total)
}
