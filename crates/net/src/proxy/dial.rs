//! From an origin to a connection with it.
//!
//! The name is resolved here, all of its addresses are judged, and exactly those are
//! connected to: nobody is asked a second time, so nothing can change between the check
//! and the use.

use std::net::SocketAddr;

use automaton_core::egress::EgressEndReason;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::rustls::pki_types::ServerName;

use super::Proxy;
use super::exchange::ExchangeFailure;
use crate::client::resolve::judge;
use crate::limits::CONNECT;
use crate::origin::Origin;
use crate::ssrf::AddressScope;

/// A stream of bytes in both directions.
pub(super) trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for T {}

impl Proxy {
    /// Connects to an origin, or to none of its addresses.
    pub(super) async fn dial(
        &self,
        to: &Origin,
        allowlisted: bool,
    ) -> Result<TcpStream, ExchangeFailure> {
        let reached = timeout(CONNECT, self.open_stream(to, allowlisted)).await;
        reached.unwrap_or_else(|_| {
            Err(ExchangeFailure::with_sentence(
                EgressEndReason::Late,
                format!("{to} took no connection in {CONNECT:?}."),
            ))
        })
    }

    async fn open_stream(
        &self,
        to: &Origin,
        allowlisted: bool,
    ) -> Result<TcpStream, ExchangeFailure> {
        let unreachable = |why: &dyn std::fmt::Display| {
            ExchangeFailure::with_sentence(
                EgressEndReason::Unreachable,
                format!("{to} cannot be reached: {why}."),
            )
        };
        let addresses = match to.address() {
            Some(address) => vec![address],
            None => self.names.lookup(to.host()).await.map_err(|error| unreachable(&error))?,
        };
        let scope = match (allowlisted, to.address()) {
            (false, _) => AddressScope::Global,
            (true, None) => AddressScope::AllowlistedName,
            (true, Some(_)) => AddressScope::AllowlistedAddress,
        };
        let places: Vec<SocketAddr> =
            addresses.into_iter().map(|address| (address, to.port()).into()).collect();
        judge(scope, &places).map_err(|forbidden| {
            let sentence = format!("{to} leads to {forbidden}: {}.", self.remedy.origins);
            ExchangeFailure::with_sentence(EgressEndReason::Address, sentence)
        })?;
        let mut last = unreachable(&"its name has no address");
        for place in places {
            match TcpStream::connect(place).await {
                Ok(stream) => return Ok(stream),
                Err(error) => last = unreachable(&error),
            }
        }
        Err(last)
    }

    /// TLS over a connection with an origin, judged by the roots of this program.
    pub(super) async fn encrypt<S: ByteStream + 'static>(
        &self,
        to: &Origin,
        stream: S,
    ) -> std::io::Result<Box<dyn ByteStream>> {
        let host = to.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(host).map_err(std::io::Error::other)?;
        Ok(Box::new(self.tls.connect(name, stream).await?))
    }
}
