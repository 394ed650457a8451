# needs: cargo cc
# A crate without dependencies: built and tested.
mkdir -p src
printf '[package]\nname = "job"\nversion = "0.1.0"\nedition = "2021"\n' > Cargo.toml
printf 'pub fn three() -> i32 { 3 }\n#[test]\nfn three_is_three() { assert_eq!(three(), 3); }\n#[test]\nfn a_port_is_free() { std::net::TcpListener::bind("127.0.0.1:0").unwrap(); }\n' > src/lib.rs
cargo test
