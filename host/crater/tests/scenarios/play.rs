//! Plays a scenario on a server of its own.

use super::ask::{Answer, Client};
use super::common::Server;
use super::look::{Look, claims};
use super::say::{Ask, Name, Step, steps};
use crater_sim::scenario::Scenario;
use crater_sim::scenario::script::Expectation;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Longest that anything is waited for.
const MOST: Duration = Duration::from_mins(1);
/// Runs of a scenario that wants many of them: each starts a server.
const REPEAT: u64 = 2;

/// What a scenario calls impossible is beyond what any cluster has: the door
/// refuses it already.
const BEYOND: [(&str, &[&str]); 1] = [("c04-zero-negative-enormous", &["huge", "gang"])];

/// The file of a scenario.
pub fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../tests/scenarios/{name}.scenario"))
}

/// Reads a scenario by its name.
pub fn read(name: &str) -> Scenario {
    let text = std::fs::read_to_string(file(name)).unwrap();
    Scenario::parse(&format!("{name}.scenario"), &text).unwrap()
}

/// Plays a scenario as often as it says, but not more than a few times.
pub fn play(name: &str) {
    let scenario = read(name);
    let steps = steps(&scenario).unwrap_or_else(|what| panic!("{name}: {what} cannot be asked"));
    for _ in 0..scenario.header().repeat.min(REPEAT) {
        let mut stage = Stage::open(name, &steps);
        for step in &steps {
            stage.line = step.line;
            stage.step(&step.what);
        }
        stage.close();
    }
}

