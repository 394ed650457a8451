//! Pure: tasks in which the creator speaks more than once.

use serde_json::json;

use super::super::solver::{SolverContext, SolverResult, missing};
use super::super::view::between;
use super::{ScriptTiming, WorkCase, WorkTask, carry_out, order_of, orders, prose, word};

pub(super) const TASKS: &[WorkTask] = &[
    WorkTask {
        name: "day-three",
        what: "what was told on day one, asked on day three",
        case: gate,
        solver: remembered,
    },
    WorkTask {
        name: "day-three-found",
        what: "what was found on day one, asked on day three",
        case: stock,
        solver: recalled,
    },
    WorkTask {
        name: "changed",
        what: "orders changed while they are carried out",
        case: change,
        solver: heeded,
    },
    WorkTask {
        name: "corrections",
        what: "two corrections of what was done",
        case: prices,
        solver: corrected,
    },
    WorkTask {
        name: "five",
        what: "five messages at once, each answered",
        case: five,
        solver: answered,
    },
    WorkTask {
        name: "aside",
        what: "a question while it works, and the work goes on",
        case: aside,
        solver: interrupted,
    },
];

const LATER: ScriptTiming = ScriptTiming::Asleep { days: 1 };
const AFTERWARDS: ScriptTiming = ScriptTiming::Asleep { days: 0 };

/// A day's work in between.
fn work(case: WorkCase, list: &str) -> WorkCase {
    let (lines, files) = orders(list, 30, list, 60);
    let case = case.says(LATER, format!("Carry out the 30 orders of list {list}:\n{lines}"));
    files.into_iter().fold(case, |case, (path, word)| case.wants(path, word))
}

fn gate() -> WorkCase {
    let code = word("gate", 1);
    let told =
        format!("Keep in mind for later: the code of the east gate is {code}. Say that you do.");
    work(WorkCase::with_message(told), "D")
        .says(LATER, "What was the code of the east gate? Answer with it.")
        .hears(code)
}

fn remembered(ctx: &mut SolverContext<'_>) -> SolverResult<String> {
    const KNOWN: &str = "the code of the east gate is ";
    if !ctx.hears("What was the code of the east gate") {
        if ctx.hears("orders of list D:") {
            carry_out(ctx, "D")?;
            return Ok("All orders of list D are carried out.".to_owned());
        }
        let code = ctx.creator_said(KNOWN, ".")?;
        let value = format!("{KNOWN}{code}.");
        let fact = json!({ "category": "domain", "key": "east gate", "value": value });
        ctx.once("remember the gate", "remember_fact", fact)?;
        ctx.settle()?;
        return Ok("I keep it in mind.".to_owned());
    }
    if let Ok(code) = ctx.creator_said(KNOWN, ".") {
        return Ok(format!("It is {code}."));
    }
    let Some(found) = ctx.last("recall_facts").and_then(|done| done.result.clone()) else {
        return ctx.call("recall_facts", json!({ "query": "code of the east gate" }));
    };
    match between(&found, KNOWN, ".") {
        Some(code) => Ok(format!("It is {code}.")),
        None => missing("the code of the gate"),
    }
}

fn stock() -> WorkCase {
    let mut text = String::new();
    let gone = word("stock", 57);
    for n in 1..=120 {
        let left = if n == 57 { "none left".to_owned() } else { format!("{} left", n % 40 + 1) };
        text.push_str(&format!("{}: {left}\n", word("stock", n)));
    }
    let told = "Which thing of inventory.txt is none left of? Write the word known to known.txt when \
                you know it, then delete inventory.txt; I shall ask for the thing another day.";
    let case = WorkCase::with_message(told).file("inventory.txt", text).wants("known.txt", "known");
    let mut case =
        work(case, "E").says(LATER, "Of which thing of the inventory was none left?").hears(gone);
    case.wants.push(super::WorkExpectation::NoFile("inventory.txt".to_owned()));
    case
}

fn recalled(ctx: &mut SolverContext<'_>) -> SolverResult<String> {
    if ctx.hears("Of which thing of the inventory was") {
        return match ctx.noted("none left of")? {
            Some(thing) => Ok(format!("It was {thing}.")),
            None => missing("what was found out of the inventory"),
        };
    }
    if ctx.hears("orders of list E:") {
        carry_out(ctx, "E")?;
        return Ok("All orders of list E are carried out.".to_owned());
    }
    ctx.memo("none left of", |ctx| {
        let text = ctx.read("inventory.txt")?;
        let thing = text.lines().find_map(|line| line.strip_suffix(": none left"));
        thing.map(str::to_owned).map_or_else(|| missing("the thing"), Ok)
    })?;
    ctx.write("known", "known.txt", "known")?;
    ctx.flush()?;
    ctx.once("delete the inventory", "exec", json!({ "command": "rm inventory.txt" }))?;
    ctx.settle()?;
    Ok("I know it, and the file is deleted.".to_owned())
}

fn change() -> WorkCase {
    let (lines, files) = orders("G", 40, "first", 60);
    let told = format!("Carry out the 40 orders of list G:\n{lines}");
    let other = "A change: what list G puts into the folder first goes to the folder second instead, \
                 under the same names, and so does what you have written already.";
    let case = WorkCase::with_message(told).says(ScriptTiming::Turn(6), other);
    files
        .into_iter()
        .fold(case, |case, (path, word)| case.wants(path.replace("first", "second"), word))
}

