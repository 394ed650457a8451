//! The resolver inside the client: it judges the very addresses that are then
//! connected to, so nothing can change between the check and the use. Must
//! never give an address that it has not judged.

use std::net::{IpAddr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::ssrf::{AddressClass, AddressScope, classify};

/// A name leads to an address that is out of reach.
#[derive(Debug, thiserror::Error)]
#[error("{address} is a {class} address")]
pub(crate) struct ForbiddenAddressError {
    /// The address.
    pub(crate) address: IpAddr,
    /// What is wrong with it.
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
                tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            judge(reach, &found)?;
            let addresses: Addrs = Box::new(found.into_iter());
            Ok(addresses)
        })
    }
}

/// Whether every one of these addresses is within reach.
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

    #[test]
    fn one_bad_address_among_good_ones_is_enough() {
        let global = "1.1.1.1:0".parse().unwrap();
        let private = "10.0.0.1:0".parse().unwrap();
        let metadata = "169.254.169.254:0".parse().unwrap();
        assert!(judge(AddressScope::Global, &[global]).is_ok());
        assert!(judge(AddressScope::Global, &[global, private]).is_err());
        assert!(judge(AddressScope::SpelledName, &[global, private]).is_ok());
        assert!(judge(AddressScope::SpelledName, &[private, metadata]).is_err());
    }
}
