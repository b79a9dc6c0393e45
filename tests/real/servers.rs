//! The real servers: their configurations, and what is known of how they answer.
//!
//! Each runs in the foreground with a configuration of a few lines, with all of its files in one
//! folder, on its own address, and writes an access log in one common format if it can.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// A server program and its setup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Server {
    /// 100 requests on a connection.
    Nginx,
    /// 100 requests on a connection; sends gzip in chunks.
    Apache,
    /// 51 requests on a connection.
    Lighttpd,
    /// No limit; sends gzip of unknown length.
    Caddy,
    /// nginx over TLS, with a certificate of a private authority; gzip in chunks.
    Secure,
    /// Python's server: HTTP/1.0, one connection per request.
    Simple,
}

/// Trees of documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tree {
    /// The manual of Python.
    Python,
    /// The manual of PostgreSQL.
    Postgresql,
}

impl Tree {
    /// Returns its folder below the root of a server.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Postgresql => "postgresql",
        }
    }
}

/// A line of robots.txt: a path is disallowed, or allowed within a disallowed one. No patterns:
/// other tests cover them.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rule {
    Allow(&'static str),
    Disallow(&'static str),
}

/// The setup of a server.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// The folder of its own files: configuration, logs.
    pub(super) folder: PathBuf,
    /// The folder it serves.
    pub(super) root: PathBuf,
    /// The address it listens on.
    pub(super) listen: SocketAddr,
    /// Its host name.
    pub(super) name: String,
}

impl Server {
    /// All servers; crawls begin at the first.
    pub(super) const ALL: [Self; 6] =
        [Self::Nginx, Self::Apache, Self::Lighttpd, Self::Caddy, Self::Secure, Self::Simple];

    /// Returns the first label of its host name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Nginx => "nginx",
            Self::Apache => "apache",
            Self::Lighttpd => "lighttpd",
            Self::Caddy => "caddy",
            Self::Secure => "secure",
            Self::Simple => "simple",
        }
    }

    pub(super) fn scheme(self) -> &'static str {
        if self == Self::Secure { "https" } else { "http" }
    }

    /// Returns after how many requests it closes a connection.
    pub(super) fn requests_per_connection(self) -> Option<usize> {
        match self {
            Self::Nginx | Self::Apache | Self::Secure => Some(100),
            // It closes after the request that exceeds `max-keep-alive-requests`.
            Self::Lighttpd => Some(51),
            Self::Caddy => None,
            Self::Simple => Some(1),
        }
    }

    /// Returns what it serves in addition to the pages that all servers have.
    pub(super) fn trees(self) -> &'static [Tree] {
        match self {
            Self::Nginx | Self::Apache | Self::Caddy => &[Tree::Python, Tree::Postgresql],
            Self::Lighttpd => &[Tree::Python],
            Self::Secure | Self::Simple => &[Tree::Postgresql],
        }
    }

    /// Returns the rules of its robots.txt, in addition to those of all servers.
    pub(super) fn rules(self) -> &'static [Rule] {
        use Rule::{Allow, Disallow};
        match self {
            Self::Nginx => &[
                Disallow("/python/c-api/"),
                Allow("/python/c-api/intro.html"),
                Disallow("/python/whatsnew"),
            ],
            Self::Apache => &[Disallow("/postgresql/sql-"), Allow("/postgresql/sql-select.html")],
            Self::Lighttpd => &[],
            Self::Caddy => &[Disallow("/python/library/"), Disallow("/python/_sources/")],
            Self::Secure => &[Disallow("/postgresql/release")],
            Self::Simple => &[Disallow("/postgresql/functions"), Disallow("/postgresql/catalog-")],
        }
    }

    /// Returns the status of a folder, requested with or without the final slash, with or without
    /// an index page; `None` if the server makes a page that isn't in the files.
    pub(super) fn status_of_folder(self, slash: bool, index: bool) -> Option<u16> {
        match (self, slash, index) {
            (_, true, true) => Some(200),
            (Self::Caddy, false, true) => Some(308),
            (Self::Caddy, _, false) => Some(404),
            (_, false, _) => Some(301),
            (Self::Nginx | Self::Lighttpd | Self::Secure, true, false) => Some(403),
            (Self::Apache, true, false) => Some(404),
            (Self::Simple, true, false) => None,
        }
    }

    /// Returns the name of its configuration file and its contents.
    pub(super) fn configuration(self, place: &Place) -> (&'static str, String) {
        match self {
            Self::Nginx => ("nginx.conf", place.fill(NGINX)),
            Self::Secure => {
                let more = "\n".to_owned() + NGINX_SECURE + "    }\n}\n";
                let plain = NGINX.trim_end().trim_end_matches(['}', '\n', ' ']);
                let secure = plain.replace("@LISTEN@;", "@LISTEN@ ssl;") + &more;
                ("nginx.conf", place.fill(&secure))
            }
            Self::Apache => ("apache.conf", place.fill(APACHE)),
            Self::Lighttpd => ("lighttpd.conf", place.fill(LIGHTTPD)),
            Self::Caddy => ("Caddyfile", place.fill(CADDY)),
            Self::Simple => ("none", String::new()),
        }
    }

    /// Returns its program and arguments.
    pub(super) fn command(self, place: &Place) -> (&'static str, Vec<String>) {
        let file = place.folder.join(self.configuration(place).0).display().to_string();
        let (program, arguments) = match self {
            Self::Nginx | Self::Secure => {
                let errors = place.folder.join("error.log").display().to_string();
                return ("nginx", [s("-e"), errors, s("-c"), file].into());
            }
            Self::Apache => ("apache2", ["-D", "FOREGROUND", "-f"].map(s).to_vec()),
            Self::Lighttpd => ("lighttpd", ["-D", "-f"].map(s).to_vec()),
            Self::Caddy => ("caddy", ["run", "--adapter", "caddyfile", "--config"].map(s).to_vec()),
            Self::Simple => {
                let port = place.listen.port().to_string();
                let (ip, root) = (place.listen.ip().to_string(), place.root.display().to_string());
                let module = ["-m", "http.server", "--bind"].map(s).to_vec();
                let rest = vec![ip, s("--directory"), root, port];
                return ("python3", [module, rest].concat());
            }
        };
        (program, [arguments, vec![file]].concat())
    }

    /// Returns its access log.
    pub(super) fn access_log(self, folder: &Path) -> PathBuf {
        folder.join(if self == Self::Simple { "output.log" } else { "access.log" })
    }
}

