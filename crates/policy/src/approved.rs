//! Pure: the proof that a value was judged and allowed.
//!
//! Neither type can be made, copied or deserialised outside this crate: their fields are private,
//! and they implement neither `Clone` nor `Deserialize`. Only [`crate::judge()`] makes them.
//! Nothing here may ever hand out the value without consuming the proof.

use std::fmt;

/// A value that was judged and allowed, exactly as it was judged.
///
/// It is used once: opening it consumes it, and there is no way to look at or
/// change the value inside before that. This compiles, and each of the programs
/// below differs from it in the one line that must not:
///
/// ```
/// use automaton_policy::{Approved, Permit};
/// fn run(approved: Approved<&str>) -> (&str, Permit) {
///     approved.open()
/// }
/// ```
///
/// Nobody but the policy seals a value:
///
/// ```compile_fail,E0451
/// use automaton_policy::{Approved, Permit};
/// fn forge() -> Approved<&'static str> {
///     Approved { value: "rm -rf /" }
/// }
/// ```
///
/// Nobody exchanges the value inside:
///
/// ```compile_fail,E0616
/// use automaton_policy::{Approved, Permit};
/// fn exchange(mut approved: Approved<&'static str>) {
///     approved.value = "rm -rf /";
/// }
/// ```
///
/// An approval is used once:
///
/// ```compile_fail,E0382
/// use automaton_policy::{Approved, Permit};
/// fn twice(approved: Approved<()>) -> [((), Permit); 2] {
///     [approved.open(), approved.open()]
/// }
/// ```
///
/// And it cannot be copied:
///
/// ```compile_fail,E0599
/// use automaton_policy::{Approved, Permit};
/// fn copy(approved: &Approved<()>) -> Approved<()> {
///     Approved::clone(approved)
/// }
/// ```
#[must_use = "an approved value does nothing until it is opened and run"]
pub struct Approved<T> {
    value: T,
}

/// The right to run the value that it came with. Taken by value, so used once.
/// Nobody but the policy makes one:
///
/// ```compile_fail,E0451
/// use automaton_policy::{Approved, Permit};
/// fn forge() -> Permit {
///     Permit { sealed: () }
/// }
/// ```
#[must_use = "a permit is meant for the value that it came with"]
pub struct Permit {
    sealed: (),
}

impl<T> Approved<T> {
    pub(crate) const fn seal(value: T) -> Self {
        Self { value }
    }

    /// Returns the value and the permit to run it.
    pub fn open(self) -> (T, Permit) {
        (self.value, Permit { sealed: () })
    }
}

impl<T> fmt::Debug for Approved<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Approved")
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let () = self.sealed;
        f.write_str("Permit")
    }
}
