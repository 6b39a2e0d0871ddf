//! Whoever goes away is gone from every read at once, and what they had to do with others ends soon after, whatever dies
//! meanwhile.

use chassis::{Reason, token::Caller};
use proto::freshet::{
    post::v1::{CreatePostRequest, GetPostRequest, LikeRequest},
    timeline::v1::GetHomeTimelineRequest,
    user::v1::{BlockRequest, DeleteAccountRequest, FollowRequest, GetUserRequest, SignUpRequest, UserCounters},
};
use tests::{Dev, Person, Pods, Sandbox, grpc::Client, person::PASSWORD, sql::Sql, wait};

use crate::BINARY;

/// That nothing active is left of a person in any table, and that everybody's numbers are those of the rows.
async fn nothing_is_left(sql: &mut Sql, person: &str) {
    let ends = [
        ("follows", "follower", "followee"),
        ("follow_requests", "requester", "target"),
        ("blocks", "blocker", "blocked"),
        ("mutes", "muter", "muted"),
    ];
    for (table, from, to) in ends {
        let query =
            format!("SELECT CAST({to} AS TEXT) FROM {table} WHERE active AND ({from} = {person} OR {to} = {person})");
        assert_eq!(sql.texts(&query).await, Vec::<String>::new(), "{table}");
    }
    let likes = format!("SELECT CAST(post AS TEXT) FROM likes WHERE active AND liker = {person}");
    assert_eq!(sql.texts(&likes).await, Vec::<String>::new());
    let posts = format!("SELECT CAST(id AS TEXT) FROM posts WHERE deleted_at_ms IS NULL AND author = {person}");
    assert_eq!(sql.texts(&posts).await, Vec::<String>::new());
    let wrong = "SELECT CAST(user_id AS TEXT) FROM user_counters WHERE \
         followers <> (SELECT count(*) FROM follows WHERE followee = user_id AND active) OR \
         following <> (SELECT count(*) FROM follows WHERE follower = user_id AND active) OR \
         posts <> (SELECT count(*) FROM posts WHERE author = user_id AND deleted_at_ms IS NULL)";
    assert_eq!(sql.texts(wrong).await, Vec::<String>::new(), "numbers that are not those of the rows");
    let wrong = "SELECT CAST(id AS TEXT) FROM posts WHERE \
         like_count <> (SELECT count(*) FROM likes WHERE post = id AND active)";
    assert_eq!(sql.texts(wrong).await, Vec::<String>::new(), "likes that are not those of the rows");
}

async fn numbers(viewer: &Person, of: &Person) -> (i64, i64) {
    let UserCounters { followers, following, .. } = viewer.sees(of).await.unwrap().counters.expect("counters");
    (followers, following)
}

