//! nginx: a real one in front of a gateway.

use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// A running nginx; ended when dropped.
pub(crate) struct Nginx {
    process: Child,
    _dir: TempDir,
}

impl Nginx {
    /// Serves a gateway under a path, as documented.
    pub(crate) fn start(port: u16, path: &str, gateway: SocketAddr) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let here = dir.path().display();
        let configuration = format!(
            "daemon off; master_process off; pid {here}/pid; error_log {here}/error.log;
events {{}}
http {{
  access_log off;
  client_body_temp_path {here}/body; proxy_temp_path {here}/proxy; fastcgi_temp_path {here}/fastcgi;
  uwsgi_temp_path {here}/uwsgi; scgi_temp_path {here}/scgi;
  map $http_upgrade $connection_upgrade {{ default upgrade; '' ''; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{ return 404 'not the gateway'; }}
    location {path}/ {{
      proxy_pass http://{gateway};
      proxy_http_version 1.1;
      proxy_set_header Host $host:$server_port;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection $connection_upgrade;
      client_max_body_size 11m;
    }}
  }}
}}
"
        );
        let file = dir.path().join("nginx.conf");
        std::fs::write(&file, configuration).unwrap();
        let process = Command::new("/usr/sbin/nginx")
            .arg("-c")
            .arg(&file)
            .arg("-p")
            .arg(dir.path())
            .args(["-e", "stderr"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("nginx is installed (Debian: nginx-light)");
        let nginx = Self { process, _dir: dir };
        let deadline = Instant::now() + Duration::from_secs(10);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < deadline, "nginx does not listen");
            std::thread::sleep(Duration::from_millis(5));
        }
        nginx
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}