/// Waits until something is so; what is not is told with the line.
pub fn until<T>(place: &str, mut look: impl FnMut() -> Result<T, String>) -> T {
    let end = Instant::now() + MOST;
    loop {
        match look() {
            Ok(found) => return found,
            Err(text) => assert!(Instant::now() < end, "{place}: {text}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A server on which a scenario is played.
struct Stage {
    name: String,
    line: usize,
    server: Server,
    client: Client,
    /// What the file said last.
    config: Value,
    /// By name the youngest job, and all jobs.
    jobs: BTreeMap<Name, String>,
    all: Vec<String>,
    /// Jobs that were refused: field and words, until that was expected.
    refused: BTreeMap<Name, (String, String)>,
    expected: BTreeSet<Name>,
    /// Something was asked since it was last waited for what came of it.
    moved: bool,
}

impl Stage {
    /// Starts the server with the first configuration.
    fn open(name: &str, steps: &[Step]) -> Self {
        let Some(Step { what: Ask::Configure(config), .. }) = steps.first() else {
            panic!("{name}: a machine or a queue comes first");
        };
        let server = Server::start(&config.to_string());
        let client = Client::new(&server.address, &server.admin());
        Self {
            name: name.to_owned(),
            line: 0,
            client,
            server,
            config: config.clone(),
            jobs: BTreeMap::new(),
            all: vec![],
            refused: BTreeMap::new(),
            expected: BTreeSet::new(),
            moved: false,
        }
    }

    fn place(&self) -> String {
        format!("{}.scenario:{}", self.name, self.line)
    }

    fn beyond(&self, job: &Name) -> bool {
        BEYOND.iter().any(|(name, jobs)| *name == self.name && jobs.contains(&&**job))
    }

    fn id(&self, job: &Name) -> &str {
        self.jobs.get(job).unwrap_or_else(|| panic!("{}: there is no job {job}", self.place()))
    }

    fn send(&self, method: &str, path: &str, body: &Value) -> Answer {
        self.client.send(method, path, body.to_string().as_bytes())
    }

    fn done(&self, method: &str, path: &str, body: &Value) -> Value {
        let answer = self.send(method, path, body);
        let place = format!("{}: {method} {path} {body}", self.place());
        assert!(answer.status < 300, "{place}: {}", answer.body);
        answer.body
    }

    fn step(&mut self, what: &Ask) {
        match what {
            Ask::Configure(config) => self.configure(config),
            Ask::Change(method, path, body) => drop(self.done(method, path, body)),
            Ask::Submit { jobs, at_once } => self.submit(jobs, *at_once),
            Ask::Each(names, method, path, body) => {
                for name in names {
                    self.done(method, &format!("/api/v1/jobs/{}{path}", self.id(name)), body);
                }
            }
            Ask::End(names) => self.end(names),
            Ask::Failed(names) => {
                let look = Look { client: &self.client, jobs: &self.jobs, all: &self.all };
                for name in names {
                    until(&format!("{}: {name} fails", self.place()), || {
                        let job = look.job(name)?;
                        let failed = job["status"] == "Failed";
                        failed.then_some(()).ok_or_else(|| job.to_string())
                    });
                }
            }
            Ask::Expect(expectation) => return self.expect(expectation),
        }
        self.moved = true;
    }

    /// Writes the file anew and waits until it was applied.
    fn configure(&mut self, config: &Value) {
        if self.config == *config {
            return;
        }
        self.config = config.clone();
        let applied = |client: &Client| client.get("/api/v1/server")["reloaded"].clone();
        let before = applied(&self.client);
        std::fs::write(self.server.folder.path().join("crater.yaml"), config.to_string()).unwrap();
        until(&format!("{}: the file is applied", self.place()), || {
            let server = self.client.get("/api/v1/server");
            assert!(server["reload-refused"].is_null(), "{}: {server}", self.place());
            (server["reloaded"] != before).then_some(()).ok_or_else(|| server.to_string())
        });
    }

    fn submit(&mut self, jobs: &[(Name, Value)], at_once: bool) {
        let send = |body: &Value| self.client.post("/api/v1/jobs", body);
        let answers: Vec<Answer> = if at_once {
            std::thread::scope(|scope| {
                let sent: Vec<_> =
                    jobs.iter().map(|(_, body)| scope.spawn(move || send(body))).collect();
                sent.into_iter().map(|answer| answer.join().unwrap()).collect()
            })
        } else {
            jobs.iter().map(|(_, body)| send(body)).collect()
        };
        for ((name, body), answer) in jobs.iter().zip(answers) {
            let field = answer.body["field"].as_str().unwrap_or_default().to_owned();
            match answer.status {
                201 => {
                    assert!(!self.beyond(name), "{}: {name} was taken", self.place());
                    let id = answer.body["id"].as_str().unwrap().to_owned();
                    self.all.push(id.clone());
                    self.jobs.insert(name.clone(), id);
                }
                422 if self.beyond(name) => {}
                422 => {
                    let words = answer.body["detail"].as_str().unwrap_or_default().to_owned();
                    self.refused.insert(name.clone(), (field, words));
                }
                other => panic!("{}: {body}: {other} {}", self.place(), answer.body),
            }
        }
    }

    /// Ends jobs. Those that end at once have gone before anything else is asked.
    fn end(&mut self, names: &[Name]) {
        let look = Look { client: &self.client, jobs: &self.jobs, all: &self.all };
        for name in names {
            self.done("POST", &format!("/api/v1/jobs/{}/cancel", self.id(name)), &json!({}));
        }
        for name in names {
            until(&format!("{}: {name} has gone", self.place()), || {
                let job = look.job(name)?;
                let slow = !job["detail"]["spec"]["task"]["grace"].is_null();
                let gone = slow || claims(&job).is_empty();
                gone.then_some(()).ok_or_else(|| job.to_string())
            });
        }
    }

    /// Waits until every queue has decided on all that was asked: on a job that
    /// no machine can hold, and then, so that what came of that round was
    /// committed, on another one.
    fn settle(&mut self) {
        if !std::mem::take(&mut self.moved) {
            return;
        }
        for queue in self.config["queues"].as_array().unwrap() {
            if queue["paused"] == true {
                continue;
            }
            let body = json!({"name": "canary", "tenant": "canary", "queue": queue["name"],
                "priority": 0, "cpu": 1_000_000, "memory": "1Mi"});
            for _ in 0..2 {
                let id = self.done("POST", "/api/v1/jobs", &body)["id"].clone();
                let path = format!("/api/v1/jobs/{}", id.as_str().unwrap());
                until(&format!("{}: the queue decides", self.place()), || {
                    let job = self.client.get(&path);
                    let decided = job["reason"] != "not decided on yet";
                    decided.then_some(()).ok_or_else(|| job.to_string())
                });
                self.done("POST", &format!("{path}/cancel"), &json!({}));
            }
        }
    }

    fn expect(&mut self, expectation: &Expectation) {
        self.settle();
        let place = self.place();
        match expectation {
            Expectation::Refused(names, how) => {
                for name in names {
                    let found = self.refused.get(name);
                    let (field, words) =
                        found.unwrap_or_else(|| panic!("{place}: {name} was not refused"));
                    assert_eq!(*field, how.field, "{place}: {name}: {words}");
                    // Of fields that there are not, each door has words of its own.
                    let says = how.text.as_ref().is_none_or(|text| words.contains(text));
                    assert!(says || words.contains("unknown field"), "{place}: {name}: {words}");
                    self.expected.insert(name.clone());
                }
            }
            Expectation::Jobs { names, count, standing, clauses } => {
                let names: Vec<Name> = names.iter().filter(|n| !self.beyond(n)).cloned().collect();
                let look = Look { client: &self.client, jobs: &self.jobs, all: &self.all };
                if !names.is_empty() {
                    until(&place, || look.standing(&names, *count, *standing, clauses));
                }
            }
            Expectation::Figures(of, which, figures) => {
                let look = Look { client: &self.client, jobs: &self.jobs, all: &self.all };
                until(&place, || look.figures(of, *which, figures));
            }
            Expectation::PolicyRefused(..) => panic!("{place}: a scripted policy"),
        }
    }

    /// Nothing was refused that nobody expected, and no card is oversold. What an
    /// instance of MIG is of its card is rounded up, each by itself.
    fn close(&self) {
        let name = &self.name;
        for (job, (_, words)) in &self.refused {
            assert!(self.expected.contains(job), "{name}: {job} was refused: {words}");
        }
        for node in self.client.get("/api/v1/nodes").as_array().unwrap() {
            for card in node["cards"].as_array().unwrap() {
                let of = |field: &str| card[field].as_u64().unwrap();
                let within = of("used-milli") < 1000 + of("claims").max(1);
                assert!(within && of("used-mib") <= of("memory-mib"), "{name}: {node}");
            }
        }
    }
}
