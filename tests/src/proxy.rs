//! A TCP proxy in front of a server: it can cut every connection, slow them down, or lose the answers only.

use std::{
    net::SocketAddr,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
};

const CHUNK_BYTES: usize = 64 * 1024;

/// What happens to what passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weather {
    /// Everything passes.
    Clear,
    /// Open connections are cut, new ones are closed at once.
    Cut,
    /// Everything passes so much later, both ways.
    Slow(Duration),
    /// The server gets every request, and its answers are lost: nobody knows what was done.
    AnswersLost,
    /// The same, for each connection from when its client has said this: `COMMIT` is heard, and not answered.
    AnswersLostAfter(&'static str),
}

impl Weather {
    const fn loses_answers(self) -> bool {
        matches!(self, Self::AnswersLost | Self::AnswersLostAfter(_))
    }
}

/// A proxy. It ends with the test's runtime.
pub struct Proxy {
    address: SocketAddr,
    sky: watch::Sender<Sky>,
}

/// The weather, and how often it cut connections: those from before the last cut end, whenever they look.
#[derive(Clone, Copy)]
struct Sky {
    weather: Weather,
    cuts: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Requests,
    Answers,
}

impl Proxy {
    /// A proxy on a free port in front of this server.
    pub async fn in_front_of(server: SocketAddr) -> Self {
        Self::on(SocketAddr::from(([127, 0, 0, 1], 0)), server).await
    }

    /// A proxy on this address in front of this server.
    pub async fn on(address: SocketAddr, server: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).await.expect("a port for the proxy");
        let address = listener.local_addr().expect("its address");
        let sky = watch::Sender::new(Sky { weather: Weather::Clear, cuts: 0 });
        let seen = sky.clone();
        spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                spawn(serve(client, server, seen.subscribe()));
            }
        });
        Self { address, sky }
    }

    /// Where clients connect.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Changes what happens to what passes, from now on. A connection whose answers were lost is cut when that ends: no
    /// network gives later answers to earlier requests.
    pub fn set(&self, weather: Weather) {
        self.sky.send_modify(|sky| {
            sky.cuts += u64::from(weather == Weather::Cut || sky.weather.loses_answers());
            sky.weather = weather;
        });
    }
}

#[expect(clippy::disallowed_methods, reason = "a proxy's tasks end with the test's runtime")]
fn spawn(task: impl Future<Output = ()> + Send + 'static) {
    tokio::spawn(task);
}

async fn serve(client: TcpStream, server: SocketAddr, sky: watch::Receiver<Sky>) {
    let Sky { weather, cuts } = *sky.borrow();
    if weather == Weather::Cut {
        return;
    }
    let Ok(upstream) = TcpStream::connect(server).await else { return };
    _ = (client.set_nodelay(true), upstream.set_nodelay(true));
    let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), upstream.into_split());
    let has_said_it = AtomicBool::new(false);
    // When one way ends, so does the other: a peer that is gone is gone.
    tokio::select! {
        () = pump(Way::Requests, from_client, to_server, sky.clone(), &has_said_it) => {}
        () = pump(Way::Answers, from_server, to_client, sky.clone(), &has_said_it) => {}
        () = until_cut(sky, cuts) => {}
    }
}

async fn pump(
    way: Way,
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    sky: watch::Receiver<Sky>,
    has_said_it: &AtomicBool,
) {
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let Ok(bytes @ 1..) = from.read(&mut chunk).await else { return };
        let weather = sky.borrow().weather;
        match weather {
            Weather::Cut => return,
            Weather::AnswersLost if way == Way::Answers => continue,
            Weather::AnswersLostAfter(_) if way == Way::Answers && has_said_it.load(Ordering::SeqCst) => continue,
            // Before the server gets it, so that its answer cannot come first.
            Weather::AnswersLostAfter(text) if way == Way::Requests && contains(&chunk[..bytes], text) => {
                has_said_it.store(true, Ordering::SeqCst);
            }
            Weather::Slow(delay) => tokio::time::sleep(delay).await,
            Weather::Clear | Weather::AnswersLost | Weather::AnswersLostAfter(_) => {}
        }
        if to.write_all(&chunk[..bytes]).await.is_err() {
            return;
        }
    }
}

fn contains(chunk: &[u8], text: &str) -> bool {
    chunk.windows(text.len()).any(|window| window == text.as_bytes())
}

async fn until_cut(mut sky: watch::Receiver<Sky>, cuts: u64) {
    if sky.wait_for(|sky| sky.cuts != cuts).await.is_err() {
        std::future::pending::<()>().await;
    }
}
