//! The link between a spoke and the hub: a TCP proxy that can be cut and healed. What stands behind it keeps running,
//! as with a real network that fails.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use anyhow::{Context, Result};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream, tcp},
    sync::watch,
    task::AbortHandle,
};

/// Bytes forwarded at a time.
const CHUNK: usize = 16 * 1024;

/// How a link is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// Packets vanish: connections stay open and nothing gets through, either way; new ones are taken and say nothing.
    /// After healing, what was held goes on, as TCP does after a short outage.
    BlackHole,
    /// Connections are closed, and new ones as soon as they are made.
    Reset,
}

/// A link that is cut while this lives.
#[derive(Debug)]
pub struct CutLink<'a>(&'a Proxy);

impl Drop for CutLink<'_> {
    fn drop(&mut self) {
        self.0.heal();
    }
}

/// What went through a link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes from the dialling side to the target.
    pub up: u64,
    /// Bytes from the target to the dialling side.
    pub down: u64,
    /// Connections made by the dialling side, including those closed at once while cut.
    pub connections: u64,
}

/// A proxy on a loopback port. Dropping it closes the port and all connections.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    link: watch::Sender<Link>,
    counters: Arc<Counters>,
    task: AbortHandle,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Link {
    Open,
    Held,
    Closed,
}

#[derive(Debug, Default)]
struct Counters {
    up: AtomicU64,
    down: AtomicU64,
    connections: AtomicU64,
}

impl Proxy {
    /// Listens on a free loopback port and forwards to `target`, which need not listen yet.
    pub async fn start(target: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("listen")?;
        let address = listener.local_addr()?;
        let (link, state) = watch::channel(Link::Open);
        let counters = Arc::new(Counters::default());
        let accepting = accept(listener, target, state, Arc::clone(&counters));
        let task = tokio::spawn(accepting).abort_handle();
        Ok(Self { address, link, counters, task })
    }

    /// Where to dial instead of the target.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Cuts the link. Holds until [`Proxy::heal`].
    pub fn cut(&self, cut: Cut) {
        self.link.send_replace(match cut {
            Cut::BlackHole => Link::Held,
            Cut::Reset => Link::Closed,
        });
    }

    /// Cuts the link until the guard is dropped, so that a test that fails leaves no link cut.
    #[must_use = "dropping the guard heals the link"]
    pub fn cut_until_dropped(&self, cut: Cut) -> CutLink<'_> {
        self.cut(cut);
        CutLink(self)
    }

    /// Lets everything through again.
    pub fn heal(&self) {
        self.link.send_replace(Link::Open);
    }

    /// What went through so far.
    pub fn traffic(&self) -> Traffic {
        Traffic {
            up: self.counters.up.load(Ordering::Relaxed),
            down: self.counters.down.load(Ordering::Relaxed),
            connections: self.counters.connections.load(Ordering::Relaxed),
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
        // Connections run in tasks of their own: they see the link closed.
        self.link.send_replace(Link::Closed);
    }
}

async fn accept(
    listener: TcpListener,
    target: SocketAddr,
    state: watch::Receiver<Link>,
    counters: Arc<Counters>,
) {
    loop {
        // Accepting fails for the moment only (out of file descriptors): the next connection may do.
        let Ok((client, _)) = listener.accept().await else {
            tokio::task::yield_now().await;
            continue;
        };
        counters.connections.fetch_add(1, Ordering::Relaxed);
        tokio::spawn(serve(client, target, state.clone(), Arc::clone(&counters)));
    }
}

/// Forwards one connection until either side or the link closes it.
async fn serve(
    client: TcpStream,
    target: SocketAddr,
    mut state: watch::Receiver<Link>,
    counters: Arc<Counters>,
) -> Option<()> {
    open(&mut state).await?;
    let server = TcpStream::connect(target).await.ok()?;
    client.set_nodelay(true).ok()?;
    server.set_nodelay(true).ok()?;
    let (client_in, client_out) = client.into_split();
    let (server_in, server_out) = server.into_split();
    tokio::select! {
        _ = closed(state.clone()) => {}
        () = both(
            forward(client_in, server_out, state.clone(), &counters.up),
            forward(server_in, client_out, state, &counters.down),
        ) => {}
    }
    Some(())
}

