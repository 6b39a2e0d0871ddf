//! PostService: from the wire to [`Posts`] and back.

use chassis::{
    Error,
    error::InField as _,
    grpc::{Call, answer, answer_call},
    page::PageLimit,
};
use proto::{
    PostId,
    freshet::post::v1::{
        self as v1, BatchGetLikedRequest, BatchGetLikedResponse, BatchGetPostsRequest, BatchGetPostsResponse,
        CreatePostRequest, CreatePostResponse, DeletePostRequest, DeletePostResponse, GetPostRequest, GetPostResponse,
        LikeRequest, LikeResponse, ListLikersRequest, ListLikersResponse, ListPostsByAuthorRequest,
        ListPostsByAuthorResponse, ListRevisionsRequest, ListRevisionsResponse, UnlikeRequest, UnlikeResponse,
        UpdatePostRequest, UpdatePostResponse,
        post_service_server::{PostService, PostServiceServer},
    },
    timestamp,
};
use store::ledger::{Place, Post, Revision, Viewer};
use tonic::{Request, Response, Status};

use super::{
    BATCH_POSTS_MAX, PostPage, Posts,
    draft::{self, Draft},
    entities::entities,
    events::visibility,
    key::IdempotencyKey,
};
use crate::sight::{Quote, Seen, viewer};

const KEY_METADATA: &str = "idempotency-key";

pub(crate) fn service(posts: Posts) -> PostServiceServer<Posts> {
    PostServiceServer::new(posts)
}

#[tonic::async_trait]
impl PostService for Posts {
    async fn create_post(&self, request: Request<CreatePostRequest>) -> Result<Response<CreatePostResponse>, Status> {
        answer_call(request, async |call, wire| {
            let author = wire.author_id.parse().in_field("author_id")?;
            let key = key(&call, wire.idempotency_key.as_deref())?;
            let draft = Draft::new(wire, self.config.text_characters_max)?;
            let key = key.map(|key| draft.keyed(key));
            Ok(CreatePostResponse { post: Some(to_wire(self.create(author, draft, key).await?)) })
        })
        .await
    }

    async fn get_post(&self, request: Request<GetPostRequest>) -> Result<Response<GetPostResponse>, Status> {
        answer_call(request, async |call, wire| {
            let id = wire.post_id.parse().in_field("post_id")?;
            let viewer = looks(&call, wire.viewer_id.as_deref())?;
            Ok(GetPostResponse { post: Some(to_wire(self.get(viewer, id).await?)) })
        })
        .await
    }

    async fn batch_get_posts(
        &self,
        request: Request<BatchGetPostsRequest>,
    ) -> Result<Response<BatchGetPostsResponse>, Status> {
        answer_call(request, async |call, wire| {
            let ids = post_ids(&wire.post_ids)?;
            let (posts, missing) = self.batch(looks(&call, wire.viewer_id.as_deref())?, &ids).await?;
            let missing_ids = missing.iter().map(ToString::to_string).collect();
            Ok(BatchGetPostsResponse { posts: posts.into_iter().map(to_wire).collect(), missing_ids })
        })
        .await
    }

    async fn list_posts_by_author(
        &self,
        request: Request<ListPostsByAuthorRequest>,
    ) -> Result<Response<ListPostsByAuthorResponse>, Status> {
        answer_call(request, async |call, wire| {
            let author = wire.author_id.parse().in_field("author_id")?;
            let limit = PageLimit::new(wire.limit).in_field("limit")?;
            let below = wire.max_id.map(|id| id.parse()).transpose().in_field("max_id")?;
            let viewer = looks(&call, wire.viewer_id.as_deref())?;
            let PostPage { posts, next } = self.by_author(viewer, author, below, limit).await?;
            let next_max_id = next.map(|id| id.to_string());
            Ok(ListPostsByAuthorResponse { posts: posts.into_iter().map(to_wire).collect(), next_max_id })
        })
        .await
    }

    async fn update_post(&self, request: Request<UpdatePostRequest>) -> Result<Response<UpdatePostResponse>, Status> {
        answer(request, async |wire| {
            let author = wire.author_id.parse().in_field("author_id")?;
            let id = wire.post_id.parse().in_field("post_id")?;
            let change = draft::change(&wire, self.config.text_characters_max)?;
            if wire.version <= 0 {
                return Err(Error::invalid("version", "must be the version that was read, a positive number"));
            }
            let post = self.update(author, id, wire.version, change).await?;
            Ok(UpdatePostResponse { post: Some(to_wire(post)) })
        })
        .await
    }

    async fn list_revisions(
        &self,
        request: Request<ListRevisionsRequest>,
    ) -> Result<Response<ListRevisionsResponse>, Status> {
        answer_call(request, async |call, wire| {
            let id = wire.post_id.parse().in_field("post_id")?;
            let limit = PageLimit::new(wire.limit).in_field("limit")?;
            let below = wire.cursor.as_deref().map(version_cursor).transpose()?;
            let viewer = looks(&call, wire.viewer_id.as_deref())?;
            let (revisions, next) = self.revisions(viewer, id, below, limit).await?;
            let next_cursor = next.map(|version| format!("{version:016x}"));
            Ok(ListRevisionsResponse { revisions: revisions.into_iter().map(revision).collect(), next_cursor })
        })
        .await
    }

