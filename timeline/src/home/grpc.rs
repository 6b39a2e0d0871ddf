//! TimelineService: from the wire to [`Homes`] and back.

use chassis::{error::InField as _, grpc::answer, page::PageLimit};
use proto::freshet::timeline::v1::{
    Entry, GetHomeTimelineRequest, GetHomeTimelineResponse,
    timeline_service_server::{TimelineService, TimelineServiceServer},
};
use tonic::{Request, Response, Status};

use super::{HomePage, Homes};
use crate::posts::grpc::to_wire;

pub(crate) fn service(homes: Homes) -> TimelineServiceServer<Homes> {
    TimelineServiceServer::new(homes)
}

#[tonic::async_trait]
impl TimelineService for Homes {
    async fn get_home_timeline(
        &self,
        request: Request<GetHomeTimelineRequest>,
    ) -> Result<Response<GetHomeTimelineResponse>, Status> {
        answer(request, async |wire| {
            let reader = wire.reader_id.parse().in_field("reader_id")?;
            let limit = PageLimit::new(wire.limit).in_field("limit")?;
            let below = wire.max_id.map(|id| id.parse()).transpose().in_field("max_id")?;
            let HomePage { posts, next } = self.page(reader, below, limit).await?;
            let entries =
                posts.into_iter().map(|seen| Entry { id: seen.post.id.to_string(), post: Some(to_wire(seen)) });
            Ok(GetHomeTimelineResponse { entries: entries.collect(), next_max_id: next.map(|id| id.to_string()) })
        })
        .await
    }
}
