//! The guard's tables, address by address.

use super::AddressClass::{Global, LinkLocal, Loopback, Metadata, Multicast, Private, Reserved};
use super::*;
use proptest::prelude::*;
use reqwest::Url;

const TABLE: [(&str, AddressClass); 62] = [
    ("1.1.1.1", Global),
    ("8.8.8.8", Global),
    ("9.255.255.255", Global),
    ("11.0.0.0", Global),
    ("100.63.255.255", Global),
    ("100.128.0.0", Global),
    ("126.255.255.255", Global),
    ("128.0.0.0", Global),
    ("172.15.255.255", Global),
    ("172.32.0.0", Global),
    ("192.167.255.255", Global),
    ("192.169.0.0", Global),
    ("198.17.255.255", Global),
    ("198.20.0.0", Global),
    ("223.255.255.255", Global),
    ("2606:4700:4700::1111", Global),
    ("2a00:1450:4001::200e", Global),
    ("::ffff:8.8.8.8", Global),
    ("64:ff9b::8.8.8.8", Global),
    ("127.0.0.1", Loopback),
    ("127.255.255.254", Loopback),
    ("::1", Loopback),
    ("::ffff:127.0.0.1", Loopback),
    ("::ffff:7f00:1", Loopback),
    ("64:ff9b::127.0.0.1", Loopback),
    ("10.0.0.1", Private),
    ("10.255.255.255", Private),
    ("100.64.0.1", Private),
    ("100.127.255.255", Private),
    ("172.16.0.1", Private),
    ("172.31.255.255", Private),
    ("192.168.0.1", Private),
    ("192.168.255.255", Private),
    ("::ffff:10.1.2.3", Private),
    ("64:ff9b::192.168.1.1", Private),
    ("fc00::1", Private),
    ("fdff:ffff::1", Private),
    ("fec0::1", Private),
    ("169.254.0.1", LinkLocal),
    ("169.254.255.255", LinkLocal),
    ("fe80::1", LinkLocal),
    ("febf::1", LinkLocal),
    ("169.254.169.254", Metadata),
    ("169.254.170.2", Metadata),
    ("100.100.100.200", Metadata),
    ("192.0.0.192", Metadata),
    ("::ffff:169.254.169.254", Metadata),
    ("fd00:ec2::254", Metadata),
    ("224.0.0.1", Multicast),
    ("239.255.255.255", Multicast),
    ("ff02::1", Multicast),
    ("0.0.0.0", Reserved),
    ("0.255.0.1", Reserved),
    ("192.0.2.1", Reserved),
    ("198.19.255.255", Reserved),
    ("203.0.113.9", Reserved),
    ("255.255.255.255", Reserved),
    ("::", Reserved),
    ("::127.0.0.1", Reserved),
    ("64:ff9b:1::1", Reserved),
    ("2001:db8::1", Reserved),
    ("2002:7f00:1::", Reserved),
];

#[test]
fn every_address_of_the_table() {
    for (text, class) in TABLE {
        assert_eq!(classify(text.parse().unwrap()), class, "{text}");
    }
}

#[test]
fn only_what_the_creator_wrote_in_digits_reaches_everything() {
    for (text, class) in TABLE {
        assert_eq!(AddressScope::Global.permits(class), class == Global, "{text}");
        let by_name = matches!(class, Global | Loopback | Private);
        assert_eq!(AddressScope::AllowlistedName.permits(class), by_name, "{text}");
        assert!(AddressScope::AllowlistedAddress.permits(class), "{text}");
    }
}

#[test]
fn disguised_spellings_become_the_address_that_they_mean() {
    for (host, class) in [
        ("2130706433", Loopback),
        ("0x7f000001", Loopback),
        ("017700000001", Loopback),
        ("127.1", Loopback),
        ("0", Reserved),
        ("0xa9.0376.43518", Metadata),
        ("0xc0a80001", Private),
        ("[::ffff:a00:1]", Private),
        ("127。0。0。1", Loopback),
        ("①②⑦.0.0.1", Loopback),
    ] {
        let url = Url::parse(&format!("http://{host}/")).unwrap();
        let origin = crate::Origin::from_url(&url).unwrap();
        let address = origin.address().unwrap_or_else(|| panic!("{host} stayed a name"));
        assert_eq!(classify(address), class, "{host}");
    }
}

proptest! {
    #[test]
    fn a_mapped_address_is_what_it_maps(bits in any::<u32>()) {
        let inner = Ipv4Addr::from_bits(bits);
        let class = classify(IpAddr::V4(inner));
        prop_assert_eq!(classify(IpAddr::V6(inner.to_ipv6_mapped())), class);
        let translated = Ipv6Addr::from_bits((0x0064_ff9b_u128 << 96) | u128::from(bits));
        prop_assert_eq!(classify(IpAddr::V6(translated)), class);
    }

    // The standard library knows some of the classes: an independent witness.
    #[test]
    fn nothing_the_standard_library_calls_local_is_global(bits in any::<u32>()) {
        let address = Ipv4Addr::from_bits(bits);
        let local = address.is_private()
            || address.is_loopback()
            || address.is_link_local()
            || address.is_multicast()
            || address.is_broadcast()
            || address.is_documentation()
            || address.is_unspecified();
        prop_assert!(!(local && classify(IpAddr::V4(address)) == Global), "{}", address);
    }

    #[test]
    fn a_global_v6_address_lies_in_the_global_range(bits in any::<u128>()) {
        let address = Ipv6Addr::from_bits(bits);
        let global = classify(IpAddr::V6(address)) == Global;
        prop_assert!(!global || bits >> 125 == 1 || embedded(address).is_some());
    }
}
