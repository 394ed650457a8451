//! Pure: the facts that rules may use besides the intents.
//!
//! All facts are gathered before the judgement and come from trusted places: the record, the
//! configuration, the tool's own description. A rule must never look anything up by itself.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use automaton_core::origin::Origins;
use automaton_core::tier::SurvivalTier;
use automaton_core::tool::Risk;
use automaton_core::trust::Label;

use crate::decision::ReasonCode;
use crate::guard::secrets;
use crate::rates::Attempts;
use crate::rules::Reachable;

/// The facts about the turn and the tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// The least trusted label of the turn's inputs and of the requests that the model made about
    /// them.
    pub input: Label,
    /// The least trusted label that the same wake has read so far, as an input or as the result
    /// of a call.
    pub heard: Label,
    /// The kinds of secrets in the call's arguments.
    pub secrets: Vec<secrets::SecretKind>,
    /// The origins of the values that the call targets.
    pub origins: Origins,
    /// The risk of the tool.
    pub risk: Risk,
    /// The creator's address, if the creator has given one.
    pub creator: Option<CreatorAddress>,
    /// Hosts that may be paid for a request, with the port if it is not the default.
    pub paid_hosts: Vec<String>,
    /// The hosts and origins that commands may reach.
    pub egress: Arc<Reachable>,
    /// The recent counts of rate-limited actions.
    pub attempts: Attempts,
    /// True if the turn continues with an unanswered message of the creator, in a wake that the
    /// creator caused.
    pub creator_waits: bool,
    /// True if the creator permits the automaton to give credits away on its own initiative.
    pub gives_alone: bool,
    /// True if a change of purpose needs the creator's approval.
    pub purpose_asks: bool,
    /// True if the port was opened before at the same price and with the same commands outside of
    /// turns, by a call that was allowed or that the creator approved.
    pub published_before: bool,
    /// The survival tier, if inference costs something and the tier is known.
    pub tier: Option<SurvivalTier>,
    /// The treasury limit that would refuse the call's payment now, even after the creator's
    /// approval.
    pub hard_limit: Option<HardLimit>,
}

/// A limit that no approval raises: a ceiling or the reserve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HardLimit {
    /// The code of the refusal.
    pub code: ReasonCode,
    /// The reason of the refusal, in one or two sentences.
    pub reason: String,
}

impl Facts {
    /// Returns the facts for judging the same call after the creator's approval. The turn that
    /// makes it has the label of the call's cause.
    pub(crate) fn once_approved(&self) -> Self {
        let caused_by = Label::Own.meet(self.input).meet(self.heard);
        Self { input: caused_by, heard: caused_by, ..self.clone() }
    }

    /// Returns true if a recipient, as the model wrote it, is the creator: the word `creator` or
    /// the creator's address.
    #[must_use]
    pub fn is_creator(&self, recipient: &str) -> bool {
        // A text that is not an address is somebody else's name, not a failure.
        recipient.eq_ignore_ascii_case("creator")
            || recipient.parse().is_ok_and(|address| self.creator == Some(address))
    }
}

/// The address of the creator's account: 20 bytes, never zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CreatorAddress([u8; 20]);

/// A text is not a valid address of a creator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no address (0x and 40 hexadecimal digits, not all zero)")]
pub struct CreatorAddressError(String);

impl FromStr for CreatorAddress {
    type Err = CreatorAddressError;

    fn from_str(text: &str) -> Result<Self, CreatorAddressError> {
        let parsed = text.strip_prefix("0x").and_then(decode).filter(|bytes| *bytes != [0; 20]);
        let shown = || text.chars().take(64).filter(|c| !c.is_control()).collect();
        parsed.map(Self).ok_or_else(|| CreatorAddressError(shown()))
    }
}

/// Decodes 40 hexadecimal digits.
fn decode(digits: &str) -> Option<[u8; 20]> {
    let digits = <&[u8; 40]>::try_from(digits.as_bytes()).ok()?;
    let mut bytes = [0; 20];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        for digit in pair {
            let value = char::from(*digit).to_digit(16)?;
            *byte = *byte << 4 | u8::try_from(value).ok()?;
        }
    }
    Some(bytes)
}

impl fmt::Display for CreatorAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("0x")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_forty_digits_and_is_not_zero() {
        let text = "0xAbCdEf0123456789abcdef0123456789ABCDEF01";
        let address: CreatorAddress = text.parse().unwrap();
        assert_eq!(address.to_string(), text.to_lowercase());
        let zero = format!("0x{}", "0".repeat(40));
        let bad = [
            "",
            "0x",
            "creator",
            &text[2..],
            &text[..41],
            &zero,
            "0x+bcdef0123456789abcdef0123456789abcdef0",
        ];
        for bad in bad {
            assert!(bad.parse::<CreatorAddress>().is_err(), "{bad}");
        }
        assert!(
            "0x".to_owned().parse::<CreatorAddress>().unwrap_err().to_string().contains("'0x'")
        );
    }

    #[test]
    fn the_creator_is_known_by_word_and_by_address() {
        let address = "0x1111111111111111111111111111111111111111";
        let known = Facts {
            input: Label::Own,
            heard: Label::Own,
            secrets: Vec::new(),
            origins: Origins::default(),
            risk: Risk::Safe,
            creator: Some(address.parse().unwrap()),
            paid_hosts: Vec::new(),
            egress: Arc::default(),
            attempts: Attempts::default(),
            creator_waits: false,
            gives_alone: false,
            purpose_asks: false,
            published_before: false,
            tier: None,
            hard_limit: None,
        };
        let unknown = Facts { creator: None, ..known.clone() };
        assert!(known.is_creator("creator") && known.is_creator("Creator"));
        assert!(known.is_creator(address) && !unknown.is_creator(address));
        assert!(!known.is_creator("0x2222222222222222222222222222222222222222"));
        assert!(!known.is_creator("") && !known.is_creator("creator "));
    }
}
