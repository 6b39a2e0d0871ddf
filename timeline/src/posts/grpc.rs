//! PostService: from the wire to [`Posts`] and back.

use chassis::{error::InField as _, grpc::answer};
use proto::{
    freshet::post::v1::{
        self as v1, CreatePostRequest, CreatePostResponse, GetPostRequest, GetPostResponse, LikeRequest, LikeResponse,
        post_service_server::{PostService, PostServiceServer},
    },
    timestamp,
};
use store::ledger::Post;
use tonic::{Request, Response, Status};

use super::{Posts, key::IdempotencyKey, text::Text};

pub(crate) fn service(posts: Posts) -> PostServiceServer<Posts> {
    PostServiceServer::new(posts)
}

#[tonic::async_trait]
impl PostService for Posts {
    async fn create_post(&self, request: Request<CreatePostRequest>) -> Result<Response<CreatePostResponse>, Status> {
        answer(request, async |wire| {
            let author = wire.author_id.parse().in_field("author_id")?;
            let text = Text::new(wire.text).in_field("text")?;
            let key = wire.idempotency_key.map(IdempotencyKey::new).transpose().in_field("idempotency_key")?;
            Ok(CreatePostResponse { post: Some(to_wire(self.create(author, text, key).await?)) })
        })
        .await
    }

    async fn get_post(&self, request: Request<GetPostRequest>) -> Result<Response<GetPostResponse>, Status> {
        answer(request, async |wire| {
            let id = wire.post_id.parse().in_field("post_id")?;
            Ok(GetPostResponse { post: Some(to_wire(self.get(id).await?)) })
        })
        .await
    }

    async fn like(&self, request: Request<LikeRequest>) -> Result<Response<LikeResponse>, Status> {
        answer(request, async |wire| {
            let user = wire.user_id.parse().in_field("user_id")?;
            let post = wire.post_id.parse().in_field("post_id")?;
            Ok(LikeResponse { like_count: Posts::like(self, user, post).await?.count })
        })
        .await
    }
}

/// A post as callers get it.
pub(crate) fn to_wire(post: Post) -> v1::Post {
    v1::Post {
        id: post.id.to_string(),
        author_id: post.author.to_string(),
        text: post.text,
        created_at: Some(timestamp(post.created_at_ms)),
        like_count: post.likes.count,
    }
}
