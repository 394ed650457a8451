//! Streams of a model through a cloud, beside the same streams without one.
//!
//! Chain, cloud and ledger are the real ones, on the disk; the model says when it said each piece,
//! by the clock of this process, which asks as well. What is measured is how long the first piece
//! takes, how old each one is when it is heard, and, with five hundred streams at once, the memory:
//! that of model and client counts in both, what the cloud takes is the difference.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::U256;
use automaton::cmd::CommandContext;
use automaton::error::CliError;
use automaton::http::client;
use automaton::process;
use automaton::role::gas;
use automaton_cloud::db::Db;
use automaton_cloud::{CloudBackend, CloudDeps, CloudServer, DATABASE};
use automaton_core::entropy::SystemEntropy;
use automaton_core::faults::NoFaults;
use automaton_core::money::MicroUsdc;
use automaton_core::secret::Secret;
use automaton_core::time::SystemClock;
use automaton_core::wire::chat::ChatChunk;
use automaton_devnet::{CHAIN_ID, Devnet};
use automaton_net::sse::Events;
use automaton_net::{Header, HttpClient, HttpMethod, HttpRequest, Url};
use serde::Serialize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, interval};

use super::life::percentile;
use super::{forget_peak, ledger, own_pid, proc_number, settle};
use crate::product;

/// Pieces of a stream.
const PIECES: u32 = 50;
/// Pace of the model's pieces.
const PACE: Duration = Duration::from_millis(10);
/// Streams one after the other, and at once.
const ALONE: usize = 40;
const AT_ONCE: usize = 500;
/// Time that a stream may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// The largest head of a request that the model reads, in bytes.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// Timing of streams. Times are of the slowest in a half, and in 99 of a hundred.
#[derive(Debug, Clone, Copy, Default, Serialize)]
struct StreamTiming {
    streams: usize,
    first_us: u64,
    first_us_p99: u64,
    piece_us: u64,
    piece_us_p99: u64,
    took_ms: u64,
    /// The most memory that this process had, in KiB.
    peak_kib: u64,
}

/// Results.
#[derive(Debug, Default, Serialize)]
struct InferenceMeasurement {
    /// One stream after the other, in turns.
    alone_direct: StreamTiming,
    alone_through_cloud: StreamTiming,
    /// All at once.
    at_once_direct: StreamTiming,
    at_once_through_cloud: StreamTiming,
}

/// Pieces of some streams, in microseconds.
#[derive(Default)]
struct HeardStreams {
    firsts: Vec<u64>,
    pieces: Vec<u64>,
}

/// Server of a stream.
#[derive(Clone)]
struct StreamSource {
    client: HttpClient,
    url: Url,
    /// Zero of the model's clock.
    zero: Instant,
}

/// Measures, and tells.
///
/// # Errors
/// When chain, cloud or model cannot be started, or a stream is none.
pub(super) fn run(context: &CommandContext) -> Result<(), CliError> {
    let scratch = context.scratch()?;
    let home = scratch.home();
    let measured = process::runtime()?.block_on(async {
        let zero = Instant::now();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listener.map_err(|error| failed(&error))?;
        let model = listener.local_addr().map_err(|error| failed(&error))?;
        let mut tasks = JoinSet::new();
        tasks.spawn(serve(listener, zero));
        let chain = automaton_devnet::DevnetConfig {
            listen: ([127, 0, 0, 1], 0).into(),
            data: Some(home.join("chain")),
            chain_id: CHAIN_ID,
            clock: Arc::new(SystemClock),
            faults: Arc::new(NoFaults),
        };
        let chain = Devnet::start(chain).await?;
        chain.fund(settle::GAS, MicroUsdc::ZERO, U256::from(settle::GAS_WEI)).await?;
        let model = format!("http://{model}");
        let config = settle::config(&home, &chain.url(), &model)?;
        let signer = gas::start(&product()?, &config)?;
        let (signer, _ended) = gas::join(signer).await?;
        let deps = CloudDeps {
            clock: Arc::new(SystemClock),
            entropy: Arc::new(SystemEntropy),
            report: Arc::new(drop),
            faults: Arc::new(NoFaults),
            launcher: None,
        };
        let db = Db::open(&home.join(DATABASE), Arc::new(SystemClock))?;
        ledger::account(&db).await?;
        ledger::buy(&db, ledger::GIVER).await?;
        let settlement = CloudServer::settlement(&config, signer)?;
        let ground = CloudBackend { chain: settlement, db };
        let cloud = CloudServer::start_over(config, deps, ground).await?;
        let measured = measure(&model, cloud.url(), zero).await?;
        drop(cloud);
        chain.stop().await;
        Ok::<_, CliError>(measured)
    })?;
    context.format.answer(&measured, || describe(&measured))
}

