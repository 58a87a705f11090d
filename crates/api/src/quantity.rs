//! Kubernetes quantities: kept as the text that the user wrote, read as exact integers.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The one resource that is counted in thousandths.
pub const CPU: &str = "cpu";

/// The texts that the API server accepts: a number that is not negative, then an optional binary suffix, decimal
/// suffix or decimal exponent.
const PATTERN: &str = r"^\+?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$";

/// Longest text that is read. Kubernetes keeps 9 digits after the point, so nothing useful is longer.
const MAX_LENGTH: usize = 64;

/// Digits after the point that count. What lies beyond them rounds up, as in Kubernetes.
const FRACTION_DIGITS: usize = 9;

/// A Kubernetes quantity such as `1500m`, `200Mi` or `8`, kept as it was written.
///
/// It is a string or an integer in JSON. [`Quantity::parse`] reads it as an integer in the smallest unit of its
/// resource. The generated schema refuses negative and malformed quantities when they are applied.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quantity(pub String);

impl Quantity {
    /// Reads the quantity in the smallest unit of `resource`: thousandths for [`CPU`], whole units (bytes,
    /// devices, pods) for everything else.
    ///
    /// Fractions of that unit round away from zero, as `Value()` and `MilliValue()` do in Kubernetes. Values
    /// beyond `i64` saturate, so a hostile quantity can be large but never wraps.
    ///
    /// # Errors
    ///
    /// [`QuantityError`] when the text is no quantity.
    pub fn parse(&self, resource: &str) -> Result<i64, QuantityError> {
        let scale = if resource == CPU { 3 } else { 0 };
        Parts::of(&self.0)
            .map(|parts| parts.scaled(scale))
            .ok_or_else(|| QuantityError { text: self.0.clone() })
    }

    /// Reads the quantity in billionths: for weights and factors such as `0.5`, which have no unit.
    ///
    /// # Errors
    ///
    /// [`QuantityError`] when the text is no quantity.
    pub fn billionths(&self) -> Result<i64, QuantityError> {
        Parts::of(&self.0).map(|parts| parts.scaled(9)).ok_or_else(|| QuantityError { text: self.0.clone() })
    }

    /// Writes `amount`, given in the smallest unit of `resource`, the way people write it: `1500m` or `2` for
    /// CPU, a binary suffix for memory, storage and huge pages when it divides evenly, else a plain number.
    pub fn of(resource: &str, amount: i64) -> Self {
        if resource == CPU {
            return Self(if amount % 1000 == 0 { (amount / 1000).to_string() } else { format!("{amount}m") });
        }
        Self(if is_bytes(resource) { binary(amount) } else { amount.to_string() })
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&str> for Quantity {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

/// Whether a resource is measured in bytes.
fn is_bytes(resource: &str) -> bool {
    matches!(resource, "memory" | "storage" | "ephemeral-storage") || resource.starts_with("hugepages-")
}

/// `amount` with the largest binary suffix that divides it evenly.
fn binary(amount: i64) -> String {
    const SUFFIXES: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    let mut rest = amount;
    let mut power = 0;
    while rest != 0 && rest % 1024 == 0 && power + 1 < SUFFIXES.len() {
        rest /= 1024;
        power += 1;
    }
    format!("{rest}{}", SUFFIXES.get(power).copied().unwrap_or_default())
}

/// The text is not a Kubernetes quantity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuantityError {
    /// What was written.
    pub text: String,
}

impl fmt::Display for QuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not a quantity; write a number such as 2, 500m, 1.5 or 200Mi", self.text)
    }
}

impl std::error::Error for QuantityError {}

/// A quantity taken apart: `±digits × 10^ten × 2^two`.
struct Parts {
    negative: bool,
    digits: Digits,
    ten: i32,
    two: u32,
}

/// The digits of a number, or the fact that there are too many for any `i64`.
enum Digits {
    Exact(u128),
    Huge,
}

