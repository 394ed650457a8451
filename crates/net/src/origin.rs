//! Pure: where a request goes: scheme, host and port, in one normal form.
//!
//! Two origins are equal when they are the same place for a browser (RFC 6454):
//! the host is lower-case and punycode, an IPv4 address in decimal, octal or
//! hexadecimal is four decimal numbers, the port is always there. An origin
//! must never hold a path, a query or a password.

use core::net::IpAddr;
use std::fmt;
use std::str::FromStr;

use reqwest::Url;

/// A text names no origin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OriginError {
    /// The text is no URL.
    #[error("'{0}' is no URL such as https://api.example.com")]
    NotUrl(String),
    /// Another scheme than the two that are spoken here.
    #[error("'{0}' is neither http nor https")]
    Scheme(String),
    /// A URL without a host.
    #[error("the URL names no host")]
    NoHost,
    /// A user name or a password stands before the host.
    #[error("the URL for {0} holds a user name or a password")]
    Credentials(String),
    /// Something follows the port.
    #[error("'{0}' has more than scheme, host and port")]
    NotBare(String),
}

/// The scheme of a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scheme {
    /// In the open.
    Http,
    /// Over TLS.
    Https,
}

impl Scheme {
    /// Returns the scheme's text and its default port.
    const fn written(self) -> (&'static str, u16) {
        match self {
            Self::Http => ("http", 80),
            Self::Https => ("https", 443),
        }
    }

    /// Returns the scheme's text.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.written().0
    }
}

/// Scheme, host and port.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    scheme: Scheme,
    host: String,
    port: u16,
}

impl Origin {
    /// Returns the origin of a URL, whatever its path.
    ///
    /// # Errors
    /// Fails if the URL is not http or https, has no host or holds credentials.
    pub fn from_url(url: &Url) -> Result<Self, OriginError> {
        let scheme = match url.scheme() {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            other => return Err(OriginError::Scheme(other.chars().take(40).collect())),
        };
        let host = url.host_str().ok_or(OriginError::NoHost)?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(OriginError::Credentials(host.to_owned()));
        }
        let port = url.port_or_known_default().ok_or(OriginError::NoHost)?;
        // A trailing dot means the same name without a search list; without
        // this, `localhost.` would be another origin than `localhost`.
        let host = host.strip_suffix('.').unwrap_or(host);
        if host.is_empty() || host.ends_with('.') {
            return Err(OriginError::NoHost);
        }
        Ok(Self { scheme, host: host.to_owned(), port })
    }

    /// The same host over TLS: at 443 where the port was 80, else at the same port.
    #[must_use]
    pub fn over_tls(&self) -> Self {
        let port = if self.port == 80 { 443 } else { self.port };
        Self { scheme: Scheme::Https, host: self.host.clone(), port }
    }

    /// Returns the scheme of requests to the origin.
    #[must_use]
    pub const fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The host: a name in lower case and punycode, or an address, in brackets
    /// where it is one of IPv6.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The address, when the host is written as one.
    #[must_use]
    pub fn address(&self) -> Option<IpAddr> {
        let bare = self.host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        // silent-ok: a host that is no address is a name.
        bare.unwrap_or(&self.host).parse().ok()
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, usual) = self.scheme.written();
        write!(f, "{scheme}://{}", self.host)?;
        if self.port == usual { Ok(()) } else { write!(f, ":{}", self.port) }
    }
}

impl FromStr for Origin {
    type Err = OriginError;

    /// Reads an origin as it stands in a configuration: a URL with nothing
    /// after the port but, at most, one slash.
    fn from_str(text: &str) -> Result<Self, OriginError> {
        let shown = || text.chars().take(80).collect::<String>();
        let url = Url::parse(text).map_err(|_| OriginError::NotUrl(shown()))?;
        let origin = Self::from_url(&url)?;
        let bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
        if bare { Ok(origin) } else { Err(OriginError::NotBare(shown())) }
    }
}

/// A host or `*.` and a host, in lower case and punycode. What stands for a whole ending
/// such as `*.com`, or is an address, is none: an address is spelled out as an origin.
#[must_use]
pub fn host_pattern(text: &str) -> Option<String> {
    let (star, name) = text.strip_prefix("*.").map_or(("", text), |name| ("*.", name));
    let bare = !name.is_empty() && !name.contains(['*', '/', ':', '@', '?', '#', '\\', '%', ' ']);
    // silent-ok: what is no host gets no name.
    let origin: Origin = format!("https://{name}").parse().ok().filter(|_| bare)?;
    let named = origin.address().is_none() && (star.is_empty() || origin.host().contains('.'));
    named.then(|| format!("{star}{}", origin.host()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn spellings_of_one_place_are_equal() {
        let one: Origin = "http://127.0.0.1:8080".parse().unwrap();
        for same in [
            "HTTP://127.0.0.1:8080/",
            "http://2130706433:8080",
            "http://0177.0.0.1:8080",
            "http://0x7f.1:8080",
            "http://127.1:8080",
        ] {
            assert_eq!(same.parse::<Origin>().as_ref(), Ok(&one), "{same}");
        }
        let named: Origin = "https://Example.COM:443/".parse().unwrap();
        assert_eq!(named.to_string(), "https://example.com");
        assert_eq!(Ok(named), "https://example.com.".parse());
        let six: Origin = "http://[::0001]:1".parse().unwrap();
        assert_eq!(
            (six.to_string().as_str(), six.address()),
            ("http://[::1]:1", "::1".parse().ok())
        );
    }

    #[test]
    fn scheme_host_and_port_each_make_another_place() {
        let one: Origin = "http://127.0.0.1:8080".parse().unwrap();
        for other in ["https://127.0.0.1:8080", "http://127.0.0.1:8081", "http://localhost:8080"] {
            assert_ne!(other.parse::<Origin>(), Ok(one.clone()), "{other}");
        }
    }

    #[test]
    fn refuses_what_is_no_origin_and_never_shows_a_password() {
        let refuse = |text: &str| text.parse::<Origin>().unwrap_err();
        assert!(matches!(refuse("example.com"), OriginError::NotUrl(_)));
        assert!(matches!(refuse("ftp://example.com"), OriginError::Scheme(_)));
        assert!(matches!(refuse("https://example.com/v1"), OriginError::NotBare(_)));
        assert!(matches!(refuse("http://1.2.3.4:99999"), OriginError::NotUrl(_)));
        assert!(matches!(refuse("http://."), OriginError::NoHost));
        assert!(matches!(refuse("http://0.."), OriginError::NoHost));
        let error = refuse("https://me:hunter2@example.com");
        assert!(matches!(error, OriginError::Credentials(_)));
        assert!(!error.to_string().contains("hunter2"));
    }

    proptest! {
        #[test]
        fn an_origin_survives_its_text(text in "https?://[a-z0-9.-]{1,20}(:[0-9]{1,5})?/?") {
            if let Ok(origin) = text.parse::<Origin>() {
                prop_assert_eq!(origin.to_string().parse(), Ok(origin));
            }
        }
    }
}
