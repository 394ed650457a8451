//! Pure: tasks over nine days, for which a model notes nothing: what it was told must be shown to it
//! again when it is needed, by a runtime that remembers.

use super::super::solver::{SolverContext, SolverResult, missing};
use super::{ScriptTiming, WorkCase, WorkTask, carry_out, orders, word};

pub(super) const TASKS: &[WorkTask] = &[
    WorkTask {
        name: "day-nine",
        what: "what was said in passing on day one, needed on day nine",
        case: boathouse,
        solver: told_once,
    },
    WorkTask {
        name: "moved-twice",
        what: "a fact that changed twice, asked on day nine",
        case: sister,
        solver: newest,
    },
    WorkTask {
        name: "preference",
        what: "how something is wanted, said on day one and never again",
        case: signature,
        solver: as_preferred,
    },
    WorkTask {
        name: "other-name",
        what: "somebody met on day one, asked for by another name",
        case: neighbour,
        solver: by_either_name,
    },
];

/// Answer to the messages in between.
const HEARD: &str = "I see.";
const LATER: ScriptTiming = ScriptTiming::Asleep { days: 1 };

/// A day's work, which leaves no room for what was said before it.
fn work(case: WorkCase, list: &str) -> WorkCase {
    let (lines, files) = orders(list, 30, list, 60);
    let case = case.says(LATER, format!("Carry out the 30 orders of list {list}:\n{lines}"));
    files.into_iter().fold(case, |case, (path, word)| case.wants(path, word))
}

/// Asks on day nine, after two days of work.
fn on_day_nine(case: WorkCase, asked: &str) -> WorkCase {
    work(work(case, "X"), "Y").says(ScriptTiming::Asleep { days: 6 }, asked)
}

/// Does what the creator wants of it before the question; whether the question is there.
fn is_asked(ctx: &mut SolverContext<'_>, question: &str) -> SolverResult<Option<String>> {
    if ctx.hears(question) {
        return Ok(None);
    }
    // What was said last is done first: nothing is heard before it is said.
    for list in ["Y", "X"] {
        if ctx.hears(&format!("orders of list {list}:")) {
            carry_out(ctx, list)?;
            return Ok(Some(format!("All orders of list {list} are carried out.")));
        }
    }
    Ok(Some(HEARD.to_owned()))
}

fn boathouse() -> WorkCase {
    let code = word("boathouse", 1);
    let said = format!("I was out early. The alarm of the boathouse goes off with {code}. Good.");
    on_day_nine(WorkCase::with_message(said), "How do I turn the alarm of the boathouse off?")
        .hears(format!("With {code}."))
}

fn told_once(ctx: &mut SolverContext<'_>) -> SolverResult<String> {
    if let Some(words) = is_asked(ctx, "How do I turn the alarm")? {
        return Ok(words);
    }
    let code = ctx.creator_said("The alarm of the boathouse goes off with ", ".")?;
    Ok(format!("With {code}."))
}

fn sister() -> WorkCase {
    let [first, second, third] = [1, 2, 3].map(|n| word("town", n));
    let case = WorkCase::with_message(format!("My sister Runa lives in {first}. I miss her."))
        .says(LATER, format!("Runa has moved: she lives in {second} now."))
        .says(LATER, format!("Runa has moved again: she lives in {third} now. Well."));
    on_day_nine(case, "In which town does Runa live?").hears(format!("Runa lives in {third}."))
}

fn newest(ctx: &mut SolverContext<'_>) -> SolverResult<String> {
    if let Some(words) = is_asked(ctx, "In which town does Runa live")? {
        return Ok(words);
    }
    // Who sees that she moved again knows that what was said before does not hold.
    let town = ctx.creator_said("Runa has moved again: she lives in ", " now")?;
    Ok(format!("Runa lives in {town}."))
}

fn signature() -> WorkCase {
    let close = word("close", 1);
    let said = format!("Whenever you write a note to the harbour master, end it with {close}. So.");
    let asked = "Write a note to the harbour master into note.txt: the buoy is back.";
    on_day_nine(WorkCase::with_message(said), asked)
        .wants("note.txt", format!("The buoy is back. {close}"))
}

fn as_preferred(ctx: &mut SolverContext<'_>) -> SolverResult<String> {
    if let Some(words) = is_asked(ctx, "into note.txt: the buoy is back")? {
        return Ok(words);
    }
    let close = ctx.creator_said("a note to the harbour master, end it with ", ".")?;
    ctx.write("the note", "note.txt", &format!("The buoy is back. {close}"))?;
    ctx.settle()?;
    Ok("The note is in note.txt.".to_owned())
}

fn neighbour() -> WorkCase {
    let place = word("stone", 1);
    let said =
        format!("Mr. Halvorsen keeps the spare key of the shed under the {place} stone. Yes.");
    let case = WorkCase::with_message(said)
        .says(LATER, "By the way, everybody calls Mr. Halvorsen by the name of Bassen.");
    on_day_nine(case, "Where does Bassen keep the spare key of the shed?")
        .hears(format!("Under the {place} stone."))
}

fn by_either_name(ctx: &mut SolverContext<'_>) -> SolverResult<String> {
    if let Some(words) = is_asked(ctx, "Where does Bassen keep")? {
        return Ok(words);
    }
    if !ctx.hears("calls Mr. Halvorsen by the name of Bassen") {
        return missing("who Bassen is");
    }
    let place = ctx.creator_said("keeps the spare key of the shed under the ", " stone")?;
    Ok(format!("Under the {place} stone."))
}
