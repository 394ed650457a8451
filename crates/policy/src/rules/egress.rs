//! Pure: the hosts that commands may send requests to.
//!
//! Only the creator's list is permitted: hosts at the default ports of the web, and origins
//! spelled out with scheme, host and port. An origin arrives in the normal form of `net`, so each
//! origin has one spelling. Nothing here may parse a URL again.

use automaton_core::intent::Intent;

use super::{LiftedBy, Rule, deny_if, quoted};
use crate::decision::{ReasonCode, RuleId};

/// The longest URL of a request, in bytes. All of it is recorded.
const URL_BYTES_MAX: usize = 8 << 10;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: RuleId::new("egress.hosts"),
        code: ReasonCode::HostNotAllowed,
        sentence: "Commands reach only the hosts and origins of the creator's list.",
        lifted_by: LiftedBy::Nobody,
        check: |intent, facts| {
            let Intent::Egress { origin, .. } = intent else { return Ok(None) };
            deny_if(!facts.egress.allows(origin), || format!("{} is not on it.", quoted(origin)))
        },
    },
    Rule {
        id: RuleId::new("egress.length"),
        code: ReasonCode::ValidationFailed,
        sentence: "The URL of a command's request has at most 8192 bytes.",
        lifted_by: LiftedBy::Nobody,
        check: |intent, _| {
            let Intent::Egress { url, .. } = intent else { return Ok(None) };
            deny_if(url.len() > URL_BYTES_MAX, || format!("This one has {}.", url.len()))
        },
    },
];

/// The creator's list of what commands may reach. An empty list permits nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reachable {
    /// Host names, in lower case and punycode: `pypi.org`, or `*.pythonhosted.org` for every name
    /// under it. They are reached by HTTP at port 80 and by TLS at port 443.
    pub hosts: Vec<String>,
    /// Origins, with their port if it is not the default: `http://127.0.0.1:8000`.
    pub origins: Vec<String>,
}

impl Reachable {
    /// Returns true if an origin is listed as an origin.
    #[must_use]
    pub fn lists_origin(&self, origin: &str) -> bool {
        self.origins.iter().any(|spelled| spelled == origin)
    }

    /// Returns true if an origin is listed as a host or as an origin.
    #[must_use]
    pub fn allows(&self, origin: &str) -> bool {
        let host = origin.strip_prefix("https://").or(origin.strip_prefix("http://"));
        // An origin with an explicit port or an IPv6 address contains a colon.
        let listed = host.is_some_and(|host| self.hosts.iter().any(|entry| covers(entry, host)));
        listed || self.lists_origin(origin)
    }
}

/// Returns true if a list entry covers a host.
fn covers(entry: &str, host: &str) -> bool {
    match entry.strip_prefix("*.") {
        None => entry == host,
        Some(suffix) => host
            .strip_suffix(suffix)
            .and_then(|rest| rest.strip_suffix('.'))
            .is_some_and(|rest| !rest.is_empty()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{answering, objections};
    use automaton_core::trust::Label;
    use proptest::prelude::*;

    fn listed() -> Reachable {
        Reachable {
            hosts: vec!["pypi.org".to_owned(), "*.pythonhosted.org".to_owned()],
            origins: vec!["http://127.0.0.1:8000".to_owned()],
        }
    }

    fn to(origin: &str) -> Intent {
        let method = "GET".to_owned();
        let url = format!("{origin}/x");
        Intent::Egress { method, url, origin: origin.to_owned() }
    }

    #[test]
    fn only_what_is_listed_is_reached() {
        let facts = |label| crate::Facts { egress: listed().into(), ..answering(label) };
        for origin in [
            "https://pypi.org",
            "http://pypi.org",
            "https://files.pythonhosted.org",
            "https://a.b.pythonhosted.org",
            "http://127.0.0.1:8000",
        ] {
            assert!(objections(&to(origin), &facts(Label::Creator)).is_empty(), "{origin}");
            let heard = crate::Facts { heard: Label::Web, ..facts(Label::Own) };
            assert!(objections(&to(origin), &heard).is_empty(), "{origin}");
            let held = objections(&to(origin), &facts(Label::Peer));
            assert_eq!(held, ["authority.untrusted_input"], "{origin}");
        }
        for origin in [
            "",
            "pypi.org",
            "https://pypi.org:8443",
            "https://pypi.org.evil.example",
            "https://evilpypi.org",
            "https://sub.pypi.org",
            "https://pythonhosted.org",
            "https://.pythonhosted.org",
            "https://evilpythonhosted.org",
            "https://a.pythonhosted.org:22",
            "https://127.0.0.1:8000",
            "http://127.0.0.1",
            "http://127.0.0.1:8001",
            "ftp://pypi.org",
        ] {
            let ids = objections(&to(origin), &facts(Label::Creator));
            assert_eq!(ids, ["egress.hosts"], "{origin}");
        }
        let none = crate::Facts { egress: Default::default(), ..answering(Label::Creator) };
        assert_eq!(objections(&to("https://pypi.org"), &none), ["egress.hosts"]);
    }

    #[test]
    fn a_url_is_short_and_holds_no_secret() {
        let facts = crate::Facts { egress: listed().into(), ..answering(Label::Creator) };
        let url = format!("https://pypi.org/{}", "x".repeat(8192));
        let method = "GET".to_owned();
        let origin = "https://pypi.org".to_owned();
        let long = Intent::Egress { method, url, origin };
        assert_eq!(objections(&long, &facts), ["egress.length"]);
        let secrets = vec![crate::guard::secrets::SecretKind::Pem];
        let holding = crate::Facts { secrets, ..facts };
        assert_eq!(objections(&to("https://pypi.org"), &holding), ["outbound.secrets"]);
    }

    proptest! {
        #[test]
        fn a_star_covers_what_is_under_it_and_nothing_else(host in "[a-z.]{0,12}", suffix in "[a-z]{1,3}\\.[a-z]{1,3}") {
            let covered = covers(&format!("*.{suffix}"), &host);
            let under = host.ends_with(&format!(".{suffix}")) && host.len() > suffix.len() + 1;
            prop_assert_eq!(covered, under);
            prop_assert_eq!(covers(&suffix, &host), suffix == host);
        }
    }
}
