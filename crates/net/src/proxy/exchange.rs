//! One connection of a command: read, judged, connected, passed on, recorded.
//!
//! A straight line, with an answer in plain words at each place where it can end. The
//! gate is told of the end of each request that it let through, however it comes.

use std::io;
use std::sync::Arc;

use automaton_core::egress::{EgressEndReason, EgressOutcome};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tracing::debug;

use super::head::{self, RequestHead, RequestHeadError};
use super::meter::{MeteredStream, TrafficMeter};
use super::{AllowedRequest, EgressRefusal, EgressRequest, Gate, ProxyRun, forward, tunnel};
use crate::limits::EGRESS_HEAD;

/// Bytes of a request that are read and thrown away, so that the answer is not lost.
const REST_BYTES_MAX: u64 = 1 << 20;

/// The part of a request that was read before it was judged.
pub(super) struct ParsedRequest {
    pub(super) head: RequestHead,
    /// The head as it came, and what came with it.
    pub(super) bytes: Vec<u8>,
    /// The end of the head.
    pub(super) body_at: usize,
}

/// An answer of the proxy's own.
struct ProxyErrorResponse {
    status: &'static str,
    rule: String,
    sentence: String,
}

/// Serves one connection.
pub(super) async fn serve<G: Gate>(run: Arc<ProxyRun<G>>, mut client: TcpStream) {
    let mut ended = run.ended.clone();
    let opened = tokio::select! {
        biased;
        _ = ended.wait_for(|ended| *ended) => return,
        opened = open(&mut client) => opened,
    };
    let judged = match opened {
        Ok(opened) => judge(&run, opened).await.map_err(Some),
        Err(says) => Err(says),
    };
    match judged {
        Ok((opened, pass)) => {
            let meter = TrafficMeter::new(run.proxy.allowance, Arc::clone(&run.bytes));
            let tunnel = opened.head.is_tunnel();
            let end = tokio::select! {
                biased;
                _ = ended.wait_for(|ended| *ended) => EgressEndReason::Stopped,
                end = pass_on(&run, &mut client, opened, &pass, &meter) => end,
                end = meter.overdue() => end,
            };
            if !tunnel
                && meter.status().is_none()
                && matches!(end, EgressEndReason::Idle | EgressEndReason::TooLong)
            {
                let sentence = format!("{} did not answer in time.", pass.to);
                send_refusal(&mut client, &ProxyErrorResponse::from_end(end, sentence)).await;
            }
            let (bytes_up, bytes_down) = meter.bytes();
            let came = EgressOutcome { status: meter.status(), bytes_up, bytes_down, end };
            run.gate.ended(pass.ticket, came).await;
        }
        Err(Some(says)) => send_refusal(&mut client, &says).await,
        Err(None) => {}
    }
}

/// Has a request judged, unless there were too many. Runs to its end, so that what was
/// written down as let through is known here.
async fn judge<G: Gate>(
    run: &ProxyRun<G>,
    opened: ParsedRequest,
) -> Result<(ParsedRequest, AllowedRequest<G::Ticket>), ProxyErrorResponse> {
    let refused = |it: EgressRefusal| ProxyErrorResponse::new("403 Refused", &it.rule, it.sentence);
    run.proxy.admit().map_err(refused)?;
    let RequestHead { method, url, origin } = opened.head.clone();
    let pass = run.gate.judge(EgressRequest { method, url, origin }).await.map_err(refused)?;
    Ok((opened, pass))
}

