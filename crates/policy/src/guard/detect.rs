//! Pure: runs the checks over a text and its decoded layers, and rates the result.
//!
//! The rating is one table, [`GuardFindings::level`]. Each text, decoded or not, is read once.
//! All decoded texts together must keep within a budget.

use std::collections::BTreeMap;

use super::fold::{NormalizedText, strip};
use super::lexicon::{ENGLISH, Lexicon, Weight};
use super::markers::{self, Marker, MarkerAction};
use super::words::{WordScan, is_within};
use super::{CheckResult, GuardCheck, ThreatLevel, decode};

/// The deepest nesting of encodings that is followed.
const DEPTH_MAX: u32 = 4;
/// The most bytes decoded for each byte of the text, and the budget of any text.
const DECODED_FACTOR: usize = 8;
const DECODED_BYTES_MIN: usize = 4096;
/// The most details reported of one check.
const DETAILS_MAX: usize = 4;

/// The findings, by check.
#[derive(Debug, Default)]
pub(super) struct GuardFindings {
    strong: BTreeMap<GuardCheck, Vec<String>>,
    weak: BTreeMap<GuardCheck, Vec<String>>,
    /// True if the text discusses attacks.
    pub(super) discusses: bool,
}

/// Scans a clean text, its normalised form and the markers left in it.
pub(super) fn detect(
    text: &str,
    folded: &NormalizedText<'_>,
    found: &[Marker],
    lexicon: &Lexicon,
) -> GuardFindings {
    let mut findings = GuardFindings::default();
    let mut budget = (text.len() * DECODED_FACTOR).max(DECODED_BYTES_MIN);
    let mut layers = findings.scan_layer(text, folded, found, None, lexicon);
    for _ in 0..DEPTH_MAX {
        let mut next = Vec::new();
        for layer in layers {
            let Some(left) = budget.checked_sub(layer.text.len()) else { return findings };
            budget = left;
            let seen = strip(&layer.text);
            let folded = NormalizedText::new(&seen);
            let found = markers::find(&folded, &seen, MarkerAction::Leave);
            next.extend(findings.scan_layer(&seen, &folded, &found, Some(layer.by), lexicon));
        }
        layers = next;
    }
    findings
}

impl GuardFindings {
    /// Scans one layer. Returns the layers decoded from it.
    fn scan_layer(
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
        let mentioned = words.quoted_ranges(folded.bytes(), &lexicon.forms);
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
            if let Some((common, disguised)) =
                words.match_rule(rule, &mentioned, lexicon.forms.deny)
            {
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

    /// Records that the learned model flags the text.
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

    /// Returns true if a check has a strong finding, or one of at least two weak findings.
    fn detected(&self, check: GuardCheck) -> bool {
        let weak = self.weak.values().map(Vec::len).sum::<usize>();
        self.strong.contains_key(&check) || (weak >= 2 && self.weak.contains_key(&check))
    }

    /// Returns the threat level of all findings. The first matching line counts.
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

    /// Returns the result of every check.
    pub(super) fn results(&self) -> Vec<CheckResult> {
        let result = |check: GuardCheck| {
            let notes = self.strong.get(&check).into_iter().chain(self.weak.get(&check)).flatten();
            let details = notes.map(String::as_str).collect::<Vec<_>>().join("; ");
            CheckResult { check, detected: self.detected(check), details }
        };
        GuardCheck::ALL.into_iter().map(result).collect()
    }
}
