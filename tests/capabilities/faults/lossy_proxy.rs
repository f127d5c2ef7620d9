//! The line between a gateway and its Postgres, which can lose the answer to a commit.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// A port that leads to a server.
pub(super) struct Line {
    port: u16,
    cut: Arc<AtomicBool>,
    _tasks: JoinSet<()>,
}

impl Line {
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
                    // A server that is away ends the call.
                    if let Ok(server) = TcpStream::connect(("127.0.0.1", port)).await {
                        Box::pin(carry(gateway, server, &at_commit)).await.ok();
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

    /// The next commit is carried out, and nobody hears of it.
    pub(super) fn loses_the_answer_to_the_next_commit(&self) {
        self.cut.store(true, Ordering::Release);
    }

    pub(super) fn has_lost_it(&self) -> bool {
        !self.cut.load(Ordering::Acquire)
    }
}

async fn carry(
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
                    // Done at the server once it answers.
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