fn heeded(ctx: &mut SolverContext<'_>) -> SolverResult<String> {
    let folder = if ctx.hears("A change: what list G puts") { "second" } else { "first" };
    let count = ctx.creator_said("Carry out the ", " orders of list G")?.parse().unwrap_or(0_usize);
    for n in 1..=count {
        let key = format!("{folder} {n}");
        if ctx.is_done(&key)? {
            continue;
        }
        let order = ctx.item(&format!("G{n}"))?;
        let (path, word) = order_of(&order)?;
        ctx.write(&key, &path.replace("first", folder), &word)?;
    }
    ctx.settle()?;
    Ok(format!("All orders of list G are carried out, into the folder {folder}."))
}

fn prices() -> WorkCase {
    let mut told = "Write prices.txt with these lines, one for each thing:\n".to_owned();
    for n in 1..=6 {
        told.push_str(&format!("P{n}. {} {}\n", word("thing", n), n * 3));
    }
    let third = word("thing", 3);
    let title = word("title", 9);
    let lines =
        (1..=6).map(|n| format!("{} {}\n", word("thing", n), if n == 3 { 17 } else { n * 3 }));
    let wanted = format!("{title}\n{}", lines.collect::<String>());
    WorkCase::with_message(told)
        .says(AFTERWARDS, format!("A correction: the price of {third} is 17, whatever I said."))
        .says(
            AFTERWARDS,
            format!(
                "And prices.txt lacks its title: put {title} above all else, on a line of its own."
            ),
        )
        .wants("prices.txt", wanted)
}

fn corrected(ctx: &mut SolverContext<'_>) -> SolverResult<String> {
    if ctx.hears("prices.txt lacks its title") {
        let title = ctx.creator_said("its title: put ", " above")?;
        let text = ctx.read("prices.txt")?;
        if text.starts_with(&title) {
            return Ok("The title is there.".to_owned());
        }
        return ctx.call(
            "write_file",
            json!({ "path": "prices.txt", "content": format!("{title}\n{text}\n") }),
        );
    }
    if ctx.hears("A correction: the price") {
        let thing = ctx.creator_said("the price of ", " is ")?;
        let price = ctx.creator_said(&format!("{thing} is "), ",")?;
        let text = ctx.read("prices.txt")?;
        let Some(old) = text.lines().find(|line| line.starts_with(&format!("{thing} "))) else {
            return missing("the line to correct");
        };
        let new = format!("{thing} {price}");
        if old == new {
            return Ok("It is corrected.".to_owned());
        }
        return ctx.call("edit_file", json!({ "path": "prices.txt", "old": old, "new": new }));
    }
    let lines =
        (1..=6).map(|n| ctx.item(&format!("P{n}"))).collect::<SolverResult<Vec<String>>>()?;
    ctx.write("the prices", "prices.txt", &format!("{}\n", lines.join("\n")))?;
    ctx.settle()?;
    Ok("The prices are in prices.txt.".to_owned())
}

fn five() -> WorkCase {
    let mut case = WorkCase::default();
    for n in 1..=5 {
        let colour = word("colour", n);
        let path = format!("box{n}.txt");
        let text = format!("{}\ncolour: {colour}\n", prose("box", n, 200));
        let told = format!("Question {n}: which colour has {path}? Answer `Answer {n}: COLOUR`.");
        case = case
            .file(path, text)
            .says(ScriptTiming::Start, told)
            .hears(format!("Answer {n}: {colour}"));
    }
    case
}

fn answered(ctx: &mut SolverContext<'_>) -> SolverResult<String> {
    for n in (1..=9).filter(|n| ctx.hears(&format!("Question {n}: "))).collect::<Vec<_>>() {
        let key = format!("answer {n}");
        if ctx.is_done(&key)? {
            continue;
        }
        let path = ctx.creator_said(&format!("Question {n}: which colour has "), "?")?;
        let text = ctx.read(&path)?;
        let Some(colour) = text.lines().find_map(|line| line.strip_prefix("colour: ")) else {
            return missing(format!("the colour in {path}"));
        };
        ctx.tell_once(&key, &format!("Answer {n}: {colour}"), &format!("Question {n}: "))?;
    }
    ctx.settle()?;
    Ok("All questions are answered.".to_owned())
}

fn aside() -> WorkCase {
    let (lines, files) = orders("H", 40, "aside", 60);
    let case = WorkCase::with_message(format!("Carry out the 40 orders of list H:\n{lines}"));
    let asks = "A question in between: which word stands in aside.md? Tell me at once, and go on.";
    let case =
        case.says(ScriptTiming::Turn(6), asks).file("aside.md", format!("{}\n", word("aside", 1)));
    let case = case.hears(format!("The word is {}", word("aside", 1)));
    files.into_iter().fold(case, |case, (path, word)| case.wants(path, word))
}

fn interrupted(ctx: &mut SolverContext<'_>) -> SolverResult<String> {
    const ASKS: &str = "A question in between: which word stands in ";
    if ctx.hears(ASKS) && !ctx.is_done("the aside")? {
        let path = ctx.creator_said(ASKS, "?")?;
        let word = ctx.read(&path)?;
        ctx.tell_once("the aside", &format!("The word is {}.", word.trim()), ASKS)?;
        ctx.settle()?;
    }
    carry_out(ctx, "H")?;
    Ok("All orders of list H are carried out.".to_owned())
}
