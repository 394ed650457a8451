//! Messages to others.

pub(crate) mod send_message;
