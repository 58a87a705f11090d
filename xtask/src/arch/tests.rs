//! Each rule against a planted violation: a graph made by hand, or a small workspace on disk.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::graph::{Arrow, Graph, Krate};
use super::layout::{LAYOUT, Place, Purity};
use super::*;

fn krate(name: &str, folder: &str, arrows: &[(&str, bool)]) -> Krate {
    let arrows = arrows.iter().map(|(to, dev)| Arrow { to: (*to).to_owned(), dev: *dev }).collect();
    Krate { name: name.to_owned(), folder: folder.to_owned(), arrows }
}

/// The violations of one crate among the real ones, each as `rule: problem`.
fn planted(name: &str, folder: &str, arrows: &[(&str, bool)]) -> Vec<String> {
    let mut crates: Vec<Krate> = LAYOUT
        .iter()
        .filter(|place| place.name != name)
        .map(|place| krate(place.name, place.folder, &[]))
        .collect();
    crates.push(krate(name, folder, arrows));
    Graph { crates }
        .check(&LAYOUT)
        .iter()
        .map(|violation| {
            assert_eq!(violation.subject, name);
            format!("{}: {}", violation.rule, violation.problem)
        })
        .collect()
}

#[test]
fn a_pure_crate_may_use_pure_crates_and_test_with_proptest() {
    let arrows = [("fairlead-model", false), ("fairlead-fit", false), ("proptest", true)];
    assert_eq!(planted("fairlead-engine", "hub/engine", &arrows), Vec::<String>::new());
}

#[test]
fn a_pure_crate_may_use_nothing_from_outside() {
    for (package, dev) in
        [("tokio", false), ("serde", false), ("kube", true), ("proptest", false), ("serde_json", false)]
    {
        let found = planted("fairlead-engine", "hub/engine", &[(package, dev)]);
        assert_eq!(found, [format!("purity: is pure and may not depend on {package}")]);
    }
}

#[test]
fn an_arrow_that_is_not_in_the_layout_is_named() {
    for (name, folder, to) in [
        ("fairlead-model", "crates/model", "fairlead-fit"),
        ("fairlead-placement", "hub/placement", "fairlead-engine"),
        ("fairlead-session", "proto/session", "fairlead-link"),
        ("fairlead-engine", "hub/engine", "fairlead-api"),
        ("fairlead-controller", "hub/controller", "fairlead-gateway"),
        ("fairlead-controller", "hub/controller", "fairlead-link"),
        ("fairlead-agent", "spoke/agent", "fairlead-controller"),
        ("kubectl-fairlead", "cli", "fairlead-controller"),
    ] {
        for dev in [false, true] {
            let found = planted(name, folder, &[(to, dev)]);
            assert_eq!(found, [format!("arrow: may not depend on {to}: the arrow is not in the layout")]);
        }
    }
}

#[test]
fn only_the_tests_see_both_sides() {
    let all: Vec<_> = LAYOUT.iter().map(|place| (place.name, false)).collect();
    assert_eq!(planted("fairlead-multicluster", "tests/multicluster", &all), Vec::<String>::new());
    assert!(!planted("fairlead-hub", "hub", &[("fairlead-agent", false)]).is_empty());
}

#[test]
fn kubernetes_types_and_the_wire_format_have_their_crates() {
    for (name, folder, package) in [
        ("fairlead-pki", "crates/pki", "kube"),
        ("fairlead-link", "proto/link", "k8s-openapi"),
        ("fairlead-gateway", "hub/gateway", "tonic"),
        ("fairlead-agent", "spoke/agent", "prost"),
        ("fairlead-hub", "hub", "tonic-prost"),
        ("xtask", "xtask", "kube-client"),
    ] {
        let found = planted(name, folder, &[(package, false)]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with(&format!("boundary: may not depend on {package}: ")), "{found:?}");
    }
}

#[test]
fn a_crate_without_a_place_or_in_the_wrong_one_is_named() {
    assert!(planted("fairlead-new", "crates/new", &[])[0].starts_with("layout: has no place in the layout"));
    let found = planted("fairlead-fit", "hub/fit", &[]);
    assert_eq!(found, ["layout: lies in hub/fit, but belongs in crates/fit"]);
}

