//! RankingService: from the wire to [`HotPosts`] and back.

use std::sync::Arc;

use chassis::{error::InField as _, grpc::answer, page::PageLimit};
use proto::freshet::ranking::v1::{
    HotPost, ListHotPostsRequest, ListHotPostsResponse,
    ranking_service_server::{RankingService, RankingServiceServer},
};
use tonic::{Request, Response, Status};

use crate::{day::Day, hot::HotPosts};

pub(crate) fn service(hot: Arc<HotPosts>) -> RankingServiceServer<HotPosts> {
    RankingServiceServer::from_arc(hot)
}

#[tonic::async_trait]
impl RankingService for HotPosts {
    async fn list_hot_posts(
        &self,
        request: Request<ListHotPostsRequest>,
    ) -> Result<Response<ListHotPostsResponse>, Status> {
        answer(request, async |wire| {
            let day = wire.day.map(|day| Day::parse(&day)).transpose().in_field("day")?;
            let limit = PageLimit::new(wire.limit).in_field("limit")?;
            let hot = self.list(day, limit).await?;
            let posts = hot.into_iter().map(|hot| HotPost { post_id: hot.post.to_string(), score: hot.score });
            Ok(ListHotPostsResponse { posts: posts.collect() })
        })
        .await
    }
}
