//! The gRPC set-up of every role, seen from a caller: tokens, deadlines, sizes, panics, health, reflection.
#![expect(clippy::unwrap_used, reason = "a test fails where it panics")]

use std::{net::SocketAddr, sync::Arc, time::Duration};

use chassis::{
    Error, Pod, Reason, clock,
    config::{Flag, Keys, Layers},
    drain::drain,
    grpc::{self, Attach, answer, connect, from_status},
    token::{Caller, Keyring},
};
use proto::freshet::{
    pod::v1::{GetHealthRequest, GetHealthResponse, Trouble, pod_service_client::PodServiceClient},
    ranking::v1::{
        ListHotPostsRequest, ListHotPostsResponse,
        ranking_service_client::RankingServiceClient,
        ranking_service_server::{RankingService, RankingServiceServer},
    },
};
use tokio::net::TcpListener;
use tonic::{Code, Request, Response, Status};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};

/// Does what the request's day says.
struct Obedient;

#[tonic::async_trait]
impl RankingService for Obedient {
    async fn list_hot_posts(
        &self,
        request: Request<ListHotPostsRequest>,
    ) -> Result<Response<ListHotPostsResponse>, Status> {
        answer(request, async |wire| match wire.day.as_deref() {
            Some("panic") => panic!("as told"),
            Some("hang") => std::future::pending().await,
            _ => Ok(ListHotPostsResponse::default()),
        })
        .await
    }
}

struct Served {
    pod: Pod,
    address: SocketAddr,
    keyring: Keyring,
}

impl Served {
    async fn with(settings: &[(&str, &str)]) -> Self {
        let flag =
            |(key, value): &(&str, &str)| Flag { key: (*key).into(), value: (*value).into(), typed: "the test".into() };
        let mut keys = Keys::new(Layers::load(None, [], settings.iter().map(flag).collect()).unwrap());
        let config = grpc::Config::read(&mut keys);
        keys.finish().unwrap();
        let keyring = Keyring::parse(&format!("k:{}", "A".repeat(43)), Arc::new(clock::System)).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let pod = Pod::new("obedient");
        let server = grpc::Server::default().with(RankingServiceServer::new(Obedient));
        server.spawn(&pod, &config, keyring.clone(), listener).unwrap();
        pod.health.set_ready(true);
        Self { pod, address, keyring }
    }

