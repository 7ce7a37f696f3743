//! A control plane: etcd, kube-apiserver, and kwok to play the machines.

use crate::child::Running;
use crate::programs::Programs;
use anyhow::{Context, Result, bail};
use crater_kube::kube::config::{KubeConfigOptions, Kubeconfig};
use crater_kube::kube::{Client, Config};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Who speaks to the API server, and the groups they are in.
const ACCOUNTS: [(&str, &str, &str); 3] = [
    ("admin", "admin", "system:masters"),
    ("crater", "crater", ""),
    ("kube-scheduler", "system:kube-scheduler", ""),
];

/// A control plane that runs. Dropped, all of it ends and its folder is gone.
#[derive(Debug)]
pub struct Plane {
    programs: Programs,
    api: Option<Running>,
    kwok: Option<Running>,
    etcd: Option<Running>,
    ports: Ports,
    folder: TempDir,
}

#[derive(Clone, Copy, Debug)]
struct Ports {
    api: u16,
    etcd: u16,
    peer: u16,
}

impl Plane {
    /// Starts one and installs Crater's kinds and rights.
    pub async fn start(programs: &Programs) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("crater-kubernetes-").tempdir()?;
        let [api, etcd, peer] = free_ports()?;
        let mut plane = Self {
            programs: programs.clone(),
            api: None,
            kwok: None,
            etcd: None,
            ports: Ports { api, etcd, peer },
            folder,
        };
        plane.write_accounts()?;
        plane.start_etcd()?;
        plane.start_api()?;
        plane.ready().await?;
        let admin = plane.client("admin").await?;
        apply(&admin, crater_kube::CRDS).await?;
        apply(&admin, crater_kube::RBAC).await?;
        plane.start_kwok()?;
        plane.kinds_are_served(&admin).await?;
        Ok(plane)
    }

    /// A file in its folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The kubeconfig of an account.
    pub fn kubeconfig(&self, account: &str) -> PathBuf {
        self.file(&format!("{account}.kubeconfig"))
    }

    /// A client of an account.
    pub async fn client(&self, account: &str) -> Result<Client> {
        let file = Kubeconfig::read_from(self.kubeconfig(account))?;
        let mut config =
            Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
        config.default_retry = false;
        Ok(Client::try_from(config)?)
    }

    /// Its programs.
    pub fn programs(&self) -> &Programs {
        &self.programs
    }

    /// What the API server has used.
    pub fn api_used(&self) -> crate::child::Used {
        self.api.as_ref().map(Running::used).unwrap_or_default()
    }

    /// From here on nothing happens on machines but what the test does.
    pub fn nobody_plays(&mut self) {
        self.kwok = None;
    }

    /// Ends the API server as a crash would, and starts it again.
    pub async fn restart_api(&mut self) -> Result<()> {
        if let Some(api) = self.api.take() {
            api.kill();
        }
        self.start_api()?;
        self.ready().await
    }

    fn write_accounts(&self) -> Result<()> {
        let mut tokens = String::new();
        for (account, user, groups) in ACCOUNTS {
            tokens += &[account, "-token,", user, ",", user, ",\"", groups, "\"\n"].concat();
            let server = format!("https://127.0.0.1:{}", self.ports.api);
            std::fs::write(self.kubeconfig(account), kubeconfig(&server, account))?;
        }
        std::fs::write(self.file("tokens.csv"), tokens)?;
        Ok(())
    }

    /// A kubeconfig of an account by way of a proxy without TLS.
    pub fn kubeconfig_by(&self, account: &str, port: u16) -> Result<PathBuf> {
        let path = self.file(&format!("{account}-{port}.kubeconfig"));
        std::fs::write(&path, kubeconfig(&format!("http://127.0.0.1:{port}"), account))?;
        Ok(path)
    }

    fn start_etcd(&mut self) -> Result<()> {
        let url = |port| format!("http://127.0.0.1:{port}");
        let (client, peer) = (url(self.ports.etcd), url(self.ports.peer));
        let mut command = Command::new(self.programs.path("etcd"));
        command.arg("--data-dir").arg(self.file("etcd")).args([
            "--unsafe-no-fsync",
            "--log-level=error",
            "--quota-backend-bytes=4294967296",
            &format!("--listen-client-urls={client}"),
            &format!("--advertise-client-urls={client}"),
            &format!("--listen-peer-urls={peer}"),
            &format!("--initial-advertise-peer-urls={peer}"),
            &format!("--initial-cluster=default={peer}"),
        ]);
        self.etcd = Some(Running::start("etcd", &mut command, &self.file("etcd.log"))?);
        Ok(())
    }

    fn start_api(&mut self) -> Result<()> {
        // Made by the API server at its first start; tokens of service accounts
        // are signed with the same key.
        let certs = self.file("certs");
        let key = certs.join("apiserver.key");
        let mut command = Command::new(self.programs.path("kube-apiserver"));
        command
            .arg("--cert-dir")
            .arg(&certs)
            .arg("--service-account-key-file")
            .arg(&key)
            .arg("--service-account-signing-key-file")
            .arg(&key)
            .arg("--token-auth-file")
            .arg(self.file("tokens.csv"))
            .args([
                &format!("--etcd-servers=http://127.0.0.1:{}", self.ports.etcd),
                &format!("--secure-port={}", self.ports.api),
                "--bind-address=127.0.0.1",
                "--service-account-issuer=https://kubernetes.default.svc",
                "--authorization-mode=RBAC",
                "--service-cluster-ip-range=10.0.0.0/24",
                // Nobody here takes the taint of a new node away again.
                "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
                // Who is measured must not be limited by fair shares.
                "--enable-priority-and-fairness=false",
                "--max-requests-inflight=2000",
                "--max-mutating-requests-inflight=2000",
                "--goaway-chance=0",
            ]);
        self.api = Some(Running::start("kube-apiserver", &mut command, &self.file("api.log"))?);
        Ok(())
    }

    fn start_kwok(&mut self) -> Result<()> {
        let mut command = Command::new(self.programs.path("kwok"));
        command
            .arg("--kubeconfig")
            .arg(self.kubeconfig("admin"))
            .args(["--manage-all-nodes=true", "--node-lease-duration-seconds=40"]);
        self.kwok = Some(Running::start("kwok", &mut command, &self.file("kwok.log"))?);
        Ok(())
    }

    async fn ready(&mut self) -> Result<()> {
        let until = Instant::now() + Duration::from_mins(1);
        while Instant::now() < until {
            if let Ok(client) = self.client("admin").await {
                let request = http::Request::get("/readyz").body(vec![])?;
                if client.request_text(request).await.is_ok() {
                    return Ok(());
                }
            }
            if !self.api.as_mut().is_some_and(Running::runs) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        bail!("the API server does not get ready: {}", tail(&self.file("api.log")))
    }

    async fn kinds_are_served(&self, admin: &Client) -> Result<()> {
        let until = Instant::now() + Duration::from_secs(30);
        for plural in ["nodeinventories", "nodeclaims"] {
            let path = format!("/apis/crater.io/v1alpha1/{plural}");
            while admin.request_text(http::Request::get(&path).body(vec![])?).await.is_err() {
                if Instant::now() > until {
                    bail!("{plural} are not served");
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        Ok(())
    }
}

/// Creates what a file of several YAML documents says.
pub async fn apply(client: &Client, yaml: &str) -> Result<()> {
    for document in yaml.split("\n---\n") {
        let kind = document.lines().find_map(|l| l.strip_prefix("kind: "));
        let namespace = document.lines().find_map(|l| l.strip_prefix("  namespace: "));
        let rbac = "/apis/rbac.authorization.k8s.io/v1";
        let admission = "/apis/admissionregistration.k8s.io/v1";
        let path = match kind.context("a document has no kind")?.trim() {
            "CustomResourceDefinition" => {
                "/apis/apiextensions.k8s.io/v1/customresourcedefinitions".to_owned()
            }
            "ClusterRole" => format!("{rbac}/clusterroles"),
            "ClusterRoleBinding" => format!("{rbac}/clusterrolebindings"),
            "Role" => format!("{rbac}/namespaces/{}/roles", namespace.unwrap_or("default")),
            "RoleBinding" => {
                format!("{rbac}/namespaces/{}/rolebindings", namespace.unwrap_or("default"))
            }
            "ValidatingAdmissionPolicy" => format!("{admission}/validatingadmissionpolicies"),
            "ValidatingAdmissionPolicyBinding" => {
                format!("{admission}/validatingadmissionpolicybindings")
            }
            other => bail!("{other} is not known here"),
        };
        let request = http::Request::post(path)
            .header("Content-Type", "application/yaml")
            .body(document.as_bytes().to_vec())?;
        client.request_text(request).await?;
    }
    Ok(())
}

/// The API server's certificate is its own, made anew for each control plane.
fn kubeconfig(server: &str, account: &str) -> String {
    format!(
        "apiVersion: v1
kind: Config
clusters:
  - name: test
    cluster: {{server: \"{server}\", insecure-skip-tls-verify: true}}
users:
  - name: {account}
    user: {{token: {account}-token}}
contexts:
  - name: test
    context: {{cluster: test, user: {account}}}
current-context: test
"
    )
}

/// Ports that nobody listens on.
pub fn free_ports<const N: usize>() -> Result<[u16; N]> {
    let held: Vec<TcpListener> =
        (0..N).map(|_| TcpListener::bind("127.0.0.1:0")).collect::<Result<_, _>>()?;
    let mut ports = [0; N];
    for (port, listener) in ports.iter_mut().zip(&held) {
        *port = listener.local_addr()?.port();
    }
    Ok(ports)
}

/// The end of a log.
pub fn tail(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<_> = text.lines().rev().take(8).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join("\n")
}
