//! What people do with posts beside writing them.

use chassis::Error;
use proto::freshet::post::v1::{
    BatchGetLikedRequest, BatchGetPostsRequest, CreatePostRequest, DeletePostRequest, GetPostRequest,
    ListLikersRequest, ListPostsByAuthorRequest, ListRevisionsRequest, Post, UnlikeRequest, UpdatePostRequest,
    Visibility,
};

use super::Person;

impl Person {
    /// Writes a post, if that is possible: all that is not said of it is left out.
    pub async fn writes(&self, request: CreatePostRequest) -> Result<Post, Error> {
        let request = CreatePostRequest { author_id: self.id.to_string(), ..request };
        Ok(self.timeline.create_post(request).await?.post.expect("a post"))
    }

    /// Writes a post for those whom it is meant for.
    pub async fn post_for(&self, visibility: Visibility, text: &str) -> Post {
        let visibility = visibility.into();
        let request = CreatePostRequest { text: text.into(), visibility, ..CreatePostRequest::default() };
        self.writes(request).await.expect("a post")
    }

    /// Edits a text, if that is possible.
    pub async fn edits(&self, post: &Post, text: &str) -> Result<Post, Error> {
        let request = UpdatePostRequest { text: text.into(), ..UpdatePostRequest::default() };
        self.updates(post, &["text"], request).await
    }

    /// Changes these fields of a post, if that is possible.
    pub async fn updates(&self, post: &Post, fields: &[&str], request: UpdatePostRequest) -> Result<Post, Error> {
        let paths = fields.iter().map(|field| (*field).to_owned()).collect();
        let request = UpdatePostRequest {
            author_id: self.id.to_string(),
            post_id: post.id.clone(),
            version: post.version,
            update_mask: Some(prost_types::FieldMask { paths }),
            ..request
        };
        Ok(self.timeline.update_post(request).await?.post.expect("a post"))
    }

    /// Deletes a post, if that is possible.
    pub async fn deletes(&self, post_id: &str) -> Result<(), Error> {
        let request = DeletePostRequest { author_id: self.id.to_string(), post_id: post_id.into() };
        self.timeline.delete_post(request).await.map(|_| ())
    }

    /// Looks at a post, if that is possible.
    pub async fn reads(&self, post_id: &str) -> Result<Post, Error> {
        let request = GetPostRequest { post_id: post_id.into(), viewer_id: None };
        Ok(self.timeline.get_post(request).await?.post.expect("a post"))
    }

    /// Looks at many posts: those that are there, and the others.
    pub async fn reads_all(&self, post_ids: &[&str]) -> Result<(Vec<Post>, Vec<String>), Error> {
        let post_ids = post_ids.iter().map(|id| (*id).to_owned()).collect();
        let answer = self.timeline.batch_get_posts(BatchGetPostsRequest { post_ids, viewer_id: None }).await?;
        Ok((answer.posts, answer.missing_ids))
    }

    /// Scrolls through what someone wrote, by pages of this many.
    pub async fn scrolls_posts_of(&self, author: &Self, limit: i32) -> Vec<String> {
        let (mut shown, mut max_id) = (Vec::new(), None);
        loop {
            let (author_id, limit) = (author.id.to_string(), Some(limit));
            let request = ListPostsByAuthorRequest { author_id, viewer_id: None, limit, max_id };
            let page = self.timeline.list_posts_by_author(request).await.expect("a page");
            shown.extend(page.posts.into_iter().map(|post| post.id));
            max_id = page.next_max_id;
            if max_id.is_none() {
                return shown;
            }
        }
    }

    /// What a post said before its edits, the latest first, by pages of one.
    pub async fn reads_history_of(&self, post: &Post) -> Result<Vec<String>, Error> {
        let (mut texts, mut cursor) = (Vec::new(), None);
        loop {
            let (post_id, limit) = (post.id.clone(), Some(1));
            let request = ListRevisionsRequest { post_id, viewer_id: None, limit, cursor };
            let page = self.timeline.list_revisions(request).await?;
            texts.extend(page.revisions.into_iter().map(|revision| revision.text));
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(texts);
            }
        }
    }

    /// Takes a like back and learns how many like the post now.
    pub async fn unlike(&self, post: &Post) -> i64 {
        let request = UnlikeRequest { user_id: self.id.to_string(), post_id: post.id.clone() };
        self.timeline.unlike(request).await.expect("no like").like_count
    }

    /// Who likes a post, by pages of one.
    pub async fn reads_likers_of(&self, post: &Post) -> Result<Vec<String>, Error> {
        let (mut likers, mut cursor) = (Vec::new(), None);
        loop {
            let (post_id, limit) = (post.id.clone(), Some(1));
            let page = self.timeline.list_likers(ListLikersRequest { post_id, viewer_id: None, limit, cursor }).await?;
            likers.extend(page.likers.into_iter().map(|liker| liker.user_id));
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(likers);
            }
        }
    }

    /// Which of these posts they like.
    pub async fn likes_of(&self, posts: &[&Post]) -> Vec<String> {
        let post_ids = posts.iter().map(|post| post.id.clone()).collect();
        let request = BatchGetLikedRequest { user_id: self.id.to_string(), post_ids };
        self.timeline.batch_get_liked(request).await.expect("an answer").liked_ids
    }
}
