//! How dead letters look on a terminal. What comes from events is escaped: anybody may have written it.

use std::{fmt::Write as _, time::Duration};

use chassis::config::duration_text;
use jiff::Timestamp;
use prost::Message as _;
use proto::freshet::event::v1::Envelope;
use store::ledger::dead_letters::{Alike, AuditLine, DeadLetter};

const ERROR_CHARACTERS_MAX: usize = 100;
const BAR_CHARACTERS: u64 = 40;
/// Of a payload that is no event.
const HEX_BYTES_MAX: usize = 256;

/// A line a letter.
pub(super) fn list(letters: &[DeadLetter], all: u64, now: i64) -> String {
    let mut text = format!(
        "{:>8}  {:>6}  {:<8}  {:<6}  {:<16}  {:<20}  {:<12}  {:>5}  error\n",
        "id", "age", "group", "topic", "type", "key", "cause", "tries"
    );
    for letter in letters {
        let record = &letter.event.record;
        let cause = if letter.redrive { "redrive" } else { letter.cause.name() };
        _ = writeln!(
            text,
            "{:>8}  {:>6}  {:<8}  {:<6}  {:<16}  {:<20}  {cause:<12}  {:>5}  {}",
            letter.id,
            age(letter.buried_at_ms, now),
            group(&letter.group),
            record.topic.name(),
            escaped(&record.kind),
            escaped(&record.key),
            letter.attempts,
            cut(&letter.error)
        );
    }
    _ = writeln!(text, "{} of {all} letters", letters.len());
    text
}

/// All that is known of a letter.
pub(super) fn letter(letter: &DeadLetter) -> String {
    let (event, record) = (&letter.event, &letter.event.record);
    let mut text = String::new();
    let lines = [
        ("id", letter.id.to_string()),
        ("group", group(&letter.group).to_owned()),
        ("topic", record.topic.name().to_owned()),
        ("partition", record.partition.to_string()),
        ("position", event.position.to_string()),
        ("key", escaped(&record.key)),
        ("type", escaped(&record.kind)),
        ("logged at", moment(event.logged_at_ms)),
        ("buried at", moment(letter.buried_at_ms)),
        ("cause", letter.cause.name().to_owned()),
        ("error", escaped(&letter.error)),
        ("attempts", letter.attempts.to_string()),
        ("pod", letter.pod.clone()),
        ("release", letter.release.clone()),
        ("epoch", record.epoch.to_string()),
        ("traceparent", escaped(&record.traceparent)),
        ("redrive", if letter.redrive { "ordered" } else { "not ordered" }.to_owned()),
        ("bytes", record.payload.len().to_string()),
    ];
    for (name, value) in lines {
        _ = writeln!(text, "{name:<12}{value}");
    }
    match Envelope::decode(record.payload.clone()) {
        Ok(envelope) => _ = writeln!(text, "event       {envelope:#?}"),
        Err(_) => {
            let hex: String = record.payload.iter().take(HEX_BYTES_MAX).map(|byte| format!("{byte:02x}")).collect();
            _ = writeln!(text, "payload     {hex}");
        }
    }
    text
}

/// A line a reason.
pub(super) fn groups(alike: &[Alike], now: i64) -> String {
    let mut text = format!(
        "{:>8}  {:<8}  {:<6}  {:<16}  {:<12}  {:>6}  {:>6}  error\n",
        "letters", "group", "topic", "type", "cause", "first", "last"
    );
    for one in alike {
        let (first, last) = (age(one.first_at_ms, now), age(one.last_at_ms, now));
        _ = writeln!(
            text,
            "{:>8}  {:<8}  {:<6}  {:<16}  {:<12}  {first:>6}  {last:>6}  {}",
            one.letters,
            group(&one.group),
            one.topic,
            escaped(&one.kind),
            one.cause,
            cut(&one.error)
        );
    }
    text
}

/// A line an order.
pub(super) fn audit(lines: &[AuditLine]) -> String {
    lines
        .iter()
        .map(|line| format!("{}  {}  {}\n", moment(line.at_ms), escaped(&line.who), escaped(&line.what)))
        .collect()
}

/// How far it is.
pub(super) fn bar(done: u64, all: u64) -> String {
    let filled = (done * BAR_CHARACTERS).checked_div(all).unwrap_or(BAR_CHARACTERS);
    let bar: String = (0..BAR_CHARACTERS).map(|place| if place < filled { '#' } else { '.' }).collect();
    format!("[{bar}] {done}/{all}")
}

fn group(name: &str) -> &str {
    if name.is_empty() { "(outbox)" } else { name }
}

fn age(at_ms: i64, now: i64) -> String {
    duration_text(Duration::from_secs((now - at_ms).max(0).unsigned_abs() / 1000))
}

fn moment(at_ms: i64) -> String {
    Timestamp::from_millisecond(at_ms).map_or_else(|_| at_ms.to_string(), |moment| moment.to_string())
}

fn escaped(text: &str) -> String {
    text.escape_debug().to_string()
}

fn cut(text: &str) -> String {
    let escaped = escaped(text);
    match escaped.char_indices().nth(ERROR_CHARACTERS_MAX) {
        Some((end, _)) => format!("{}…", &escaped[..end]),
        None => escaped,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_fills_from_nothing_to_all() {
        assert!(bar(0, 7).starts_with("[....") && bar(0, 7).ends_with("....] 0/7"));
        assert!(bar(7, 7).ends_with("####] 7/7") && bar(0, 0).ends_with("####] 0/0"));
    }

    #[test]
    fn what_others_wrote_cannot_move_the_cursor() {
        assert_eq!(cut("\u{1b}[2Jboo\n"), "\\u{1b}[2Jboo\\n");
        assert_eq!(cut(&"x".repeat(200)).chars().count(), ERROR_CHARACTERS_MAX + 1);
    }
}
