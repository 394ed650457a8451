//! Pure: which addresses a request may reach.
//!
//! The tables follow IANA's special-purpose registries for IPv4 and IPv6
//! (<https://www.iana.org/assignments/iana-ipv4-special-registry>, RFC 6890 and
//! its updates). An address that carries another one inside is judged by the
//! inner one. What no table knows must never count as global by accident: for
//! IPv6 only `2000::/3` is.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use automaton_core::names::Names;

/// The kind of network that an address belongs to. Its [`name`](Self::name) is the one in
/// sentences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Names)]
pub enum AddressClass {
    /// Another machine on the public net.
    Global,
    /// This machine.
    Loopback,
    /// A private or carrier's network.
    Private,
    /// The same wire.
    #[names(rename = "link-local")]
    LinkLocal,
    /// A cloud's metadata service, which hands out credentials.
    #[names(rename = "cloud metadata")]
    Metadata,
    /// Many machines at once.
    Multicast,
    /// No address of a machine: unspecified, documentation, future use.
    Reserved,
}

/// The networks that a request may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressScope {
    /// The public net alone.
    Global,
    /// Also this machine and private networks, for an origin that the creator spelled out by
    /// name. Never the rest: the name's server chooses the addresses, and not the creator.
    AllowlistedName,
    /// Any address, for one that the creator spelled out digit by digit.
    AllowlistedAddress,
}

impl AddressScope {
    /// Returns whether a request with this scope may go to an address of this kind.
    #[must_use]
    pub const fn permits(self, class: AddressClass) -> bool {
        use AddressClass::{Global, Loopback, Private};
        match self {
            Self::Global => matches!(class, Global),
            Self::AllowlistedName => matches!(class, Global | Loopback | Private),
            Self::AllowlistedAddress => true,
        }
    }
}

/// Returns the kind of network that an address belongs to.
#[must_use]
pub fn classify(address: IpAddr) -> AddressClass {
    match address {
        IpAddr::V4(address) => classify_v4(address),
        IpAddr::V6(address) => classify_v6(address),
    }
}

type Row4 = ([u8; 4], u32, AddressClass);
type Row6 = ([u16; 8], u32, AddressClass);

/// First match holds, so single addresses stand before their networks.
const V4: [Row4; 20] = [
    ([169, 254, 169, 254], 32, AddressClass::Metadata), // AWS, Google, Azure and most others
    ([169, 254, 170, 2], 32, AddressClass::Metadata),   // AWS, credentials of containers
    ([100, 100, 100, 200], 32, AddressClass::Metadata), // Alibaba
    ([192, 0, 0, 192], 32, AddressClass::Metadata),     // Oracle, classic
    ([0, 0, 0, 0], 8, AddressClass::Reserved),
    ([10, 0, 0, 0], 8, AddressClass::Private),
    ([100, 64, 0, 0], 10, AddressClass::Private),
    ([127, 0, 0, 0], 8, AddressClass::Loopback),
    ([169, 254, 0, 0], 16, AddressClass::LinkLocal),
    ([172, 16, 0, 0], 12, AddressClass::Private),
    ([192, 0, 0, 0], 24, AddressClass::Reserved),
    ([192, 0, 2, 0], 24, AddressClass::Reserved),
    ([192, 31, 196, 0], 24, AddressClass::Reserved),
    ([192, 88, 99, 0], 24, AddressClass::Reserved),
    ([192, 168, 0, 0], 16, AddressClass::Private),
    ([198, 18, 0, 0], 15, AddressClass::Reserved),
    ([198, 51, 100, 0], 24, AddressClass::Reserved),
    ([203, 0, 113, 0], 24, AddressClass::Reserved),
    ([224, 0, 0, 0], 4, AddressClass::Multicast),
    ([240, 0, 0, 0], 4, AddressClass::Reserved),
];

/// First match holds; the last row is all that is handed out to machines.
const V6: [Row6; 12] = [
    ([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254], 128, AddressClass::Metadata), // AWS
    ([0, 0, 0, 0, 0, 0, 0, 1], 128, AddressClass::Loopback),
    ([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7, AddressClass::Private),
    ([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10, AddressClass::Private),
    ([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10, AddressClass::LinkLocal),
    ([0xff00, 0, 0, 0, 0, 0, 0, 0], 8, AddressClass::Multicast),
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 23, AddressClass::Reserved), // Teredo, ORCHID and others
    ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32, AddressClass::Reserved),
    ([0x2002, 0, 0, 0, 0, 0, 0, 0], 16, AddressClass::Reserved), // 6to4, retired
    ([0x2620, 0x4f, 0x8000, 0, 0, 0, 0, 0], 48, AddressClass::Reserved),
    ([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20, AddressClass::Reserved),
    ([0x2000, 0, 0, 0, 0, 0, 0, 0], 3, AddressClass::Global),
];

fn classify_v4(address: Ipv4Addr) -> AddressClass {
    let found = V4.iter().find(|(network, prefix, _)| {
        let differing = Ipv4Addr::from(*network).to_bits() ^ address.to_bits();
        differing.leading_zeros() >= *prefix
    });
    found.map_or(AddressClass::Global, |(_, _, class)| *class)
}

fn classify_v6(address: Ipv6Addr) -> AddressClass {
    if let Some(inner) = embedded(address) {
        return classify_v4(inner);
    }
    let found = V6.iter().find(|(network, prefix, _)| {
        let differing = Ipv6Addr::from(*network).to_bits() ^ address.to_bits();
        differing.leading_zeros() >= *prefix
    });
    found.map_or(AddressClass::Reserved, |(_, _, class)| *class)
}

/// The IPv4 address that packets for this one go to: mapped (RFC 4291) and
/// translated by NAT64 (RFC 6052).
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let last = || {
        let [.., a, b, c, d] = address.octets();
        Ipv4Addr::new(a, b, c, d)
    };
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, _, _] | [0x64, 0xff9b, 0, 0, 0, 0, _, _] => Some(last()),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