/// The layout itself: arrows lead to crates that exist, never in a circle, and never from pure to shell.
#[test]
fn the_layout_is_sound() {
    let mut settled: Vec<&str> = Vec::new();
    while settled.len() < LAYOUT.len() {
        let ready = |place: &&Place| {
            let uses = place.may_use.iter().all(|to| *to == layout::ANY || settled.contains(to));
            !settled.contains(&place.name) && uses
        };
        let next: Vec<&str> = LAYOUT.iter().filter(ready).map(|place| place.name).collect();
        assert!(!next.is_empty(), "a circle, or an arrow to nowhere, beyond {settled:?}");
        settled.extend(next);
    }
    let pure = |name: &str| LAYOUT.iter().any(|place| place.name == name && place.purity == Purity::Pure);
    for place in LAYOUT.iter().filter(|place| place.purity == Purity::Pure) {
        assert!(place.may_use.iter().all(|to| pure(to)), "{}", place.name);
    }
}

/// A workspace on disk with one pure crate, gone when dropped.
struct Planted(PathBuf);

const MANIFEST: &str = "[package]\nname = \"fairlead-model\"\nversion.workspace = true\nedition.workspace = true\n\
                        rust-version.workspace = true\nlicense.workspace = true\n\n[lints]\nworkspace = true\n";
const WORKSPACE: &str = "[workspace]\nresolver = \"3\"\nmembers = [\"crates/model\"]\n\n[workspace.package]\n\
                         version = \"0.1.0\"\nedition = \"2024\"\nrust-version = \"1.95\"\nlicense = \"Apache-2.0\"\n\n\
                         [workspace.lints.rust]\nmissing_docs = \"deny\"\n";
const THRESHOLDS: &str = "too-many-lines-threshold = 60\n";
const PURE: &str = "too-many-lines-threshold = 60\ndisallowed-types = [\n\"std::collections::HashMap\",\n\
                    \"std::collections::HashSet\",\n\"std::time::SystemTime\",\n\"std::time::Instant\",\n]\n";

impl Planted {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("fairlead-arch-{}-{number}", std::process::id()));
        let planted = Self(folder);
        planted.write("Cargo.toml", WORKSPACE);
        planted.write("clippy.toml", THRESHOLDS);
        planted.write("crates/model/Cargo.toml", MANIFEST);
        planted.write("crates/model/clippy.toml", PURE);
        planted.write("crates/model/src/lib.rs", "//! Words.\n");
        planted.write("ARCHITECTURE.md", "`crates/model` is the vocabulary.\n");
        planted.write("docs/invariants.md", "Nothing yet.\n");
        planted.write("docs/adr/README.md", "[1](0001-first.md)\n");
        planted.write("docs/adr/0001-first.md", "# First\n");
        let mut index = String::new();
        for reason in fairlead_model::Reason::ALL {
            let page = format!("# {reason}\n\n## What it means\n\n## How to see it\n\n## What to do\n");
            planted.write(&format!("docs/reasons/{reason}.md"), &page);
            index.extend(["[", reason.token(), "](", reason.token(), ".md)\n"]);
        }
        planted.write("docs/reasons/README.md", &index);
        planted
    }

    fn write(&self, path: &str, text: &str) -> &Self {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    fn remove(&self, path: &str) -> &Self {
        fs::remove_file(self.0.join(path)).unwrap();
        self
    }

    /// `rule subject` of each violation.
    fn found(&self) -> Vec<String> {
        let found = check(&self.0).unwrap();
        found.iter().map(|violation| format!("{} {}", violation.rule, violation.subject)).collect()
    }
}

impl Drop for Planted {
    fn drop(&mut self) {
        // Nothing can be done about a folder in the temporary folder that will not go.
        drop(fs::remove_dir_all(&self.0));
    }
}

const LIB: &str = "crates/model/src/lib.rs";

#[test]
fn a_sound_workspace_breaks_no_rule() {
    assert_eq!(Planted::new().found(), Vec::<String>::new());
}

#[test]
fn a_dependency_on_disk_is_seen_and_must_come_from_the_workspace() {
    let planted = Planted::new();
    planted.write("crates/model/Cargo.toml", &format!("{MANIFEST}\n[dependencies]\ntokio = \"1\"\n"));
    assert_eq!(planted.found(), ["inherit crates/model/Cargo.toml", "purity fairlead-model"]);
}

#[test]
fn what_a_crate_does_not_inherit_is_named() {
    for (from, to) in [
        ("\nversion.workspace = true", "\nversion = \"0.2.0\""),
        ("edition.workspace = true", "edition = \"2021\""),
        ("license.workspace = true", "license = \"MIT\""),
        ("[lints]\nworkspace = true", "[lints.rust]\nmissing_docs = \"allow\""),
    ] {
        let planted = Planted::new();
        planted.write("crates/model/Cargo.toml", &MANIFEST.replace(from, to));
        assert_eq!(planted.found(), ["inherit crates/model/Cargo.toml"], "{to}");
    }
}

