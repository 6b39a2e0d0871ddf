//! What people are to each other: follow, block, mute, ask. A change is committed first; then the sets learn of it, before the
//! caller does, so that the reader's next page is filtered on every pod. The relay tells them once more, from the event.

pub(super) mod lists;
pub(super) mod remote;

use std::sync::Arc;

use chassis::{Clock, Error, config::Keys, id::Minter};
use proto::{
    EventId, UserId,
    freshet::event::v1::{PrivacyChanged, envelope::Payload},
};
use store::{
    Stores,
    ledger::{
        self, Blocks, Event, FollowLimits, FollowRequests, GraphChange, Mutes, Pair, Relations, RemoteAuthors, Wish,
    },
    sets::{AuthorState, Authors, STATE_WRITE_MS_MAX, Special},
};

/// Limits of the graph.
#[derive(Clone, Debug)]
pub(super) struct Config {
    limits: FollowLimits,
}

impl Config {
    /// Reads the keys `people.*` of the graph.
    pub(super) fn read(keys: &mut Keys) -> Self {
        let about = "how many people one may follow";
        let followees_max = keys.number("people.followees_max", 7_500, 1..=1_000_000, about);
        let about = "from how many followers on an author's posts are merged at read; below 90 % of it they are pushed";
        let celebrity_followers = keys.number("people.celebrity_followers", 10_000, 1..=1_000_000_000, about);
        let number = |number: u64, default| u32::try_from(number).unwrap_or(default);
        let (followees_max, celebrity_followers) = (number(followees_max, 7_500), number(celebrity_followers, 10_000));
        Self { limits: FollowLimits { followees_max, celebrity_followers } }
    }

    /// Its limits.
    pub(super) const fn limits(&self) -> FollowLimits {
        self.limits
    }
}

/// Who follows, blocks, mutes and asks whom.
pub(super) struct Graph {
    follows: Arc<dyn ledger::Graph>,
    blocks: Arc<dyn Blocks>,
    mutes: Arc<dyn Mutes>,
    requests: Arc<dyn FollowRequests>,
    relations: Arc<dyn Relations>,
    remote: Arc<dyn RemoteAuthors>,
    authors: Arc<dyn Authors>,
    ids: Arc<Minter>,
    clock: Arc<dyn Clock>,
    limits: FollowLimits,
}

impl Graph {
    pub(super) fn new(stores: &Stores, ids: Arc<Minter>, clock: Arc<dyn Clock>, config: &Config) -> Self {
        Self {
            follows: stores.ledger.graph.clone(),
            blocks: stores.ledger.blocks.clone(),
            mutes: stores.ledger.mutes.clone(),
            requests: stores.ledger.follow_requests.clone(),
            relations: stores.ledger.relations.clone(),
            remote: stores.ledger.remote_authors.clone(),
            authors: stores.sets.authors.clone(),
            ids,
            clock,
            limits: config.limits,
        }
    }

    /// The sets learn of a follow from the relay, which brings the posts in the same step.
    pub(super) async fn follow(&self, pair: Pair) -> Result<Wish, Error> {
        Ok(self.follows.follow(pair, self.limits, self.events()?).await?.wish)
    }

    pub(super) async fn unfollow(&self, pair: Pair) -> Result<(), Error> {
        let not_after = self.not_after();
        let ended = self.follows.unfollow(pair, self.limits, self.events()?).await?.version;
        self.tell(pair.from, unfollowed(pair.to, ended), not_after).await
    }

    /// The blocked one learns nothing, but must not see the blocker any more either.
    pub(super) async fn block(&self, pair: Pair) -> Result<(), Error> {
        let not_after = self.not_after();
        let block = self.blocks.block(pair, self.limits, self.events()?).await?;
        let [ended, ended_by_other] = block.ended;
        let own = AuthorState::new(pair.to, Special::Blocked, true, block.version);
        let others = AuthorState::new(pair.from, Special::BlockedBy, true, block.version);
        self.tell(pair.from, unfollowed(pair.to, ended).chain([own]), not_after).await?;
        self.tell(pair.to, unfollowed(pair.from, ended_by_other).chain([others]), not_after).await
    }

