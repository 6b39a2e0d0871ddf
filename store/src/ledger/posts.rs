//! What people write, and who likes it.

use async_trait::async_trait;
use proto::{AttachmentId, PostId, UserId};

use super::{Event, Place, Written};
use crate::{Error, archive::ArchivedPost};

/// Who is to see a post, as its author wants it; each sees less than the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Visibility {
    /// Everybody; while the account is private, its followers.
    #[default]
    Public,
    /// Those who follow the author.
    Followers,
    /// The author alone.
    OnlyMe,
}

impl Visibility {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Public, Self::Followers, Self::OnlyMe];

    /// Its number in the tables.
    pub(super) const fn number(self) -> i64 {
        match self {
            Self::Public => 0,
            Self::Followers => 1,
            Self::OnlyMe => 2,
        }
    }
}

/// Who looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Viewer {
    /// Someone with an account.
    Person(UserId),
    /// Anybody else: sees what is public.
    Stranger,
}

/// What a post says: all that can be edited of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content {
    /// The text.
    pub text: String,
    /// The title.
    pub title: Option<String>,
    /// The language of the text.
    pub language: Option<String>,
    /// Whether it is to be shown only to those who ask for it.
    pub sensitive: bool,
    /// What is attached to it, in order.
    pub attachments: Vec<AttachmentId>,
}

impl Content {
    /// Only a text.
    #[must_use]
    pub fn of_text(text: &str) -> Self {
        Self { text: text.to_owned(), ..Self::default() }
    }
}

/// A post's row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Post {
    /// Which.
    pub id: PostId,
    /// Who wrote it.
    pub author: UserId,
    /// What it says.
    pub content: Content,
    /// Who is to see it.
    pub visibility: Visibility,
    /// What it quotes.
    pub quote_of: Option<PostId>,
    /// When it was written.
    pub created_at_ms: i64,
    /// When it was edited last.
    pub edited_at_ms: Option<i64>,
    /// Of what its author wrote: the higher one is the newer truth.
    pub version: i64,
    /// How many like it.
    pub likes: Likes,
}

/// A key under which a post is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostKey {
    /// What the author calls the post.
    pub key: String,
    /// A hash of all that the call says: another call under the same key is a mistake.
    pub fingerprint: Vec<u8>,
}

/// A post that is being written.
#[derive(Clone, Debug)]
pub struct NewPost {
    /// Which.
    pub id: PostId,
    /// Who writes it.
    pub author: UserId,
    /// What it says.
    pub content: Content,
    /// Who is to see it.
    pub visibility: Visibility,
    /// What it quotes.
    pub quote_of: Option<PostId>,
    /// By what the author knows it, should the call be made again.
    pub key: Option<PostKey>,
}

impl NewPost {
    /// A public post that says only this.
    #[must_use]
    pub fn of_text(id: PostId, author: UserId, text: &str) -> Self {
        let (content, visibility) = (Content::of_text(text), Visibility::Public);
        Self { id, author, content, visibility, quote_of: None, key: None }
    }
}

/// What is to change of a post; `None` stays as it is.
#[derive(Clone, Debug, Default)]
pub struct PostChange {
    /// The text.
    pub text: Option<String>,
    /// The title; `Some(None)` takes it away.
    pub title: Option<Option<String>>,
    /// The language; `Some(None)` takes it away.
    pub language: Option<Option<String>>,
    /// Whether it is sensitive.
    pub sensitive: Option<bool>,
    /// What is attached.
    pub attachments: Option<Vec<AttachmentId>>,
    /// Who is to see it; only less than before.
    pub visibility: Option<Visibility>,
}

impl PostChange {
    /// What a post becomes by it.
    pub(super) fn applied_to(&self, post: &Post) -> Post {
        let (mut after, wanted) = (post.clone(), self.clone());
        let content = &mut after.content;
        content.text = wanted.text.unwrap_or_else(|| content.text.clone());
        content.title = wanted.title.unwrap_or_else(|| content.title.clone());
        content.language = wanted.language.unwrap_or_else(|| content.language.clone());
        content.sensitive = wanted.sensitive.unwrap_or(content.sensitive);
        content.attachments = wanted.attachments.unwrap_or_else(|| content.attachments.clone());
        after.visibility = wanted.visibility.unwrap_or(after.visibility);
        after
    }
}

