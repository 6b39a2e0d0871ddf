//! A post that someone wants to write, checked field by field.

use std::collections::HashSet;

use chassis::{Error, error::InField as _};
use proto::{AttachmentId, PostId, freshet::post::v1 as wire};
use sha2::{Digest as _, Sha256};
use store::ledger::{Content, PostChange, PostKey, Visibility};

use super::{
    key::IdempotencyKey,
    language::Language,
    text::{Text, Title},
};

const ATTACHMENTS_MAX: usize = 4;
const CAN_CHANGE: &str = "text, title, language, sensitive, attachment_ids, visibility";

/// What is to be written.
pub(super) struct Draft {
    pub(super) content: Content,
    pub(super) visibility: Visibility,
    pub(super) quote_of: Option<PostId>,
}

impl Draft {
    pub(super) fn new(wire: wire::CreatePostRequest, text_characters_max: usize) -> Result<Self, Error> {
        let quote_of = wire.quote_of.as_deref().map(str::parse).transpose().in_field("quote_of")?;
        let visibility = visibility(wire.visibility)?;
        let content = Content {
            text: Text::new(&wire.text, text_characters_max).in_field("text")?.into(),
            title: title(wire.title.as_deref())?,
            language: language(wire.language.as_deref())?,
            sensitive: wire.sensitive,
            attachments: attachments(&wire.attachment_ids)?,
        };
        Ok(Self { content, visibility, quote_of })
    }

    /// The key under which it is written, with a hash of all that it says. Each part has its length before it, so that no two
    /// drafts are hashed alike.
    pub(super) fn keyed(&self, key: IdempotencyKey) -> PostKey {
        let mut hash = Sha256::new();
        let mut add = |part: Option<&str>| {
            hash.update(part.map_or(u64::MAX, |part| part.len() as u64).to_be_bytes());
            hash.update(part.unwrap_or_default());
        };
        let Content { text, title, language, sensitive, attachments } = &self.content;
        add(Some(text));
        add(title.as_deref());
        add(language.as_deref());
        add(sensitive.then_some(""));
        add(Some(match self.visibility {
            Visibility::Public => "public",
            Visibility::Followers => "followers",
            Visibility::OnlyMe => "only me",
        }));
        add(self.quote_of.map(|quoted| quoted.to_string()).as_deref());
        for attachment in attachments {
            add(Some(&attachment.to_string()));
        }
        PostKey { key: key.into(), fingerprint: hash.finalize().to_vec() }
    }
}

/// What an update asks for.
pub(super) fn change(wire: &wire::UpdatePostRequest, text_characters_max: usize) -> Result<PostChange, Error> {
    let paths = wire.update_mask.as_ref().map(|mask| mask.paths.as_slice()).unwrap_or_default();
    if paths.is_empty() {
        return Err(Error::invalid("update_mask", format_args!("must name what changes: {CAN_CHANGE}")));
    }
    let mut change = PostChange::default();
    for path in paths {
        match path.as_str() {
            "text" => change.text = Some(Text::new(&wire.text, text_characters_max).in_field("text")?.into()),
            "title" => change.title = Some(title(wire.title.as_deref())?),
            "language" => change.language = Some(language(wire.language.as_deref())?),
            "sensitive" => change.sensitive = Some(wire.sensitive),
            "attachment_ids" => change.attachments = Some(attachments(&wire.attachment_ids)?),
            "visibility" => change.visibility = Some(visibility(wire.visibility)?),
            _ => {
                return Err(Error::invalid("update_mask", format_args!("must name no other fields than {CAN_CHANGE}")));
            }
        }
    }
    Ok(change)
}

fn title(given: Option<&str>) -> Result<Option<String>, Error> {
    given.map(|title| Title::new(title).map(String::from)).transpose().in_field("title")
}

fn language(given: Option<&str>) -> Result<Option<String>, Error> {
    given.map(|tag| Language::new(tag).map(String::from)).transpose().in_field("language")
}

fn attachments(given: &[String]) -> Result<Vec<AttachmentId>, Error> {
    if given.len() > ATTACHMENTS_MAX {
        let rule = format!("must be at most {ATTACHMENTS_MAX}, and are {}", given.len());
        return Err(Error::invalid("attachment_ids", rule));
    }
    let ids = given.iter().map(|id| id.parse()).collect::<Result<Vec<_>, _>>().in_field("attachment_ids")?;
    if ids.iter().collect::<HashSet<_>>().len() < ids.len() {
        return Err(Error::invalid("attachment_ids", "must name each attachment once"));
    }
    Ok(ids)
}

fn visibility(number: i32) -> Result<Visibility, Error> {
    match wire::Visibility::try_from(number) {
        Ok(wire::Visibility::Unspecified | wire::Visibility::Public) => Ok(Visibility::Public),
        Ok(wire::Visibility::Followers) => Ok(Visibility::Followers),
        Ok(wire::Visibility::OnlyMe) => Ok(Visibility::OnlyMe),
        Err(_) => Err(Error::invalid("visibility", "must be public, followers or only me")),
    }
}
