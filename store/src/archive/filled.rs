//! An archive of its own beside the ledger. All writes go to it; it is read only while it is the very one that the ledger
//! calls complete, and otherwise the ledger's own tables are: slower at scale, and always whole.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use chassis::{OnFailure, Stage};
use futures_util::future::join;
use proto::{PostId, UserId};
use tokio::{
    sync::{Mutex, watch},
    time::Instant,
};
use tracing::{info, warn};

use super::{
    Archive, ArchivedPost, Edge, Filling, Follows, Generation, PostsByAuthor, PublicPage, PublicPosts, Scope,
    fallback::Fallback,
    scylla::{Mark, Tables},
};
use crate::{
    Config, Error, OpenError, Parts,
    config::ScyllaUrl,
    ledger::{ArchiveFills, Ledger},
};

/// How often it is asked which archive this is, and whether it is complete.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Opens the archive of this cluster, and keeps an eye on it for as long as the pod runs.
pub(crate) async fn open_scylla(
    url: &ScyllaUrl,
    config: &Config,
    parts: &Parts,
    ledger: &Ledger,
) -> Result<Archive, OpenError> {
    let Tables { posts_by_author, follows, public_posts, mark } = Tables::open(url, config).await?;
    let fills = ledger.archive_fills.clone();
    let trust = Arc::new(Trust::new(mark.clone(), fills.clone(), config.archive_fallback_reads_max));
    trust.look().await;
    let looking = trust.clone();
    parts.pod.tasks.spawn("archive trust", Stage::Foundations, OnFailure::Restart, move |stop| {
        let trust = looking.clone();
        async move {
            loop {
                tokio::select! {
                    () = stop.cancelled() => return Ok::<(), Error>(()),
                    () = tokio::time::sleep(LOOK_EVERY) => trust.look().await,
                }
            }
        }
    });
    let filling = Filling {
        posts_by_author: posts_by_author.clone(),
        follows: follows.clone(),
        public_posts: public_posts.clone(),
        mark,
        fills,
        random: parts.random.clone(),
    };
    let own = Archive { posts_by_author, follows, public_posts, filling: None };
    let filled = Arc::new(Filled { own, ledger: ledger.as_archive.clone(), trust });
    Ok(Archive {
        posts_by_author: filled.clone(),
        follows: filled.clone(),
        public_posts: filled,
        filling: Some(Arc::new(filling)),
    })
}

/// Which generation of the archive may be read.
struct Trust {
    mark: Arc<Mark>,
    fills: Arc<dyn ArchiveFills>,
    /// The one that the archive shows and the ledger calls complete, by the last look.
    trusted: watch::Sender<Option<Generation>>,
    /// When the mark was last asked for by a reader, and what it was.
    asked: Mutex<Option<(Instant, Option<Generation>)>>,
    /// How reads come to the ledger instead.
    fallback: Fallback,
}

impl Trust {
    fn new(mark: Arc<Mark>, fills: Arc<dyn ArchiveFills>, fallback_reads_max: usize) -> Self {
        let fallback = Fallback::new(fallback_reads_max);
        Self { mark, fills, trusted: watch::Sender::new(None), asked: Mutex::default(), fallback }
    }

    async fn look(&self) {
        let before = *self.trusted.borrow();
        let (shown, completed) = join(self.mark.read(), self.fills.completed()).await;
        // What the ledger has called complete stays so while the ledger does not answer.
        let completed = completed.unwrap_or(before);
        let now = completed.filter(|generation| matches!(shown, Ok(Some(shown)) if shown == *generation));
        self.trusted.send_replace(now);
        match (before, now, shown) {
            (None, Some(generation), _) => info!("archive {generation} is complete: it is read from now on"),
            (Some(_), None, Err(cause)) => warn!("the ledger is read instead of the archive: {cause}"),
            (Some(generation), None, Ok(_)) => {
                warn!("the ledger is read instead of the archive: it is not archive {generation} any more");
            }
            _ => {}
        }
    }

