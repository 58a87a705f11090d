//! What to do about a reason: the words of its page in `docs/reasons`, taken in when this was built.

/// Token and advice of every page.
const PAGES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/advice.rs"));

/// Pages about decisions that need nobody to do anything.
const NOTHING: &str = "Nothing.";

/// What the page about this reason says to do; none when there is nothing to do, or the reason is newer than this.
pub(super) fn about(code: &str) -> Option<&'static str> {
    let (_, advice) = PAGES.iter().find(|(token, _)| *token == code)?;
    (!advice.starts_with(NOTHING)).then_some(*advice)
}

#[cfg(test)]
mod tests {
    use fairlead_model::Reason;

    use super::*;

    #[test]
    fn every_reason_has_a_page_here() {
        for reason in Reason::ALL {
            let known = PAGES.iter().any(|(token, advice)| *token == reason.token() && !advice.is_empty());
            assert!(known, "{reason}");
        }
    }

    #[test]
    fn advice_is_plain_text_on_one_line_and_absent_where_nothing_is_to_be_done() {
        assert_eq!(about("Admitted"), None);
        assert_eq!(about("NoSuchReason"), None);
        let advice = about("Busy").unwrap();
        assert!(
            advice.contains("see StopUnproven") && !advice.contains(".md") && !advice.contains('\n'),
            "{advice}"
        );
    }
}
