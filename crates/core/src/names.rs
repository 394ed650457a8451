//! Pure: names of the values of an enumeration. One list gives `ALL` and `name`.
//!
//! It must never change a name that is stored: databases and other programs know it.

/// Gives an enumeration `ALL`, its values in the order of the list, and `name`, with the
/// comment that the list opens with.
#[macro_export]
macro_rules! names {
    ($(#[$doc:meta])+ $kind:ident { $($value:ident => $name:literal),+ $(,)? }) => {
        impl $kind {
            /// Every value.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$value),+];

            $(#[$doc])+
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $name),+
                }
            }
        }
    };
}
