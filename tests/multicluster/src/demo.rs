//! `cargo xtask demo`: a hub and three clusters on this machine, 30 Jobs, and what became of them.
//!
//! Everything is real but the nodes: real API servers, the hub and the agents as processes with the rights that the
//! charts give them, enrolled with the command that `kubectl fairlead join` prints. The YAML is that of `examples/`.

mod board;
mod jobs;
mod options;
mod place;
mod proof;

use std::io::Write as _;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

pub use options::{Action, Options};

use crate::binaries::Binaries;
use crate::fleet::{Fleet, FleetOptions, SpokeOptions, Tenant};
use crate::rig::NodeSpec;
use board::Board;
use place::Place;

/// How long the Jobs may take in all. Half a minute is usual.
const BOUND: Duration = Duration::from_secs(180);

/// Pause between two looks at the hub.
const PAUSE: Duration = Duration::from_millis(400);

/// Does what was asked for. The answer is whether all is well: with `--check` it decides the exit code.
pub async fn run(action: Action) -> Result<bool> {
    match action {
        Action::Programs => programs().await,
        Action::Down => down(),
        Action::Run(options) => show(options).await,
    }
}

async fn programs() -> Result<bool> {
    let found = tokio::task::spawn_blocking(Binaries::find).await??;
    say(&format!("control plane: {:?}\nkwok: {}", found.control_plane, found.kwok.display()))?;
    Ok(true)
}

fn down() -> Result<bool> {
    let ended = Place::of_this_checkout().down()?;
    say(&if ended == 0 { "no demo is running".to_owned() } else { format!("ended {ended} processes") })?;
    Ok(true)
}

async fn show(options: Options) -> Result<bool> {
    let start = Instant::now();
    let place = Place::of_this_checkout();
    let _lock = place.make()?;
    say("starting a hub and three clusters (real API servers; their nodes are simulated) ...")?;
    let fleet = Fleet::start(fleet_options(&place)).await?;
    let result = play(&fleet, &place, start).await;
    match (options.keep, &result) {
        (true, _) => {
            place.leave(fleet)?;
            say("It runs on. End it with: cargo xtask demo down")?;
        }
        (false, Err(_)) => {
            fleet.rig().keep_folder();
            say(&format!("logs: {}/logs", fleet.rig().folder().display()))?;
        }
        (false, Ok(_)) => {
            drop(fleet);
            place.clear()?;
            say("Everything is ended; --keep would have left it running.")?;
        }
    }
    let proof = result?;
    if options.check {
        say(&proof.line())?;
    }
    Ok(!options.check || proof.holds())
}

/// Sets the queues up, submits the Jobs, shows them until they are done, and sums up.
async fn play(fleet: &Fleet, place: &Place, start: Instant) -> Result<proof::Proof> {
    for namespace in jobs::NAMESPACES {
        fleet.tenant(&Tenant::new(namespace)).await?;
    }
    place.publish(fleet)?;
    say(&format!(
        "up after {:.1} s; to look around from another terminal: {}",
        start.elapsed().as_secs_f32(),
        place.hint()
    ))?;
    jobs::set_up(fleet).await?;
    let began = Instant::now();
    let submitted = jobs::submit(fleet).await?;
    say(&format!("submitted {submitted} Jobs to two queues\n"))?;
    watch(fleet, submitted).await?;
    let proof = proof::Proof::read(fleet).await?;
    say(&format!("\n{}", proof.table()))?;
    say(&format!(
        "{submitted} Jobs in {:.1} s; {:.1} s in all",
        began.elapsed().as_secs_f32(),
        start.elapsed().as_secs_f32()
    ))?;
    say(&place.kubeconfigs(fleet))?;
    ensure!(proof.jobs() == submitted, "{} Jobs are on the hub, {submitted} were submitted", proof.jobs());
    Ok(proof)
}

/// Shows the table until every Job has ended.
async fn watch(fleet: &Fleet, jobs: usize) -> Result<()> {
    let mut board = Board::new();
    let start = Instant::now();
    loop {
        let rows = board::rows(fleet).await?;
        let ended = rows.iter().filter(|row| row.ended()).count();
        board.show(&rows, start.elapsed())?;
        if ended >= jobs {
            return Ok(());
        }
        if start.elapsed() > BOUND {
            bail!("{ended} of {jobs} Jobs have ended after {} s", BOUND.as_secs());
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Three clusters with different numbers of GPUs: 8 in small nodes, 16 in large ones, 4.
fn fleet_options(place: &Place) -> FleetOptions {
    let spoke = |name: &str, cloud: &str, nodes: u32, gpus: u32| {
        let spoke = SpokeOptions::new(name).direct().label("fairlead.dev/cloud", cloud);
        (1..=nodes).fold(spoke, |spoke, n| {
            spoke.node(NodeSpec::new(&format!("{name}-{n}"), "32", "128Gi").gpus(gpus))
        })
    };
    FleetOptions {
        spokes: vec![
            spoke("onprem-a", "onprem", 2, 4),
            spoke("aws-use1", "aws", 2, 8),
            spoke("gcp-euw4", "gcp", 1, 4),
        ],
        hub_nodes: Vec::new(),
        audit: true,
        root: Some(place.folder().to_owned()),
        ..FleetOptions::default()
    }
}

/// A line to whoever watches.
fn say(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).context("print")
}
