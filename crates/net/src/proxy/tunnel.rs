//! A tunnel: bytes both ways, once the first of them greet the host that was asked for.
//!
//! The greeting of TLS names its host in the clear. Another name in it would reach another
//! site of the same server (domain fronting), and what is no TLS would be read by nobody:
//! both end the tunnel before a byte of it was sent on. What follows is encrypted; nothing
//! here can look into it, and no credential is put in.

use std::sync::Arc;

use automaton_core::egress::EgressEndReason;
use rustls::server::Acceptor;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::dial::ByteStream;
use super::exchange::{ExchangeFailure, ParsedRequest};
use super::meter::TrafficMeter;
use crate::limits::EGRESS_HEAD;
use crate::origin::Origin;

/// The longest greeting, in bytes.
const GREETING_BYTES_MAX: usize = 64 << 10;

/// Says that the tunnel is there, looks at the greeting and copies until both sides are
/// done.
pub(super) async fn run(
    client: &mut TcpStream,
    mut upstream: impl ByteStream,
    opened: &ParsedRequest,
    meter: &Arc<TrafficMeter>,
) -> Result<(), ExchangeFailure> {
    client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
    meter.answered(200);
    let early = opened.bytes.get(opened.body_at..).unwrap_or_default().to_vec();
    let greeting = timeout(EGRESS_HEAD, greeting(client, early, &opened.head.origin)).await;
    let greeting =
        greeting.map_err(|_| ExchangeFailure { end: EgressEndReason::Idle, sentence: None })??;
    upstream.write_all(&greeting).await?;
    copy_bidirectional(client, &mut upstream).await?;
    Ok(())
}

/// The first bytes, as far as they have to be read to know whom they greet.
async fn greeting(
    client: &mut TcpStream,
    mut bytes: Vec<u8>,
    to: &Origin,
) -> Result<Vec<u8>, ExchangeFailure> {
    let refused = || ExchangeFailure { end: EgressEndReason::Greeting, sentence: None };
    let mut acceptor = Acceptor::default();
    let mut seen = 0;
    loop {
        while let Some(mut fresh) = bytes.get(seen..).filter(|fresh| !fresh.is_empty()) {
            seen += acceptor.read_tls(&mut fresh).map_err(|_| refused())?;
            if let Some(accepted) = acceptor.accept().map_err(|_| refused())? {
                let named = accepted.client_hello().server_name().map(str::to_ascii_lowercase);
                // An address is never named in a greeting (RFC 6066, 3).
                let expected = to.address().is_none().then(|| to.host().to_owned());
                return if named == expected { Ok(bytes) } else { Err(refused()) };
            }
        }
        if bytes.len() >= GREETING_BYTES_MAX {
            return Err(refused());
        }
        if client.read_buf(&mut bytes).await? == 0 {
            return Err(refused());
        }
    }
}