    pub(super) async fn unblock(&self, pair: Pair) -> Result<(), Error> {
        let not_after = self.not_after();
        let [event] = self.events()?;
        let ended = self.blocks.unblock(pair, event).await?.version;
        let over = |author, special| ended.map(|version| AuthorState::new(author, special, false, version));
        self.tell(pair.from, over(pair.to, Special::Blocked), not_after).await?;
        self.tell(pair.to, over(pair.from, Special::BlockedBy), not_after).await
    }

    pub(super) async fn mute(&self, pair: Pair, until_ms: Option<i64>) -> Result<(), Error> {
        let not_after = self.not_after();
        let [event] = self.events()?;
        let since = self.mutes.mute(pair, until_ms, event).await?.version;
        let until_ms = until_ms.unwrap_or(AuthorState::FOR_GOOD);
        let state = |version| AuthorState { author: pair.to, special: Special::Muted, until_ms, version };
        self.tell(pair.from, since.map(state), not_after).await
    }

    pub(super) async fn unmute(&self, pair: Pair) -> Result<(), Error> {
        let not_after = self.not_after();
        let [event] = self.events()?;
        let ended = self.mutes.unmute(pair, event).await?.version;
        let state = |version| AuthorState::new(pair.to, Special::Muted, false, version);
        self.tell(pair.from, ended.map(state), not_after).await
    }

    pub(super) async fn set_private(&self, user: UserId, private: bool) -> Result<(), Error> {
        let compose =
            |private: &bool| Payload::PrivacyChanged(PrivacyChanged { user_id: user.to_string(), private: *private });
        self.requests.set_private(user, private, Event { id: self.ids.mint()?, compose: &compose }).await?;
        Ok(())
    }

    pub(super) async fn accept(&self, request: Pair) -> Result<(), Error> {
        self.requests.accept(request, self.limits, self.events()?).await?;
        Ok(())
    }

    pub(super) async fn reject(&self, request: Pair) -> Result<(), Error> {
        let [event] = self.events()?;
        self.requests.reject(request, event).await?;
        Ok(())
    }

    pub(super) fn now_ms(&self) -> i64 {
        self.clock.unix_ms()
    }

    /// As many events as a change may need. Which of them are written is known only inside its transaction.
    fn events<const N: usize>(&self) -> Result<[Event<'static, GraphChange>; N], Error> {
        let ids = (0..N).map(|_| self.ids.mint()).collect::<Result<Vec<EventId>, _>>()?;
        let ids: [EventId; N] = ids.try_into().map_err(|_| Error::internal("as many ids as were minted"))?;
        Ok(ids.map(|id| Event { id, compose: &GraphChange::payload }))
    }

    /// Until when the sets take what the ledger is about to say: taken before it is asked, so that whoever is frozen in between
    /// does not bring old news.
    fn not_after(&self) -> i64 {
        self.clock.unix_ms() + STATE_WRITE_MS_MAX
    }

    /// Tells the sets what authors are to a reader. UNAVAILABLE when they do not answer; the call can be made again, and tells
    /// them then, although the ledger has nothing to change any more.
    async fn tell(
        &self,
        reader: UserId,
        states: impl IntoIterator<Item = AuthorState>,
        not_after: i64,
    ) -> Result<(), Error> {
        let states: Vec<_> = states.into_iter().collect();
        if states.is_empty() {
            return Ok(());
        }
        Ok(self.authors.set(reader, &states, not_after).await?)
    }
}

/// That an author was unfollowed with this version, if ever.
fn unfollowed(author: UserId, version: Option<i64>) -> impl Iterator<Item = AuthorState> {
    version.map(|version| AuthorState::new(author, Special::Unfollowed, true, version)).into_iter()
}
