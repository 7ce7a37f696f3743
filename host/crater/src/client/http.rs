//! Requests to the server.

mod stream;

pub use stream::{beyond, broken};

use super::args::Common;
use super::error::{Refused, Unreachable};
use super::settings::{Settings, loopback};
use crate::exit::input;
use anyhow::anyhow;
use crater_api::Problem;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::time::{Duration, Instant};
use ureq::http::{Method, Request, Response, StatusCode, header};
use ureq::tls::{PemItem, RootCerts, TlsConfig};
use ureq::{Agent, Body};

/// Bytes of an answer; 100,000 jobs have less.
const ANSWER: u64 = 512 << 20;
/// How long a request that can be repeated is tried again after its
/// connection was lost.
const PATIENCE: Duration = Duration::from_secs(8);

/// The server. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Api {
    agent: Agent,
    endless: Agent,
    server: String,
    token: Option<String>,
    verbose: bool,
    unused: Option<String>,
}

/// A path of the API from its parts, each as one part whatever it holds.
pub fn path(parts: &[&str]) -> String {
    parts.iter().fold(String::from("/api/v1"), |path, part| path + "/" + &encoded(part))
}

fn encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut all, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            all.push(char::from(byte));
        } else {
            let _ = write!(all, "%{byte:02X}");
        }
        all
    })
}

/// A path with a query.
pub fn with_query(path: &str, query: &[(&str, String)]) -> String {
    query.iter().enumerate().fold(path.to_owned(), |mut all, (i, (name, value))| {
        let before = if i == 0 { '?' } else { '&' };
        let _ = write!(all, "{before}{name}={}", encoded(value));
        all
    })
}

/// Why an exchange failed, and whether the server can have read the request.
fn lost(error: &ureq::Error) -> (String, bool) {
    match error {
        ureq::Error::Io(error) => {
            let kind = error.kind();
            let none = kind == std::io::ErrorKind::ConnectionRefused;
            let text = if none { "connection refused".to_owned() } else { error.to_string() };
            (text, !none)
        }
        ureq::Error::HostNotFound => ("its name is unknown".into(), false),
        ureq::Error::ConnectionFailed => ("no connection".into(), false),
        ureq::Error::Timeout(ureq::Timeout::Connect | ureq::Timeout::Resolve) => {
            ("it does not answer".into(), false)
        }
        ureq::Error::Timeout(_) => ("no answer came in time".into(), true),
        ureq::Error::Tls(_) | ureq::Error::Rustls(_) => (error.to_string(), false),
        other => (other.to_string(), true),
    }
}

/// Trust in the certificates of a file and in no others.
fn trusting(file: &Path) -> anyhow::Result<TlsConfig> {
    let refuse = |error: String| input(anyhow!("{}: {error}", file.display()));
    let pem = std::fs::read(file).map_err(|error| refuse(error.to_string()))?;
    let items = ureq::tls::parse_pem(&pem).collect::<Result<Vec<_>, _>>();
    let items = items.map_err(|error| refuse(error.to_string()))?.into_iter();
    let certificates: Vec<_> = items
        .filter_map(|item| match item {
            PemItem::Certificate(certificate) => Some(certificate),
            _ => None,
        })
        .collect();
    if certificates.is_empty() {
        return Err(refuse("there is no certificate in it".into()));
    }
    let roots = RootCerts::new_with_certs(&certificates);
    Ok(TlsConfig::builder().root_certs(roots).build())
}

impl Api {
    /// As a command says.
    pub fn new(common: &Common) -> anyhow::Result<Self> {
        let settings = Settings::of(common)?;
        let tls = settings.ca.as_ref().map(|ca| trusting(&ca.value)).transpose()?;
        let config = || {
            let mut config = Agent::config_builder()
                .http_status_as_error(false)
                .max_redirects(0)
                .user_agent(concat!("crater/", env!("CARGO_PKG_VERSION")))
                .timeout_connect(Some(Duration::from_secs(10)));
            if loopback(&settings.server.value) {
                // What goes to this machine goes through no proxy.
                config = config.proxy(None);
            }
            if let Some(tls) = &tls {
                config = config.tls_config(tls.clone());
            }
            config
        };
        let agent = config().timeout_global(Some(Duration::from_mins(1))).build().new_agent();
        let endless =
            config().timeout_recv_response(Some(Duration::from_mins(1))).build().new_agent();
        if common.verbose {
            let token = settings.token.as_ref().map_or("none", |token| &token.from);
            eprintln!(
                "crater: server {} ({}), token from: {token}",
                settings.server.value, settings.server.from
            );
        }
        Ok(Self {
            agent,
            endless,
            server: settings.server.value,
            token: settings.token.map(|token| token.value),
            verbose: common.verbose,
            unused: settings.unused,
        })
    }

    /// The server's address.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Reads something.
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> anyhow::Result<T> {
        self.answer(self.repeated(&Method::GET, path, "", &[])?).map(|(_, value)| value)
    }

    /// Makes or does something; not repeated, since it may have been done.
    pub fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> anyhow::Result<T> {
        let body = serde_json::to_string(body)?;
        let response =
            self.send(&Method::POST, path, &body, &[]).map_err(|e| self.gone(&e, true))?;
        self.answer(response).map(|(_, value)| value)
    }

