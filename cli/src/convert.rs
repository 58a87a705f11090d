//! `kubectl fairlead convert`: manifests of Kueue's older API version, rewritten to the stored one. It asks nobody.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use fairlead_api::convert;
use serde::Deserialize;
use serde_json::Value;

use crate::args::Convert;
use crate::failure::{Exit, Failure};
use crate::output::{Format, Out};

/// Prints every document of every file, converted where it has to be, in order.
pub(crate) fn run(options: &Convert, out: &mut Out) -> Result<(), Failure> {
    let mut documents = Vec::new();
    for file in &options.files {
        let name = file.display();
        let text = read(file).map_err(|failure| failure.during(format_args!("read {name}")))?;
        documents.extend(convert_all(&text).map_err(|failure| failure.during(name))?);
    }
    if out.format() == Format::Json {
        return documents.iter().try_for_each(|document| out.value(document));
    }
    let texts = documents.iter().map(serde_yaml::to_string).collect::<Result<Vec<_>, _>>()?;
    out.text(&texts.join("---\n"))
}

fn read(file: &Path) -> Result<String, Failure> {
    if file == Path::new("-") {
        let mut text = String::new();
        io::stdin().read_to_string(&mut text)?;
        return Ok(text);
    }
    Ok(fs::read_to_string(file)?)
}

/// The documents of a text, YAML or JSON, converted. Empty ones are left out.
fn convert_all(text: &str) -> Result<Vec<Value>, Failure> {
    let mut documents = Vec::new();
    for (number, document) in (1..).zip(serde_yaml::Deserializer::from_str(text)) {
        let at = |failure: Failure| failure.during(format_args!("document {number}"));
        let mut document = Value::deserialize(document).map_err(Failure::from).map_err(at)?;
        if document.is_null() {
            continue;
        }
        convert::convert(&mut document).map_err(|error| at(Failure::new(Exit::Error, error.to_string())))?;
        documents.push(document);
    }
    Ok(documents)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "
# a queue
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: team-a}
spec: {cohort: all, namespaceSelector: {}}
---
---
apiVersion: v1
kind: Namespace
metadata: {name: team-a}
";

    #[test]
    fn documents_are_converted_in_order_and_others_pass() {
        let documents = convert_all(OLD).unwrap();
        assert_eq!(documents.len(), 2, "{documents:?}");
        assert_eq!(documents[0]["apiVersion"], "kueue.x-k8s.io/v1beta2");
        assert_eq!(documents[0]["spec"]["cohortName"], "all");
        assert_eq!(documents[1]["kind"], "Namespace");
    }

    #[test]
    fn a_wrong_document_is_named_by_its_number() {
        let error = convert_all(&OLD.replace("cohort: all", "cohort: all, cohortName: b")).unwrap_err();
        assert!(error.to_string().starts_with("document 1: cohort and cohortName"), "{error}");
        assert!(convert_all("a: [").unwrap_err().to_string().starts_with("document 1: "));
    }
}
