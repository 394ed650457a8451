//! Pure: names of the values of an enumeration. One list gives them, and the way back.
//!
//! It must never change a name that is stored: databases and other programs know it.

/// Gives an enumeration `ALL`, its values in the order of the list, `name`, with the comment
/// that the list opens with, `by_name`, and `Display`, which is the name.
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

            /// The value with this name, if there is one.
            #[must_use]
            pub fn by_name(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|value| value.name() == name)
            }
        }

        impl ::std::fmt::Display for $kind {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}
