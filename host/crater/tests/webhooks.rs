//! Webhooks: a receiver that fails, is gone, comes back.
#![allow(missing_docs)]

mod common;

use common::{Server, until, words};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

/// What arrived: headers in small letters, and the body.
#[derive(Clone, Debug)]
struct Letter {
    head: BTreeMap<String, String>,
    body: String,
}

impl Letter {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// A receiver that answers with these codes in turn, the last one for ever.
fn receive(listener: TcpListener, answers: &'static [u16]) -> Arc<Mutex<Vec<Letter>>> {
    let got = Arc::<Mutex<Vec<Letter>>>::default();
    let kept = got.clone();
    std::thread::spawn(move || {
        for (n, stream) in listener.incoming().enumerate() {
            let Ok(mut stream) = stream else { return };
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut lines = vec![];
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line).unwrap_or(0) == 0 || line == "\r\n" {
                    break;
                }
                lines.push(line.trim_end().to_owned());
            }
            let head: BTreeMap<String, String> = lines
                .iter()
                .skip(1)
                .filter_map(|line| line.split_once(": "))
                .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
                .collect();
            let length = head.get("content-length").and_then(|n| n.parse().ok()).unwrap_or(0);
            let mut body = vec![0; length];
            if reader.read_exact(&mut body).is_err() {
                continue;
            }
            kept.lock().unwrap().push(Letter { head, body: String::from_utf8(body).unwrap() });
            let code = answers[n.min(answers.len() - 1)];
            let _ = write!(
                stream,
                "HTTP/1.1 {code} X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            );
        }
    });
    got
}

fn submit(server: &Server, name: &str, tenant: &str) {
    let script = format!(
        "crater job submit --name {name} --tenant {tenant} --cpu 1 --memory 1Gi --queue offline \
         --env CRATER_SIMULATE_SECONDS=1 --wait --timeout 60s"
    );
    server.run(&server.admin(), &script);
}

#[test]
fn notifications_are_signed_tried_again_and_narrowed() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let got = receive(listener, &[500, 204]);
    let server = Server::start(&format!(
        "webhooks: [{{url: '{url}', tenant: ai, secret: s3cret, events: [start, end]}}]"
    ));
    submit(&server, "other", "bio");
    submit(&server, "mine", "ai/nlp");
    let all = until("the one that failed, and both", || {
        let got = got.lock().unwrap().clone();
        (got.len() >= 3).then_some(got)
    });
    let ids: Vec<_> = all.iter().map(|letter| letter.head["x-crater-delivery"].clone()).collect();
    assert_eq!(ids.iter().filter(|id| **id == ids[0]).count(), 2, "sent again: {ids:?}");
    let mut events = vec![];
    for letter in &all {
        let json = letter.json();
        assert_eq!(
            (&json["job"]["name"], &json["job"]["tenant"]),
            (&"mine".into(), &"ai/nlp".into())
        );
        assert_eq!(json["event"], letter.head["x-crater-event"].as_str());
        let time = &letter.head["x-crater-timestamp"];
        let signed = crater_server::webhooks::signature("s3cret", time, &letter.body);
        assert_eq!(letter.head["x-crater-signature"], format!("sha256={signed}"));
        events.push((json["event"].as_str().unwrap().to_owned(), json["job"]["status"].clone()));
    }
    events.sort_by(|a, b| a.0.cmp(&b.0));
    events.dedup();
    assert_eq!(events, [("end".into(), "Succeeded".into()), ("start".into(), "Running".into())]);
    let admin = server.admin();
    let row = until("its count", || {
        let row = words(&server.run(&admin, "crater webhook list"))[1].clone();
        row.contains(" yes 2 0 0 ").then_some(row)
    });
    assert!(row.starts_with(&url) && row.contains("it answered 500"), "{row}");
    let viewer = server.run(&admin, "crater token create --name v --role viewer --tenant ai");
    let (code, error) = server.fails(viewer.trim(), "crater webhook list");
    assert!(code == 1 && error.contains("admin"), "{error}");
}

#[test]
fn a_restart_loses_no_notification() {
    // A port that nobody listens on.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut server = Server::start(&format!("webhooks: [{{url: 'http://{address}/'}}]"));
    let admin = server.admin();
    submit(&server, "one", "t");
    let waiting = |server: &Server| server.json("/api/v1/webhooks")[0]["waiting"].clone();
    until("a failed try", || {
        let hook = server.json("/api/v1/webhooks")[0].clone();
        (hook["waiting"] == 2 && hook["last-error"].is_string()).then_some(())
    });
    server.restart("KILL");
    assert_eq!(waiting(&server), 2);
    let got = receive(TcpListener::bind(address).unwrap(), &[200]);
    // A preemption besides: what ran on a drained node waits again.
    server.run(
        &admin,
        "crater job submit --name two --tenant t --cpu 1 --memory 1Gi --queue offline
         crater job wait job-002 --for running --timeout 60s
         for node in $(crater node list | awk 'NR > 1 { print $1 }'); do crater node drain $node; done",
    );
    let told = |name: &str, event: &str| {
        let all = got.lock().unwrap().clone();
        let all = all.iter().map(Letter::json);
        all.filter(|json| json["job"]["name"] == name && json["event"] == event).count()
    };
    for (name, event) in [("one", "start"), ("one", "end"), ("two", "start"), ("two", "preempt")] {
        until(&format!("{event} of {name}"), || (told(name, event) == 1).then_some(()));
    }
    until("an empty outbox", || (waiting(&server) == 0).then_some(()));
    // A receiver that is not configured any more is let alone.
    std::fs::write(server.folder.path().join("crater.yaml"), "queues: []").unwrap();
    until("the reload", || {
        let all = server.json("/api/v1/webhooks");
        all.as_array().unwrap().is_empty().then_some(())
    });
}
