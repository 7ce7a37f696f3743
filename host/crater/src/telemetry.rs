//! The server's log, and traces for whoever collects them.
//!
//! With `OTEL_EXPORTER_OTLP_ENDPOINT` (or its `_TRACES_` sibling) spans of
//! requests and of rounds of decisions are sent there by OTLP over HTTP, in
//! batches by a thread of their own. A collector that is gone costs spans, and
//! nothing else. `OTEL_SERVICE_NAME`, `OTEL_EXPORTER_OTLP_HEADERS` and the like
//! mean what OpenTelemetry says.

use clap::ValueEnum;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use std::pin::Pin;
use std::time::Duration;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

/// How the log is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people
    #[default]
    Text,
    /// For programs: a JSON object a line
    Json,
}

/// Sends what is left when the server ends.
pub struct Telemetry(Option<SdkTracerProvider>);

impl Drop for Telemetry {
    fn drop(&mut self) {
        if let Some(Err(error)) = self.0.as_ref().map(SdkTracerProvider::shutdown) {
            eprintln!("crater: the last traces were not sent: {error}");
        }
    }
}

/// Where traces go, if anywhere.
fn endpoint() -> Option<String> {
    let named = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
    named("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT").or_else(|| named("OTEL_EXPORTER_OTLP_ENDPOINT"))
}

/// Begins to log and to trace.
pub fn start(format: LogFormat) -> anyhow::Result<Telemetry> {
    let filter = || EnvFilter::try_from_env("CRATER_LOG").unwrap_or_else(|_| "info".into());
    let plain = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let log = match format {
        LogFormat::Text => plain.with_filter(filter()).boxed(),
        LogFormat::Json => plain.json().with_filter(filter()).boxed(),
    };
    let provider = endpoint().map(|_| exporter()).transpose()?;
    let traces = provider.as_ref().map(|provider| {
        // Its own sending must not make spans, or there would be no end of it.
        let filter = EnvFilter::new("info,ureq=off,opentelemetry=off,opentelemetry_sdk=off");
        tracing_opentelemetry::layer().with_tracer(provider.tracer("crater")).with_filter(filter)
    });
    tracing_subscriber::registry().with(log).with(traces).init();
    Ok(Telemetry(provider))
}

fn exporter() -> anyhow::Result<SdkTracerProvider> {
    let exporter = SpanExporter::builder()
        .with_http()
        .with_protocol(Protocol::HttpBinary)
        .with_http_client(Sender::default())
        .build()?;
    let mut resource = Resource::builder();
    if std::env::var_os("OTEL_SERVICE_NAME").is_none() {
        resource = resource.with_service_name("crater");
    }
    let version = opentelemetry::KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    let resource = resource.with_attribute(version).build();
    Ok(SdkTracerProvider::builder().with_resource(resource).with_batch_exporter(exporter).build())
}

/// Sends with ureq, on the exporter's own thread.
#[derive(Clone, Debug)]
struct Sender(ureq::Agent);

impl Default for Sender {
    fn default() -> Self {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .timeout_global(Some(Duration::from_secs(10)));
        Self(config.build().new_agent())
    }
}

type Sent<'a> = Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'a>>;

impl HttpClient for Sender {
    fn send_bytes<'this, 'sent>(&'this self, request: Request<Bytes>) -> Sent<'sent>
    where
        'this: 'sent,
        Self: 'sent,
    {
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let answer = self.0.run(Request::from_parts(head, body.to_vec()))?;
            let (head, mut body) = answer.into_parts();
            let bytes = body.with_config().limit(1 << 20).read_to_vec()?;
            Ok(Response::from_parts(head, bytes.into()))
        })
    }
}
