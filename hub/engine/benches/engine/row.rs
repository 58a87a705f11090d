//! One figure and how it is printed: the same line of JSON as in every suite, or a table with both sizes.

use std::io::{Result, Write};

/// One figure.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// Stable name.
    pub(crate) name: &'static str,
    /// The figure at full size.
    pub(crate) value: f64,
    /// Its unit.
    pub(crate) unit: &'static str,
    /// What we aim at, at most.
    pub(crate) aim: f64,
    /// The same at the smaller size, and how many times smaller that is.
    pub(crate) small: Option<(f64, u32)>,
    /// The peer's figure in the same unit (`reference/performance.md` §2.1), where there is one.
    pub(crate) peer: Option<f64>,
}

/// Column heads of the table.
pub(crate) fn print_head(out: &mut impl Write) -> Result<()> {
    let size = "smaller size";
    writeln!(
        out,
        "{:<15} {:>10} {:<11} {:>8} {size:>18} {:>7} {:>9}",
        "row", "value", "unit", "aim", "growth", "Kueue"
    )
}

/// One JSON object a line (row, value, unit, aim, and the same at a smaller size with the growth between), or lines of
/// the table.
pub(crate) fn print(out: &mut impl Write, rows: &[Row], json: bool) -> Result<()> {
    for Row { name, value, unit, aim, small, peer } in rows {
        let value_text = rounded(*value);
        if json {
            let sizes = small.filter(|(small, _)| *small > 0.0).map_or_else(String::new, |(small, by)| {
                format!(
                    r#","smaller":{},"smaller_by":{by},"growth":{}"#,
                    rounded(small),
                    rounded(value / small)
                )
            });
            writeln!(out, r#"{{"row":"{name}","value":{value_text},"unit":"{unit}","aim":{aim}{sizes}}}"#)?;
            continue;
        }
        let smaller =
            small.map_or_else(|| "-".to_owned(), |(small, by)| format!("{} at 1/{by}", rounded(small)));
        let growth = small.filter(|(small, _)| *small > 0.0).map(|(small, _)| value / small);
        let growth = growth.map_or_else(|| "-".to_owned(), |growth| format!("{growth:.1}x"));
        let peer = peer.map_or_else(|| "-".to_owned(), |peer| peer.to_string());
        writeln!(out, "{name:<15} {value_text:>10} {unit:<11} {aim:>8} {smaller:>18} {growth:>7} {peer:>9}")?;
    }
    out.flush()
}

/// Three decimals: more is noise.
fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}