#[test]
fn lint_settings_of_a_pure_crate_agree_with_the_root() {
    let planted = Planted::new();
    planted.write("crates/model/clippy.toml", &PURE.replace("60", "90"));
    assert_eq!(planted.found(), ["clippy crates/model/clippy.toml"]);
    planted.write("crates/model/clippy.toml", &PURE.replace("\"std::time::Instant\",\n", ""));
    assert_eq!(planted.found(), ["clippy crates/model/clippy.toml"]);
    planted.remove("crates/model/clippy.toml");
    assert_eq!(planted.found(), ["clippy crates/model/clippy.toml"]);
}

#[test]
fn sources_have_a_head_a_length_and_nothing_left_over() {
    let leftover = concat!("//! Words.\n// TO", "DO: more\n");
    for (text, rule) in [
        ("pub mod a;\n", "head"),
        (leftover, "leftover"),
        (&format!("//! Long.\n{}", "\n".repeat(700)), "length"),
        ("//! Clock.\nuse std::time::Duration;\n", "purity"),
        ("//! Lock.\nfn f() { let _ = std::sync::Mutex::new(1); }\n", "purity"),
    ] {
        let planted = Planted::new();
        planted.write(LIB, text);
        assert_eq!(planted.found(), [format!("{rule} {LIB}")]);
    }
}

#[test]
fn comments_and_tests_of_a_pure_crate_may_name_the_world() {
    let text = "//! Never std::fs.\n#[cfg(test)]\nmod tests { use std::env; }\n";
    assert_eq!(Planted::new().write(LIB, text).found(), Vec::<String>::new());
}

#[test]
fn file_names_say_what_is_inside() {
    let planted = Planted::new();
    planted.write("crates/model/src/a/mod.rs", "//! A.\n").write("crates/model/src/util.rs", "//! B.\n");
    assert_eq!(planted.found(), ["mod.rs crates/model/src/a/mod.rs", "name crates/model/src/util.rs"]);
}

#[test]
fn every_reason_has_a_page_and_every_page_a_reason() {
    let planted = Planted::new();
    planted.remove("docs/reasons/Fits.md").write("docs/reasons/Nonsense.md", "# Nonsense\n");
    planted.write("docs/reasons/NoRoom.md", "# NoRoom\n\n## What it means\n\n## What to do\n");
    let expected = [
        "reasons docs/reasons/Fits.md",
        "reasons docs/reasons/NoRoom.md",
        "reasons docs/reasons/Nonsense.md",
    ];
    // The index still lists the page that is gone, so its link is broken too.
    assert_eq!(planted.found(), [&["link docs/reasons/README.md"], expected.as_slice()].concat());
    planted.write("docs/reasons/README.md", "nothing\n");
    assert!(planted.found().contains(&"reasons docs/reasons/README.md".to_owned()));
}

#[test]
fn the_map_names_every_crate_and_decisions_are_indexed() {
    let planted = Planted::new();
    planted.write("ARCHITECTURE.md", "Nothing.\n").write("docs/adr/0001-second.md", "# Second\n");
    let expected = ["index docs/adr/0001-second.md", "index docs/adr/0001-second.md", "map ARCHITECTURE.md"];
    assert_eq!(planted.found(), expected);
    planted.remove("ARCHITECTURE.md").remove("docs/adr/README.md").remove("docs/adr/0001-second.md");
    assert_eq!(planted.found(), ["index docs/adr/README.md", "map ARCHITECTURE.md"]);
}

#[test]
fn the_tests_that_invariants_name_exist() {
    let planted = Planted::new();
    planted.write("docs/invariants.md", "`it_always_holds` and `std::fs` and `disallowed_types`\n");
    assert_eq!(planted.found(), ["invariants docs/invariants.md"]);
    planted.write(LIB, "//! Words.\n#[test]\nfn it_always_holds() {}\n");
    assert_eq!(planted.found(), Vec::<String>::new());
    planted.remove("docs/invariants.md");
    assert_eq!(planted.found(), ["invariants docs/invariants.md"]);
}

#[test]
fn links_lead_somewhere() {
    let planted = Planted::new();
    planted.write(
        "README.md",
        "[here](docs/adr/README.md#top) [there](gone.md) [web](https://example.org/x.md)\n",
    );
    assert_eq!(planted.found(), ["link README.md"]);
}

/// The real thing: this workspace.
#[test]
fn this_workspace_keeps_its_rules() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let found = check(root).unwrap();
    let lines: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert!(
        found.is_empty(),
        "
{}",
        lines.join(
            "
"
        )
    );
}
