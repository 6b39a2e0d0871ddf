//! What events tell of posts.

use proto::freshet::{
    event::v1::{FanOut, PostCreated, PostDeleted, PostUpdated, envelope::Payload},
    post::v1 as wire,
};
use store::ledger::{Deleted, Post, Visibility, Written};

use super::entities::entities;

/// A whole post.
pub(super) fn post(row: &Post) -> PostCreated {
    PostCreated {
        post_id: row.id.to_string(),
        author_id: row.author.to_string(),
        text: row.content.text.clone(),
        created_at_ms: row.created_at_ms,
        visibility: visibility(row.visibility).into(),
        title: row.content.title.clone(),
        language: row.content.language.clone(),
        sensitive: row.content.sensitive,
        quote_of: row.quote_of.map(|quoted| quoted.to_string()),
        attachment_ids: row.content.attachments.iter().map(ToString::to_string).collect(),
        entities: entities(&row.content.text),
        // How it reaches homes matters when it is written only.
        fan_out: FanOut::Unspecified.into(),
    }
}

/// A post as it was written.
pub(super) fn created(Written { post: row, fan_out }: &Written) -> Payload {
    Payload::PostCreated(PostCreated { fan_out: fan_out.to_wire().into(), ..post(row) })
}

/// An edit: the whole post as it is now.
pub(super) fn updated(row: &Post) -> Payload {
    let edited_at_ms = row.edited_at_ms.unwrap_or(row.created_at_ms);
    Payload::PostUpdated(PostUpdated { post: Some(post(row)), edited_at_ms })
}

/// An end.
pub(super) fn deleted(row: &Deleted) -> Payload {
    Payload::PostDeleted(PostDeleted { post_id: row.id.to_string(), author_id: row.author.to_string() })
}

pub(super) const fn visibility(visibility: Visibility) -> wire::Visibility {
    match visibility {
        Visibility::Public => wire::Visibility::Public,
        Visibility::Followers => wire::Visibility::Followers,
        Visibility::OnlyMe => wire::Visibility::OnlyMe,
    }
}