impl Place {
    fn fill(&self, template: &str) -> String {
        template
            .replace("@FOLDER@", &self.folder.display().to_string())
            .replace("@ROOT@", &self.root.display().to_string())
            .replace("@LISTEN@", &self.listen.to_string())
            .replace("@IP@", &self.listen.ip().to_string())
            .replace("@PORT@", &self.listen.port().to_string())
            .replace("@NAME@", &self.name)
    }
}

fn s(text: &str) -> String {
    text.to_owned()
}

/// `user` is for root, who may have to read its own files; for other users it has no effect.
const NGINX: &str = r#"
daemon off;
user root root;
worker_processes 1;
pid @FOLDER@/nginx.pid;
error_log @FOLDER@/error.log;
events { worker_connections 256; }
http {
    types { text/html html; text/plain txt; text/xml xml; }
    default_type application/octet-stream;
    client_body_temp_path @FOLDER@/body;
    proxy_temp_path @FOLDER@/proxy;
    fastcgi_temp_path @FOLDER@/fastcgi;
    uwsgi_temp_path @FOLDER@/uwsgi;
    scgi_temp_path @FOLDER@/scgi;
    log_format plain '$connection_requests $status "$request"';
    access_log @FOLDER@/access.log plain;
    keepalive_requests 100;
    server {
        listen @LISTEN@;
        server_name @NAME@;
        root @ROOT@;
        index index.html;
    }
}
"#;

/// The additional lines of the TLS server, placed where the other's `server` block ends.
const NGINX_SECURE: &str = r"        ssl_certificate @FOLDER@/certificate.pem;
        ssl_certificate_key @FOLDER@/key.pem;
        gzip on;
        gzip_types text/plain;
        gzip_comp_level 1;
";

const APACHE: &str = r#"
ServerRoot "@FOLDER@"
DefaultRuntimeDir "@FOLDER@"
PidFile "@FOLDER@/apache.pid"
Mutex posixsem
User www-data
Group www-data
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule dir_module /usr/lib/apache2/modules/mod_dir.so
LoadModule filter_module /usr/lib/apache2/modules/mod_filter.so
LoadModule mime_module /usr/lib/apache2/modules/mod_mime.so
LoadModule deflate_module /usr/lib/apache2/modules/mod_deflate.so
StartServers 1
ServerLimit 2
ThreadsPerChild 16
MaxRequestWorkers 32
Listen @LISTEN@
ServerName @NAME@
KeepAlive On
MaxKeepAliveRequests 100
DocumentRoot "@ROOT@"
DirectoryIndex index.html
TypesConfig /dev/null
AddType text/html .html
AddType text/plain .txt
AddOutputFilterByType DEFLATE text/html text/plain
DeflateCompressionLevel 1
ErrorLog "@FOLDER@/error.log"
LogFormat "%k %>s \"%r\"" plain
CustomLog "@FOLDER@/access.log" plain
<Directory "/">
    Options FollowSymLinks
    Require all granted
</Directory>
"#;

const LIGHTTPD: &str = r#"
server.modules = ("mod_accesslog")
server.bind = "@IP@"
server.port = @PORT@
server.name = "@NAME@"
server.document-root = "@ROOT@"
server.errorlog = "@FOLDER@/error.log"
server.max-keep-alive-requests = 50
server.max-keep-alive-idle = 30
server.max-fds = 4096
index-file.names = ("index.html")
mimetype.assign = (".html" => "text/html", ".txt" => "text/plain", "" => "application/octet-stream")
accesslog.filename = "@FOLDER@/access.log"
accesslog.format = "%k %s \"%r\""
"#;

const CADDY: &str = r"
{
    admin off
    auto_https off
    storage file_system @FOLDER@/storage
}
http://:@PORT@ {
    bind @IP@
    root * @ROOT@
    encode gzip
    file_server
    log {
        output file @FOLDER@/access.log
        format json
    }
}
";
