//! Stands between a scheduler and the API server and answers badly when told
//! to: 504 for bindings that did happen and for ones that did not, watches that
//! break or fall silent.

use anyhow::Result;
use crater_kube::kube::Client;
use crater_kube::kube::client::Body;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, combinators::BoxBody};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// What is to go wrong.
#[derive(Debug, Default)]
pub struct Faults {
    /// Next bindings to carry out and answer with 504.
    pub done_but_504: AtomicU32,
    /// Next bindings to answer with 504 and not carry out.
    pub undone_and_504: AtomicU32,
    /// Next bindings to refuse for good, with 422, and not carry out.
    pub refuse: AtomicU32,
    /// Next bindings to hold back for `hold_ms` before they are carried out.
    pub hold: AtomicU32,
    /// How long.
    pub hold_ms: AtomicU64,
    /// Watches of an older generation are broken.
    pub generation: AtomicUsize,
    /// Watches that are asked for are refused with 410.
    pub history_gone: AtomicU32,
    /// Bindings seen.
    pub bindings: AtomicU64,
    /// Faults that were done.
    pub done: AtomicU64,
}

/// A proxy that listens.
#[derive(Debug)]
pub struct Proxy {
    /// Its port on the loopback.
    pub port: u16,
    /// What is to go wrong.
    pub faults: Arc<Faults>,
    work: JoinHandle<()>,
}

type Answer = Response<BoxBody<Bytes, std::io::Error>>;

impl Proxy {
    /// One that passes everything on as `client`.
    pub async fn start(client: Client) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let faults = Arc::new(Faults::default());
        let shared = faults.clone();
        let work = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (client, faults) = (client.clone(), shared.clone());
                tokio::spawn(async move {
                    let serve = service_fn(move |request| {
                        let (client, faults) = (client.clone(), faults.clone());
                        async move { pass(&client, &faults, request).await }
                    });
                    // A connection that breaks is the caller's to notice.
                    let _ = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), serve)
                        .await;
                });
            }
        });
        Ok(Self { port, faults, work })
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.work.abort();
    }
}

impl Faults {
    /// Breaks all watches.
    pub fn drop_watches(&self) {
        self.generation.fetch_add(1, Ordering::SeqCst);
    }

    fn takes(&self, count: &AtomicU32) -> bool {
        let taken = count.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
        self.done.fetch_add(u64::from(taken.is_ok()), Ordering::SeqCst);
        taken.is_ok()
    }
}

async fn pass(
    client: &Client,
    faults: &Arc<Faults>,
    request: Request<Incoming>,
) -> Result<Answer, std::io::Error> {
    let path = request.uri().path().to_owned();
    let watch = request.uri().query().is_some_and(|q| q.contains("watch=true"));
    let binding = path.ends_with("/binding");
    if watch && faults.takes(&faults.history_gone) {
        return Ok(status(StatusCode::GONE, "Expired"));
    }
    if binding {
        faults.bindings.fetch_add(1, Ordering::SeqCst);
        if faults.takes(&faults.undone_and_504) {
            return Ok(status(StatusCode::GATEWAY_TIMEOUT, "Timeout"));
        }
        if faults.takes(&faults.refuse) {
            return Ok(status(StatusCode::UNPROCESSABLE_ENTITY, "Invalid"));
        }
        if faults.takes(&faults.hold) {
            let ms = faults.hold_ms.load(Ordering::SeqCst);
            tokio::time::sleep(std::time::Duration::from_millis(ms)).await;
        }
    }
    let generation = faults.generation.load(Ordering::SeqCst);
    let (mut parts, body) = request.into_parts();
    let body = body.collect().await.map_err(std::io::Error::other)?.to_bytes();
    // The client's own account and address; what is left of the caller's would
    // be there twice.
    parts.headers.remove(http::header::AUTHORIZATION);
    parts.headers.remove(http::header::HOST);
    parts.headers.remove(http::header::CONTENT_LENGTH);
    parts.headers.remove(http::header::CONNECTION);
    let onward = Request::from_parts(parts, Body::from(body.to_vec()));
    let Ok(answer) = client.send(onward).await else {
        return Ok(status(StatusCode::BAD_GATEWAY, "InternalError"));
    };
    if binding && faults.takes(&faults.done_but_504) {
        return Ok(status(StatusCode::GATEWAY_TIMEOUT, "Timeout"));
    }
    let (mut parts, body) = answer.into_parts();
    parts.headers.remove(http::header::TRANSFER_ENCODING);
    parts.headers.remove(http::header::CONTENT_LENGTH);
    if !watch {
        let body = body.collect().await.map_err(std::io::Error::other)?.to_bytes();
        let body = Full::new(body).map_err(|never| match never {}).boxed();
        return Ok(Response::from_parts(parts, body));
    }
    // A watch ends when its generation is over.
    let (sender, receiver) = tokio::sync::mpsc::channel::<Bytes>(16);
    let faults = faults.clone();
    tokio::spawn(async move {
        let mut body = body;
        loop {
            let broken = faults.generation.load(Ordering::SeqCst) != generation;
            let tick = tokio::time::sleep(std::time::Duration::from_millis(50));
            if broken {
                return;
            }
            tokio::select! {
                frame = body.frame() => match frame {
                    Some(Ok(frame)) => {
                        if let Ok(data) = frame.into_data()
                            && sender.send(data).await.is_err()
                        {
                            return;
                        }
                    }
                    Some(Err(_)) | None => return,
                },
                () = tick => if sender.is_closed() { return },
            }
        }
    });
    let stream = futures_util::stream::unfold(receiver, |mut r| async move {
        r.recv().await.map(|data| (Ok(hyper::body::Frame::data(data)), r))
    });
    let body = http_body_util::StreamBody::new(stream);
    Ok(Response::from_parts(parts, BodyExt::boxed(body)))
}

fn status(code: StatusCode, reason: &str) -> Answer {
    let text = format!(
        r#"{{"kind":"Status","apiVersion":"v1","status":"Failure","message":"by the proxy","reason":"{reason}","code":{}}}"#,
        code.as_u16()
    );
    let body = Full::new(Bytes::from(text)).map_err(|never| match never {}).boxed();
    let mut answer = Response::new(body);
    *answer.status_mut() = code;
    answer.headers_mut().insert("content-type", http::HeaderValue::from_static("application/json"));
    answer
}
