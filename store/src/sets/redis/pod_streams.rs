//! What edge pods are told, in Redis streams. Messages are numbered by a counter beside the stream, so that whoever reads
//! can tell that some are missing: cut off at the cap, or lost with the server, where the counter begins anew.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use redis::{Pipeline, Value};

use super::{
    Redis,
    error::STORE,
    link::{Link, Server},
    script::Call,
};
use crate::{
    Error,
    error::damaged,
    sets::{POD_STREAM_MESSAGES_MAX, PodPosition, PodStreams, Told},
};

/// How long a read waits at the server for a message; then it looks whether all is well, and waits again.
pub(super) const WAIT_MAX: Duration = Duration::from_millis(WAIT_MS);
const WAIT_MS: u64 = 5_000;
/// How long a stream outlives its pod, which keeps it alive by reading.
const STREAM_MS: u64 = 10 * 60 * 1000;
const READ_MESSAGES_MAX: usize = 1000;
/// Messages a script call: Redis does nothing else meanwhile.
const SEND_MESSAGES_MAX: usize = 100;
const SPARE_LINKS_MAX: usize = 8;
const _: () = assert!(WAIT_MS * 10 < STREAM_MS);

/// Links on which nothing else is asked. One whose read was given up is not used again: its answer is still to come.
pub(super) struct Receivers {
    server: Server,
    spare: Mutex<Vec<Link>>,
}

impl Receivers {
    pub(super) fn new(server: Server) -> Self {
        Self { server, spare: Mutex::default() }
    }

    async fn take(&self) -> Result<Link, Error> {
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
        match spare {
            Some(link) => Ok(link),
            None => self.server.waiting_link(WAIT_MAX).await,
        }
    }

    /// The server went away under one of them: so it did under all.
    fn drop_spare(&self) {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn give_back(&self, link: Link) {
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        if spare.len() < SPARE_LINKS_MAX {
            spare.push(link);
        }
    }
}

/// A message: the stream's name of it, its number and itself.
type Message = ((u64, u64), u64, Bytes);
/// What XREAD and XRANGE answer: names, each with field, value, field, value…
type Messages = Vec<(String, Vec<Value>)>;

#[async_trait]
impl PodStreams for Redis {
    async fn send(&self, pod: &str, deliveries: &[Bytes]) -> Result<(), Error> {
        for some in deliveries.chunks(SEND_MESSAGES_MAX) {
            let call = Call::default().key(self.keys.pod(pod)).key(self.keys.pod_sent(pod));
            let mut call = call.arg(POD_STREAM_MESSAGES_MAX).arg(STREAM_MS);
            for delivery in some {
                call.add_arg(&delivery[..]);
            }
            self.scripts.send.call::<()>(&self.link, &call).await?;
        }
        Ok(())
    }

    async fn receive(&self, pod: &str, after: PodPosition) -> Result<Told, Error> {
        let link = self.receivers.take().await?;
        let told = self.receive_by(&link, pod, after).await;
        match &told {
            Ok(_) => self.receivers.give_back(link),
            Err(_) => self.receivers.drop_spare(),
        }
        told
    }
}

impl Redis {
    async fn receive_by(&self, link: &Link, pod: &str, mut after: PodPosition) -> Result<Told, Error> {
        let mut begun_anew = false;
        loop {
            let messages = self.read(link, pod, after).await?;
            if !messages.is_empty() {
                let mut told = told(messages, after);
                told.missed |= begun_anew;
                return Ok(told);
            }
            // It is quiet. The count is asked for first: what it counts and the stream does not have is lost.
            let sent = self.sent(link, pod).await?;
            match self.newest(link, pod).await? {
                // A server that lost its data while its clock was set back names messages lower than before.
                Some(name) if name < after.token => (after, begun_anew) = (PodPosition::default(), true),
                None if sent != after.number => {
                    let position = PodPosition { number: sent, token: (0, 0) };
                    return Ok(Told { deliveries: Vec::new(), missed: true, position });
                }
                _ => {}
            }
        }
    }

    /// What comes after a position; nothing when nothing came for a while.
    async fn read(&self, link: &Link, pod: &str, after: PodPosition) -> Result<Vec<Message>, Error> {
        let (stream, sent) = (self.keys.pod(pod), self.keys.pod_sent(pod));
        let mut ask = Pipeline::new();
        ask.cmd("PEXPIRE").arg(&sent).arg(STREAM_MS).ignore();
        ask.cmd("PEXPIRE").arg(&stream).arg(STREAM_MS).ignore();
        ask.cmd("XREAD").arg("COUNT").arg(READ_MESSAGES_MAX).arg("BLOCK").arg(WAIT_MS);
        ask.arg("STREAMS").arg(&stream).arg(format!("{}-{}", after.token.0, after.token.1));
        let (streams,): (Option<Vec<(String, Messages)>>,) = link.ask_all(&ask).await?;
        streams.into_iter().flatten().flat_map(|(_, messages)| messages).map(message).collect()
    }

    async fn sent(&self, link: &Link, pod: &str) -> Result<u64, Error> {
        let sent: Option<u64> = link.ask(redis::cmd("GET").arg(self.keys.pod_sent(pod))).await?;
        Ok(sent.unwrap_or(0))
    }

    async fn newest(&self, link: &Link, pod: &str) -> Result<Option<(u64, u64)>, Error> {
        let mut ask = redis::cmd("XREVRANGE");
        let newest: Messages = link.ask(ask.arg(self.keys.pod(pod)).arg("+").arg("-").arg("COUNT").arg(1)).await?;
        newest.into_iter().next().map(|found| message(found).map(|(name, _, _)| name)).transpose()
    }
}

fn message((name, fields): (String, Vec<Value>)) -> Result<Message, Error> {
    let bad = || damaged(STORE, format_args!("the message {name} of a pod's stream is none"));
    let (ms, sequence) = name.split_once('-').ok_or_else(bad)?;
    let place = (ms.parse().map_err(|_| bad())?, sequence.parse().map_err(|_| bad())?);
    let [_, number, _, message] = <[Value; 4]>::try_from(fields).map_err(|_| bad())?;
    let number = redis::from_redis_value(number).map_err(|_| bad())?;
    let message: Vec<u8> = redis::from_redis_value(message).map_err(|_| bad())?;
    Ok((place, number, message.into()))
}

fn told(messages: Vec<Message>, after: PodPosition) -> Told {
    let mut told = Told { position: after, ..Told::default() };
    for (token, number, message) in messages {
        told.missed |= number != told.position.number + 1;
        told.position = PodPosition { number, token };
        told.deliveries.push(message);
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_does_not_follow_tells_of_a_loss() {
        let message = |number: u64| ((number, 0), number, Bytes::new());
        let after = |number: u64| PodPosition { number, token: (number, 0) };
        for (numbers, position, missed) in [
            (&[1, 2][..], after(0), false),
            (&[2], after(0), true),
            (&[5, 6], after(4), false),
            (&[6], after(4), true),
            (&[1, 2], after(4), true),
            (&[5, 1], after(4), true),
        ] {
            let told = told(numbers.iter().map(|number| message(*number)).collect(), position);
            assert_eq!((told.missed, told.deliveries.len()), (missed, numbers.len()), "{numbers:?} after {position:?}");
        }
    }
}
