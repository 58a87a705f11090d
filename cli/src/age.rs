//! Ages and spans as kubectl writes them: two minutes are `2m`, not a date.

use jiff::Timestamp;

/// How long ago `then` was, in one or two units; `<unknown>` when it is not known.
pub(crate) fn since(then: Option<Timestamp>, now: Timestamp) -> String {
    then.map_or_else(|| "<unknown>".to_owned(), |then| span(now.as_second().saturating_sub(then.as_second())))
}

/// How long it is until `then`; `expired` when it is over, `-` when it is not known.
pub(crate) fn until(then: Option<Timestamp>, now: Timestamp) -> String {
    match then.map(|then| then.as_second().saturating_sub(now.as_second())) {
        None => "-".to_owned(),
        Some(seconds) if seconds < 0 => "expired".to_owned(),
        Some(seconds) => span(seconds),
    }
}

fn span(seconds: i64) -> String {
    let seconds = seconds.max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..600 => two((minutes, "m"), (seconds % 60, "s")),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => two((hours, "h"), (minutes % 60, "m")),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => two((days, "d"), (hours % 24, "h")),
        _ => format!("{days}d"),
    }
}

fn two((large, unit): (i64, &str), (small, part): (i64, &str)) -> String {
    if small == 0 { format!("{large}{unit}") } else { format!("{large}{unit}{small}{part}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_get_coarser_as_they_grow() {
        for (seconds, text) in [
            (-5, "0s"),
            (119, "119s"),
            (120, "2m"),
            (150, "2m30s"),
            (3600, "60m"),
            (11_100, "3h5m"),
            (86_400, "24h"),
            (180_000, "2d2h"),
            (864_000, "10d"),
        ] {
            assert_eq!(span(seconds), text, "{seconds}");
        }
    }

    #[test]
    fn what_is_unknown_or_over_is_said() {
        let now = Timestamp::from_second(1000).unwrap();
        let then = Timestamp::from_second(990).ok();
        assert_eq!((since(None, now), since(then, now)), ("<unknown>".to_owned(), "10s".to_owned()));
        assert_eq!((until(None, now), until(then, now)), ("-".to_owned(), "expired".to_owned()));
    }
}
