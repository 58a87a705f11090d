//! Who asks, and whether they may: both are the API server's word, asked each time.

use std::collections::BTreeMap;

use axum::http::{HeaderMap, header};
use fairlead_model::ObjectKey;
use fairlead_runtime::Resource;
use fairlead_runtime::store::Store;
use serde_json::{Value, json};

/// A user of the API server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    /// Their name.
    pub user: String,
    /// Their groups.
    pub groups: Vec<String>,
    /// What else their authenticator says of them.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// What somebody wants to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access<'a> {
    /// A path.
    Path(&'a str),
    /// A part of an object.
    Part {
        /// The API group.
        group: &'a str,
        /// Its version.
        version: &'a str,
        /// The resource, in the plural.
        resource: &'a str,
        /// The part.
        subresource: &'a str,
        /// Namespace and name; the namespace is empty for what has none.
        key: &'a ObjectKey,
    },
}

/// The API server could not say.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the API server cannot be asked who may do what: {0}")]
pub struct Unanswered(pub String);

/// Knows callers and their rights.
pub trait Reviews: Clone + Send + Sync + 'static {
    /// Whose token this is; nobody's when it is not valid.
    fn token(&self, token: &str) -> impl Future<Output = Result<Option<Caller>, Unanswered>> + Send;

    /// Whether a caller may read this.
    fn allows(
        &self,
        caller: &Caller,
        access: &Access<'_>,
    ) -> impl Future<Output = Result<bool, Unanswered>> + Send;
}

/// The token of a request, if it has one.
pub fn bearer(headers: &HeaderMap) -> Option<&str> {
    let text = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = text.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim()).filter(|token| !token.is_empty())
}

const TOKENS: Resource = Resource::new("authentication.k8s.io", "v1", "tokenreviews", false);
const RIGHTS: Resource = Resource::new("authorization.k8s.io", "v1", "subjectaccessreviews", false);

/// Asks the API server.
#[derive(Clone, Debug)]
pub struct ApiServer(pub Store);

impl Reviews for ApiServer {
    async fn token(&self, token: &str) -> Result<Option<Caller>, Unanswered> {
        let review = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token},
        });
        Ok(caller_of(&self.0.review(&TOKENS, review).await.map_err(Unanswered)?))
    }

    async fn allows(&self, caller: &Caller, access: &Access<'_>) -> Result<bool, Unanswered> {
        let review = access_review(caller, access);
        let answer = self.0.review(&RIGHTS, review).await.map_err(Unanswered)?;
        Ok(answer.pointer("/status/allowed").and_then(Value::as_bool).unwrap_or(false))
    }
}

/// Who a reviewed token belongs to.
fn caller_of(review: &Value) -> Option<Caller> {
    let status = review.get("status")?;
    status.get("authenticated").and_then(Value::as_bool).filter(|valid| *valid)?;
    let user = status.get("user")?;
    let texts = |list: &Value| -> Vec<String> {
        list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let extra = user.get("extra").and_then(Value::as_object).into_iter().flatten();
    Some(Caller {
        user: user.get("username")?.as_str()?.to_owned(),
        groups: user.get("groups").map(texts).unwrap_or_default(),
        extra: extra.map(|(key, values)| (key.clone(), texts(values))).collect(),
    })
}

fn access_review(caller: &Caller, access: &Access<'_>) -> Value {
    let mut spec = json!({"user": caller.user, "groups": caller.groups, "extra": caller.extra});
    match access {
        Access::Path(path) => spec["nonResourceAttributes"] = json!({"path": path, "verb": "get"}),
        Access::Part { group, version, resource, subresource, key } => {
            spec["resourceAttributes"] = json!({
                "group": group, "version": version, "resource": resource, "subresource": subresource,
                "namespace": &*key.namespace, "name": &*key.name, "verb": "get",
            });
        }
    }
    json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec})
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn tokens_are_read_from_the_header_and_nothing_else_is() {
        let with = |text: &'static str| {
            let headers = HeaderMap::from_iter([(header::AUTHORIZATION, HeaderValue::from_static(text))]);
            bearer(&headers).map(str::to_owned)
        };
        assert_eq!(with("Bearer abc"), Some("abc".to_owned()));
        assert_eq!(with("bearer  abc "), Some("abc".to_owned()));
        for wrong in ["Basic abc", "Bearer", "Bearer ", "abc"] {
            assert_eq!(with(wrong), None, "{wrong}");
        }
        assert_eq!(bearer(&HeaderMap::new()), None);
    }

    #[test]
    fn only_an_authenticated_token_has_an_owner() {
        let user = json!({"username": "ada", "groups": ["team"], "extra": {"scopes": ["read"]}});
        let review = |valid: Value| json!({"status": {"authenticated": valid, "user": user}});
        let ada = caller_of(&review(json!(true))).unwrap();
        assert_eq!((ada.user.as_str(), ada.groups.as_slice()), ("ada", ["team".to_owned()].as_slice()));
        assert_eq!(ada.extra["scopes"], ["read"]);
        for no in [json!(false), json!(null), json!("true")] {
            assert_eq!(caller_of(&review(no)), None);
        }
        assert_eq!(caller_of(&json!({})), None);
    }

    #[test]
    fn a_review_asks_for_exactly_what_is_wanted() {
        let caller = Caller { user: "ada".into(), groups: vec!["team".into()], ..Caller::default() };
        let key = ObjectKey::new("ns", "q");
        let access = Access::Part {
            group: "g",
            version: "v1",
            resource: "localqueues",
            subresource: "pendingworkloads",
            key: &key,
        };
        let review = access_review(&caller, &access);
        assert_eq!(
            review["spec"]["resourceAttributes"],
            json!({"group": "g", "version": "v1", "resource": "localqueues", "subresource": "pendingworkloads",
                   "namespace": "ns", "name": "q", "verb": "get"})
        );
        assert_eq!(review["spec"]["user"], "ada");
        let path = access_review(&caller, &Access::Path("/metrics"));
        assert_eq!(path["spec"]["nonResourceAttributes"], json!({"path": "/metrics", "verb": "get"}));
    }
}
