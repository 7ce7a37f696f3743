//! Answers and bodies of any length.

use super::{Api, lost};
use std::fs::File;
use std::io::Read;
use std::time::Duration;
use ureq::http::{HeaderMap, Method, Request, StatusCode, header};

/// The server may have to copy or check everything before it answers.
const LONG: Duration = Duration::from_hours(2);

impl Api {
    /// Reads something without an end that is known; gives out its headers, too.
    pub fn open(&self, path: &str) -> anyhow::Result<(HeaderMap, impl Read + Send + use<>)> {
        let response = self
            .exchange(&self.endless, &Method::GET, path, "", &[])
            .map_err(|error| self.gone(&error, false))?;
        self.reader(response)
    }

    /// The same for what takes long to begin.
    pub fn open_slowly(&self, path: &str) -> anyhow::Result<(HeaderMap, impl Read + Send + use<>)> {
        if self.verbose {
            eprintln!("crater: GET {path}");
        }
        let request = self.request(&Method::GET, path).body(())?;
        let request = self.endless.configure_request(request).timeout_recv_response(Some(LONG));
        let response = self.endless.run(request.build()).map_err(|e| self.gone(&e, false))?;
        self.reader(response)
    }

    fn reader(
        &self,
        response: ureq::http::Response<ureq::Body>,
    ) -> anyhow::Result<(HeaderMap, impl Read + Send + use<>)> {
        let (head, body) = self.good(response)?.into_parts();
        Ok((head.headers, body.into_with_config().limit(u64::MAX).reader()))
    }

    /// Sends a file.
    pub fn put_file<T: serde::de::DeserializeOwned>(
        &self,
        path: &str,
        file: File,
        headers: &[(&str, &str)],
    ) -> anyhow::Result<T> {
        if self.verbose {
            eprintln!("crater: PUT {path}");
        }
        let length = file.metadata()?.len();
        let mut request = self
            .request(&Method::PUT, path)
            .header(header::CONTENT_TYPE, "application/octet-stream")
            .header(header::CONTENT_LENGTH, length);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(ureq::SendBody::from_owned_reader(file))?;
        let request = self.endless.configure_request(request).timeout_recv_response(Some(LONG));
        let response = self.endless.run(request.build()).map_err(|e| self.gone(&e, true))?;
        self.answer(response).map(|(_, value)| value)
    }

    fn request(&self, method: &Method, path: &str) -> ureq::http::request::Builder {
        let request =
            Request::builder().method(method.clone()).uri(format!("{}{path}", self.server));
        match &self.token {
            Some(token) => request.header(header::AUTHORIZATION, format!("Bearer {token}")),
            None => request,
        }
    }
}

/// Whether an error of [`Api::open`] says that an offset lies beyond the end.
pub fn beyond(error: &anyhow::Error) -> bool {
    let refused = error.downcast_ref::<crate::client::error::Refused>();
    refused.is_some_and(|refused| refused.0.status == StatusCode::RANGE_NOT_SATISFIABLE.as_u16())
}

/// What a broken connection is called.
pub fn broken(error: &std::io::Error) -> String {
    lost(&ureq::Error::Io(std::io::Error::new(error.kind(), error.to_string()))).0
}
