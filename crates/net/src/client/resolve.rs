//! The resolver inside the client: it judges the very addresses that are then
//! connected to, so nothing can change between the check and the use. Must
//! never give an address that it has not judged.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::ssrf::{AddressClass, AddressScope, classify};

/// A name leads to an address that is out of reach.
#[derive(Debug, thiserror::Error)]
#[error("{address} is a {class} address")]
pub(crate) struct ForbiddenAddressError {
    /// The address.
    pub(crate) address: IpAddr,
    /// The kind of address.
    pub(crate) class: AddressClass,
}

/// Asks the system for a name's addresses and refuses the name when a single
/// one is out of reach: a mixed answer is how a guard is led astray.
pub(super) struct Resolver {
    reach: AddressScope,
}

impl Resolver {
    pub(super) const fn new(reach: AddressScope) -> Self {
        Self { reach }
    }
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let reach = self.reach;
        Box::pin(async move {
            // The port is set by the connector afterwards.
            let found: Vec<SocketAddr> =
                lookup(name.as_str()).await?.into_iter().map(|it| SocketAddr::new(it, 0)).collect();
            judge(reach, &found)?;
            let addresses: Addrs = Box::new(found.into_iter());
            Ok(addresses)
        })
    }
}

/// Returns the addresses of a name: those of the system, but for names of this machine.
///
/// # Errors
/// Fails if the system knows none.
pub(crate) async fn lookup(name: &str) -> std::io::Result<Vec<IpAddr>> {
    if is_localhost(name) {
        return Ok(vec![IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)]);
    }
    let found = tokio::net::lookup_host((name, 0)).await?;
    Ok(found.map(|place| place.ip()).collect())
}

/// Returns whether a name is `localhost` or below it. Such a name means this machine and nothing
/// else (RFC 6761, section 6.3), so no name server is asked about it: many do not know it, and one
/// that answers with another address would lead astray. The addresses are judged like all others: a
/// name that is not allowlisted reaches no loopback address.
fn is_localhost(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    let last = name.rsplit('.').next().unwrap_or(name);
    let has_empty_label = name.split('.').any(str::is_empty);
    last.eq_ignore_ascii_case("localhost") && !has_empty_label
}

/// Checks that all of these addresses may be reached.
pub(crate) fn judge(
    reach: AddressScope,
    found: &[SocketAddr],
) -> Result<(), ForbiddenAddressError> {
    for address in found.iter().map(SocketAddr::ip) {
        let class = classify(address);
        if !reach.permits(class) {
            return Err(ForbiddenAddressError { address, class });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn names_below_localhost_are_this_machine_and_stay_behind_the_guard() {
        for name in ["localhost", "8080-a1b2.localhost", "a.b.LocalHost", "localhost."] {
            let found = lookup(name).await.unwrap();
            assert_eq!(
                found,
                ["127.0.0.1", "::1"].map(|it| it.parse::<IpAddr>().unwrap()),
                "{name}"
            );
            let places: Vec<SocketAddr> =
                found.into_iter().map(|it| SocketAddr::new(it, 80)).collect();
            let refused = judge(AddressScope::Global, &places).unwrap_err();
            assert_eq!(refused.class, AddressClass::Loopback, "{name}");
            assert!(judge(AddressScope::AllowlistedName, &places).is_ok(), "{name}");
        }
        for name in ["localhost.example", "notlocalhost", "local", "a..localhost", ".localhost", ""]
        {
            assert!(!is_localhost(name), "{name}");
        }
    }

    #[test]
    fn one_bad_address_among_good_ones_is_enough() {
        let global = "1.1.1.1:0".parse().unwrap();
        let private = "10.0.0.1:0".parse().unwrap();
        let metadata = "169.254.169.254:0".parse().unwrap();
        assert!(judge(AddressScope::Global, &[global]).is_ok());
        assert!(judge(AddressScope::Global, &[global, private]).is_err());
        assert!(judge(AddressScope::AllowlistedName, &[global, private]).is_ok());
        assert!(judge(AddressScope::AllowlistedName, &[private, metadata]).is_err());
    }
}