async fn measure(
    model: &str,
    cloud: &str,
    zero: Instant,
) -> Result<InferenceMeasurement, CliError> {
    let source = |base: &str| {
        let url = automaton::http::url(&format!("{base}/v1/chat/completions"))?;
        Ok::<_, CliError>(StreamSource { client: client([base])?, url, zero })
    };
    let direct = source(model)?;
    let through = source(cloud)?;
    let mut alone = [HeardStreams::default(), HeardStreams::default()];
    forget_peak();
    let began = Instant::now();
    for _ in 0..ALONE {
        for (source, heard) in [&direct, &through].into_iter().zip(&mut alone) {
            heard.add(listen(source.clone()).await?);
        }
    }
    let [alone_direct, alone_through_cloud] = alone.map(|heard| heard.timing(began));
    Ok(InferenceMeasurement {
        alone_direct,
        alone_through_cloud,
        at_once_direct: at_once(&direct).await?,
        at_once_through_cloud: at_once(&through).await?,
    })
}

async fn at_once(source: &StreamSource) -> Result<StreamTiming, CliError> {
    forget_peak();
    let began = Instant::now();
    let mut heard = HeardStreams::default();
    let mut streams = JoinSet::new();
    for _ in 0..AT_ONCE {
        streams.spawn(listen(source.clone()));
    }
    while let Some(stream) = streams.join_next().await {
        heard.add(stream.map_err(|error| failed(&error))??);
    }
    Ok(heard.timing(began))
}

impl HeardStreams {
    fn add(&mut self, other: Self) {
        self.firsts.extend(other.firsts);
        self.pieces.extend(other.pieces);
    }

    fn timing(self, began: Instant) -> StreamTiming {
        let of = |values: &[u64], percent| percentile(values.iter().copied(), percent);
        StreamTiming {
            streams: self.firsts.len(),
            first_us: of(&self.firsts, 50).unwrap_or(0),
            first_us_p99: of(&self.firsts, 99).unwrap_or(0),
            piece_us: of(&self.pieces, 50).unwrap_or(0),
            piece_us_p99: of(&self.pieces, 99).unwrap_or(0),
            took_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
            peak_kib: proc_number(own_pid(), "status", "VmHWM:").unwrap_or(0),
        }
    }
}

