//! Webhooks, as the configuration says them.

use crate::webhooks::{Hook, Notice};
use crater_model::{FieldError, TenantPath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Most webhooks: each has a thread.
pub const MOST: usize = 64;

/// Where others are told when jobs start, are preempted and end.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Webhook {
    /// Where notifications are posted: http or https. Only this file names
    /// receivers, so addresses of the own network are allowed; redirects are
    /// not followed.
    pub url: String,
    /// start, preempt, end; all of them without.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
    /// Of this tenant and those below it; of all without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Signs what is sent with HMAC-SHA256, in the header X-Crater-Signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

impl Webhook {
    /// Checked, in the sender's words.
    pub fn hook(&self) -> Result<Hook, FieldError> {
        check_url(&self.url)?;
        let events = match &self.events[..] {
            [] => Notice::ALL.to_vec(),
            some => some
                .iter()
                .map(|name| {
                    let found = Notice::ALL.into_iter().find(|notice| notice.name() == name);
                    found.ok_or_else(|| FieldError::new("events", name, "start, preempt or end"))
                })
                .collect::<Result<_, _>>()?,
        };
        let tenant = self.tenant.as_ref().map(|path| TenantPath::parse("tenant", path));
        if self.secret.as_ref().is_some_and(String::is_empty) {
            return Err(FieldError::new("secret", "", "a text that is not empty, or nothing"));
        }
        Ok(Hook {
            url: self.url.clone(),
            events,
            tenant: tenant.transpose()?.map(|path| path.as_str().to_owned()),
            secret: self.secret.clone(),
        })
    }
}

fn check_url(text: &str) -> Result<(), FieldError> {
    let refuse = |expected: &str| FieldError::new("url", text, expected);
    let usual = || refuse("an address such as https://ci.your-domain.com/crater");
    let uri: ureq::http::Uri = text.parse().map_err(|_| usual())?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err(usual());
    }
    let authority = uri.authority().ok_or_else(usual)?;
    if authority.as_str().contains('@') {
        return Err(refuse("no name and password in it: give a secret instead"));
    }
    let host = authority.host().trim_matches(['[', ']']);
    // Machines' own metadata stand there, and never a receiver.
    let link_local = match host.parse() {
        Ok(IpAddr::V4(ip)) => ip.is_link_local(),
        Ok(IpAddr::V6(ip)) => ip.is_unicast_link_local(),
        Err(_) => false,
    };
    if link_local {
        return Err(refuse("an address that is not link-local"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_events_are_checked_by_field() {
        let hook =
            |url: &str| Webhook { url: url.into(), events: vec![], tenant: None, secret: None };
        for good in ["https://ci.your-domain.com/crater", "http://127.0.0.1:1", "http://[::1]:2/x"]
        {
            assert_eq!(hook(good).hook().unwrap().events.len(), 3, "{good}");
        }
        for bad in [
            "",
            "ci",
            "ftp://x",
            "/x",
            "http://u:p@host/",
            "http://169.254.169.254/latest",
            "http://[fe80::1]/",
        ] {
            assert_eq!(hook(bad).hook().unwrap_err().field, "url", "{bad}");
        }
        let events = |name: &str| Webhook { events: vec![name.into()], ..hook("http://h/") };
        assert_eq!(events("end").hook().unwrap().events, [Notice::End]);
        assert_eq!(events("begin").hook().unwrap_err().field, "events");
    }
}
