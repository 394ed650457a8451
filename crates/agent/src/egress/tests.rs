//! Notes about the network, credentials, and refusal of everything else.

use super::*;
use automaton_core::entropy::SystemEntropy;
use automaton_core::time::SystemClock;
use automaton_net::Url;

fn ids() -> IdGenerator {
    IdGenerator::new(Arc::new(SystemClock), Arc::new(SystemEntropy))
}

fn egress() -> EgressConfig {
    let credential = |origin: &str| Credential {
        origin: origin.parse().unwrap(),
        header: "authorization".to_owned(),
        value: Secret::new("Bearer cnwy_k_1234567890".to_owned()),
    };
    EgressConfig {
        reachable: Arc::new(Reachable {
            hosts: vec!["pypi.org".to_owned()],
            origins: vec!["http://127.0.0.1:8000".to_owned()],
        }),
        credentials: vec![credential("https://api.example"), credential("https://b.example:8443")],
        allowance: Allowance::default(),
    }
}

async fn ask(
    label: Label,
    method: &str,
    url: &str,
) -> Result<AllowedRequest<Option<CallId>>, EgressRefusal> {
    let behalf = CallProvenance { input: label, heard: label, ..manual_provenance(&ids()) };
    let gate = EgressGate::new(&egress(), Judge::default(), ids(), behalf, Vec::new(), None);
    let url = Url::parse(url).unwrap();
    let origin = Origin::from_url(&url).unwrap();
    gate.judge(EgressRequest { method: method.to_owned(), url, origin }).await
}

#[tokio::test]
async fn a_credential_goes_to_its_origin_over_tls_and_into_no_tunnel() {
    for (asked, to) in [
        ("http://api.example/v1", "https://api.example"),
        ("http://b.example:8443/", "https://b.example:8443"),
    ] {
        let pass = ask(Label::Creator, "GET", asked).await.unwrap();
        assert_eq!((pass.to.to_string().as_str(), pass.headers.len()), (to, 1), "{asked}");
        let tunnel = ask(Label::Creator, "CONNECT", &format!("{to}/")).await;
        assert_eq!(tunnel.unwrap_err().rule, "egress.hosts", "{asked}");
    }
    let plain = ask(Label::Creator, "GET", "http://pypi.org/simple").await.unwrap();
    assert!(plain.headers.is_empty() && !plain.allowlisted);
    assert_eq!(plain.to.to_string(), "http://pypi.org");
    assert!(ask(Label::Creator, "GET", "http://127.0.0.1:8000/").await.unwrap().allowlisted);
}

#[tokio::test]
async fn what_is_not_listed_is_refused_with_a_way_on() {
    for url in [
        "http://evil.example/",
        "http://pypi.org:22/",
        "http://127.0.0.1:8001/",
        "http://b.example/",
    ] {
        let refusal = ask(Label::Creator, "GET", url).await.unwrap_err();
        assert_eq!(refusal.rule, "egress.hosts", "{url}");
        let way_on = "The creator can allow it under `egress.hosts` in automaton.json.";
        assert!(refusal.sentence.ends_with(way_on), "{}", refusal.sentence);
    }
    let held = ask(Label::Peer, "GET", "http://pypi.org/").await.unwrap_err();
    assert_eq!(held.rule, "authority.untrusted_input");
    assert!(held.sentence.contains("needs the creator's approval"), "{}", held.sentence);
    let url = "http://pypi.org/?q=Bearer%20cnwy_k_1234567890";
    assert!(ask(Label::Creator, "GET", url).await.is_err(), "a credential leaves in a URL");
}

#[test]
fn the_model_is_told_what_may_be_reached() {
    assert_eq!(
        egress().words().unwrap(),
        "Network: only pypi.org, http://127.0.0.1:8000, http://api.example (authorization is put \
         in), http://b.example:8443 (authorization is put in), by the proxy that HTTP_PROXY names."
    );
    assert!(EgressConfig::default().words().is_none());
    let hosts = (0..20).map(|n| format!("h{n}.example")).collect();
    let many = Reachable { hosts, origins: Vec::new() };
    let many = EgressConfig { reachable: Arc::new(many), ..EgressConfig::default() };
    assert!(many.words().unwrap().contains("h11.example and 8 more, by"));
}
