//! Every way in which a head could be read in two ways, and origins from targets.

use super::*;
use proptest::prelude::*;

fn read(text: &str) -> Result<RequestHead, RequestHeadError> {
    parse(text.as_bytes())
}

/// A request for a target, with the host that belongs to it.
fn get(target: &str, host: &str) -> Result<String, RequestHeadError> {
    read(&format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n"))
        .map(|head| head.origin.to_string())
}

fn connect(target: &str) -> Result<String, RequestHeadError> {
    read(&format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n"))
        .map(|head| head.origin.to_string())
}

#[test]
fn the_origin_is_that_of_the_target_in_one_normal_form() {
    for (target, host, origin) in [
        ("http://example.com/a?b", "example.com", "http://example.com"),
        ("HTTP://Example.COM:80", "example.com", "http://example.com"),
        ("http://example.com./", "EXAMPLE.com", "http://example.com"),
        ("http://example.com:22/", "example.com:22", "http://example.com:22"),
        ("http://0x7f.1/", "127.0.0.1", "http://127.0.0.1"),
        ("http://2130706433/", "2130706433", "http://127.0.0.1"),
        ("http://127.1:80/", "127.0.0.1", "http://127.0.0.1"),
        ("http://[::ffff:127.0.0.1]:8/", "[::ffff:7f00:1]:8", "http://[::ffff:7f00:1]:8"),
        ("http://[::1]/", "[::1]", "http://[::1]"),
        ("http://xn--bcher-kva.example/", "xn--bcher-kva.example", "http://xn--bcher-kva.example"),
        ("http://example.com?x", "example.com", "http://example.com"),
    ] {
        assert_eq!(get(target, host).as_deref(), Ok(origin), "{target}");
    }
    for (target, origin) in [
        ("example.com:443", "https://example.com"),
        ("EXAMPLE.com.:443", "https://example.com"),
        ("example.com:22", "https://example.com:22"),
        ("[::1]:443", "https://[::1]"),
        ("0177.0.0.1:443", "https://127.0.0.1"),
    ] {
        assert_eq!(connect(target).as_deref(), Ok(origin), "{target}");
    }
}

#[test]
fn a_target_that_is_none_is_refused() {
    for target in [
        "/path",
        "*",
        "https://example.com/",
        "ftp://example.com/",
        "http://",
        "http:///x",
        "http:example.com",
        "http:\\\\example.com/",
        "http://me@example.com/",
        "http://me:pw@example.com/",
        "http://good.example\\@evil.example/",
        "http://good.example#@evil.example/",
        "http://ex%61mple.com/",
        "http://example.com:99999/",
        "http://example.com:8x/",
        "http://[::1/",
        "http://[::1%25lo]/",
        "http://bücher.example/",
        "http://1.2.3.4.5/",
        "http://./",
    ] {
        assert_eq!(get(target, "example.com"), Err(RequestHeadError::Target), "{target}");
    }
    for target in
        ["example.com", "example.com:", "http://example.com:443", "a@b:443", "b/:443", ":443"]
    {
        assert_eq!(connect(target), Err(RequestHeadError::Target), "{target}");
    }
}

#[test]
fn a_host_that_says_something_else_is_refused() {
    let head = |hosts: &str| read(&format!("GET http://a.example/ HTTP/1.1\r\n{hosts}\r\n"));
    for hosts in [
        "",
        "Host: b.example\r\n",
        "Host: a.example\r\nHost: a.example\r\n",
        "Host: a.example\r\nhost: b.example\r\n",
        "Host: a.example:81\r\n",
        "Host: a.example, b.example\r\n",
        "Host: me@a.example\r\n",
        "Host:\r\n",
        "Host: a.example/x\r\n",
    ] {
        assert_eq!(head(hosts), Err(RequestHeadError::Host), "{hosts:?}");
    }
    for hosts in ["Host: a.example\r\n", "HOST:A.EXAMPLE:80 \r\n"] {
        assert!(head(hosts).is_ok(), "{hosts:?}");
    }
    // Before 1.1 there was none.
    assert!(read("CONNECT a.example:443 HTTP/1.0\r\n\r\n").is_ok());
}

#[test]
fn nothing_can_be_hidden_in_a_request() {
    let head = |rest: &str| {
        read(&format!("POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\n{rest}\r\n"))
    };
    for (rest, bad) in [
        ("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", RequestHeadError::Length),
        ("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", RequestHeadError::Length),
        ("Content-Length: 5\r\nContent-Length: 5\r\n", RequestHeadError::Length),
        ("Content-Length: 5\r\nContent-Length: 6\r\n", RequestHeadError::Length),
        ("Content-Length: 5, 5\r\n", RequestHeadError::Length),
        ("Content-Length: +5\r\n", RequestHeadError::Length),
        ("Content-Length: 0x5\r\n", RequestHeadError::Length),
        ("Content-Length:\r\n", RequestHeadError::Length),
        ("Content-Length: 9999999999999999999\r\n", RequestHeadError::Length),
        ("Transfer-Encoding: gzip, chunked\r\n", RequestHeadError::Length),
        ("Transfer-Encoding: xchunked\r\n", RequestHeadError::Length),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", RequestHeadError::Length),
        ("Transfer-Encoding : chunked\r\n", RequestHeadError::Header),
        (" folded: value\r\n", RequestHeadError::Bytes),
        ("X: 1\r\n\tfolded\r\n", RequestHeadError::Bytes),
        ("X: 1\nContent-Length: 5\r\n", RequestHeadError::Bytes),
        ("X: 1\rContent-Length: 5\r\n", RequestHeadError::Bytes),
        ("X: \0\r\n", RequestHeadError::Bytes),
        ("no colon\r\n", RequestHeadError::Header),
        (": empty\r\n", RequestHeadError::Header),
    ] {
        assert_eq!(head(rest), Err(bad), "{rest:?}");
    }
    for rest in ["Content-Length: 5\r\n", "Transfer-Encoding: Chunked\r\n", "X: ä\r\n"] {
        assert!(head(rest).is_ok(), "{rest:?}");
    }
    let old = "POST http://a.example/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(read(old), Err(RequestHeadError::Length));
    let body = "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\nContent-Length: 5\r\n\r\n";
    assert_eq!(read(body), Err(RequestHeadError::Length));
}

#[test]
fn a_first_line_has_three_words() {
    for line in [
        "GET http://a.example/",
        "GET  http://a.example/ HTTP/1.1",
        "GET http://a.example/ x HTTP/1.1",
        "GET http://a.example/ HTTP/2.0",
        "GET http://a.example/ http/1.1",
        "",
    ] {
        assert_eq!(read(&format!("{line}\r\n\r\n")), Err(RequestHeadError::Line), "{line}");
    }
    for method in ["get", "TRACE", "PRI", "G(T", "ABCDEFGHIJKLMNOPQ"] {
        let text = format!("{method} http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n");
        assert_eq!(read(&text), Err(RequestHeadError::Method), "{method}");
    }
    assert_eq!(read("GET\thttp://a.example/ HTTP/1.1\r\n\r\n"), Err(RequestHeadError::Bytes));
}

#[test]
fn a_head_ends_at_its_empty_line_and_has_a_limit() {
    let head = b"GET / HTTP/1.1\r\n\r\nbody";
    for seen in 0..18 {
        assert_eq!(length(head, seen), Ok(Some(18)), "{seen}");
    }
    assert_eq!(length(b"GET / HTTP/1.1\n\n", 0), Ok(None));
    assert_eq!(length(&[b'a'; EGRESS_HEAD_BYTES_MAX], 0), Err(RequestHeadError::Large));
    let many = "X: 1\r\n".repeat(EGRESS_HEADERS_MAX + 1);
    assert_eq!(
        read(&format!("GET http://a.example/ HTTP/1.1\r\n{many}\r\n")),
        Err(RequestHeadError::Many)
    );
}

proptest! {
    #[test]
    fn what_is_read_has_one_line_a_header_and_goes_where_its_target_says(
        host in "[a-z0-9.]{1,12}", port in 1_u16.., noise in "[ -~\t\r\n]{0,40}", path in "[!-~]{0,20}"
    ) {
        let text = format!("GET http://{host}:{port}/{path} HTTP/1.1\r\nHost: {host}:{port}\r\n{noise}\r\n\r\n");
        if let Ok(head) = read(&text) {
            prop_assert!(!noise.replace("\r\n", "").contains(['\r', '\n']));
            prop_assert_eq!(head.origin.port(), port);
            let plain = Url::parse(&format!("http://{host}:{port}/")).unwrap();
            prop_assert_eq!(&head.origin, &Origin::from_url(&plain).unwrap());
            prop_assert_eq!(Origin::from_url(&head.url).unwrap(), head.origin);
        }
    }

    #[test]
    fn no_bytes_break_it(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        // Either is right; neither may panic.
        drop(parse(&bytes));
        drop(length(&bytes, bytes.len() / 2));
    }
}
