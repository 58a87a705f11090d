//! Where output goes, and in which form.

use std::fmt;
use std::io::{self, IsTerminal, Write};

use clap::ValueEnum;
use kube::core::DynamicObject;
use serde::Serialize;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::table::Table;

/// The width that tables are made for where the terminal does not say its own.
const WIDTH: usize = 80;

/// Output formats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A table for people.
    #[default]
    #[value(hide = true)]
    Table,
    /// The objects as JSON; several in one `List`.
    Json,
    /// The objects as YAML; several in one `List`.
    Yaml,
    /// A table with more columns.
    Wide,
    /// Only kind and name, one a line.
    Name,
}

/// Standard output for data, standard error for messages.
#[derive(Debug)]
pub(crate) struct Out {
    data: io::Stdout,
    messages: io::Stderr,
    format: Format,
    width: Option<usize>,
}

impl Out {
    /// Output in this format. Tables wrap their last column on a terminal; elsewhere a row is one line.
    pub(crate) fn new(format: Format) -> Self {
        let columns = || std::env::var("COLUMNS").ok()?.parse().ok().filter(|columns| *columns > 0);
        let width = io::stdout().is_terminal().then(|| columns().unwrap_or(WIDTH));
        Self { data: io::stdout(), messages: io::stderr(), format, width }
    }

    /// The format.
    pub(crate) const fn format(&self) -> Format {
        self.format
    }

    /// The width of lines; none where they may be of any length.
    pub(crate) const fn width(&self) -> Option<usize> {
        self.width
    }

    /// Text as it is.
    pub(crate) fn text(&mut self, text: &str) -> Result<(), Failure> {
        self.data.write_all(text.as_bytes())?;
        Ok(self.data.flush()?)
    }

    /// One line to the person at the terminal, apart from the data.
    pub(crate) fn message(&mut self, text: fmt::Arguments<'_>) {
        // Where standard error is closed there is nobody to tell.
        drop(writeln!(self.messages, "{text}"));
    }

    /// One value as JSON or YAML; anything else is the caller's to print.
    pub(crate) fn value<T: Serialize>(&mut self, value: &T) -> Result<(), Failure> {
        let text = match self.format {
            Format::Yaml => serde_yaml::to_string(value)?,
            _ => format!("{}\n", serde_json::to_string_pretty(value)?),
        };
        self.text(&text)
    }

    /// Objects in the chosen format; `table` makes the table, wide or not.
    pub(crate) fn objects(
        &mut self,
        objects: &[DynamicObject],
        table: impl FnOnce(bool) -> Result<Table, Failure>,
    ) -> Result<(), Failure> {
        match self.format {
            Format::Json | Format::Yaml => self.value(&list(objects)?),
            Format::Name => self.text(&names(objects)),
            Format::Table | Format::Wide => {
                let text = table(self.format == Format::Wide)?.render(self.width);
                self.text(&text)
            }
        }
    }
}

/// A `List`, however many objects there are, so that scripts need not tell one from several.
fn list(objects: &[DynamicObject]) -> Result<Value, Failure> {
    let items = objects.iter().map(serde_json::to_value).collect::<Result<Vec<_>, _>>()?;
    Ok(json!({ "apiVersion": "v1", "kind": "List", "metadata": {}, "items": items }))
}

fn names(objects: &[DynamicObject]) -> String {
    objects.iter().map(|object| format!("{}\n", name(object))).collect::<Vec<_>>().concat()
}

/// `kind.group/name`, as `kubectl -o name` writes it.
fn name(object: &DynamicObject) -> String {
    let name = object.metadata.name.as_deref().unwrap_or_default();
    let Some(types) = &object.types else {
        return name.to_owned();
    };
    let kind = types.kind.to_lowercase();
    match types.api_version.split_once('/') {
        Some((group, _)) => format!("{kind}.{group}/{name}"),
        None => format!("{kind}/{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object() -> DynamicObject {
        serde_json::from_value(json!({
            "apiVersion": "fairlead.dev/v1alpha1",
            "kind": "Cluster",
            "metadata": { "name": "aws-use1" },
            "spec": { "newerField": 7 },
        }))
        .unwrap()
    }

    #[test]
    fn one_object_is_a_list_too_and_loses_nothing() {
        let list = list(&[object()]).unwrap();
        assert_eq!(list["kind"], "List");
        assert_eq!(list["items"][0]["spec"]["newerField"], 7);
        assert_eq!(list["items"][0]["kind"], "Cluster");
    }

    #[test]
    fn names_have_kind_and_group() {
        assert_eq!(names(&[object()]), "cluster.fairlead.dev/aws-use1\n");
    }
}