    /// Whether the archive still shows this generation, asked for after this call. Whoever has read from the archive must
    /// know that before the answer counts: since the last look it may have been dropped and made again, and an empty page
    /// of the new one would be taken for the whole truth and kept in a home. Those who ask at the same time share a
    /// request.
    async fn still(&self, generation: Generation) -> bool {
        let read_by = Instant::now();
        let mut asked = self.asked.lock().await;
        let shown = match *asked {
            Some((at, shown)) if at >= read_by => shown,
            _ => {
                let at = Instant::now();
                let shown = self.mark.read().await.unwrap_or_default();
                *asked = Some((at, shown));
                shown
            }
        };
        let still = shown == Some(generation);
        if !still {
            self.trusted.send_if_modified(|trusted| trusted.take_if(|trusted| *trusted == generation).is_some());
        }
        still
    }

    /// The archive's answer, if it counts; else the ledger's, in turn.
    async fn read<T>(
        &self,
        archive: impl Future<Output = Result<T, Error>> + Send,
        ledger: impl Future<Output = Result<T, Error>> + Send,
    ) -> Result<T, Error> {
        let trusted = *self.trusted.borrow();
        if let Some(generation) = trusted {
            match archive.await {
                Ok(answer) if self.still(generation).await => return Ok(answer),
                Ok(_) | Err(Error::Unavailable { .. }) => {}
                Err(fault) => return Err(fault),
            }
        }
        self.fallback.read(ledger).await
    }
}

/// The two adapters as one.
struct Filled {
    own: Archive,
    ledger: Archive,
    trust: Arc<Trust>,
}

#[async_trait]
impl PostsByAuthor for Filled {
    async fn add(&self, posts: &[(ArchivedPost, i64)]) -> Result<(), Error> {
        self.own.posts_by_author.add(posts).await
    }

    async fn remove(&self, author: UserId, post: PostId, version: i64) -> Result<(), Error> {
        self.own.posts_by_author.remove(author, post, version).await
    }

    async fn page(&self, author: UserId, below: Option<PostId>, limit: u32) -> Result<Vec<ArchivedPost>, Error> {
        let [own, ledger] = [&self.own, &self.ledger].map(|archive| archive.posts_by_author.page(author, below, limit));
        self.trust.read(own, ledger).await
    }
}

#[async_trait]
impl Follows for Filled {
    async fn set(&self, edges: &[Edge]) -> Result<(), Error> {
        self.own.follows.set(edges).await
    }

    async fn followers(
        &self,
        authors: &[UserId],
        after: Option<(UserId, UserId)>,
        limit: u32,
    ) -> Result<Vec<(UserId, UserId)>, Error> {
        let [own, ledger] = [&self.own, &self.ledger].map(|archive| archive.follows.followers(authors, after, limit));
        self.trust.read(own, ledger).await
    }

    async fn followees(&self, reader: UserId, after: Option<UserId>, limit: u32) -> Result<Vec<UserId>, Error> {
        let [own, ledger] = [&self.own, &self.ledger].map(|archive| archive.follows.followees(reader, after, limit));
        self.trust.read(own, ledger).await
    }
}

#[async_trait]
impl PublicPosts for Filled {
    async fn add(&self, posts: &[(ArchivedPost, i64)]) -> Result<(), Error> {
        self.own.public_posts.add(posts).await
    }

    async fn remove(&self, post: PostId, version: i64) -> Result<(), Error> {
        self.own.public_posts.remove(post, version).await
    }

    async fn page(&self, scope: Scope, below: Option<PostId>, limit: u32) -> Result<PublicPage, Error> {
        let [own, ledger] = [&self.own, &self.ledger].map(|archive| archive.public_posts.page(scope, below, limit));
        self.trust.read(own, ledger).await
    }
}
