//! `policy test`: cases of an operator's, each a call with how it should come out.

use std::path::Path;

use automaton_core::wire::judge::{JudgeCases, JudgeExpectation};

use super::super::CommandContext;
use super::judge::{PolicyTestBench, read, words};
use crate::error::CliError;
use crate::text_file;
use crate::ui::text::plain;
use crate::view::policy::PolicyCaseView;

/// Tries each case; a failure when one comes out otherwise.
pub(super) fn run(
    context: &CommandContext,
    file: &Path,
    rules: Option<&Path>,
) -> Result<(), CliError> {
    let bench = PolicyTestBench::new(context, rules)?;
    let cases = cases(file)?;
    let mut wrong = 0;
    for case in &cases.case {
        let judged = bench.judge(&case.asked())?;
        let met = case.is_met(&judged);
        wrong += usize::from(!met);
        let name = &case.name;
        let judged = &judged;
        let view = PolicyCaseView { name: name.clone(), met, judged: judged.into() };
        context.format.answer(&view, || {
            let JudgeExpectation { outcome, rule } = &case.expect;
            let rule = rule.as_ref().map_or_else(String::new, |rule| format!(" by {rule}"));
            let wanted = format!("\n  expected {outcome:?}{rule}").to_lowercase();
            let (mark, wanted) = if met { ("ok  ", "") } else { ("FAIL", wanted.as_str()) };
            format!("{mark} {}: {}{wanted}", plain(name), words(judged))
        })?;
    }
    if wrong == 0 {
        return Ok(());
    }
    let what = format!("{wrong} of {} cases were not judged as they should be", cases.case.len());
    Err(CliError::user(what).hint("correct the rules or the cases"))
}

fn cases(file: &Path) -> Result<JudgeCases, CliError> {
    let text = read(file)?;
    let none = || CliError::user(format!("{} holds no cases", file.display()));
    let hint = "each [[case]] has name, tool, arguments and expect.outcome";
    if file.extension().is_some_and(|ending| ending == "json") {
        return serde_json::from_str(&text)
            .map_err(|error| none().because(&text_file::corrected(&error)).hint(hint));
    }
    toml::from_str(&text).map_err(|error| none().because(&text_file::corrected(&error)).hint(hint))
}
