//! Requests to a running server as any program may send them, and whatever it
//! answers.
#![allow(dead_code, missing_docs)]

use serde_json::Value;

/// One token at one server.
pub struct Client {
    agent: ureq::Agent,
    url: String,
    token: String,
}

/// Status, content type and body; text that is no JSON comes as a string.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub kind: String,
    pub body: Value,
}

impl Answer {
    /// Refused for a reason that it names, as RFC 9457 has it.
    #[track_caller]
    pub fn refused(&self, what: &str, status: u16, field: Option<&str>) {
        assert_eq!(self.status, status, "{what}: {}", self.body);
        assert_eq!(self.kind, "application/problem+json", "{what}: {}", self.body);
        assert_eq!(self.body["status"], status, "{what}: {}", self.body);
        assert!(!self.body["detail"].as_str().unwrap().is_empty(), "{what}: {}", self.body);
        if let Some(field) = field {
            assert_eq!(self.body["field"], field, "{what}: {}", self.body);
        }
    }

    /// Done, with this status.
    #[track_caller]
    pub fn done(self, what: &str, status: u16) -> Value {
        assert_eq!(self.status, status, "{what}: {}", self.body);
        self.body
    }
}

impl Client {
    pub fn new(url: &str, token: &str) -> Self {
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(std::time::Duration::from_secs(30)))
            .http_status_as_error(false);
        Self { agent: config.build().into(), url: url.to_owned(), token: token.to_owned() }
    }

    /// Sends bytes as they are; none if the connection broke.
    pub fn try_send(&self, method: &str, path: &str, body: &[u8]) -> Option<Answer> {
        let mut request = ureq::http::Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.url))
            .header("content-type", "application/json");
        if !self.token.is_empty() {
            request = request.header("authorization", format!("Bearer {}", self.token));
        }
        let mut answer = self.agent.run(request.body(body).unwrap()).ok()?;
        let kind = answer.headers().get("content-type").and_then(|kind| kind.to_str().ok());
        let kind = kind.unwrap_or_default().to_owned();
        let text = answer.body_mut().read_to_string().ok()?;
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        Some(Answer { status: answer.status().as_u16(), kind, body })
    }

    pub fn send(&self, method: &str, path: &str, body: &[u8]) -> Answer {
        let answer = self.try_send(method, path, body);
        answer.unwrap_or_else(|| panic!("{method} {path}: no answer"))
    }

    pub fn post(&self, path: &str, body: &Value) -> Answer {
        self.send("POST", path, body.to_string().as_bytes())
    }

    #[track_caller]
    pub fn get(&self, path: &str) -> Value {
        self.send("GET", path, b"").done(path, 200)
    }
}
