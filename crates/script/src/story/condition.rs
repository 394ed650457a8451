//! Pure: a step's expectations of the request that it answers.
//!
//! Conditions only test whether texts are present or absent. There are no patterns, so that a
//! reader sees at once what will hold.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Error, MapAccess, SeqAccess, Visitor, value};
use serde::{Deserialize, Deserializer};

use super::view::ConversationView;

/// The longest quotation of an unexpected text, in characters.
const QUOTE_CHARS_MAX: usize = 240;

/// All expectations of a step. Empty conditions always hold.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StoryExpectation {
    /// On the texts of the user's side since the model's last answer.
    pub news: Condition,
    /// On the whole conversation.
    pub history: Condition,
    /// On the system messages that open the conversation.
    pub rules: Condition,
    /// On the last result of each of these tools.
    pub result: BTreeMap<String, Condition>,
    /// The tools that must be offered.
    pub tools: Vec<String>,
    /// The fewest messages.
    pub messages_min: Option<usize>,
    /// The most messages.
    pub messages_max: Option<usize>,
}

impl StoryExpectation {
    /// Returns true if nothing is expected.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Describes the first expectation that does not hold.
    pub(super) fn unmet_by(&self, view: &ConversationView<'_>) -> Option<String> {
        if let Some(absent) = self.tools.iter().find(|tool| !view.offers(tool)) {
            return Some(format!("the tool '{absent}' was not offered"));
        }
        let count = view.messages();
        if self.messages_min.is_some_and(|min| count < min) {
            return Some(format!("there were only {count} messages"));
        }
        if self.messages_max.is_some_and(|max| count > max) {
            return Some(format!("there were as many as {count} messages"));
        }
        for (tool, condition) in &self.result {
            let Some(result) = view.result(tool) else {
                return Some(format!("there was no result of {tool}"));
            };
            if let Some(why) = condition.unmet_by(result) {
                return Some(format!("the result of {tool} {why}"));
            }
        }
        let texts = [
            ("what is new", &self.news, view.news()),
            ("the conversation", &self.history, view.history()),
            ("the opening", &self.rules, view.rules()),
        ];
        let unmet = |(place, condition, text): (&str, &Condition, String)| {
            condition.unmet_by(&text).map(|why| format!("{place} {why}"))
        };
        texts.into_iter().find_map(unmet)
    }
}

/// The texts that a text must and must not contain.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Condition {
    /// All of these.
    pub all: Vec<String>,
    /// At least one of these, if there are any.
    pub any: Vec<String>,
    /// None of these.
    pub none: Vec<String>,
}

impl Condition {
    /// Returns the reason why the text does not fulfil the condition. It continues a sentence
    /// after the text's name.
    #[must_use]
    pub fn unmet_by(&self, text: &str) -> Option<String> {
        let holds = |wanted: &&String| text.contains(wanted.as_str());
        if let Some(missing) = self.all.iter().find(|wanted| !holds(wanted)) {
            return Some(format!("did not contain '{missing}'; it was {}", quote(text)));
        }
        if !self.any.is_empty() && !self.any.iter().any(|wanted| holds(&wanted)) {
            let any = self.any.join("', '");
            return Some(format!("contained none of '{any}'; it was {}", quote(text)));
        }
        let unwanted = self.none.iter().find(holds)?;
        Some(format!("contained '{unwanted}'; it was {}", quote(text)))
    }
}

/// Quotes a text on one line, with its middle left out if it is long.
pub(super) fn quote(text: &str) -> String {
    let line: Vec<char> =
        text.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if line.is_empty() {
        return "empty".to_owned();
    }
    let string = |chars: &[char]| chars.iter().collect::<String>();
    if line.len() <= QUOTE_CHARS_MAX {
        return format!("'{}'", string(&line));
    }
    let half = QUOTE_CHARS_MAX / 2;
    format!("'{} … {}'", string(&line[..half]), string(&line[line.len() - half..]))
}

impl<'de> Deserialize<'de> for Condition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ConditionVisitor)
    }
}

/// Reads the three forms of a condition. An untagged enum would be shorter, but would report a
/// type error as "did not match any variant".
struct ConditionVisitor;

impl<'de> Visitor<'de> for ConditionVisitor {
    type Value = Condition;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, a list of texts, or a table of `all`, `any` and `none`")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Condition, E> {
        Ok(Condition { all: checked(vec![text.to_owned()])?, ..Condition::default() })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Condition, A::Error> {
        let all = Vec::deserialize(value::SeqAccessDeserializer::new(list))?;
        Ok(Condition { all: checked(all)?, ..Condition::default() })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut table: A) -> Result<Condition, A::Error> {
        let mut condition = Condition::default();
        while let Some(key) = table.next_key::<String>()? {
            let texts = checked(table.next_value::<TextList>()?.0)?;
            match key.as_str() {
                "all" => condition.all = texts,
                "any" => condition.any = texts,
                "none" => condition.none = texts,
                _ => return Err(Error::unknown_field(&key, &["all", "any", "none"])),
            }
        }
        Ok(condition)
    }
}

/// Refuses the empty text, which every text contains.
fn checked<E: Error>(texts: Vec<String>) -> Result<Vec<String>, E> {
    if texts.iter().any(String::is_empty) {
        return Err(E::custom("an empty text is in every text; expect something"));
    }
    Ok(texts)
}

/// One text or a list of them.
struct TextList(Vec<String>);

impl<'de> Deserialize<'de> for TextList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let condition = deserializer.deserialize_any(ConditionVisitor)?;
        let nested = !(condition.any.is_empty() && condition.none.is_empty());
        if nested {
            Err(Error::custom("a condition inside a condition"))
        } else {
            Ok(Self(condition.all))
        }
    }
}
