//! Tests of reading and writing quantities.

use super::*;

fn parse(text: &str, resource: &str) -> Option<i64> {
    Quantity::from(text).parse(resource).ok()
}

#[test]
fn units_are_thousandths_for_cpu_and_whole_elsewhere() {
    for (text, resource, want) in [
        ("2", CPU, 2000),
        ("1500m", CPU, 1500),
        ("0.1", CPU, 100),
        (".5", CPU, 500),
        ("1.", CPU, 1000),
        ("1k", CPU, 1_000_000),
        ("200Mi", "memory", 200 << 20),
        ("1.5Gi", "memory", 3 << 29),
        ("128974848", "memory", 128_974_848),
        ("129e6", "memory", 129_000_000),
        ("129E+6", "memory", 129_000_000),
        ("129M", "memory", 129_000_000),
        ("12E-1", "memory", 2),
        ("1E", "memory", 1_000_000_000_000_000_000),
        ("+3", "nvidia.com/gpu", 3),
        ("0", "nvidia.com/gpu", 0),
        ("-2", "nvidia.com/gpu", -2),
        ("7Ei", "memory", 7 << 60),
    ] {
        assert_eq!(parse(text, resource), Some(want), "{text} of {resource}");
    }
}

#[test]
fn fractions_round_away_from_zero() {
    for (text, resource, want) in [
        ("1m", "memory", 1),
        ("1n", CPU, 1),
        ("1500u", CPU, 2),
        ("-1500u", CPU, -2),
        ("0.0000000000001", "memory", 1),
        ("1.0000000000001", "memory", 2),
        ("0.000", "memory", 0),
        ("1e-900", "memory", 1),
        ("0e900", "memory", 0),
        ("1.0000000000000", "memory", 1),
    ] {
        assert_eq!(parse(text, resource), Some(want), "{text} of {resource}");
    }
}

#[test]
fn large_values_saturate() {
    for text in ["8Ei", "10E", "9223372036854775808", "1e400", "99999999999999999999999999999999999999999999"]
    {
        assert_eq!(parse(text, "memory"), Some(i64::MAX), "{text}");
    }
    assert_eq!(parse("9223372036854775807", "memory"), Some(i64::MAX));
    assert_eq!(parse("9223372036854775807", CPU), Some(i64::MAX));
    assert_eq!(parse("-8Ei", "memory"), Some(-i64::MAX));
}

#[test]
fn what_is_no_quantity_is_refused() {
    let long = "1".repeat(MAX_LENGTH + 1);
    for text in
        ["", "m", "1x", "1 Gi", "1Gib", "1.2.3", ".", "--1", "1e", "1e1.5", "0x10", "1,5", "ten", "٣", &long]
    {
        assert_eq!(parse(text, "memory"), None, "{text}");
    }
}

#[test]
fn amounts_are_written_as_people_write_them_and_read_back() {
    for (resource, amount, want) in [
        (CPU, 2000, "2"),
        (CPU, 1500, "1500m"),
        (CPU, 0, "0"),
        ("memory", 200 << 20, "200Mi"),
        ("memory", 1000, "1000"),
        ("memory", 0, "0"),
        ("nvidia.com/gpu", 1024, "1024"),
        ("hugepages-2Mi", 4 << 20, "4Mi"),
    ] {
        let quantity = Quantity::of(resource, amount);
        assert_eq!(quantity.0, want);
        assert_eq!(quantity.parse(resource), Ok(amount));
    }
}

#[test]
fn strings_and_integers_are_read() {
    let read = |json: &str| serde_json::from_str::<Quantity>(json).map(|quantity| quantity.0).ok();
    assert_eq!(read("\"200Mi\"").as_deref(), Some("200Mi"));
    assert_eq!(read("5").as_deref(), Some("5"));
    assert_eq!(read("5.5"), None);
    assert_eq!(read("null"), None);
}
