//! Authorities of an operator's own.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use automaton_core::error::{Classified as _, ErrorClass, chain};
use automaton_net::{
    HttpClient, HttpClientConfig, HttpMethod, HttpRequest, NetError, Origin, PrivateAuthorities,
    Url,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::{self, pki_types::PrivateKeyDer};

use crate::authority::Authority;

/// Answers one request over TLS, if its client believes who signed.
#[expect(clippy::disallowed_methods, reason = "a task of a test ends with it")]
async fn serves_as_signed_by(authority: &Authority) -> Url {
    let signed = authority.sign_loopback();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![signed.certificate.into()], PrivateKeyDer::Pkcs8(signed.key.into()))
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        // A client that does not believe goes away.
        let Ok(mut stream) = TlsAcceptor::from(Arc::new(config)).accept(stream).await else {
            return;
        };
        let mut head = [0; 1024];
        assert!(stream.read(&mut head).await.unwrap() > 0);
        let answer = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";
        stream.write_all(answer.as_bytes()).await.unwrap();
        stream.shutdown().await.ok();
    });
    url.parse().unwrap()
}

async fn get(url: &Url, authorities: PrivateAuthorities) -> Result<u16, NetError> {
    let allow_private_origins = vec![Origin::from_url(url).unwrap()];
    let config =
        HttpClientConfig { allow_private_origins, authorities, ..HttpClientConfig::default() };
    let client = HttpClient::new(config).unwrap();
    let request = HttpRequest::new(HttpMethod::Get, url.clone());
    client.request(request).await.map(|answer| answer.status)
}

#[tokio::test]
async fn whom_the_operator_names_is_believed_and_nobody_else() {
    let (ours, others) = (Authority::new(), Authority::new());
    let place = tempfile::tempdir().unwrap();
    let (file, folder) = (place.path().join("ours.pem"), place.path().join("more"));
    fs::create_dir(&folder).unwrap();
    fs::write(&file, ours.pem()).unwrap();
    fs::write(folder.join("ours.crt"), format!("# Ours\n{}", ours.pem())).unwrap();
    fs::write(folder.join("README"), "Certificates of ours.\n").unwrap();
    for authorities in [
        PrivateAuthorities::read(Some(&file), &[]).unwrap(),
        PrivateAuthorities::read(None, &[folder]).unwrap(),
    ] {
        // A child is told of them as JSON.
        let told = serde_json::to_string(&authorities).unwrap();
        assert_eq!(serde_json::from_str::<PrivateAuthorities>(&told).unwrap(), authorities);
        assert_eq!(get(&serves_as_signed_by(&ours).await, authorities.clone()).await.unwrap(), 200);
        let url = serves_as_signed_by(&others).await;
        let refused = get(&url, authorities).await.unwrap_err();
        assert!(matches!(refused, NetError::Untrusted { .. }), "{}", chain(&refused));
    }
    let url = serves_as_signed_by(&ours).await;
    let refused = get(&url, PrivateAuthorities::default()).await.unwrap_err();
    assert!(matches!(refused, NetError::Untrusted { .. }), "{}", chain(&refused));
    assert!(refused.hint().unwrap().contains("SSL_CERT_FILE"));
}

#[test]
fn what_cannot_be_believed_is_named_with_its_file() {
    let place = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = place.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let good = Authority::new().pem();
    let cut = good.replace("-----END", "====-----END");
    let nobody = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
    let refused = |file: Option<&Path>, folders: &[_]| {
        let error = PrivateAuthorities::read(file, folders).unwrap_err();
        assert_eq!(error.kind(), ErrorClass::Config);
        (chain(&error).to_string(), error.hint().unwrap())
    };
    for (path, why) in [
        (place.path().join("absent"), "cannot read"),
        (place.path().to_owned(), "cannot read"),
        (write("empty", ""), "holds no certificate"),
        (
            write("key", "-----BEGIN PRIVATE KEY-----\nMAA=\n-----END PRIVATE KEY-----\n"),
            "holds no",
        ),
        (write("cut", &cut), "is broken"),
        (write("nobody", &format!("{good}{nobody}")), "holds what is no authority's"),
        (write("large", &"x".repeat(1024 * 1024 + 1)), "is larger than 1048576 bytes"),
    ] {
        let (told, hint) = refused(Some(&path), &[]);
        assert!(told.contains(why) && told.contains(path.to_str().unwrap()), "{told}");
        assert!(told.contains("SSL_CERT_FILE") && hint.contains("SSL_CERT_FILE"), "{told}: {hint}");
    }
    let (told, hint) = refused(None, &[place.path().to_owned()]);
    assert!(told.contains("SSL_CERT_DIR") && hint.contains("SSL_CERT_DIR"), "{told}: {hint}");
    let (told, _) = refused(None, &[place.path().join("absent")]);
    assert!(told.contains("cannot read") && told.contains("absent"), "{told}");
}
