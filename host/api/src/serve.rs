//! Routes, the `OpenAPI` document, and the listening socket.

use crate::app::App;
use crate::problem::Problem;
use crate::{
    auth, backup, checkpoints, cluster, jobs, live, logs, metrics, queues, quotas, requests,
    samples, status, tokens, usage, webhooks,
};
use axum::extract::DefaultBodyLimit;
use axum::http::{StatusCode, header};
use axum::middleware;
use axum::response::{IntoResponse, Redirect};
use axum::routing::get;
use axum::{Json, Router};
use axum_server::tls_rustls::RustlsConfig;
use crater_server::config::Tls;
use std::net::SocketAddr;
use thiserror::Error;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use utoipa_swagger_ui::SwaggerUi;

/// Bytes of a request's body.
const BODY: usize = 256 << 10;

#[derive(OpenApi)]
#[openapi(
    info(title = "Crater", description = "One pool of GPU, CPU, memory and disk IO: jobs, queues, quotas, nodes."),
    modifiers(&Bearer),
    security(("token" = []))
)]
struct Document;

struct Bearer;

impl utoipa::Modify for Bearer {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
        let scheme = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
        document.components.get_or_insert_default().add_security_scheme("token", scheme);
    }
}

fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(jobs::list, jobs::submit))
        .routes(routes!(jobs::get, jobs::update))
        .routes(routes!(jobs::cancel))
        .routes(routes!(jobs::evict))
        .routes(routes!(jobs::retry))
        .routes(routes!(checkpoints::checkpoint))
        .routes(routes!(queues::list))
        .routes(routes!(queues::get, queues::change))
        .routes(routes!(quotas::list))
        .routes(routes!(quotas::get, quotas::set))
        .routes(routes!(cluster::nodes))
        .routes(routes!(cluster::change))
        .routes(routes!(cluster::cluster))
        .routes(routes!(tokens::list, tokens::create))
        .routes(routes!(tokens::revoke))
        .routes(routes!(live::events))
        .routes(routes!(logs::logs))
        .routes(routes!(samples::job))
        .routes(routes!(samples::cluster))
        .routes(routes!(usage::list))
        .routes(routes!(webhooks::list))
        .routes(routes!(backup::backup))
        .routes(routes!(backup::restore, backup::forget))
        .routes(routes!(status::server))
}

/// The `OpenAPI` document.
pub fn openapi() -> utoipa::openapi::OpenApi {
    routes().into_openapi()
}

/// Everything that is served.
pub fn router(app: App) -> Router {
    let (api, document) = routes().split_for_parts();
    let ready = app.clone();
    api.merge(SwaggerUi::new("/docs").url("/api/openapi.json", document))
        .route("/", get(|| async { Redirect::temporary("/docs") }))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(move || ready_page(ready.clone())))
        .route("/metrics", get(metrics::metrics))
        .route("/api/v1/config/schema", get(|| async { Json(crater_server::Config::schema()) }))
        .fallback(|| async {
            Problem::new(
                StatusCode::NOT_FOUND,
                "path",
                "there is nothing here; /docs lists what there is",
            )
        })
        .method_not_allowed_fallback(|| async {
            Problem::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "method",
                "this path does not take that method; /docs lists what there is",
            )
        })
        .layer(DefaultBodyLimit::max(BODY))
        .layer(middleware::from_fn_with_state(app.clone(), requests::follow))
        .with_state(app)
}

/// Ready once the books take changes.
async fn ready_page(app: App) -> impl IntoResponse {
    let text = [(header::CONTENT_TYPE, "text/plain")];
    match app.system.books.change(|_| ()).await {
        Ok(()) => (StatusCode::OK, text, "ok\n".to_owned()),
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, text, format!("{error}\n")),
    }
}

/// The server cannot listen.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The address.
    #[error("listen: {0:?} is refused: expected an address and port such as 127.0.0.1:8470")]
    Address(String),
    /// Tokens would go over the network in the clear.
    #[error(
        "{0} is not a loopback address and there is no tls: give a certificate and key, or set allow-plain-http"
    )]
    Plain(SocketAddr),
    /// Certificate or key.
    #[error("tls: {0}")]
    Tls(std::io::Error),
    /// The socket.
    #[error("cannot listen on {0}: {1}")]
    Socket(SocketAddr, std::io::Error),
}

/// Listens until the process is asked to end. `listening` is told the address.
pub async fn serve(
    app: App,
    listen: &str,
    tls: Option<&Tls>,
    plain: bool,
    listening: impl FnOnce(SocketAddr),
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), ServeError> {
    let address: SocketAddr = listen.parse().map_err(|_| ServeError::Address(listen.to_owned()))?;
    if tls.is_none() && !plain && !address.ip().is_loopback() {
        return Err(ServeError::Plain(address));
    }
    let socket =
        std::net::TcpListener::bind(address).map_err(|e| ServeError::Socket(address, e))?;
    let local = socket.local_addr().map_err(|e| ServeError::Socket(address, e))?;
    socket.set_nonblocking(true).map_err(|e| ServeError::Socket(address, e))?;
    let handle = axum_server::Handle::new();
    let stopping = handle.clone();
    tokio::spawn(async move {
        stop.await;
        stopping.graceful_shutdown(Some(std::time::Duration::from_secs(5)));
    });
    let service = router(app.clone()).into_make_service();
    let noting = tokio::spawn(auth::note_uses(app.clone()));
    listening(local);
    let served = match tls {
        None => {
            let server =
                axum_server::from_tcp(socket).map_err(|e| ServeError::Socket(address, e))?;
            server.handle(handle).serve(service).await
        }
        Some(tls) => {
            let config = RustlsConfig::from_pem_file(&tls.certificate, &tls.key)
                .await
                .map_err(ServeError::Tls)?;
            let server = axum_server::from_tcp_rustls(socket, config)
                .map_err(|e| ServeError::Socket(address, e))?;
            server.handle(handle).serve(service).await
        }
    };
    noting.abort();
    auth::write_uses(&app, true).await;
    served.map_err(|e| ServeError::Socket(address, e))
}