    /// Makes something once however often its key is sent. Gives out whether
    /// it was made now.
    pub fn post_once<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
        key: &str,
    ) -> anyhow::Result<(bool, T)> {
        let body = serde_json::to_string(body)?;
        let response = self.repeated(&Method::POST, path, &body, &[("idempotency-key", key)])?;
        let (status, value) = self.answer(response)?;
        Ok((status == StatusCode::CREATED, value))
    }

    /// Changes something to how it shall be: doing it twice changes nothing.
    pub fn change<T: DeserializeOwned>(
        &self,
        method: &Method,
        path: &str,
        body: &impl Serialize,
    ) -> anyhow::Result<T> {
        let body = serde_json::to_string(body)?;
        self.answer(self.repeated(method, path, &body, &[])?).map(|(_, value)| value)
    }

    /// Takes something away.
    pub fn delete(&self, path: &str) -> anyhow::Result<()> {
        self.good(self.repeated(&Method::DELETE, path, "", &[])?).map(drop)
    }

    /// Lines of the stream of events, until the connection ends.
    pub fn events(&self) -> anyhow::Result<impl BufRead + Send + use<>> {
        let response = self
            .exchange(&self.endless, &Method::GET, "/api/v1/events", "", &[])
            .map_err(|error| self.gone(&error, false))?;
        Ok(BufReader::new(
            self.good(response)?.into_body().into_with_config().limit(u64::MAX).reader(),
        ))
    }

    /// Sends, and again where the connection broke on the way. What comes here
    /// may be done twice.
    fn repeated(
        &self,
        method: &Method,
        path: &str,
        body: &str,
        headers: &[(&str, &str)],
    ) -> anyhow::Result<Response<Body>> {
        let until = Instant::now() + PATIENCE;
        let mut pause = Duration::from_millis(100);
        let mut broke = false;
        loop {
            let error = match self.send(method, path, body, headers) {
                Ok(response) => return Ok(response),
                Err(error) => error,
            };
            broke |= lost(&error).1;
            // Nobody there from the start: no use in waiting.
            if !broke || Instant::now() + pause > until {
                return Err(self.gone(&error, broke && *method != Method::GET));
            }
            if self.verbose {
                eprintln!("crater: {}; trying again", lost(&error).0);
            }
            std::thread::sleep(pause);
            pause *= 2;
        }
    }

    fn send(
        &self,
        method: &Method,
        path: &str,
        body: &str,
        headers: &[(&str, &str)],
    ) -> Result<Response<Body>, ureq::Error> {
        self.exchange(&self.agent, method, path, body, headers)
    }

    fn exchange(
        &self,
        agent: &Agent,
        method: &Method,
        path: &str,
        body: &str,
        headers: &[(&str, &str)],
    ) -> Result<Response<Body>, ureq::Error> {
        if self.verbose {
            eprintln!("crater: {method} {path}");
        }
        let bare = *method == Method::GET || *method == Method::DELETE;
        let mut request =
            Request::builder().method(method.clone()).uri(format!("{}{path}", self.server));
        if let Some(token) = &self.token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if bare {
            return agent.run(request.body(())?);
        }
        agent.run(request.header(header::CONTENT_TYPE, "application/json").body(body)?)
    }

    fn gone(&self, error: &ureq::Error, changes: bool) -> anyhow::Error {
        if let ureq::Error::BadUri(_) | ureq::Error::Http(_) = error {
            return input(anyhow!("{}: {error}", self.server));
        }
        let (cause, read) = lost(error);
        let server = self.server.clone();
        anyhow::Error::new(Unreachable { server, cause, maybe_done: changes && read })
    }

    /// The response, or the problem that it is.
    fn good(&self, mut response: Response<Body>) -> anyhow::Result<Response<Body>> {
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let bytes = response.body_mut().with_config().limit(1 << 20).read_to_vec();
        let problem = serde_json::from_slice::<Problem>(&bytes.unwrap_or_default());
        let Ok(mut problem) = problem else {
            let place = response.headers().get(header::LOCATION).and_then(|l| l.to_str().ok());
            let place = place.map(|place| format!(" to {place}")).unwrap_or_default();
            return Err(anyhow!("{} answers {status}{place}: is it a Crater server?", self.server));
        };
        if let Some(unused) = self.unused.as_ref().filter(|_| status == StatusCode::UNAUTHORIZED) {
            problem.detail = format!("{}; {unused}", problem.detail);
        }
        Err(anyhow::Error::new(Refused(problem)))
    }

    fn answer<T: DeserializeOwned>(
        &self,
        response: Response<Body>,
    ) -> anyhow::Result<(StatusCode, T)> {
        let mut response = self.good(response)?;
        let bytes = response.body_mut().with_config().limit(ANSWER).read_to_vec();
        // It was done: the answer broke off.
        let bytes = bytes.map_err(|error| self.gone(&error, true))?;
        let value = serde_json::from_slice(&bytes).map_err(|error| {
            anyhow!("the answer of {} is not understood ({error}): is it a Crater server of this version?", self.server)
        })?;
        Ok((response.status(), value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_names_stay_one_part_of_the_path() {
        assert_eq!(path(&["jobs", "job-002"]), "/api/v1/jobs/job-002");
        assert_eq!(path(&["jobs", "../x?y=1#z"]), "/api/v1/jobs/..%2Fx%3Fy%3D1%23z");
        assert_eq!(path(&["nodes", "节"]), "/api/v1/nodes/%E8%8A%82");
        assert_eq!(
            with_query("/x", &[("a", "b c".into()), ("d", "1&2".into())]),
            "/x?a=b%20c&d=1%262"
        );
    }
}