/// A post that is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deleted {
    /// Which.
    pub id: PostId,
    /// Who wrote it.
    pub author: UserId,
    /// The last that the post ever has.
    pub version: i64,
    /// Whether this call deleted it.
    pub changed: bool,
}

/// What a post said until it was edited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revision {
    /// The version that it had then.
    pub version: i64,
    /// Since when it said so.
    pub since_ms: i64,
    /// What.
    pub content: Content,
}

/// How many people like a post, and the version of that number: of two, the higher version is the newer truth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Likes {
    /// How many.
    pub count: i64,
    /// Since when, as a version.
    pub version: i64,
}

/// Posts and their likes. What a viewer may see is decided here, by one rule for all reads
/// (`store/src/ledger/sql/sight.rs`): a post that is deleted, or whose author is, is there for nobody.
#[async_trait]
pub trait Posts: Send + Sync {
    /// Writes a post. When its author has used its key before, nothing is written and the answer is the post of that time as
    /// it is now; [`Error::KeyTaken`] when that call said something else. [`Error::QuoteNotFound`] when the author cannot see
    /// what it quotes, [`Error::AttachmentNotFound`] when something attached is not the author's own or not ready.
    async fn create(&self, post: NewPost, event: Event<'_, Written>) -> Result<Post, Error>;

    /// Forgets keys that were used longer ago than this, so many at most. Tells how many they were.
    async fn forget_keys(&self, older_than: std::time::Duration, limit: u32) -> Result<u64, Error>;

    /// Changes a post of this author that has this version; [`Error::VersionMismatch`] when it has another one. Where there is
    /// nothing to change the answer is the post as it is, whatever its version.
    async fn update(
        &self,
        (author, post): (UserId, PostId),
        version: i64,
        change: PostChange,
        event: Event<'_, Post>,
    ) -> Result<Post, Error>;

    /// Deletes a post of this author, for good: its words are gone, and it is in nobody's sight. Again, it tells the same.
    async fn delete(&self, author: UserId, post: PostId, event: Event<'_, Deleted>) -> Result<Deleted, Error>;

    /// Those posts with these ids that the viewer may see, in no order.
    async fn batch(&self, viewer: Viewer, ids: &[PostId]) -> Result<Vec<Post>, Error>;

    /// Those posts of an author that the viewer may see, with ids below `below`, newest first.
    async fn by_author(
        &self,
        viewer: Viewer,
        author: UserId,
        below: Option<PostId>,
        limit: u32,
    ) -> Result<Vec<Post>, Error>;

    /// Which of these posts are in no timeline for good: those that were deleted, and those that are for their authors alone.
    async fn gone(&self, ids: &[PostId]) -> Result<Vec<PostId>, Error>;

    /// What a post said before its edits, the latest first, beginning below a version. Whether the viewer may see the post is
    /// for the caller to ask.
    async fn revisions(&self, post: PostId, below: Option<i64>, limit: u32) -> Result<Vec<Revision>, Error>;

    /// Makes a person like a post, once. The number is exact. [`Error::NotFound`] when that person cannot see it.
    async fn like(&self, user: UserId, post: PostId, event: Event<'_, Likes>) -> Result<Likes, Error>;

    /// Takes a like back. The number is exact. [`Error::NotFound`] when the post is not there; one that the person cannot see
    /// any more can still be liked no longer.
    async fn unlike(&self, user: UserId, post: PostId, event: Event<'_, Likes>) -> Result<Likes, Error>;

    /// Who likes a post, the latest first, beginning below a place; people who are gone are left out. Whether the viewer may
    /// see the post is for the caller to ask.
    async fn likers(&self, post: PostId, below: Option<Place>, limit: u32) -> Result<Vec<Place>, Error>;

    /// Which of these posts a person likes, in no order.
    async fn liked(&self, user: UserId, posts: &[PostId]) -> Result<Vec<PostId>, Error>;

    /// The liked posts with ids in `from..until`, in order, a page at a time.
    async fn liked_between(&self, from: i64, until: i64, limit: u32) -> Result<Vec<(PostId, Likes)>, Error>;
}

impl From<&Post> for ArchivedPost {
    fn from(post: &Post) -> Self {
        let (id, author, text) = (post.id, post.author, post.content.text.clone());
        Self { id, author, text, created_at_ms: post.created_at_ms }
    }
}