/// Has one stream told, to its end.
async fn listen(source: StreamSource) -> Result<HeardStreams, CliError> {
    let StreamSource { client, url, zero } = source;
    let mut request = HttpRequest::new(HttpMethod::Post, url);
    request.headers.push(Header::Open("content-type", "application/json".to_owned()));
    request.headers.push(Header::Secret("authorization", Secret::new(ledger::KEY.to_owned())));
    let question = serde_json::json!({
        "model": settle::MODEL, "max_tokens": PIECES, "stream": true,
        "messages": [{ "role": "user", "content": "Count." }],
    });
    request.body = question.to_string().into_bytes();
    (request.deadlines.idle, request.deadlines.total) = (PATIENCE, PATIENCE);
    let asked = Instant::now();
    let mut heard = HeardStreams::default();
    let mut response = client.request(request).await?;
    let mut events = Events::default();
    let mut is_whole = response.status != 200;
    while let Some(chunk) = response.body.chunk().await? {
        let now = micros(zero.elapsed());
        for event in events.push(&chunk).map_err(|error| failed(&error))? {
            is_whole |= event.data == "[DONE]";
            // silent-ok: the end is no piece.
            let Ok(chunk) = serde_json::from_str::<ChatChunk>(&event.data) else { continue };
            let content = chunk.choices.first().and_then(|it| it.delta.content.as_ref());
            let Some(said) = content.and_then(|text| text.parse::<u64>().ok()) else { continue };
            if heard.firsts.is_empty() {
                heard.firsts.push(micros(asked.elapsed()));
            }
            heard.pieces.push(now.saturating_sub(said));
        }
    }
    match response.status == 200 && is_whole && heard.pieces.len() == PIECES as usize {
        true => Ok(heard),
        false => Err(CliError::user(format!(
            "a stream of a bench has the status {} and {} pieces of {PIECES}",
            response.status,
            heard.pieces.len()
        ))),
    }
}

/// The model: says when it is, again and again.
async fn serve(listener: TcpListener, zero: Instant) {
    let mut streams = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        while streams.try_join_next().is_some() {}
        // What goes wrong on a connection its client sees.
        streams.spawn(async move { speak(stream, zero).await.is_ok() });
    }
}

async fn speak(mut stream: TcpStream, zero: Instant) -> std::io::Result<()> {
    let mut read = Vec::new();
    let body = loop {
        let head = read.windows(4).position(|it| it == b"\r\n\r\n");
        if let Some(head) = head {
            let text = String::from_utf8_lossy(&read[..head]).to_ascii_lowercase();
            let length = text.lines().find_map(|line| line.strip_prefix("content-length:"));
            let length = length.and_then(|it| it.trim().parse::<usize>().ok()).unwrap_or(0);
            break head + 4 + length;
        }
        if read.len() > HEAD_BYTES_MAX || stream.read_buf(&mut read).await? == 0 {
            return Ok(());
        }
    };
    while read.len() < body && stream.read_buf(&mut read).await? > 0 {}
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).await?;
    let mut ticks = interval(PACE);
    for _ in 0..PIECES {
        ticks.tick().await;
        let now = micros(zero.elapsed());
        let piece = format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{now}\"}}}}]}}\n\n"
        );
        stream.write_all(piece.as_bytes()).await?;
    }
    let usage = format!("{{\"prompt_tokens\":5,\"completion_tokens\":{PIECES}}}");
    let end = format!("data: {{\"choices\":[],\"usage\":{usage}}}\n\ndata: [DONE]\n\n");
    stream.write_all(end.as_bytes()).await?;
    stream.shutdown().await
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

fn failed(error: &(dyn std::error::Error + 'static)) -> CliError {
    CliError::internal("a stream of a bench cannot be told", error)
}

fn describe(measured: &InferenceMeasurement) -> String {
    let ms = |us: u64| format!("{}.{:02} ms", us / 1000, us % 1000 / 10);
    let line = |what: &str, it: &StreamTiming| {
        let StreamTiming { streams, took_ms, peak_kib, .. } = *it;
        format!(
            "{what:<28} first piece {} (p99 {}), age of a piece {} (p99 {}); {streams} in {took_ms} \
             ms, {} MiB at most",
            ms(it.first_us),
            ms(it.first_us_p99),
            ms(it.piece_us),
            ms(it.piece_us_p99),
            peak_kib / 1024
        )
    };
    [
        line("one by one, direct", &measured.alone_direct),
        line("one by one, by the cloud", &measured.alone_through_cloud),
        line("all at once, direct", &measured.at_once_direct),
        line("all at once, by the cloud", &measured.at_once_through_cloud),
    ]
    .join("\n")
}
