//! Frames of an event stream.

use bytes::Bytes;
use jiff::Timestamp;
use proto::freshet::{
    event::v1::{PostCreated, PostUpdated},
    post::v1::Visibility,
};
use serde::Serialize;

/// A comment: it keeps proxies from closing an idle stream.
pub(crate) const HEARTBEAT: Bytes = Bytes::from_static(b":\n\n");

/// Events may have been missed: whoever gets this reads the timeline again. The stream may tell later of what they then read:
/// they know it by its id.
pub(crate) const GAP: Bytes = Bytes::from_static(b"event: gap\ndata: {}\n\n");

#[derive(Serialize)]
struct Hello<'a> {
    connection_id: &'a str,
}

#[derive(Serialize)]
struct Post<'a> {
    id: &'a str,
    author_id: &'a str,
    text: &'a str,
    created_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    language: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    sensitive: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    quote_of: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    attachment_ids: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    edited_at: Option<String>,
}

#[derive(Serialize)]
struct DeletedPost<'a> {
    post_id: &'a str,
}

/// The first event of a stream: from here on, nothing new is missed.
pub(crate) fn hello(connection_id: &str) -> Result<Bytes, String> {
    frame("hello", &Hello { connection_id })
}

/// A followee wrote a post.
pub(crate) fn new_post(event: &PostCreated) -> Result<Bytes, String> {
    frame("new_post", &post(event, None)?)
}

/// A followee edited a post. One that is for its author alone from now on is gone for everybody else.
pub(crate) fn updated_post(event: &PostUpdated) -> Result<Bytes, String> {
    let now = event.post.as_ref().ok_or("an edit without its post")?;
    match now.visibility() {
        Visibility::OnlyMe => deleted_post(&now.post_id),
        _ => frame("updated_post", &post(now, Some(event.edited_at_ms))?),
    }
}

/// A followee's post is gone.
pub(crate) fn deleted_post(post_id: &str) -> Result<Bytes, String> {
    frame("deleted_post", &DeletedPost { post_id })
}

fn post(event: &PostCreated, edited_at_ms: Option<i64>) -> Result<Post<'_>, String> {
    let time =
        |unix_ms| Timestamp::from_millisecond(unix_ms).map(|at| at.to_string()).map_err(|cause| cause.to_string());
    Ok(Post {
        id: &event.post_id,
        author_id: &event.author_id,
        text: &event.text,
        created_at: time(event.created_at_ms)?,
        title: event.title.as_deref(),
        language: event.language.as_deref(),
        sensitive: event.sensitive,
        quote_of: event.quote_of.as_deref(),
        attachment_ids: &event.attachment_ids,
        edited_at: edited_at_ms.map(time).transpose()?,
    })
}

/// Tells the browser when to come back.
pub(crate) fn retry(after_ms: u64) -> Bytes {
    format!("retry: {after_ms}\n\n").into()
}

/// JSON has no line breaks of its own, so the data is one line.
fn frame(event: &str, data: &impl Serialize) -> Result<Bytes, String> {
    let data = serde_json::to_string(data).map_err(|cause| cause.to_string())?;
    Ok(format!("event: {event}\ndata: {data}\n\n").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_post_is_one_frame_whatever_its_text() {
        let event = PostCreated {
            post_id: "42".into(),
            author_id: "7".into(),
            text: "two\nlines\r\nevent: \"evil\"\n\n\u{2028}".into(),
            created_at_ms: 1_704_067_200_123,
            ..PostCreated::default()
        };
        let frame = new_post(&event).unwrap();
        let text = std::str::from_utf8(&frame).unwrap();
        let lines: Vec<_> = text.split('\n').collect();
        assert_eq!((lines[0], lines.len()), ("event: new_post", 4), "{text}");
        let data: serde_json::Value = serde_json::from_str(lines[1].strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!(data["text"], event.text);
        assert_eq!(data["id"], "42");
        assert_eq!(data["created_at"], "2024-01-01T00:00:00.123Z");
    }
}
