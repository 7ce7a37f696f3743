//! Traces as a collector gets them, and the log for programs.
#![allow(missing_docs)]

mod common;

use common::{begin, until};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

/// What a collector was sent: path, content type, and the decoded message.
type Got = Arc<Mutex<Vec<(String, String, ExportTraceServiceRequest)>>>;

fn collect(listener: TcpListener) -> Got {
    let got = Got::default();
    let kept = got.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut lines = vec![];
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line).unwrap_or(0) == 0 || line == "\r\n" {
                    break;
                }
                lines.push(line.trim_end().to_lowercase());
            }
            let header = |name: &str| {
                let line = lines.iter().find_map(|line| line.strip_prefix(&format!("{name}: ")));
                line.unwrap_or_default().to_owned()
            };
            let mut body = vec![0; header("content-length").parse().unwrap_or(0)];
            reader.read_exact(&mut body).unwrap();
            let message = ExportTraceServiceRequest::decode(&body[..]).unwrap();
            let path = lines[0].split(' ').nth(1).unwrap().to_owned();
            kept.lock().unwrap().push((path, header("content-type"), message));
            let _ = stream.write_all(
                b"HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
            );
        }
    });
    got
}

fn text(all: &[KeyValue], key: &str) -> String {
    let found = all.iter().find(|pair| pair.key == key);
    match found.and_then(|pair| pair.value.clone()).and_then(|value| value.value) {
        Some(Value::StringValue(text)) => text,
        Some(Value::IntValue(n)) => n.to_string(),
        other => format!("{other:?}"),
    }
}

#[test]
fn requests_and_rounds_are_sent_to_a_collector() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let got = collect(listener);
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("crater.yaml"), "").unwrap();
    let with = [("OTEL_EXPORTER_OTLP_ENDPOINT", &*endpoint), ("OTEL_BSP_SCHEDULE_DELAY", "100")];
    let (mut child, address) = begin(home.path(), "data", &with);
    let token = std::fs::read_to_string(home.path().join("data/admin-token")).unwrap();
    let bearer = format!("Bearer {}", token.trim());
    let job = r#"{"name":"a","tenant":"t","queue":"offline","cpu":1,"memory":"1Gi"}"#;
    let answer = ureq::post(format!("{address}/api/v1/jobs"))
        .header("authorization", &bearer)
        .header("x-request-id", "mine-1")
        .send(job)
        .unwrap();
    assert_eq!(answer.headers()["x-request-id"], "mine-1");
    let spans = || -> Vec<Span> {
        let got = got.lock().unwrap();
        let all = got.iter().flat_map(|(_, _, message)| &message.resource_spans);
        all.flat_map(|resource| &resource.scope_spans)
            .flat_map(|scope| scope.spans.clone())
            .collect()
    };
    let request = until("the request's span", || {
        spans().into_iter().find(|span| text(&span.attributes, "id") == "mine-1")
    });
    assert_eq!(request.name, "request");
    assert_eq!(text(&request.attributes, "method"), "POST");
    assert_eq!(text(&request.attributes, "route"), "/api/v1/jobs");
    assert_eq!(text(&request.attributes, "status"), "201");
    assert!(request.end_time_unix_nano > request.start_time_unix_nano);
    let round = until("a round that placed it", || {
        spans().into_iter().find(|span| text(&span.attributes, "placed") == "1")
    });
    assert_eq!((round.name.as_str(), &*text(&round.attributes, "queue")), ("round", "offline"));
    let all = got.lock().unwrap().clone();
    for (path, kind, message) in &all {
        assert_eq!((path.as_str(), kind.as_str()), ("/v1/traces", "application/x-protobuf"));
        for resource in &message.resource_spans {
            let attributes = &resource.resource.as_ref().unwrap().attributes;
            assert_eq!(text(attributes, "service.name"), "crater");
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
}
