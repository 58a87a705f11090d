//! Reading settings as people write them.

use std::time::Duration;

/// Reads a duration such as `90s`, `15m`, `1h30m`. Negative ones are refused.
pub fn duration(text: &str) -> Result<Duration, String> {
    let signed: jiff::SignedDuration =
        text.parse().map_err(|why| format!("{text:?} is not a duration such as 30s or 1h: {why}"))?;
    Duration::try_from(signed).map_err(|_negative| format!("{text:?} is negative"))
}

/// Splits `host:port`, with IPv6 hosts in brackets, into the host (without brackets) and the port.
pub fn host_port(text: &str) -> Result<(String, u16), String> {
    let wrong = || format!("{text:?} is not host:port");
    let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
    let port = port.parse::<u16>().map_err(|_not_a_port| wrong())?;
    let bare = host.strip_prefix('[').map_or(Some(host), |rest| rest.strip_suffix(']')).ok_or_else(wrong)?;
    if bare.is_empty() || (bare.contains(':') && bare.len() == host.len()) {
        return Err(wrong());
    }
    Ok((bare.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("1h30m"), Ok(Duration::from_mins(90)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert!(duration("-1s").is_err());
        assert!(duration("soon").is_err());
    }

    #[test]
    fn addresses_are_split_at_the_port() {
        assert_eq!(host_port("hub.example:8443"), Ok(("hub.example".to_owned(), 8443)));
        assert_eq!(host_port("[::1]:8443"), Ok(("::1".to_owned(), 8443)));
        for bad in ["hub", ":1", "hub:", "::1:8443", "[::1:8443", "hub:70000"] {
            assert!(host_port(bad).is_err(), "{bad}");
        }
    }
}
