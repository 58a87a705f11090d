//! Races that the API server decides: several hubs make the CA at once, and many spokes redeem one token.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use fairlead_gateway::authority::{load_or_create, unix_now};
use fairlead_gateway::enrol::Enrolment;
use fairlead_link::{EnrolRefusal, EnrolRequest, Enrolled};
use fairlead_model::{ObjectKey, Reason};
use fairlead_pki::{Ca, JoinToken, JoinTokenRecord, SpokeKey};
use fairlead_runtime::Resource;
use fairlead_runtime::store::{Call, Op, Options, Outcome, Store};
use futures::future::join_all;
use kube::Client;
use serde_json::json;

use super::store::{done, execute};

const NAMESPACE: &str = "fairlead-system";
const SECRETS: Resource = Resource::new("", "v1", "secrets", true);
const CLUSTERS: Resource = Resource::new("fairlead.dev", "v1alpha1", "clusters", false);
/// How many do the same thing at once.
const CROWD: usize = 40;

pub(crate) async fn check(client: &Client) -> Result<()> {
    let store = Store::new(client.clone());
    let ca = one_ca_wins(&store).await?;
    let enrolment = Enrolment::new(store.clone(), NAMESPACE, Arc::new(ca), "fairlead.dev".parse()?);
    one_key_wins(&store, &enrolment).await?;
    one_key_gets_one_certificate(&store, &enrolment).await?;
    a_refusal_stores_nothing(&store, &enrolment).await
}

async fn one_ca_wins(store: &Store) -> Result<Ca> {
    let made = join_all((0..8).map(|_| load_or_create(store, NAMESPACE))).await;
    let made = made.into_iter().collect::<Result<Vec<_>, _>>()?;
    let pins: BTreeSet<String> = made.iter().map(|ca| ca.pin().to_string()).collect();
    ensure!(pins.len() == 1, "{pins:?}");
    made.into_iter().next().context("a CA")
}

/// Invites a cluster as the command line does; the token's number makes its secret.
async fn invite(store: &Store, name: &str, number: u8) -> Result<JoinToken> {
    let cluster = json!({"apiVersion": "fairlead.dev/v1alpha1", "kind": "Cluster", "metadata": {"name": name}, "spec": {}});
    let cluster = done(execute(store, &CLUSTERS, name, Op::Create(cluster)).await)?;
    let token = JoinToken::from_entropy(&[number; JoinToken::ENTROPY]);
    let record = JoinTokenRecord::new(&token, name, unix_now(), Duration::from_secs(900));
    let owner = json!({"apiVersion": "fairlead.dev/v1alpha1", "kind": "Cluster", "name": name, "uid": cluster.uid.as_str()});
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": &*key(&token).name, "namespace": NAMESPACE, "ownerReferences": [owner]},
        "data": {"record": BASE64_STANDARD.encode(serde_json::to_string(&record)?)},
    });
    done(on_secret(store, &token, Op::Create(secret)).await)?;
    Ok(token)
}

fn key(token: &JoinToken) -> ObjectKey {
    ObjectKey::new(NAMESPACE, format!("fairlead-join-{}", token.id()))
}

async fn on_secret(store: &Store, token: &JoinToken, op: Op) -> Outcome {
    let options = Options::default();
    store.execute(&Call { resource: &SECRETS, key: &key(token), op: &op, options: &options }).await
}

fn request(name: &str, token: &JoinToken, spoke: &SpokeKey) -> Result<EnrolRequest> {
    let token = token.expose().to_owned();
    Ok(EnrolRequest { cluster: name.to_owned(), token, csr_der: spoke.signing_request()? })
}

async fn crowd(enrolment: &Enrolment, requests: &[EnrolRequest]) -> Vec<Result<Enrolled, EnrolRefusal>> {
    join_all(requests.iter().map(|request| enrolment.enrol(request))).await
}

async fn one_key_wins(store: &Store, enrolment: &Enrolment) -> Result<()> {
    let token = invite(store, "race", 1).await?;
    let requests: Vec<_> =
        (0..CROWD).map(|_| request("race", &token, &SpokeKey::generate()?)).collect::<Result<_>>()?;
    let answers = crowd(enrolment, &requests).await;
    let won = answers.iter().filter(|answer| answer.is_ok()).count();
    let used = |answer: &&Result<Enrolled, EnrolRefusal>| matches!(answer, Err(why) if why.reason == Reason::TokenUsed);
    ensure!(won == 1, "{won} of {CROWD} keys got a certificate for one token");
    ensure!(answers.iter().filter(used).count() == CROWD - 1, "{answers:?}");
    Ok(())
}

async fn one_key_gets_one_certificate(store: &Store, enrolment: &Enrolment) -> Result<()> {
    let token = invite(store, "again", 2).await?;
    let spoke = SpokeKey::generate()?;
    let requests: Vec<_> = (0..CROWD).map(|_| request("again", &token, &spoke)).collect::<Result<_>>()?;
    let answers = crowd(enrolment, &requests).await.into_iter().collect::<Result<Vec<_>, _>>()?;
    let certificates: BTreeSet<&str> = answers.iter().map(|answer| answer.certificate_pem.as_str()).collect();
    ensure!(certificates.len() == 1, "{} certificates for one key and one token", certificates.len());
    Ok(())
}

async fn a_refusal_stores_nothing(store: &Store, enrolment: &Enrolment) -> Result<()> {
    let token = invite(store, "bound", 3).await?;
    let before = done(on_secret(store, &token, Op::Get).await)?;
    let spoke = SpokeKey::generate()?;
    let mut bad_request = request("bound", &token, &spoke)?;
    bad_request.csr_der.truncate(40);
    let mut mistyped = request("bound", &token, &spoke)?;
    mistyped.token.pop();
    let forged = JoinToken::from_entropy(&std::array::from_fn(|at| if at < 5 { 3 } else { 9 }));
    ensure!(forged.id() == token.id(), "the forged token must find the record");
    let table = [
        (request("other", &token, &spoke)?, Reason::TokenWrongName),
        (request("bound", &forged, &spoke)?, Reason::TokenUnknown),
        (mistyped, Reason::TokenMistyped),
        (bad_request, Reason::SigningRequestRefused),
    ];
    for (request, reason) in table {
        let refused = enrolment.enrol(&request).await;
        ensure!(matches!(&refused, Err(why) if why.reason == reason), "{reason}: {refused:?}");
    }
    let after = done(on_secret(store, &token, Op::Get).await)?;
    ensure!(after.version == before.version, "a refusal wrote the record");
    Ok(())
}
