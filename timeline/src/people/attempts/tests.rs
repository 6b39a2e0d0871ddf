//! What a guesser can do, and what the person can whom they guess at.

use chassis::{clock::Manual, random::Seeded};
use store::sets::Memory;

use super::*;

const WINDOW_MS: i64 = 900_000;

struct World {
    attempts: Attempts,
    clock: Manual,
}

impl World {
    fn new() -> Self {
        let clock = Manual::at_unix_ms(1_790_000_000_000);
        let random = Arc::new(Seeded::new(1));
        let store = Arc::new(Memory::new(Arc::new(clock.clone()), random.clone()));
        let window = Duration::from_millis(WINDOW_MS.unsigned_abs());
        let config = Config { window, pair_max: 3, account_max: 10, address_max: 20 };
        Self { attempts: Attempts::new(store, random, config), clock }
    }

    async fn wrong(&self, handle: &str, from: &Source) -> Result<(), Error> {
        let ticket = self.attempts.begin(&Who::with_handle(handle), from).await?;
        assert!(ticket.judge::<()>(&self.attempts, Ok(None)).await.unwrap().is_none());
        Ok(())
    }

    async fn right(&self, handle: &str, from: &Source) -> Result<(), Error> {
        let who = Who::with_handle(handle);
        let ticket = self.attempts.begin(&who, from).await?;
        assert!(ticket.judge(&self.attempts, Ok(Some(()))).await.unwrap().is_some());
        let device = from.device.clone().unwrap_or_else(|| DeviceSecret("one that is thrown away".into()));
        self.attempts.remember(&who, &from.address, &device).await
    }
}

fn from(address: &str) -> Source {
    Source { address: address.parse().unwrap(), device: None }
}

fn on_device(address: &str, number: u64) -> Source {
    Source { device: Some(DeviceSecret::new(&Seeded::new(number))), ..from(address) }
}

fn is_refused(answer: Result<(), Error>) -> Duration {
    let error = answer.unwrap_err();
    assert_eq!(error.reason(), Reason::TooManyAttempts);
    error.retry_after().expect("when to come back")
}

#[tokio::test]
async fn an_address_has_so_many_tries_at_an_account_and_is_told_when_to_come_back() {
    let world = World::new();
    for _ in 0..3 {
        world.wrong("ada", &from("192.0.2.1")).await.unwrap();
        world.clock.turn_ms(1000);
    }
    let after = is_refused(world.right("Ada", &from("192.0.2.1")).await);
    assert_eq!(after, Duration::from_millis(WINDOW_MS.unsigned_abs() - 3000));
    world.wrong("lin", &from("192.0.2.1")).await.unwrap();
    world.right("ada", &from("192.0.2.2")).await.unwrap();
    world.clock.turn_ms(after.as_millis() as i64);
    world.right("ada", &from("192.0.2.1")).await.unwrap();
}

#[tokio::test]
async fn right_tries_and_those_that_nobody_could_judge_do_not_count() {
    let world = World::new();
    for _ in 0..50 {
        world.right("ada", &from("192.0.2.1")).await.unwrap();
        let ticket = world.attempts.begin(&Who::with_handle("lin"), &from("192.0.2.1")).await.unwrap();
        let failed = ticket.judge::<()>(&world.attempts, Err(Error::new(Reason::Overloaded, ""))).await;
        assert_eq!(failed.unwrap_err().reason(), Reason::Overloaded);
    }
}

#[tokio::test]
async fn an_address_has_so_many_tries_over_all_accounts() {
    let world = World::new();
    for number in 0..20 {
        world.wrong(&format!("person{number}"), &from("192.0.2.1")).await.unwrap();
    }
    is_refused(world.wrong("another", &from("192.0.2.1")).await);
    // What was refused did not count against the account.
    for number in 0..3 {
        world.wrong("another", &from(&format!("192.0.2.{}", number + 2))).await.unwrap();
    }
}

#[tokio::test]
async fn guessers_from_many_addresses_are_slowed_down_and_shut_nobody_out() {
    let world = World::new();
    world.right("ada", &on_device("198.51.100.1", 7)).await.unwrap();
    for number in 0..10 {
        world.wrong("ada", &from(&format!("192.0.2.{number}"))).await.unwrap();
    }
    // The account has had too many: from now on an unknown address has one try, however many there are of them.
    for number in 100..200 {
        world.wrong("ada", &from(&format!("192.0.2.{number}"))).await.unwrap();
        is_refused(world.wrong("ada", &from(&format!("192.0.2.{number}"))).await);
    }
    // At home, on the known phone elsewhere, and at a new place with the right password, Ada gets in.
    world.wrong("ada", &from("198.51.100.1")).await.unwrap();
    world.wrong("ada", &from("198.51.100.1")).await.unwrap();
    world.right("ada", &from("198.51.100.1")).await.unwrap();
    world.right("ada", &on_device("192.0.2.150", 7)).await.unwrap();
    world.right("ada", &from("203.0.113.9")).await.unwrap();
}

#[tokio::test]
async fn a_stranger_behind_the_same_address_does_not_stop_a_known_device() {
    let world = World::new();
    world.right("ada", &on_device("192.0.2.1", 7)).await.unwrap();
    for _ in 0..3 {
        world.wrong("ada", &from("192.0.2.1")).await.unwrap();
    }
    is_refused(world.wrong("ada", &on_device("192.0.2.1", 8)).await);
    world.right("ada", &on_device("192.0.2.1", 7)).await.unwrap();
    for _ in 0..3 {
        world.wrong("ada", &on_device("192.0.2.1", 7)).await.unwrap();
    }
    is_refused(world.wrong("ada", &on_device("192.0.2.1", 7)).await);
}

#[tokio::test]
async fn of_many_tries_at_once_no_more_than_may_be_begin() {
    let world = World::new();
    let (who, source) = (Who::with_handle("ada"), from("192.0.2.1"));
    let mut begun = Vec::new();
    for _ in 0..10 {
        begun.extend(world.attempts.begin(&who, &source).await.ok());
    }
    assert_eq!(begun.len(), 3);
}

#[test]
fn addresses_are_compared_by_what_one_person_has() {
    let address = |text: &str| text.parse::<Address>().unwrap();
    assert_eq!(address("192.0.2.1"), address("::ffff:192.0.2.1"));
    assert_eq!(address("2001:db8::1"), address("2001:db8::ffff:1"));
    assert_ne!(address("2001:db8::1"), address("2001:db8:0:1::1"));
    for bad in ["", "localhost", "192.0.2", "192.0.2.1:80", "[::1]"] {
        assert_eq!(bad.parse::<Address>(), Err(InvalidAddress), "{bad:?}");
    }
}
