//! The lane without client certificates.

use std::net::SocketAddr;
use std::sync::Arc;

use tonic::{Request, Response, Status};

use super::Gateway;
use crate::enrol::EnrolRequest;
use crate::wire::enrol_reply::Outcome;
use crate::wire::enrolment_server::Enrolment;
use crate::wire::{self, EnrolReply};

/// Passes a request on to the gateway.
pub(super) struct EnrolmentLane<G> {
    gateway: Arc<G>,
    from: SocketAddr,
}

impl<G> EnrolmentLane<G> {
    pub(super) const fn new(gateway: Arc<G>, from: SocketAddr) -> Self {
        Self { gateway, from }
    }
}

#[tonic::async_trait]
impl<G: Gateway> Enrolment for EnrolmentLane<G> {
    async fn enrol(&self, request: Request<wire::EnrolRequest>) -> Result<Response<EnrolReply>, Status> {
        let wire::EnrolRequest { cluster, token, csr } = request.into_inner();
        let request = EnrolRequest { cluster, token, csr_der: csr };
        let outcome = match self.gateway.enrol(request, self.from).await {
            Ok(enrolled) => Outcome::Enrolled(wire::Enrolled {
                certificate: enrolled.certificate_pem,
                ca: enrolled.ca_pem,
                cluster_uid: enrolled.cluster_uid,
                expires: enrolled.expires.as_secs(),
            }),
            Err(refusal) => Outcome::Refused(wire::Refused {
                reason: refusal.reason.token().to_owned(),
                detail: refusal.detail,
            }),
        };
        Ok(Response::new(EnrolReply { outcome: Some(outcome) }))
    }
}
