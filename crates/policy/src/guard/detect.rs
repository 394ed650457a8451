//! Pure: the eight checks over a text and what it decodes to, and how grave that is.
//!
//! The order of gravity is that of one table, [`GuardFindings::level`]. Each text, decoded or
//! not, is read once; all that is decoded together has to keep within a budget.

use std::collections::BTreeMap;

use super::fold::{NormalizedText, strip};
use super::lexicon::{ENGLISH, Lexicon, Weight};
use super::markers::{self, Marker, MarkerAction};
use super::words::{WordScan, is_within};
use super::{CheckResult, GuardCheck, ThreatLevel, decode};

/// Encodings within each other that are followed.
const DEPTH_MAX: u32 = 4;
/// Bytes that may be decoded for each byte of the text, and for any text.
const DECODED_FACTOR: usize = 8;
const DECODED_BYTES_MIN: usize = 4096;
/// Things that are told of one check.
const DETAILS_MAX: usize = 4;

/// What was found, by check.
#[derive(Debug, Default)]
pub(super) struct GuardFindings {
    strong: BTreeMap<GuardCheck, Vec<String>>,
    weak: BTreeMap<GuardCheck, Vec<String>>,
    /// Whether the text speaks of attacks.
    pub(super) discusses: bool,
}

/// Looks at a clean text, its folded form and what is left of markers in it.
pub(super) fn detect(
    text: &str,
    folded: &NormalizedText<'_>,
    found: &[Marker],
    lexicon: &Lexicon,
) -> GuardFindings {
    let mut findings = GuardFindings::default();
    let mut budget = (text.len() * DECODED_FACTOR).max(DECODED_BYTES_MIN);
    let mut layers = findings.look(text, folded, found, None, lexicon);
    for _ in 0..DEPTH_MAX {
        let mut next = Vec::new();
        for layer in layers {
            let Some(left) = budget.checked_sub(layer.text.len()) else { return findings };
            budget = left;
            let seen = strip(&layer.text);
            let folded = NormalizedText::new(&seen);
            let found = markers::find(&folded, &seen, MarkerAction::Leave);
            next.extend(findings.look(&seen, &folded, &found, Some(layer.by), lexicon));
        }
        layers = next;
    }
    findings
}

impl GuardFindings {
    /// Looks at one layer, and gives those below it.
    fn look(
        &mut self,
        text: &str,
        folded: &NormalizedText<'_>,
        found: &[Marker],
        by: Option<&'static str>,
        lexicon: &Lexicon,
    ) -> Vec<decode::DecodedText> {
        let words = WordScan::new(folded.bytes(), lexicon);
        let discusses = words.discusses() > 1;
        self.discusses |= discusses;
        let mentioned = words.mentioned(folded.bytes(), &lexicon.forms);
        for Marker { start, check, .. } in found.iter().copied() {
            if let Some(check) = check.filter(|_| !is_within(&mentioned, start)) {
                self.note(check, Weight::Strong, "a form that only programs write", by);
            }
        }
        let present = words.events.iter().fold(0, |all, event| all | event.groups);
        for rule in &lexicon.rules {
            let possible = rule.steps.iter().all(|(mask, _)| mask & present != 0);
            if !possible || (discusses && rule.weight == Weight::Weak) {
                continue;
            }
            if let Some((common, disguised)) = words.meet(rule, &mentioned, lexicon.forms.deny) {
                self.note(rule.check, rule.weight, &rule.words, by);
                if common & ENGLISH == 0 && rule.weight == Weight::Strong {
                    self.note(GuardCheck::MultiLanguageInjection, Weight::Strong, &rule.words, by);
                }
                if disguised {
                    self.note(GuardCheck::Obfuscation, rule.weight, "disguised letters", None);
                }
            }
        }
        decode::layers(text, &words, (lexicon.forms.rot, lexicon.forms.reversed))
    }

    /// Notes that the text is worded like those that steer their reader.
    pub(super) fn note_intent(&mut self) {
        self.note(GuardCheck::LearnedIntent, Weight::Strong, "worded like an attempt", None);
    }

    fn note(&mut self, check: GuardCheck, weight: Weight, what: &str, by: Option<&'static str>) {
        let notes = match weight {
            Weight::Strong => self.strong.entry(check).or_default(),
            Weight::Weak => self.weak.entry(check).or_default(),
        };
        let what = by.map_or_else(|| what.to_owned(), |by| format!("{what} ({by})"));
        if notes.len() < DETAILS_MAX && !notes.contains(&what) {
            notes.push(what);
        }
        if let (Some(by), Weight::Strong) = (by, weight) {
            self.note(GuardCheck::Obfuscation, weight, by, None);
        }
    }

    /// Whether a check found enough: something strong, or weak things of two kinds.
    fn detected(&self, check: GuardCheck) -> bool {
        let weak = self.weak.values().map(Vec::len).sum::<usize>();
        self.strong.contains_key(&check) || (weak >= 2 && self.weak.contains_key(&check))
    }

    /// How grave all of it is together; the first line that holds counts.
    pub(super) fn level(&self) -> ThreatLevel {
        let is = |check| self.detected(check);
        let order = is(GuardCheck::InstructionPatterns);
        let claim = is(GuardCheck::AuthorityClaims);
        let boundary = is(GuardCheck::BoundaryManipulation);
        let obfuscated = is(GuardCheck::Obfuscation);
        let grave = [
            GuardCheck::FinancialManipulation,
            GuardCheck::SelfHarmInstructions,
            GuardCheck::ChatmlMarkers,
            GuardCheck::MultiLanguageInjection,
        ];
        if grave.into_iter().any(is) || (boundary && (order || claim)) {
            ThreatLevel::Critical
        } else if boundary || (order && claim) || (obfuscated && (order || claim)) {
            ThreatLevel::High
        } else if order || claim || obfuscated || is(GuardCheck::LearnedIntent) {
            ThreatLevel::Medium
        } else {
            ThreatLevel::Low
        }
    }

    /// Every check with what it found.
    pub(super) fn told(&self) -> Vec<CheckResult> {
        let told = |check: GuardCheck| {
            let notes = self.strong.get(&check).into_iter().chain(self.weak.get(&check)).flatten();
            let details = notes.map(String::as_str).collect::<Vec<_>>().join("; ");
            CheckResult { check, detected: self.detected(check), details }
        };
        GuardCheck::ALL.into_iter().map(told).collect()
    }
}