impl Parts {
    fn of(text: &str) -> Option<Self> {
        if text.len() > MAX_LENGTH {
            return None;
        }
        let (negative, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
        let (number, suffix) = unsigned.split_at(end);
        let (ten, two) = suffix_powers(suffix)?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return None;
        }
        let kept = fraction.len().min(FRACTION_DIGITS);
        let (kept, dropped) = fraction.split_at(kept);
        let rounded_up = u128::from(dropped.bytes().any(|digit| digit != b'0'));
        let digits = match format!("{whole}{kept}").trim_start_matches('0') {
            "" => Digits::Exact(rounded_up),
            // An i64 has 19 digits; 9 more stand after the point.
            long if long.len() > 19 + FRACTION_DIGITS => Digits::Huge,
            short => Digits::Exact(short.parse::<u128>().ok()?.saturating_add(rounded_up)),
        };
        let shift = i32::try_from(kept.len()).ok()?;
        Some(Self { negative, digits, ten: ten.saturating_sub(shift), two })
    }

    /// The value times `10^scale`, rounded away from zero, saturating.
    fn scaled(&self, scale: i32) -> i64 {
        let magnitude = match self.digits {
            Digits::Exact(digits) => scale_up(digits, self.ten.saturating_add(scale), self.two),
            // Only an exponent far below zero brings such a number back into range, and none that is written
            // in 64 characters with that many digits is worth telling from the largest.
            Digits::Huge => u128::MAX,
        };
        let value = i64::try_from(magnitude).unwrap_or(i64::MAX);
        if self.negative { -value } else { value }
    }
}

/// `digits × 10^ten × 2^two`, rounded up, saturating.
fn scale_up(digits: u128, ten: i32, two: u32) -> u128 {
    if digits == 0 {
        return 0;
    }
    let Some(binary) = 2_u128.checked_pow(two).and_then(|factor| digits.checked_mul(factor)) else {
        return u128::MAX;
    };
    let power = 10_u128.checked_pow(ten.unsigned_abs());
    match (power, ten >= 0) {
        (Some(power), true) => binary.saturating_mul(power),
        (Some(power), false) => binary.div_ceil(power),
        (None, true) => u128::MAX,
        // Below one for any digits that fit; not nothing, so one.
        (None, false) => 1,
    }
}

/// The powers of ten and of two that a suffix stands for.
fn suffix_powers(suffix: &str) -> Option<(i32, u32)> {
    let powers = match suffix {
        "" => (0, 0),
        "n" => (-9, 0),
        "u" => (-6, 0),
        "m" => (-3, 0),
        "k" => (3, 0),
        "M" => (6, 0),
        "G" => (9, 0),
        "T" => (12, 0),
        "P" => (15, 0),
        "E" => (18, 0),
        "Ki" => (0, 10),
        "Mi" => (0, 20),
        "Gi" => (0, 30),
        "Ti" => (0, 40),
        "Pi" => (0, 50),
        "Ei" => (0, 60),
        _ => return exponent(suffix).map(|ten| (ten, 0)),
    };
    Some(powers)
}

/// A decimal exponent such as `e3` or `E-2`, clamped to what can matter for an `i64`.
fn exponent(suffix: &str) -> Option<i32> {
    let text = suffix.strip_prefix(['e', 'E'])?;
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let size = digits.parse::<i32>().unwrap_or(i32::MAX).min(1000);
    Some(if negative { -size } else { size })
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Visitor)
    }
}

/// Reads a quantity from a string or an integer; both are legal in Kubernetes.
struct Visitor;

impl de::Visitor<'_> for Visitor {
    type Value = Quantity;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a quantity: a string or an integer")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Quantity, E> {
        Ok(Quantity(text.to_owned()))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Quantity, E> {
        Ok(Quantity(value.to_string()))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Quantity, E> {
        Ok(Quantity(value.to_string()))
    }
}

impl JsonSchema for Quantity {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Quantity".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A Kubernetes quantity, such as 2, 500m or 200Mi. It is not negative.",
            "anyOf": [{ "type": "integer" }, { "type": "string" }],
            "minimum": 0,
            "maxLength": MAX_LENGTH,
            "pattern": PATTERN,
            "x-kubernetes-int-or-string": true,
        })
    }
}

#[cfg(test)]
#[path = "quantity_tests.rs"]
mod tests;
