//! Lossy proxy: stands between a gateway and its Postgres. It can lose the reply to a commit, and it can
//! swallow a connection in the middle of a transaction, with both ends left open.

use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// A TCP proxy in front of a Postgres server.
pub(super) struct LossyProxy {
    port: u16,
    plan: Arc<Plan>,
    _tasks: JoinSet<()>,
}

/// The faults that are due.
#[derive(Default)]
struct Plan {
    loses_commit_reply: AtomicBool,
    /// After this many statements of a transaction its connection falls silent; 0: never.
    swallows_after: AtomicUsize,
    swallows_all: Notify,
}

impl LossyProxy {
    pub(super) async fn to(port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let own = listener.local_addr().unwrap().port();
        let plan = Arc::new(Plan::default());
        let mut tasks = JoinSet::new();
        let faults = Arc::clone(&plan);
        tasks.spawn(async move {
            let mut calls = JoinSet::new();
            while let Ok((gateway, _)) = listener.accept().await {
                let faults = Arc::clone(&faults);
                calls.spawn(async move {
                    // An unreachable server closes the connection.
                    if let Ok(server) = TcpStream::connect(("127.0.0.1", port)).await {
                        Box::pin(forward(gateway, server, &faults)).await.ok();
                    }
                });
            }
        });
        Self {
            port: own,
            plan,
            _tasks: tasks,
        }
    }

    pub(super) fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// Drops the reply to the next commit, which is carried out.
    pub(super) fn loses_next_commit_reply(&self) {
        self.plan.loses_commit_reply.store(true, Ordering::Release);
    }

    pub(super) fn has_lost_reply(&self) -> bool {
        !self.plan.loses_commit_reply.load(Ordering::Acquire)
    }

    /// The next transaction's connection falls silent once the server has carried out this many of its
    /// statements. Both ends stay open, as behind a firewall that forgot the connection.
    pub(super) fn swallows_transaction_after(&self, statements: usize) {
        self.plan
            .swallows_after
            .store(statements, Ordering::Release);
    }

    /// All connections that are open fall silent; new ones work.
    pub(super) fn swallows_open_connections(&self) {
        self.plan.swallows_all.notify_waiters();
    }

    pub(super) fn has_swallowed(&self) -> bool {
        self.plan.swallows_after.load(Ordering::Acquire) == 0
    }
}

async fn forward(
    mut gateway: TcpStream,
    mut server: TcpStream,
    faults: &Plan,
) -> std::io::Result<()> {
    let (mut asked, mut answered) = ([0; 16 * 1024], [0; 16 * 1024]);
    // Statements since the transaction began.
    let mut statements = None;
    let mut swallowed = pin!(faults.swallows_all.notified());
    loop {
        tokio::select! {
            () = &mut swallowed => return pending().await,
            read = gateway.read(&mut asked) => {
                let bytes = &asked[..read?];
                if bytes.is_empty() {
                    return Ok(());
                }
                server.write_all(bytes).await?;
                let contains = |word: &[u8]| bytes.windows(word.len()).any(|part| part == word);
                if contains(b"COMMIT") && faults.loses_commit_reply.load(Ordering::Acquire) {
                    // The server has committed once it answers.
                    server.readable().await?;
                    faults.loses_commit_reply.store(false, Ordering::Release);
                    return Ok(());
                }
                statements = match statements {
                    _ if contains(b"BEGIN") => Some(0),
                    // A statement is executed by its Bind; before that it may be prepared.
                    Some(before) if bytes[0] == b'B' => Some(before + 1),
                    other => other,
                };
                let due = faults.swallows_after.load(Ordering::Acquire);
                if due > 0 && statements == Some(due) {
                    // The statement has been carried out once the server answers.
                    server.readable().await?;
                    faults.swallows_after.store(0, Ordering::Release);
                    return pending().await;
                }
            }
            read = server.read(&mut answered) => {
                let bytes = &answered[..read?];
                if bytes.is_empty() {
                    return Ok(());
                }
                gateway.write_all(bytes).await?;
            }
        }
    }
}
