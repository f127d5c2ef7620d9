//! Lossy proxy: stands between a gateway and its Postgres and can lose the reply to a commit.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// A TCP proxy in front of a Postgres server.
pub(super) struct LossyProxy {
    port: u16,
    cut: Arc<AtomicBool>,
    _tasks: JoinSet<()>,
}

impl LossyProxy {
    pub(super) async fn to(port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let own = listener.local_addr().unwrap().port();
        let cut = Arc::new(AtomicBool::new(false));
        let mut tasks = JoinSet::new();
        let at_commit = Arc::clone(&cut);
        tasks.spawn(async move {
            let mut calls = JoinSet::new();
            while let Ok((gateway, _)) = listener.accept().await {
                let at_commit = Arc::clone(&at_commit);
                calls.spawn(async move {
                    // An unreachable server closes the connection.
                    if let Ok(server) = TcpStream::connect(("127.0.0.1", port)).await {
                        Box::pin(forward(gateway, server, &at_commit)).await.ok();
                    }
                });
            }
        });
        Self {
            port: own,
            cut,
            _tasks: tasks,
        }
    }

    pub(super) fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// Drops the reply to the next commit, which is carried out.
    pub(super) fn loses_next_commit_reply(&self) {
        self.cut.store(true, Ordering::Release);
    }

    pub(super) fn has_lost_reply(&self) -> bool {
        !self.cut.load(Ordering::Acquire)
    }
}

async fn forward(
    mut gateway: TcpStream,
    mut server: TcpStream,
    at_commit: &AtomicBool,
) -> std::io::Result<()> {
    let (mut asked, mut answered) = ([0; 16 * 1024], [0; 16 * 1024]);
    loop {
        tokio::select! {
            read = gateway.read(&mut asked) => {
                let bytes = &asked[..read?];
                if bytes.is_empty() {
                    return Ok(());
                }
                server.write_all(bytes).await?;
                let commits = bytes.windows(6).any(|word| word == b"COMMIT");
                if commits && at_commit.load(Ordering::Acquire) {
                    // The server has committed once it answers.
                    server.readable().await?;
                    at_commit.store(false, Ordering::Release);
                    return Ok(());
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
