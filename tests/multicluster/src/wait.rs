//! Asking again, within a bound, until something holds.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// Pause between two questions.
const PAUSE: Duration = Duration::from_millis(25);

/// Asks `probe` until it answers `Some`, for at most `bound`.
///
/// An `Err` counts as "not yet": API servers that are coming up refuse connections. When the time is over, the error
/// names `what`, the bound and the last answer.
pub async fn until<T>(
    what: &str,
    bound: Duration,
    mut probe: impl AsyncFnMut() -> Result<Option<T>>,
) -> Result<T> {
    let start = Instant::now();
    let mut last = String::from("no answer yet");
    while start.elapsed() < bound {
        match tokio::time::timeout(bound, probe()).await {
            Ok(Ok(Some(value))) => return Ok(value),
            Ok(Ok(None)) => "not yet".clone_into(&mut last),
            Ok(Err(error)) => last = format!("{error:#}"),
            Err(_elapsed) => break,
        }
        tokio::time::sleep(PAUSE).await;
    }
    bail!("{what}: not within {} s (last: {last})", bound.as_secs_f32())
}

/// As [`until`], for a question of yes or no.
pub async fn until_true(
    what: &str,
    bound: Duration,
    mut probe: impl AsyncFnMut() -> Result<bool>,
) -> Result<()> {
    until(what, bound, async || Ok(probe().await?.then_some(()))).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn answers_as_soon_as_the_probe_does() {
        let mut asked = 0;
        let answer = until("third time", Duration::from_secs(9), async || {
            asked += 1;
            Ok((asked == 3).then_some(asked))
        })
        .await
        .unwrap();
        assert_eq!(answer, 3);
    }

    #[tokio::test]
    async fn says_what_it_waited_for_and_the_last_error() {
        let error = until::<()>("the moon", Duration::from_millis(60), async || bail!("below the horizon"))
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains("the moon") && error.contains("below the horizon"), "{error}");
    }
}