/// Reads a head, or returns its defect. A client that sends nothing gets no answer.
async fn open(client: &mut TcpStream) -> Result<ParsedRequest, Option<ProxyErrorResponse>> {
    let mut bytes = Vec::with_capacity(1024);
    let reading = async {
        let mut seen = 0;
        loop {
            if let Some(body_at) = head::length(&bytes, seen)? {
                let head = head::parse(&bytes[..body_at])?;
                return Ok::<_, RequestHeadError>(Some((head, body_at)));
            }
            seen = bytes.len();
            match client.read_buf(&mut bytes).await {
                Ok(1..) => {}
                // A head that is cut off asks for nothing.
                Ok(0) | Err(_) => return Ok(None),
            }
        }
    };
    match timeout(EGRESS_HEAD, reading).await {
        Ok(Ok(Some((head, body_at)))) => Ok(ParsedRequest { head, bytes, body_at }),
        Ok(Ok(None)) => Err(None),
        Ok(Err(bad)) => {
            let sentence = format!("Refused, since {bad}.");
            Err(Some(ProxyErrorResponse::new("400 Bad Request", bad.rule(), sentence)))
        }
        Err(_) => {
            let sentence = format!("The head of a request has to come within {EGRESS_HEAD:?}.");
            Err(Some(ProxyErrorResponse::new("408 Request Timeout", "request.time", sentence)))
        }
    }
}

/// Connects, and passes a request on that was let through.
async fn pass_on<G: Gate>(
    run: &ProxyRun<G>,
    client: &mut TcpStream,
    opened: ParsedRequest,
    pass: &AllowedRequest<G::Ticket>,
    meter: &Arc<TrafficMeter>,
) -> EgressEndReason {
    let passed = match run.proxy.dial(&pass.to, pass.allowlisted).await {
        Ok(upstream) => {
            let upstream = MeteredStream::new(upstream, Arc::clone(meter));
            match opened.head.is_tunnel() {
                true => tunnel::run(client, upstream, &opened, meter).await,
                false => forward::run(&run.proxy, client, upstream, opened, pass, meter).await,
            }
        }
        Err(failed) => Err(failed),
    };
    let Err(ExchangeFailure { end, sentence }) = passed else { return EgressEndReason::Done };
    let end = meter.cut().unwrap_or(end);
    if let Some(sentence) = sentence {
        send_refusal(client, &ProxyErrorResponse::from_end(end, sentence)).await;
    }
    end
}

/// The reason why a request was not passed on to its end.
pub(super) struct ExchangeFailure {
    pub(super) end: EgressEndReason,
    /// The sentence for the program, if nothing was answered yet.
    pub(super) sentence: Option<String>,
}

impl ExchangeFailure {
    pub(super) const fn with_sentence(end: EgressEndReason, sentence: String) -> Self {
        Self { end, sentence: Some(sentence) }
    }
}

impl From<io::Error> for ExchangeFailure {
    fn from(error: io::Error) -> Self {
        debug!(%error, "a request broke off");
        Self { end: EgressEndReason::Broken, sentence: None }
    }
}

impl ProxyErrorResponse {
    fn new(status: &'static str, rule: &str, sentence: String) -> Self {
        // An operator may call a rule what cannot stand in a header.
        let rule = rule.chars().filter(char::is_ascii_graphic).collect();
        Self { status, rule, sentence }
    }

    /// Creates the response to a request that came to this end before it was answered.
    fn from_end(end: EgressEndReason, sentence: String) -> Self {
        let status = match end {
            EgressEndReason::Address => "403 Refused",
            EgressEndReason::Late | EgressEndReason::Idle | EgressEndReason::TooLong => {
                "504 Gateway Timeout"
            }
            _ => "502 Bad Gateway",
        };
        Self::new(status, &format!("egress.{}", end.name()), sentence)
    }
}

/// Sends a refusal and lets the client read it. Bytes that the client still sends are thrown
/// away, since closing on unread bytes would reset the connection.
async fn send_refusal(client: &mut TcpStream, says: &ProxyErrorResponse) {
    let ProxyErrorResponse { status, rule, sentence } = says;
    // Clients that show no body show this.
    let by = if status.ends_with("Refused") { format!(" by {rule}") } else { String::new() };
    let text = format!(
        "HTTP/1.1 {status}{by}\r\nx-automaton-refused: {rule}\r\ncontent-type: text/plain; charset=utf-8\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n{sentence}\n",
        sentence.len() + 1
    );
    let saying = async {
        client.write_all(text.as_bytes()).await?;
        client.shutdown().await?;
        tokio::io::copy(&mut client.take(REST_BYTES_MAX), &mut tokio::io::sink()).await
    };
    // silent-ok: whoever does not wait for the answer does not get it.
    let _ = timeout(EGRESS_HEAD, saying).await.is_ok();
}
