//! Tables: columns in line, and a last column that wraps instead of being cut.

use unicode_width::UnicodeWidthStr;

/// Blanks between columns.
const GAP: usize = 3;
/// The narrowest that the last column may get before it goes on lines of its own.
const NARROWEST: usize = 24;
/// How far such lines are indented.
const INDENT: usize = 4;

/// Titles and rows. The last column is for sentences.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Table {
    titles: Vec<&'static str>,
    rows: Vec<Vec<String>>,
    nothing: String,
}

impl Table {
    /// A table with these titles, which says `nothing` when it has no rows.
    pub(crate) fn new(titles: impl Into<Vec<&'static str>>, nothing: impl Into<String>) -> Self {
        Self { titles: titles.into(), rows: Vec::new(), nothing: nothing.into() }
    }

    /// Adds a row. Control characters, which could drive the terminal, are shown as `?`.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = impl Into<String>>) {
        self.rows.push(cells.into_iter().map(|cell| printable(&cell.into())).collect());
    }

    /// The text, in lines of at most `width` where the first columns leave room for that.
    pub(crate) fn render(&self, width: Option<usize>) -> String {
        if self.rows.is_empty() {
            return format!("{}\n", self.nothing);
        }
        let widths = self.widths();
        let last = widths.len().saturating_sub(1);
        let before: usize = widths.iter().take(last).map(|width| width + GAP).sum();
        let room = width.map(|width| width.saturating_sub(before));
        let titles: Vec<String> = self.titles.iter().map(|title| (*title).to_owned()).collect();
        let mut text = String::new();
        for row in std::iter::once(&titles).chain(&self.rows) {
            push_row(&mut text, row, &widths, (room, width));
        }
        text
    }

    fn widths(&self) -> Vec<usize> {
        let cell = |row: &Vec<String>, column: usize| row.get(column).map_or(0, |cell| cell.width());
        (0..self.titles.len())
            .map(|column| {
                let title = self.titles.get(column).map_or(0, |title| title.width());
                self.rows.iter().map(|row| cell(row, column)).fold(title, usize::max)
            })
            .collect()
    }
}

fn push_row(
    text: &mut String,
    row: &[String],
    widths: &[usize],
    (room, width): (Option<usize>, Option<usize>),
) {
    let (last, before) = row.split_last().map_or(("", &[][..]), |(last, before)| (last.as_str(), before));
    let mut line = String::new();
    for (cell, width) in before.iter().zip(widths) {
        line.push_str(cell);
        line.push_str(&" ".repeat(width.saturating_sub(cell.width()) + GAP));
    }
    let fits = room.is_none_or(|room| last.width() <= room);
    if fits || last.is_empty() {
        push_line(text, &format!("{line}{last}"));
        return;
    }
    let room = room.unwrap_or_default();
    if room >= NARROWEST {
        let indent = line.width();
        let mut first = line;
        for part in wrap(last, room) {
            push_line(text, &format!("{first}{part}"));
            first = " ".repeat(indent);
        }
    } else {
        push_line(text, &line);
        for part in wrap(last, width.unwrap_or(NARROWEST).saturating_sub(INDENT)) {
            push_line(text, &format!("{}{part}", " ".repeat(INDENT)));
        }
    }
}

fn push_line(text: &mut String, line: &str) {
    text.push_str(line.trim_end());
    text.push('\n');
}

/// Breaks a sentence between words into lines of at most `width`. A longer word stays whole: nothing is cut.
pub(crate) fn wrap(sentence: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in sentence.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.width() + 1 + word.width() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// The text with control characters shown as `?`.
pub(crate) fn printable(text: &str) -> String {
    let show = |c: char| match c {
        '\n' | '\t' => ' ',
        c if c.is_control() => '?',
        c => c,
    };
    text.chars().map(show).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHY: &str =
        "WaitingForCapacity: 8 of nvidia.com/gpu asked for on one node, 4 are free on the best one";

    fn table(name: &str) -> Table {
        let mut table = Table::new(["NAME", "STATE", "WHY"], "nothing");
        table.row([name, "Pending", WHY]);
        table.row(["b", "Admitted", ""]);
        table
    }

    #[test]
    fn the_last_column_wraps_at_80_and_nothing_is_cut() {
        let text = table("sample-job").render(Some(80));
        let expected = "\
NAME         STATE      WHY
sample-job   Pending    WaitingForCapacity: 8 of nvidia.com/gpu asked for on one
                        node, 4 are free on the best one
b            Admitted
";
        assert_eq!(text, expected);
        assert!(text.lines().all(|line| line.width() <= 80));
    }

    #[test]
    fn without_room_the_last_column_has_lines_of_its_own() {
        let long = "x".repeat(60);
        let text = table(&long).render(Some(80));
        assert!(
            text.lines().nth(2).is_some_and(|line| line.starts_with("    WaitingForCapacity: 8 of")),
            "{text}"
        );
        let words: Vec<&str> = text.split_whitespace().collect();
        assert!(WHY.split_whitespace().all(|word| words.contains(&word)), "{text}");
    }

    #[test]
    fn in_a_pipe_a_row_is_one_line() {
        assert_eq!(table("sample-job").render(None).lines().count(), 3);
    }

    #[test]
    fn wide_characters_count_double_and_control_characters_are_shown() {
        let mut table = Table::new(["NAME", "WHY"], "nothing");
        table.row(["東京", "a\u{1b}[31mred\nline"]);
        assert_eq!(table.render(Some(80)), "NAME   WHY\n東京   a?[31mred line\n");
    }

    #[test]
    fn a_table_without_rows_says_so() {
        assert_eq!(Table::new(["NAME"], "No clusters.").render(Some(80)), "No clusters.\n");
    }

    #[test]
    fn a_word_longer_than_the_line_stays_whole() {
        assert_eq!(wrap("a bbbbbbbbbb c", 4), ["a", "bbbbbbbbbb", "c"]);
    }
}
