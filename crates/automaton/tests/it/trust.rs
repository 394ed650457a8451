//! A model behind a certificate that an authority of the operator's own has signed.

#[path = "../../../net/tests/it/authority.rs"]
mod authority;

use std::fs;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use automaton_core::event::Event;
use automaton_script::model::MODEL;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::{self, pki_types::PrivateKeyDer};

use self::authority::Authority;
use super::remote::model;
use super::world;

const STORY: &str = "title = \"here\"\n[[step]]\nsay = \"I am here.\"\n";

/// Carries what comes over TLS to a server without, for as long as the tests run; its URL.
#[expect(clippy::disallowed_methods, reason = "tasks of a test end with it")]
fn behind_tls(authority: &Authority, server: &str) -> String {
    let signed = authority.sign_loopback();
    let server = server.trim_start_matches("http://").to_owned();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![signed.certificate.into()], PrivateKeyDer::Pkcs8(signed.key.into()))
        .unwrap();
    let (tell, told) = sync_channel(1);
    std::thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let acceptor = TlsAcceptor::from(Arc::new(config));
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            tell.send(format!("https://{}", listener.local_addr().unwrap())).unwrap();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                // A client that does not believe goes away, and so does one that has its answer.
                let Ok(mut stream) = acceptor.accept(stream).await else { continue };
                let mut inside = TcpStream::connect(&server).await.unwrap();
                tokio::spawn(async move {
                    copy_bidirectional(&mut stream, &mut inside).await.ok();
                });
            }
        });
    });
    told.recv().unwrap()
}

#[test]
fn a_model_is_believed_where_the_operator_names_its_authority() {
    let authority = Authority::new();
    let (server, _model) = model(STORY);
    let url = behind_tls(&authority, &server);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("authority.pem");
    let world = world().brain(&url).variable("SSL_CERT_FILE", &file);
    let refused = world.command(&["status"]).unwrap();
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    let told = format!("cannot read '{}', which SSL_CERT_FILE names", file.display());
    assert!(refused.stderr.contains(&told), "{}", refused.stderr);
    assert!(refused.stderr.contains("hint: correct SSL_CERT_FILE"), "{}", refused.stderr);
    fs::write(&file, authority.pem()).unwrap();
    let arguments = ["--brain-model", MODEL, "--ask", "Are you there?", "--turns", "1"];
    let lived = world.up(&arguments).unwrap().finish().unwrap();
    assert_eq!(lived.code, Some(0), "{}\n{}", lived.stdout, lived.stderr);
    let says = |event: &Event| matches!(event, Event::MessageSent { body, .. } if body.text == "I am here.");
    assert!(lived.events.iter().any(|stamped| says(&stamped.event)), "{}", lived.stdout);
}