async fn both(up: impl Future<Output = Option<()>>, down: impl Future<Output = Option<()>>) {
    tokio::join!(up, down);
}

/// Copies one direction while the link is open; passes on the end of the stream.
async fn forward(
    mut from: tcp::OwnedReadHalf,
    mut to: tcp::OwnedWriteHalf,
    mut state: watch::Receiver<Link>,
    counter: &AtomicU64,
) -> Option<()> {
    let mut chunk = vec![0; CHUNK];
    loop {
        let read = from.read(&mut chunk).await.ok()?;
        // What was read before a cut is still on its way: it arrives, or not, as the link then is.
        open(&mut state).await?;
        if read == 0 {
            return to.shutdown().await.ok();
        }
        to.write_all(chunk.get(..read)?).await.ok()?;
        counter.fetch_add(u64::try_from(read).ok()?, Ordering::Relaxed);
    }
}

/// Waits until the link is open; `None` when it is closed.
async fn open(state: &mut watch::Receiver<Link>) -> Option<()> {
    let link = *state.wait_for(|link| *link != Link::Held).await.ok()?;
    (link == Link::Open).then_some(())
}

/// Waits until the link is closed, or its proxy is gone.
async fn closed(mut state: watch::Receiver<Link>) -> bool {
    state.wait_for(|link| *link == Link::Closed).await.is_ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A server that sends back what it gets.
    async fn echo() -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut from, mut to) = stream.split();
                    tokio::io::copy(&mut from, &mut to).await.ok();
                });
            }
        });
        address
    }

    async fn answer(stream: &mut TcpStream) -> std::io::Result<u8> {
        let mut byte = [0];
        stream.read_exact(&mut byte).await?;
        Ok(byte[0])
    }

    #[tokio::test]
    async fn a_black_hole_holds_and_healing_lets_go() {
        let proxy = Proxy::start(echo().await).await.unwrap();
        let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
        stream.write_all(b"a").await.unwrap();
        assert_eq!(answer(&mut stream).await.unwrap(), b'a');
        proxy.cut(Cut::BlackHole);
        stream.write_all(b"b").await.unwrap();
        let mut late = TcpStream::connect(proxy.address()).await.unwrap();
        late.write_all(b"c").await.unwrap();
        let nothing = tokio::time::timeout(Duration::from_millis(100), answer(&mut stream)).await;
        assert!(nothing.is_err(), "an answer got through a cut link");
        assert_eq!(proxy.traffic().up, 1);
        proxy.heal();
        assert_eq!(answer(&mut stream).await.unwrap(), b'b');
        assert_eq!(answer(&mut late).await.unwrap(), b'c');
        let traffic = proxy.traffic();
        assert_eq!((traffic.up, traffic.connections), (3, 2));
    }

    #[tokio::test]
    async fn a_reset_closes_what_is_open_and_what_is_tried() {
        let proxy = Proxy::start(echo().await).await.unwrap();
        let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
        stream.write_all(b"a").await.unwrap();
        assert_eq!(answer(&mut stream).await.unwrap(), b'a');
        proxy.cut(Cut::Reset);
        assert!(answer(&mut stream).await.is_err());
        let mut tried = TcpStream::connect(proxy.address()).await.unwrap();
        assert!(answer(&mut tried).await.is_err());
        proxy.heal();
        let mut again = TcpStream::connect(proxy.address()).await.unwrap();
        again.write_all(b"d").await.unwrap();
        assert_eq!(answer(&mut again).await.unwrap(), b'd');
    }

    #[tokio::test]
    async fn dropping_it_closes_connections() {
        let proxy = Proxy::start(echo().await).await.unwrap();
        let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
        stream.write_all(b"a").await.unwrap();
        assert_eq!(answer(&mut stream).await.unwrap(), b'a');
        drop(proxy);
        assert!(answer(&mut stream).await.is_err());
    }
}
