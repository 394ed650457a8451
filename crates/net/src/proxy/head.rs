//! Pure: parses the head of a request, strictly.
//!
//! Everything that two programs could read differently is refused: malformed line ends, folded
//! lines, two lengths, a `Host` that is not the target's. So no request can be hidden in another
//! one. The target alone decides where the request goes.

use reqwest::Url;

use crate::limits::{EGRESS_HEAD_BYTES_MAX, EGRESS_HEADERS_MAX, EGRESS_TARGET_BYTES_MAX};
use crate::origin::Origin;

/// The end of a head.
const END: &[u8] = b"\r\n\r\n";

/// The reason why a request cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestHeadError {
    /// It is larger than a head may be, or its target than a target.
    #[error(
        "the head of the request has more than {EGRESS_HEAD_BYTES_MAX} bytes, or its target \
         more than {EGRESS_TARGET_BYTES_MAX}"
    )]
    Large,
    /// It has too many headers.
    #[error("the request has more than {EGRESS_HEADERS_MAX} headers")]
    Many,
    /// A byte stands where it may not.
    #[error("the head of the request holds a bare line end, a folded line or a control byte")]
    Bytes,
    /// The first line is not `METHOD TARGET HTTP/1.1`.
    #[error("the first line is no request of HTTP/1.1")]
    Line,
    /// The method is none that is passed on.
    #[error("the method is none that is passed on")]
    Method,
    /// The target is no `http://` URL, and no `host:port` of a CONNECT.
    #[error("the target is neither http://HOST/PATH nor, with CONNECT, HOST:PORT")]
    Target,
    /// A header is no `name: value`.
    #[error("a header is no name, colon and value")]
    Header,
    /// There is not one `Host` which is that of the target.
    #[error("there is not exactly one Host header, and that of the target")]
    Host,
    /// The length of the body is said twice, or in no way that all read alike.
    #[error("the length of the body is said twice or unclearly")]
    Length,
}

impl RequestHeadError {
    /// Returns the value of `x-automaton-refused`.
    #[must_use]
    pub const fn rule(&self) -> &'static str {
        match self {
            Self::Large | Self::Many => "request.size",
            Self::Bytes | Self::Line | Self::Header => "request.syntax",
            Self::Method => "request.method",
            Self::Target => "request.target",
            Self::Host => "request.host",
            Self::Length => "request.length",
        }
    }
}

/// A request as the proxy understands it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestHead {
    /// The method, in capitals.
    pub method: String,
    /// The target; `https://host:port/` for a CONNECT.
    pub url: Url,
    /// The origin of that.
    pub origin: Origin,
}

impl RequestHead {
    /// Returns whether the request asks for a tunnel.
    #[must_use]
    pub fn is_tunnel(&self) -> bool {
        self.method == "CONNECT"
    }
}

/// Returns the length of the head in bytes, once it is complete. It is known not to end in the
/// first `seen` bytes, which are not searched again.
///
/// # Errors
/// [`RequestHeadError::Large`] when it cannot become whole any more.
pub fn length(bytes: &[u8], seen: usize) -> Result<Option<usize>, RequestHeadError> {
    let from = seen.saturating_sub(END.len() - 1);
    let fresh = bytes.get(from..).unwrap_or_default();
    let end = fresh.windows(END.len()).position(|four| four == END);
    match end.map(|at| from + at + END.len()) {
        Some(end) if end <= EGRESS_HEAD_BYTES_MAX => Ok(Some(end)),
        None if bytes.len() < EGRESS_HEAD_BYTES_MAX => Ok(None),
        _ => Err(RequestHeadError::Large),
    }
}

/// Reads a whole head, its empty line included.
///
/// # Errors
/// Fails if there is any doubt about what it says.
pub fn parse(head: &[u8]) -> Result<RequestHead, RequestHeadError> {
    if head.len() > EGRESS_HEAD_BYTES_MAX {
        return Err(RequestHeadError::Large);
    }
    let lines = head.strip_suffix(END).ok_or(RequestHeadError::Bytes)?;
    // Bytes from 0x80 on are left to the values of headers; a target has none.
    let lines = String::from_utf8_lossy(lines);
    let mut lines = lines.split("\r\n");
    let line = lines.next().unwrap_or_default();
    let (method, target, minor) = request_line(line)?;
    let tunnel = method == "CONNECT";
    let url = if tunnel { authority(target)? } else { absolute(target)? };
    let origin = Origin::from_url(&url).map_err(|_| RequestHeadError::Target)?;
    headers(lines, &origin, tunnel, minor)?;
    Ok(RequestHead { method: method.to_owned(), url, origin })
}

