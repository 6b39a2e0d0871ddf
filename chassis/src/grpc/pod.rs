//! PodService: how a pod is.

use proto::freshet::pod::v1::{
    GetHealthRequest, GetHealthResponse, Trouble,
    pod_service_server::{PodService, PodServiceServer},
};
use tonic::{Request, Response, Status};

use super::answer;
use crate::Pod;

pub(super) fn service(pod: &Pod) -> PodServiceServer<Pod> {
    PodServiceServer::new(pod.clone())
}

#[tonic::async_trait]
impl PodService for Pod {
    async fn get_health(&self, request: Request<GetHealthRequest>) -> Result<Response<GetHealthResponse>, Status> {
        answer(request, async |_| {
            let troubles = self.health.troubles().into_iter().map(|(part, cause)| Trouble { part, cause });
            Ok(GetHealthResponse {
                pod: self.name().to_owned(),
                ready: self.health.is_ready(),
                troubles: troubles.collect(),
            })
        })
        .await
    }
}
