//! End-to-end scenarios of one hub and three spokes, on one rig of real clusters.
//!
//! Each scenario works in a namespace of its own, and no scenario relies on another. Run one with
//! `cargo test -p fairlead-multicluster --test e2e -- NAME`; the programs must have been built with the feature
//! `crash-points` (`cargo xtask test` does).

#![expect(clippy::print_stdout, reason = "scenarios print what they measured")]

#[path = "e2e/bad_input.rs"]
mod bad_input;
#[path = "e2e/cli.rs"]
mod cli;
#[path = "e2e/crashes.rs"]
mod crashes;
#[path = "e2e/deletion.rs"]
mod deletion;
#[path = "e2e/join.rs"]
mod join;
#[path = "e2e/link.rs"]
mod link;
#[path = "e2e/main_job.rs"]
mod main_job;
#[path = "e2e/queues.rs"]
mod queues;
#[path = "e2e/writes.rs"]
mod writes;

use std::{process::ExitCode, time::Duration};

use anyhow::Result;
use fairlead_multicluster::{
    fleet::{Fleet, FleetOptions, SpokeOptions, apply_all},
    rig::NodeSpec,
    scenario,
    scenario::Scenario,
    work::{DISPATCH_CHECK, dispatch_check},
};

#[tokio::main]
async fn main() -> ExitCode {
    scenario::main(scenarios(), start, |fleet, failures| {
        if failures > 0 {
            fleet.rig().keep_folder();
        }
    })
    .await
}

/// The fleet that all scenarios share: `onprem-a` has most room, `gcp-euw4` least.
async fn start() -> Result<Fleet> {
    let gpu_nodes = |mut spoke: SpokeOptions, nodes: u32, gpus: u32| {
        for n in 1..=nodes {
            spoke = spoke.node(NodeSpec::new(&format!("node-{n}"), "32", "128Gi").gpus(gpus));
        }
        spoke
    };
    let spoke = |name: &str, cloud: &str| SpokeOptions::new(name).label("fairlead.dev/cloud", cloud);
    let fleet = Fleet::start(FleetOptions {
        spokes: vec![
            gpu_nodes(spoke("onprem-a", "onprem"), 3, 8),
            gpu_nodes(spoke("aws-use1", "aws"), 2, 8),
            gpu_nodes(spoke("gcp-euw4", "gcp"), 2, 4),
        ],
        hub_nodes: vec![NodeSpec::new("hub-1", "32", "128Gi")],
        audit: true,
        ..FleetOptions::default()
    })
    .await?;
    apply_all(fleet.hub_cluster()?, &dispatch_check(DISPATCH_CHECK, &[])).await?;
    Ok(fleet)
}

fn scenarios() -> Vec<Scenario<Fleet>> {
    vec![
        scenario!(main_job::sample_job_completes_on_one_spoke),
        scenario!(main_job::sixty_jobs_over_two_queues_and_three_clusters),
        scenario!(main_job::failed_job_is_mirrored),
        scenario!(main_job::job_older_than_its_federation_runs_on_a_spoke),
        scenario!(queues::home_queue_runs_in_place),
        scenario!(queues::statuses_count_what_waits_and_runs),
        scenario!(bad_input::unknown_local_queue),
        scenario!(bad_input::queue_of_a_missing_cluster_queue),
        scenario!(bad_input::larger_than_any_quota),
        scenario!(bad_input::larger_than_any_node),
        scenario!(bad_input::missing_namespace_takes_another_cluster),
        scenario!(bad_input::missing_secret_takes_another_cluster),
        scenario!(bad_input::missing_config_map_everywhere_waits_with_its_name),
        scenario!(bad_input::name_taken_by_a_foreign_job),
        scenario!(bad_input::local_queueing_on_a_spoke_is_refused_by_name),
        scenario!(cli::output_is_for_people_and_scripts),
        scenario!(cli::exit_codes_say_what_went_wrong),
        scenario!(join::tokens_that_are_refused).within(Duration::from_secs(240)),
        scenario!(deletion::copy_is_deleted_within_two_seconds),
        scenario!(deletion::deleted_while_the_link_is_down),
        scenario!(deletion::deleted_while_hub_and_link_are_down),
        scenario!(deletion::replaced_job_starts_after_the_old_one_stopped),
        scenario!(link::cut_for_twenty_seconds_changes_nothing),
        scenario!(link::hung_agent_delays_no_other_job),
        scenario!(crashes::hub_at_every_point).within(Duration::from_secs(400)),
        scenario!(crashes::agent_at_every_point).within(Duration::from_secs(400)),
        scenario!(writes::per_job_are_within_budget).within(Duration::from_secs(400)),
    ]
}