fn request_line(line: &str) -> Result<(&str, &str, u8), RequestHeadError> {
    if line.bytes().any(|byte| byte != b' ' && !byte.is_ascii_graphic()) {
        return Err(if line.is_ascii() {
            RequestHeadError::Bytes
        } else {
            RequestHeadError::Target
        });
    }
    let parts: Vec<&str> = line.split(' ').collect();
    let [method, target, version] = parts.as_slice() else { return Err(RequestHeadError::Line) };
    if target.len() > EGRESS_TARGET_BYTES_MAX {
        return Err(RequestHeadError::Large);
    }
    let minor = match *version {
        "HTTP/1.1" => 1,
        "HTTP/1.0" => 0,
        _ => return Err(RequestHeadError::Line),
    };
    let is_word = (1..=16).contains(&method.len())
        && method.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-');
    // TRACE sends back what it got, and that may hold what the proxy put in.
    if !is_word || ["TRACE", "TRACK", "PRI"].contains(method) {
        return Err(RequestHeadError::Method);
    }
    Ok((method, target, minor))
}

/// `host:port`, as the URL of the host behind TLS.
fn authority(target: &str) -> Result<Url, RequestHeadError> {
    let (host, port) = target.rsplit_once(':').ok_or(RequestHeadError::Target)?;
    let digits = (1..=5).contains(&port.len()) && port.bytes().all(|byte| byte.is_ascii_digit());
    if !digits || !is_host(host) {
        return Err(RequestHeadError::Target);
    }
    Url::parse(&format!("https://{target}/")).map_err(|_| RequestHeadError::Target)
}

/// `http://host[:port]/path?query`.
fn absolute(target: &str) -> Result<Url, RequestHeadError> {
    let (scheme, rest) = target.split_at_checked(7).ok_or(RequestHeadError::Target)?;
    let place = rest.split(['/', '?']).next().unwrap_or_default();
    let host = match place.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => place,
    };
    let misread = rest.contains(['\\', '#']);
    if !scheme.eq_ignore_ascii_case("http://") || misread || !is_host(host) {
        return Err(RequestHeadError::Target);
    }
    Url::parse(target).map_err(|_| RequestHeadError::Target)
}

/// Returns whether a text is a host in plain letters: a name, an IPv4 address or an IPv6 address in
/// brackets. Neither a user nor an escape may be in it.
fn is_host(text: &str) -> bool {
    let inner = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let (bare, colons) = inner.map_or((text, false), |inner| (inner, true));
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    !bare.is_empty() && bare.bytes().all(|byte| plain(byte) || (colons && byte == b':'))
}

fn headers<'a>(
    lines: impl Iterator<Item = &'a str>,
    origin: &Origin,
    tunnel: bool,
    minor: u8,
) -> Result<(), RequestHeadError> {
    let mut count = 0;
    let mut host = None;
    let mut length = None;
    let mut coded = None;
    for line in lines {
        count += 1;
        if count > EGRESS_HEADERS_MAX {
            return Err(RequestHeadError::Many);
        }
        if line.starts_with([' ', '\t']) || line.chars().any(|c| c.is_ascii_control() && c != '\t')
        {
            return Err(RequestHeadError::Bytes);
        }
        let (name, value) = line.split_once(':').ok_or(RequestHeadError::Header)?;
        let is_token =
            |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        if name.is_empty() || !name.bytes().all(is_token) {
            return Err(RequestHeadError::Header);
        }
        let value = value.trim_matches([' ', '\t']);
        let (slot, twice) = match name.to_ascii_lowercase().as_str() {
            "host" => (&mut host, RequestHeadError::Host),
            "content-length" => (&mut length, RequestHeadError::Length),
            "transfer-encoding" => (&mut coded, RequestHeadError::Length),
            _ => continue,
        };
        if slot.replace(value).is_some() {
            return Err(twice);
        }
    }
    match host {
        Some(host) if is_of(host, origin) => {}
        None if minor == 0 => {}
        _ => return Err(RequestHeadError::Host),
    }
    let is_number = |text: &str| {
        (1..=18).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    let clear = match (length, coded) {
        (None, None) => true,
        (Some(length), None) => is_number(length) && (!tunnel || length == "0"),
        (None, Some(coding)) => coding.eq_ignore_ascii_case("chunked") && minor == 1 && !tunnel,
        (Some(_), Some(_)) => false,
    };
    if clear { Ok(()) } else { Err(RequestHeadError::Length) }
}

/// Returns whether a `Host` names the same place as the target.
fn is_of(host: &str, origin: &Origin) -> bool {
    let bare = host
        .rsplit_once(':')
        .filter(|(_, port)| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()));
    if !is_host(bare.map_or(host, |(bare, _)| bare)) {
        return false;
    }
    let url = Url::parse(&format!("{}://{host}/", origin.scheme().name()));
    // silent-ok: what is no URL names no place.
    url.ok().and_then(|url| Origin::from_url(&url).ok()).is_some_and(|named| named == *origin)
}

#[cfg(test)]
mod tests;
