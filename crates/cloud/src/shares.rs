//! Counts connections by address, so that no address takes all of them.
//!
//! An IPv6 address counts by its first 64 bits, which one customer of a network has as a whole.
//! This machine is not counted, nor are the proxies that the operator names, since all of their
//! clients share their address. Must never hold more than one count a connection.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bits of an address of version 6 that one customer does not choose.
const PREFIX_BITS: u32 = 64;

/// The counts. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct AddressShares(Arc<Shared>);

#[derive(Default)]
struct Shared {
    each_max: usize,
    proxies: Vec<IpAddr>,
    open: Mutex<HashMap<IpAddr, usize>>,
}

/// The place of one connection in the share of its address, until it is dropped.
pub(crate) struct AddressPlace {
    shares: AddressShares,
    /// None of an address that is not counted.
    counted: Option<IpAddr>,
}

impl AddressShares {
    /// Lets each address have `each_max` connections, except for these proxies.
    pub(crate) fn new(each_max: usize, proxies: &[IpAddr]) -> Self {
        let proxies = proxies.iter().map(IpAddr::to_canonical).collect();
        Self(Arc::new(Shared { each_max, proxies, open: Mutex::default() }))
    }

    /// Takes a place for a connection from an address; none where it has its share.
    pub(crate) fn take(&self, peer: IpAddr) -> Option<AddressPlace> {
        let peer = peer.to_canonical();
        if peer.is_loopback() || self.0.proxies.contains(&peer) {
            return Some(AddressPlace { shares: self.clone(), counted: None });
        }
        let counted = network_of(peer);
        let mut open = self.open();
        let count = open.get(&counted).copied().unwrap_or(0);
        if count >= self.0.each_max {
            return None;
        }
        open.insert(counted, count + 1);
        Some(AddressPlace { shares: self.clone(), counted: Some(counted) })
    }

    fn open(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for AddressPlace {
    fn drop(&mut self) {
        let Some(counted) = self.counted else { return };
        let mut open = self.shares.open();
        let Entry::Occupied(mut count) = open.entry(counted) else { return };
        match *count.get() {
            0 | 1 => drop(count.remove()),
            more => *count.get_mut() = more - 1,
        }
    }
}

/// Returns the address that stands for all that one customer can choose from.
fn network_of(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(whole) => {
            let kept = whole.to_bits() >> (128 - PREFIX_BITS) << (128 - PREFIX_BITS);
            Ipv6Addr::from_bits(kept).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn an_address_has_its_share_and_leaves_the_others_theirs() {
        let shares = AddressShares::new(2, &[]);
        let first = shares.take(address("203.0.113.7"));
        let _second = shares.take(address("203.0.113.7")).unwrap();
        assert!(first.is_some() && shares.take(address("203.0.113.7")).is_none());
        // The same address in the form of version 6 is the same.
        assert!(shares.take(address("::ffff:203.0.113.7")).is_none());
        assert!(shares.take(address("203.0.113.8")).is_some());
        drop(first);
        assert!(shares.take(address("203.0.113.7")).is_some());
    }

    #[test]
    fn a_customer_of_version_6_has_one_share_for_all_its_addresses() {
        let shares = AddressShares::new(1, &[]);
        let _one = shares.take(address("2001:db8:1:2::1")).unwrap();
        assert!(shares.take(address("2001:db8:1:2:ffff::9")).is_none());
        assert!(shares.take(address("2001:db8:1:3::1")).is_some());
    }

    #[test]
    fn this_machine_and_a_named_proxy_are_not_counted() {
        let shares = AddressShares::new(1, &[address("10.0.0.5")]);
        for peer in
            ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "10.0.0.5", "::ffff:10.0.0.5"]
        {
            let places: Vec<_> = (0..5).map(|_| shares.take(address(peer))).collect();
            assert!(places.iter().all(Option::is_some), "{peer}");
        }
        let _one = shares.take(address("10.0.0.6")).unwrap();
        assert!(shares.take(address("10.0.0.6")).is_none(), "another is counted");
    }

    proptest! {
        #[test]
        fn no_count_is_lost_and_none_stays(events in prop::collection::vec((0_u8..4, any::<bool>()), 0..60)) {
            let shares = AddressShares::new(3, &[]);
            let mut held: Vec<Vec<AddressPlace>> = (0..4).map(|_| Vec::new()).collect();
            for (host, comes) in events {
                let peer = IpAddr::from([198, 51, 100, host]);
                let of = &mut held[usize::from(host)];
                if comes {
                    let full = of.len() == 3;
                    let place = shares.take(peer);
                    prop_assert_eq!(place.is_none(), full);
                    of.extend(place);
                } else {
                    drop(of.pop());
                }
                let wanted = held.iter().filter(|of| !of.is_empty()).count();
                prop_assert_eq!(shares.open().len(), wanted);
            }
            drop(held);
            prop_assert!(shares.open().is_empty());
        }
    }
}