    async fn delete_post(&self, request: Request<DeletePostRequest>) -> Result<Response<DeletePostResponse>, Status> {
        answer(request, async |wire| {
            let author = wire.author_id.parse().in_field("author_id")?;
            self.delete(author, wire.post_id.parse().in_field("post_id")?).await?;
            Ok(DeletePostResponse {})
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

    async fn unlike(&self, request: Request<UnlikeRequest>) -> Result<Response<UnlikeResponse>, Status> {
        answer(request, async |wire| {
            let user = wire.user_id.parse().in_field("user_id")?;
            let post = wire.post_id.parse().in_field("post_id")?;
            Ok(UnlikeResponse { like_count: Posts::unlike(self, user, post).await?.count })
        })
        .await
    }

    async fn list_likers(&self, request: Request<ListLikersRequest>) -> Result<Response<ListLikersResponse>, Status> {
        answer_call(request, async |call, wire| {
            let id = wire.post_id.parse().in_field("post_id")?;
            let limit = PageLimit::new(wire.limit).in_field("limit")?;
            let cursor = wire.cursor.as_deref().map(str::parse).transpose().in_field("cursor")?;
            let viewer = looks(&call, wire.viewer_id.as_deref())?;
            let (likers, next) = self.likers(viewer, id, limit, cursor).await?;
            let next_cursor = next.map(|next| next.to_string());
            Ok(ListLikersResponse { likers: likers.into_iter().map(liker).collect(), next_cursor })
        })
        .await
    }

    async fn batch_get_liked(
        &self,
        request: Request<BatchGetLikedRequest>,
    ) -> Result<Response<BatchGetLikedResponse>, Status> {
        answer(request, async |wire| {
            let user = wire.user_id.parse().in_field("user_id")?;
            let liked = self.liked(user, &post_ids(&wire.post_ids)?).await?;
            Ok(BatchGetLikedResponse { liked_ids: liked.iter().map(ToString::to_string).collect() })
        })
        .await
    }
}

/// Whose eyes a read is for.
fn looks(call: &Call, viewer_id: Option<&str>) -> Result<Viewer, Error> {
    Ok(viewer(call.caller.viewer(viewer_id)?))
}

/// The key of a call, which its field or its metadata names.
fn key(call: &Call, field: Option<&str>) -> Result<Option<IdempotencyKey>, Error> {
    let parse = |key: &str| IdempotencyKey::new(key.to_owned());
    let field = field.map(parse).transpose().in_field("idempotency_key")?;
    let metadata = call.metadata(KEY_METADATA)?.map(parse).transpose().in_field(KEY_METADATA)?;
    match (field, metadata) {
        (Some(field), Some(metadata)) if field != metadata => Err(Error::invalid(
            "idempotency_key",
            "must be the same as the metadata idempotency-key, where both are given",
        )),
        (field, metadata) => Ok(field.or(metadata)),
    }
}

fn post_ids(given: &[String]) -> Result<Vec<PostId>, Error> {
    if !(1..=BATCH_POSTS_MAX).contains(&given.len()) {
        let rule = format!("must be 1 to {BATCH_POSTS_MAX}, and are {}", given.len());
        return Err(Error::invalid("post_ids", rule));
    }
    given.iter().map(|id| id.parse()).collect::<Result<_, _>>().in_field("post_ids")
}

/// The cursor of a history: a version, in a form that says nothing to callers.
fn version_cursor(text: &str) -> Result<i64, Error> {
    let plain = text.len() == 16 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let version = i64::from_str_radix(text, 16).ok().filter(|_| plain);
    version.ok_or_else(|| Error::invalid("cursor", crate::cursor::InvalidCursor))
}

fn revision(revision: Revision) -> v1::Revision {
    let content = revision.content;
    v1::Revision {
        version: revision.version,
        since: Some(timestamp(revision.since_ms)),
        text: content.text,
        title: content.title,
        language: content.language,
        sensitive: content.sensitive,
        attachment_ids: content.attachments.iter().map(ToString::to_string).collect(),
    }
}

/// A like's version is the microsecond at which it was given, or just above it.
fn liker(place: Place) -> v1::Liker {
    v1::Liker { user_id: place.user.to_string(), since: Some(timestamp(place.version.div_euclid(1000))) }
}

/// A post as callers get it.
pub(crate) fn to_wire(seen: Seen) -> v1::Post {
    let quote = match seen.quote {
        Quote::None => None,
        Quote::Unavailable => Some(v1::Quote { post: None, unavailable: true }),
        Quote::Of(post) => Some(v1::Quote { post: Some(Box::new(without_quote(*post))), unavailable: false }),
    };
    v1::Post { quote: quote.map(Box::new), ..without_quote(seen.post) }
}

fn without_quote(post: Post) -> v1::Post {
    let content = post.content;
    v1::Post {
        id: post.id.to_string(),
        author_id: post.author.to_string(),
        entities: entities(&content.text),
        text: content.text,
        created_at: Some(timestamp(post.created_at_ms)),
        like_count: post.likes.count,
        visibility: visibility(post.visibility).into(),
        title: content.title,
        language: content.language,
        sensitive: content.sensitive,
        quote: None,
        attachment_ids: content.attachments.iter().map(ToString::to_string).collect(),
        edited_at: post.edited_at_ms.map(timestamp),
        version: post.version,
    }
}
