//! Those who guess at passwords, and those who only sign in, in great numbers.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use chassis::{Error, Reason, token::Caller};
use futures_util::future::join_all;
use http::{Method, StatusCode};
use proto::freshet::user::v1::SignInRequest;
use serde_json::json;
use tests::{Pods, Sandbox, person::PASSWORD, stream::send};

/// As the product does it: the other stories hash cheaply.
const REAL_HASHING: [(&str, &str); 2] = [("people.argon2_memory_kib", "19456"), ("people.argon2_iterations", "2")];

fn is_told_to_come_back(error: &Error) -> Duration {
    assert_eq!(error.reason(), Reason::TooManyAttempts, "{error}");
    error.retry_after().expect("when")
}

#[tokio::test(flavor = "multi_thread")]
async fn tries_are_counted_over_all_pods_and_for_people_who_are_not_there() {
    let settings = [("people.attempts_pair_max", "3"), ("people.attempts_window", "10m")];
    let world = Sandbox::with_settings(Pods::TWO, &settings).await;
    let [ada] = world.people(["ada"]).await;
    for handle in ["ada", "nobody", "no handle at all"] {
        let mut answers = Vec::new();
        for turn in 0..8 {
            // Each call goes to the next pod.
            let service = world.timeline(Caller::Service("tests".into()));
            let password = format!("guess number {turn}");
            let address = "198.51.100.7".to_owned();
            let request = SignInRequest { handle: handle.into(), password, address, ..SignInRequest::default() };
            answers.push(service.sign_in(request).await.unwrap_err());
        }
        assert!(answers[..3].iter().all(|error| error.reason() == Reason::CredentialsWrong), "{handle}: {answers:?}");
        for error in &answers[3..] {
            assert!((590..=600).contains(&is_told_to_come_back(error).as_secs()), "{handle}: {error:?}");
        }
    }
    let right = ada.tries_to_sign_in(PASSWORD, "198.51.100.7").await.unwrap_err();
    is_told_to_come_back(&right);
    ada.tries_to_sign_in(PASSWORD, "198.51.100.8").await.expect("Ada comes from elsewhere");
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_do_not_shut_a_person_out() {
    let settings = [("people.attempts_pair_max", "2"), ("people.attempts_account_max", "5")];
    let world = Sandbox::with_settings(Pods::TWO, &settings).await;
    let [ada] = world.people(["ada"]).await;
    let phone = ada.tries_to_sign_in(PASSWORD, "192.0.2.1").await.expect("a session");
    // Guessers everywhere, at home and in the café too.
    let guess = async |address: &str| ada.tries_to_sign_in("not her password", address).await.unwrap_err();
    for number in 0..30 {
        guess(&format!("198.51.100.{number}")).await;
    }
    guess("203.0.113.1").await;
    is_told_to_come_back(&guess("203.0.113.1").await);

    ada.tries_to_sign_in(PASSWORD, "192.0.2.1").await.expect("at home");
    for _ in 0..2 {
        assert_eq!(guess("192.0.2.1").await.reason(), Reason::CredentialsWrong);
    }
    is_told_to_come_back(&guess("192.0.2.1").await);
    ada.tries_to_sign_in_on(PASSWORD, "192.0.2.1", &phone.device_secret).await.expect("on the known phone");
    ada.tries_to_sign_in_on(PASSWORD, "203.0.113.1", &phone.device_secret).await.expect("in the café");
    ada.tries_to_sign_in(PASSWORD, "203.0.113.9").await.expect("at a new place, at the first try");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_own_old_password_can_be_guessed_at_no_more_than_that() {
    let world = Sandbox::with_settings(Pods::TWO, &[("people.attempts_pair_max", "3")]).await;
    let [ada] = world.people(["ada"]).await;
    let change = async |old: &str| ada.tries_to_change_password(old, "a better password", "").await.unwrap_err();
    for _ in 0..3 {
        assert_eq!(change("not her password").await.reason(), Reason::CredentialsWrong);
    }
    is_told_to_come_back(&change(PASSWORD).await);
    ada.signs_in().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn browsers_are_told_when_to_come_back_and_known_by_their_cookie() {
    let settings = [("people.attempts_pair_max", "2"), ("edge.proxies", "1")];
    let world = Sandbox::with_settings(Pods::ONE, &settings).await;
    let [_ada] = world.people(["ada"]).await;
    let try_with = async |password: &str, cookie: Option<&str>| {
        let body = json!({"handle": "ada", "password": password});
        send(world.edge(), Method::POST, "/session", cookie, Some(&body)).await
    };
    let opened = try_with(PASSWORD, None).await;
    let cookies: Vec<_> = opened.headers().get_all("set-cookie").iter().map(|value| value.to_str().unwrap()).collect();
    let device = cookies.iter().find(|cookie| cookie.starts_with("freshet_device=")).expect("a device's cookie");
    assert!(device.contains("; HttpOnly"), "{device}");
    let device = device.split(';').next().unwrap();

    for _ in 0..2 {
        assert_eq!(try_with("not her password", None).await.status(), StatusCode::UNAUTHORIZED);
    }
    let refused = try_with(PASSWORD, None).await;
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    let after: u64 = refused.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((800..=900).contains(&after), "{after}");
    assert_eq!(try_with(PASSWORD, Some(device)).await.status(), StatusCode::CREATED);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_handle_takes_as_long_as_a_wrong_password() {
    let settings = [&REAL_HASHING[..], &[("people.attempts_pair_max", "1000")]].concat();
    let world = Sandbox::with_settings(Pods::ONE, &settings).await;
    let [_ada] = world.people(["ada"]).await;
    let service = world.timeline(Caller::Service("tests".into()));
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..15 {
        for (handle, times) in ["ada", "nobody"].into_iter().zip(&mut times) {
            let [handle, password, address] = [handle, "not her password", "192.0.2.1"].map(str::to_owned);
            let began = Instant::now();
            let request = SignInRequest { handle, password, address, ..SignInRequest::default() };
            let answer = service.sign_in(request).await.unwrap_err();
            times.push(began.elapsed());
            assert_eq!(answer.reason(), Reason::CredentialsWrong);
        }
    }
    let [wrong, unknown] = times.map(|times| median(times).as_secs_f64());
    // Without the hashing an unknown handle is answered in a hundredth of the time.
    assert!(
        (0.5..2.0).contains(&(unknown / wrong)),
        "{unknown} s for an unknown handle, {wrong} s for a wrong password"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_sign_ins_does_not_stall_reads() {
    let limits =
        [("people.hashings_max", "1"), ("people.hashings_waiting_max", "3"), ("people.attempts_pair_max", "1000")];
    let world = Sandbox::with_settings(Pods::ONE, &[&REAL_HASHING[..], &limits].concat()).await;
    let [ada] = world.people(["ada"]).await;
    let is_over = AtomicBool::new(false);
    let flood = join_all((0..20).map(async |_| {
        let mut opened = Vec::new();
        let mut refused = 0;
        while !is_over.load(Ordering::Relaxed) {
            let began = Instant::now();
            match ada.tries_to_sign_in(PASSWORD, "192.0.2.1").await {
                Ok(_) => opened.push(began.elapsed()),
                Err(error) => {
                    let after = Some(Duration::from_secs(1));
                    assert_eq!((error.reason(), error.retry_after()), (Reason::Overloaded, after), "{error}");
                    refused += 1;
                }
            }
        }
        (opened, refused)
    }));
    let reads = async {
        let mut times = Vec::new();
        for _ in 0..100 {
            let began = Instant::now();
            ada.sees(&ada).await.unwrap();
            times.push(began.elapsed());
        }
        is_over.store(true, Ordering::Relaxed);
        times
    };
    let (flood, reads) = tokio::join!(flood, reads);
    let refused: usize = flood.iter().map(|(_, refused)| refused).sum();
    assert!(refused > 0, "nobody was sent away");
    let sign_in = median(flood.into_iter().flat_map(|(opened, _)| opened).collect());
    let read = median(reads);
    assert!(read < sign_in / 2, "a read took {read:?} beside sign-ins that took {sign_in:?}");
    ada.signs_in().await;
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
