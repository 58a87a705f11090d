//! Balanced placement.

use super::choose::Need;
use super::descend::Share;
use super::request::Ask;
use super::view::View;

pub(super) fn place(_view: &View<'_>, _ask: &Ask, _need: Need) -> Option<Vec<Share>> {
    None
}
