//! The lease and the term on a real API server: at most one leads, and each has a term of its own.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use fairlead_controller::shell::{Lead, lead};
use fairlead_model::ObjectKey;
use fairlead_runtime::lease::{self, Claim, Lost};
use fairlead_runtime::store::{Call, Op, Options, Store};
use fairlead_runtime::{Resource, clock};
use futures::future::join_all;
use kube::Client;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::store::done;

const LEASES: Resource = Resource::new("coordination.k8s.io", "v1", "leases", true);

pub(crate) async fn check(client: &Client) -> Result<()> {
    one_of_many_holds_it_and_a_release_hands_it_on(client).await?;
    a_lapsed_lease_is_taken_over_after_its_duration(client).await?;
    a_holder_that_is_ousted_stops(client).await?;
    every_leader_has_a_term_of_its_own(client).await
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new("fairlead-system", name)
}

/// Many candidates, each of which releases the lease as soon as it has it: all of them come to hold it, one at a
/// time.
async fn one_of_many_holds_it_and_a_release_hands_it_on(client: &Client) -> Result<()> {
    let held = tokio::sync::Mutex::new(());
    let tries = (0..5).map(|number| {
        let held = &held;
        async move {
            let mut claim = Claim::new(client.clone(), key("race"), &format!("candidate-{number}"))?;
            claim.acquire(&CancellationToken::new()).await.context("cancelled")?;
            let alone = held.try_lock().context("two hold the lease at once")?;
            ensure!(claim.tenure().remaining_ms(clock::now().mono) > lease::COMMIT_MARGIN_MS);
            tokio::time::sleep(Duration::from_millis(20)).await;
            drop(alone);
            claim.release().await;
            Ok(())
        }
    });
    join_all(tries).await.into_iter().collect()
}

async fn a_lapsed_lease_is_taken_over_after_its_duration(client: &Client) -> Result<()> {
    let cancel = CancellationToken::new();
    let mut first = Claim::new(client.clone(), key("lapse"), "first")?;
    first.acquire(&cancel).await.context("cancelled")?;
    let begin = Instant::now();
    let mut second = Claim::new(client.clone(), key("lapse"), "second")?;
    let acquired = second.acquire(&cancel).await.context("cancelled")?;
    ensure!(
        acquired.taken_over && begin.elapsed() >= Duration::from_secs(10),
        "{acquired:?} {:?}",
        begin.elapsed()
    );
    ensure!(first.tenure().remaining_ms(clock::now().mono) < 0, "the first still believes in its lease");
    Ok(())
}

async fn a_holder_that_is_ousted_stops(client: &Client) -> Result<()> {
    let cancel = CancellationToken::new();
    let mut claim = Claim::new(client.clone(), key("ousted"), "holder")?;
    claim.acquire(&cancel).await.context("cancelled")?;
    let usurp = Op::Patch(json!({"spec": {"holderIdentity": "usurper"}}));
    let (store, options) = (Store::new(client.clone()), Options::default());
    let call = Call { resource: &LEASES, key: &key("ousted"), op: &usurp, options: &options };
    done(store.execute(&call).await)?;
    let lost = claim.keep(&cancel).await;
    ensure!(lost == Err(Lost::Taken("usurper".to_owned())), "{lost:?}");
    ensure!(claim.tenure().remaining_ms(clock::now().mono) < 0);
    Ok(())
}

async fn every_leader_has_a_term_of_its_own(client: &Client) -> Result<()> {
    let cancel = CancellationToken::new();
    // Leases of their own, so that all raise the one HubState at the same time.
    let names: Vec<String> = (0..3).map(|number| format!("term-{number}")).collect();
    let leads = join_all(names.iter().map(|name| lead(client.clone(), key(name), name, &cancel))).await;
    let mut terms = BTreeSet::new();
    for led in leads {
        let Lead { leadership, claim } = led?.context("cancelled")?;
        terms.insert((leadership.incarnation.0, leadership.term.0));
        claim.release().await;
    }
    ensure!(terms.len() == 3, "terms were given twice: {terms:?}");
    let Lead { leadership, .. } =
        lead(client.clone(), key("later"), "later", &cancel).await?.context("cancelled")?;
    ensure!(terms.iter().all(|(_, term)| *term < leadership.term.0), "{terms:?} {leadership:?}");
    Ok(())
}
