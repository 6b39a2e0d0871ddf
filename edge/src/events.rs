//! Frames of an event stream.

use bytes::Bytes;
use jiff::Timestamp;
use proto::freshet::event::v1::PostCreated;
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
struct NewPost<'a> {
    id: &'a str,
    author_id: &'a str,
    text: &'a str,
    created_at: String,
}

/// The first event of a stream: from here on, nothing new is missed.
pub(crate) fn hello(connection_id: &str) -> Result<Bytes, String> {
    frame("hello", &Hello { connection_id })
}

/// A followee wrote a post.
pub(crate) fn new_post(event: &PostCreated) -> Result<Bytes, String> {
    let created_at = Timestamp::from_millisecond(event.created_at_ms).map_err(|cause| cause.to_string())?;
    let (id, author_id, text) = (&event.post_id, &event.author_id, &event.text);
    frame("new_post", &NewPost { id, author_id, text, created_at: created_at.to_string() })
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
