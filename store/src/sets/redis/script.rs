//! Scripts that run at the server, each as one step. A server that does not know a script (it was restarted, or is a new
//! node of a Cluster) is sent the whole of it with the call, and knows it from then on.

use redis::{Cmd, ErrorKind, FromRedisValue, ServerErrorKind, ToRedisArgs};

use super::{error::error, link::Link};
use crate::{Error, sets::Entry};

const PRELUDE: &str = include_str!("lua/prelude.lua");

/// A script and its name.
pub(super) struct Script {
    code: String,
    hash: String,
}

/// What a script is called with.
#[derive(Default)]
pub(super) struct Call {
    keys: Vec<Vec<u8>>,
    arguments: Vec<Vec<u8>>,
}

impl Script {
    fn new(body: &str) -> Self {
        let code = format!("{PRELUDE}\n{body}");
        let hash = redis::Script::new(&code).get_hash().to_owned();
        Self { code, hash }
    }

    pub(super) async fn call<T: FromRedisValue>(&self, link: &Link, call: &Call) -> Result<T, Error> {
        match link.try_ask(&call.command("EVALSHA", &self.hash)).await {
            Err(cause) if cause.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                link.ask(&call.command("EVAL", &self.code)).await
            }
            answer => answer.map_err(error),
        }
    }
}

impl Call {
    pub(super) fn key(mut self, key: impl ToRedisArgs) -> Self {
        self.add_key(key);
        self
    }

    pub(super) fn arg(mut self, argument: impl ToRedisArgs) -> Self {
        self.add_arg(argument);
        self
    }

    pub(super) fn add_key(&mut self, key: impl ToRedisArgs) {
        key.write_redis_args(&mut self.keys);
    }

    pub(super) fn add_arg(&mut self, argument: impl ToRedisArgs) {
        argument.write_redis_args(&mut self.arguments);
    }

    /// How many entries, and their scores and members.
    pub(super) fn add_entries(&mut self, entries: &[Entry]) {
        self.add_arg(entries.len());
        for entry in entries {
            self.add_arg(entry.score());
            self.add_arg(&entry.member());
        }
    }

    fn command(&self, verb: &str, script: &str) -> Cmd {
        let mut command = redis::cmd(verb);
        command.arg(script).arg(self.keys.len()).arg(&self.keys).arg(&self.arguments);
        command
    }
}

/// All scripts.
pub(super) struct Scripts {
    pub(super) push: Script,
    pub(super) merge: Script,
    pub(super) begin_build: Script,
    pub(super) push_recents: Script,
    pub(super) set_states: Script,
    pub(super) scrub: Script,
    pub(super) take_out: Script,
    pub(super) register: Script,
    pub(super) forget: Script,
    pub(super) of_user: Script,
    pub(super) send: Script,
    pub(super) record_hot: Script,
    pub(super) complete_hot: Script,
    pub(super) ping_relay: Script,
    pub(super) note_progress: Script,
    pub(super) drop_homes: Script,
    pub(super) pass_mark: Script,
    pub(super) list_session: Script,
    pub(super) sweep_sessions: Script,
    pub(super) renew_session: Script,
    pub(super) take_attempt: Script,
    pub(super) remember_source: Script,
    pub(super) knows_sources: Script,
}

impl Scripts {
    pub(super) fn new() -> Self {
        Self {
            push: Script::new(include_str!("lua/push.lua")),
            merge: Script::new(include_str!("lua/merge.lua")),
            begin_build: Script::new(include_str!("lua/begin_build.lua")),
            push_recents: Script::new(include_str!("lua/push_recents.lua")),
            set_states: Script::new(include_str!("lua/set_states.lua")),
            scrub: Script::new(include_str!("lua/scrub.lua")),
            take_out: Script::new(include_str!("lua/take_out.lua")),
            register: Script::new(include_str!("lua/register.lua")),
            forget: Script::new(include_str!("lua/forget.lua")),
            of_user: Script::new(include_str!("lua/of_user.lua")),
            send: Script::new(include_str!("lua/send.lua")),
            record_hot: Script::new(include_str!("lua/record_hot.lua")),
            complete_hot: Script::new(include_str!("lua/complete_hot.lua")),
            ping_relay: Script::new(include_str!("lua/ping_relay.lua")),
            note_progress: Script::new(include_str!("lua/note_progress.lua")),
            drop_homes: Script::new(include_str!("lua/drop_homes.lua")),
            pass_mark: Script::new(include_str!("lua/pass_mark.lua")),
            list_session: Script::new(include_str!("lua/list_session.lua")),
            sweep_sessions: Script::new(include_str!("lua/sweep_sessions.lua")),
            renew_session: Script::new(include_str!("lua/renew_session.lua")),
            take_attempt: Script::new(include_str!("lua/take_attempt.lua")),
            remember_source: Script::new(include_str!("lua/remember_source.lua")),
            knows_sources: Script::new(include_str!("lua/knows_sources.lua")),
        }
    }
}