#[tokio::test(flavor = "multi_thread")]
async fn who_goes_away_is_gone_from_every_read_at_once_and_cleaned_up_after() {
    let world = Sandbox::with(Pods::TWO).await;
    let [gone, ada, lin, max, eve] = world.people(["gone", "ada", "lin", "max", "eve"]).await;
    for follower in [&ada, &lin] {
        follower.follow(&gone).await;
        gone.follow(follower).await;
    }
    ada.follow(&lin).await;
    max.set_private(true).await;
    gone.follow(&max).await;
    gone.block(&eve).await;
    lin.mute(&gone).await;
    lin.unmute(&gone).await;
    let (of_gone, of_lin) = (gone.post("last words").await, lin.post("hello").await);
    assert_eq!((gone.like(&of_lin).await, ada.like(&of_lin).await, ada.like(&of_gone).await), (1, 2, 1));
    ada.home_shows(&[&of_lin, &of_gone]).await;
    gone.home_shows(&[&of_lin]).await;
    ada.hot_posts_are(&[(&of_lin, 6), (&of_gone, 3)]).await;

    gone.goes_away().await;

    // At once, at every pod.
    let service = world.timeline(Caller::Service("tests".into()));
    for _ in world.timelines() {
        assert_eq!(ada.scrolls_home(200).await, [of_lin.id.as_str()]);
        let request = GetPostRequest { post_id: of_gone.id.clone(), ..GetPostRequest::default() };
        assert_eq!(service.get_post(request).await.unwrap_err().reason(), Reason::PostNotFound);
        let request = GetHomeTimelineRequest { reader_id: gone.id.to_string(), limit: None, max_id: None };
        assert_eq!(service.get_home_timeline(request).await.unwrap_err().reason(), Reason::UserNotFound);
        assert_eq!(ada.tries_to_relate_to(vec![gone.id.to_string()]).await.unwrap(), []);
        assert_eq!(lin.tries_to_list_followers(&lin.id.to_string(), None, None).await.unwrap().0, [ada.id]);
        assert_eq!(max.tries_to_list_requests(None, None).await.unwrap().0, []);
        let refused = ada.tries_to_list_followers(&gone.id.to_string(), None, None).await.unwrap_err();
        assert_eq!(refused.reason(), Reason::UserNotFound);
    }

    // When the job is through.
    let jobs = &world.stores().ledger.jobs;
    wait::until("the job to be through", async || (jobs.waiting().await.unwrap() == 0).then_some(())).await;
    nothing_is_left(&mut world.sql().await, &gone.id.to_string()).await;
    assert_eq!((numbers(&eve, &ada).await, numbers(&eve, &lin).await), ((0, 1), (1, 0)));
    ada.hot_posts_are(&[(&of_lin, 3)]).await;
    ada.home_shows(&[&of_lin]).await;
    assert_eq!(world.stores().sets.homes.coverage(gone.id).await.unwrap(), None);
    wait::until("the archive to follow", async || {
        let followers = world.stores().archive.follows.followers(&[gone.id, lin.id], None, 10).await.unwrap();
        (followers == [(lin.id, ada.id)]).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_home_that_is_built_while_its_reader_goes_away_is_not_left() {
    let world = Sandbox::start().await;
    let [ada] = world.people(["ada"]).await;
    let homes = &world.stores().sets.homes;
    // The keys are made, and the builder has not looked yet whether its reader is there.
    assert!(matches!(homes.begin_build(ada.id).await.unwrap(), store::sets::Build::Mine(_)));
    ada.goes_away().await;
    assert_eq!(homes.coverage(ada.id).await.unwrap(), None);
    let request = GetHomeTimelineRequest { reader_id: ada.id.to_string(), limit: None, max_id: None };
    let service = world.timeline(Caller::Service("tests".into()));
    assert_eq!(service.get_home_timeline(request).await.unwrap_err().reason(), Reason::UserNotFound);
}

/// More than a chunk of each: some steps are done in several.
const FOLLOWERS: usize = 130;
/// Of a clean-up: the home, eight sorts of ties, likes, posts, and to see that there is no more.
const STEPS: usize = 12;

/// Calls of a service, on a process that is killed at times.
struct Calls(Client);

impl Calls {
    async fn of(process: &Dev) -> Self {
        let address = process.address("timeline").await;
        Self(Client::new(address, process.keyring(), Caller::Service("tests".into())))
    }

    async fn sign_up(&self, handle: &str) -> String {
        let request = SignUpRequest { handle: handle.into(), password: PASSWORD.into(), ..SignUpRequest::default() };
        self.0.sign_up(request).await.expect("an account").user.expect("a user").id
    }

    async fn follow(&self, follower: &str, followee: &str) {
        let request = FollowRequest { follower_id: follower.into(), followee_id: followee.into() };
        self.0.follow(request).await.expect("a follow");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clean_up_that_is_killed_at_every_step_is_finished_in_the_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let cheap = ["--set", "people.argon2_iterations=1"];
    let start = |failpoints: &str| Dev::start(BINARY, folder.path(), &cheap, failpoints);
    let process = start("jobs.clean-up.0=kill");
    let calls = Calls::of(&process).await;
    let (gone, other) = (calls.sign_up("gone").await, calls.sign_up("other").await);
    for number in 0..FOLLOWERS {
        let follower = calls.sign_up(&format!("follower{number}")).await;
        calls.follow(&follower, &gone).await;
    }
    calls.follow(&gone, &other).await;
    let request = BlockRequest { blocker_id: other.clone(), blocked_id: calls.sign_up("blocked").await };
    calls.0.block(request).await.expect("a block");
    for number in 0..FOLLOWERS {
        let request = CreatePostRequest {
            author_id: other.clone(),
            text: format!("post {number}"),
            ..CreatePostRequest::default()
        };
        let post_id = calls.0.create_post(request).await.expect("a post").post.expect("a post").id;
        calls.0.like(LikeRequest { user_id: gone.clone(), post_id }).await.expect("a like");
    }
    // The process dies with the first chunk: maybe before its answer, which says nothing then.
    let _ = calls.0.delete_account(DeleteAccountRequest { user_id: gone.clone() }).await;

    // Each time it dies after the chunk and before the checkpoint, so that each chunk is done twice.
    let mut process = process;
    for step in 1..=STEPS {
        process.ends().await;
        process = start(&format!("jobs.clean-up.{step}=kill"));
    }
    // Armed for a step that there is not, the last process lives.
    let calls = Calls::of(&process).await;
    let mut sql = Sql::connect(&format!("sqlite://{}/freshet.db", folder.path().display())).await;
    wait::until("the job to be through", async || {
        sql.texts("SELECT CAST(id AS TEXT) FROM jobs").await.is_empty().then_some(())
    })
    .await;
    nothing_is_left(&mut sql, &gone).await;
    let user = calls.0.get_user(GetUserRequest { user_id: other }).await.expect("an answer").user.expect("a user");
    assert_eq!(user.counters.expect("counters").followers, 0);
}