    async fn call(&self, day: &str, timeout: Option<Duration>) -> Result<(), Error> {
        let channel = connect(&self.url()).unwrap();
        let attach = Attach::new(self.keyring.clone(), Caller::Service("tests".into()));
        let mut request = Request::new(ListHotPostsRequest { day: Some(day.to_owned()), limit: None });
        if let Some(timeout) = timeout {
            request.set_timeout(timeout);
        }
        let mut client = RankingServiceClient::with_interceptor(channel, attach);
        client.list_hot_posts(request).await.map(|_| ()).map_err(|status| from_status(&status))
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

#[tokio::test]
async fn a_panic_is_internal_and_counted_and_the_pod_lives() {
    let served = Served::with(&[]).await;
    let error = served.call("panic", None).await.unwrap_err();
    assert_eq!(error.reason(), Reason::Internal);
    assert!(!error.message().contains("as told"), "the caller learns nothing of the inside: {error}");
    assert_eq!(served.pod.metrics.panics_of("/freshet.ranking.v1.RankingService/ListHotPosts"), 1);
    let page = served.pod.metrics.exposition();
    assert!(page.contains("freshet_handler_panics_total{method="), "{page}");
    served.call("today", None).await.unwrap();
}

#[tokio::test]
async fn the_callers_deadline_and_the_servers_own_are_kept() {
    let served = Served::with(&[("grpc.deadline_max", "200ms")]).await;
    for timeout in [Some(Duration::from_millis(50)), Some(Duration::from_secs(60)), None] {
        let error = served.call("hang", timeout).await.unwrap_err();
        assert_eq!(error.reason(), Reason::DeadlineExceeded, "{timeout:?}: {error}");
    }
    served.call("today", None).await.unwrap();
}

#[tokio::test]
async fn a_request_over_the_limit_is_refused_by_name() {
    let served = Served::with(&[("grpc.request_bytes_max", "1024")]).await;
    let error = served.call(&"x".repeat(2000), None).await.unwrap_err();
    assert_eq!(error.reason(), Reason::RequestTooLarge);
    assert!(error.message().contains("1024 bytes"), "{error}");
    served.call("today", None).await.unwrap();
}

#[tokio::test]
async fn health_is_told_per_service_without_a_token() {
    let served = Served::with(&[]).await;
    let mut health = HealthClient::new(connect(&served.url()).unwrap());
    let mut check = async |service: &str| {
        let request = HealthCheckRequest { service: service.into() };
        health.check(request).await.map(|answer| answer.into_inner().status().as_str_name())
    };
    for service in ["", "freshet.ranking.v1.RankingService"] {
        // The report follows the pod's health by a moment.
        while check(service).await.unwrap_or("UNKNOWN") != "SERVING" {
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(check("freshet.post.v1.PostService").await.unwrap_err().code(), Code::NotFound);
    served.pod.health.set_ready(false);
    while check("").await.unwrap() != "NOT_SERVING" {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn reflection_can_be_switched_off() {
    use tonic_reflection::pb::v1::{
        ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
        server_reflection_request::MessageRequest,
    };
    for (reflection, expected) in [("true", Code::Ok), ("false", Code::Unimplemented)] {
        let served = Served::with(&[("grpc.reflection", reflection)]).await;
        let mut client = ServerReflectionClient::new(connect(&served.url()).unwrap());
        let message_request = Some(MessageRequest::ListServices(String::new()));
        let ask = ServerReflectionRequest { host: String::new(), message_request };
        let answer = client.server_reflection_info(tokio_stream::once(ask)).await;
        assert_eq!(answer.map_or_else(|status| status.code(), |_| Code::Ok), expected, "reflection = {reflection}");
    }
}

#[tokio::test]
async fn a_draining_server_finishes_the_call_under_way() {
    let served = Served::with(&[("grpc.deadline_max", "300ms")]).await;
    let call = served.call("hang", None);
    let drained = async {
        // By now the call is on its way; it ends by its deadline, not by the drain.
        tokio::time::sleep(Duration::from_millis(50)).await;
        drain(&served.pod, Duration::from_secs(10)).await
    };
    let (called, drained) = tokio::join!(call, drained);
    assert_eq!(called.unwrap_err().reason(), Reason::DeadlineExceeded);
    assert_eq!(drained, chassis::drain::Drained::Cleanly);
    assert_eq!(served.call("today", None).await.unwrap_err().reason(), Reason::Unavailable);
}

#[tokio::test]
async fn a_degraded_pod_is_ready_and_says_what_it_waits_for() {
    let served = Served::with(&[]).await;
    let health = async |caller: Caller| {
        let attach = Attach::new(served.keyring.clone(), caller);
        let mut client = PodServiceClient::with_interceptor(connect(&served.url()).unwrap(), attach);
        client.get_health(GetHealthRequest {}).await.map(Response::into_inner)
    };
    let service = || Caller::Service("tests".into());
    assert!(served.pod.health.degrade("relay posts/3", "the sets are not available".into()));
    assert!(!served.pod.health.degrade("relay posts/3", "the sets do not answer".into()), "it is told once");
    let trouble = Trouble { part: "relay posts/3".into(), cause: "the sets do not answer".into() };
    let expected = GetHealthResponse { pod: "obedient".into(), ready: true, troubles: vec![trouble] };
    assert_eq!(health(service()).await.unwrap(), expected);
    assert!(served.pod.health.recover("relay posts/3") && !served.pod.health.recover("relay posts/3"));
    assert_eq!(health(service()).await.unwrap().troubles, []);
    let person = Caller::User(proto::UserId::new(7).unwrap());
    assert_eq!(health(person).await.unwrap_err().code(), Code::PermissionDenied);
}
