//! Pure: tasks whose orders stand in long words of the creator.

use serde_json::json;

use super::super::solver::{SolverContext, SolverResult, missing};
use super::super::view::between;
use super::{ScriptTiming, WorkCase, WorkTask, carry_out, order_of, orders, prose, word};

pub(super) const TASKS: &[WorkTask] = &[
    WorkTask {
        name: "brief-60",
        what: "sixty orders in 8,000 characters",
        case: brief,
        solver: sixty,
    },
    WorkTask {
        name: "brief-two",
        what: "two briefs at once, 25 orders each",
        case: two,
        solver: both,
    },
    WorkTask {
        name: "brief-tail",
        what: "the one order ends 16,000 characters",
        case: tail,
        solver: last,
    },
    WorkTask {
        name: "brief-30k",
        what: "20 orders among 30,000 characters",
        case: long,
        solver: strewn,
    },
    WorkTask {
        name: "late-names",
        what: "names of the first words, after fifty files",
        case: names,
        solver: late,
    },
    WorkTask {
        name: "glossary",
        what: "a glossary of sixty words for thirty files",
        case: terms,
        solver: translated,
    },
    WorkTask {
        name: "orders-file",
        what: "orders in a file that the creator names",
        case: named_case,
        solver: obeyed,
    },
    WorkTask {
        name: "edits",
        what: "thirty mistakes of a text, mended",
        case: mistakes,
        solver: mended,
    },
];

fn finished(case: WorkCase, files: Vec<(String, String)>) -> WorkCase {
    files.into_iter().fold(case, |case, (path, text)| case.wants(path, text))
}

fn brief() -> WorkCase {
    let (lines, files) = orders("R", 60, "out", 78);
    let head = "Carry out the 60 orders of list R, each as it stands:\n";
    finished(WorkCase::with_message(format!("{head}{lines}")), files)
}

fn sixty(ctx: &mut SolverContext<'_>) -> SolverResult<String> {
    carry_out(ctx, "R")?;
    Ok("All orders of list R are carried out.".to_owned())
}

fn two() -> WorkCase {
    let mut case = WorkCase::default();
    let mut wanted = Vec::new();
    for list in ["A", "B"] {
        let (lines, files) = orders(list, 25, list, 110);
        let words = format!("Carry out the 25 orders of list {list}, each as it stands:\n{lines}");
        case = case.says(ScriptTiming::Start, words);
        wanted.extend(files);
    }
    finished(case, wanted)
}

fn both(ctx: &mut SolverContext<'_>) -> SolverResult<String> {
    carry_out(ctx, "A")?;
    carry_out(ctx, "B")?;
    Ok("The orders of both lists are carried out.".to_owned())
}

fn tail() -> WorkCase {
    let words: Vec<String> = (0..20).map(|n| prose("tail", n, 800)).collect();
    let order =
        format!("T1. Write the word {} to the file answer.txt; that is all.", word("tail", 0));
    let told = format!("This is how things stand.\n{}\n{order}", words.join("\n"));
    WorkCase::with_message(told).wants("answer.txt", word("tail", 0))
}

fn last(ctx: &mut SolverContext<'_>) -> SolverResult<String> {
    let order = ctx.item("T1")?;
    let (path, word) = order_of(&order)?;
    ctx.write("the order", &path, &word)?;
    ctx.settle()?;
    Ok("It is written.".to_owned())
}

fn long() -> WorkCase {
    let (lines, files) = orders("L", 20, "long", 60);
    let mut told = "Carry out the 20 orders of list L, which stand among these lines:\n".to_owned();
    for (n, line) in lines.lines().enumerate() {
        told.push_str(&format!("{}\n{line}\n", prose("long", n, 1300)));
    }
    finished(WorkCase::with_message(told), files)
}

fn strewn(ctx: &mut SolverContext<'_>) -> SolverResult<String> {
    carry_out(ctx, "L")?;
    Ok("All orders of list L are carried out.".to_owned())
}

fn names() -> WorkCase {
    let (name, number, close) = (word("name", 1), word("name", 2), word("name", 3));
    let told = format!(
        "Read the files of the folder days one after the other; each has one line with a number \
         of guests. Then write report.txt, of four lines: the report is for {name}, which is its \
         first line; its number is {number}, which is its second line; then the sum of all guests \
         as a number alone; and it closes with the word {close}, alone on the last line."
    );
    let mut case = WorkCase::with_message(told);
    let mut sum = 0;
    for n in 1..=50 {
        let guests = super::choice("guests", n, 90) + 3;
        sum += guests;
        let before = prose("day", n, 300);
        let behind = prose("night", n, 300);
        case = case
            .file(format!("days/{n:02}.txt"), format!("{before}\nguests: {guests}\n{behind}\n"));
    }
    case.wants("report.txt", format!("{name}\n{number}\n{sum}\n{close}"))
}

fn late(ctx: &mut SolverContext<'_>) -> SolverResult<String> {
    let mut sum = 0_usize;
    for name in ctx.listed("days")? {
        let guests = ctx.memo(&format!("guests in {name}"), |ctx| {
            let text = ctx.read(&format!("days/{name}"))?;
            let guests = text.lines().find_map(|line| line.strip_prefix("guests: "));
            guests.map(str::to_owned).map_or_else(|| missing("the guests of a day"), Ok)
        })?;
        sum += guests.parse::<usize>().unwrap_or(0);
    }
    let name = ctx.creator_said("the report is for ", ", ")?;
    let number = ctx.creator_said("its number is ", ", ")?;
    let close = ctx.creator_said("closes with the word ", ", ")?;
    ctx.write("the report", "report.txt", &format!("{name}\n{number}\n{sum}\n{close}\n"))?;
    ctx.settle()?;
    Ok("The report is in report.txt.".to_owned())
}

fn terms() -> WorkCase {
    let terms = (0..60).map(|n| format!("{} is {};\n", word("term", n), word("code", n)));
    let terms = terms.collect::<String>();
    let told = format!(
        "Each file of the folder plain has three words of this glossary. Write for each a file of \
         the same name in the folder coded, with what the words are, in their order, on one line \
         with a blank between them.\n{terms}That is the glossary."
    );
    let mut case = WorkCase::with_message(told);
    for n in 1..=30 {
        let of = [0, 1, 2].map(|at| super::choice("pick", n * 3 + at, 60));
        let plain = of.map(|n| word("term", n)).join(" ");
        let name = format!("{n:02}.txt");
        case = case.file(format!("plain/{name}"), format!("{plain}\n"));
        case = case.wants(format!("coded/{name}"), of.map(|n| word("code", n)).join(" "));
    }
    case
}

fn translated(ctx: &mut SolverContext<'_>) -> SolverResult<String> {
    for name in ctx.listed("plain")? {
        if ctx.is_done(&name)? {
            continue;
        }
        let plain = ctx.read(&format!("plain/{name}"))?;
        let codes =
            plain.split_whitespace().map(|term| ctx.creator_said(&format!("{term} is "), ";"));
        let codes = codes.collect::<SolverResult<Vec<String>>>()?;
        ctx.write(&name, &format!("coded/{name}"), &codes.join(" "))?;
    }
    ctx.settle()?;
    Ok("All files are coded.".to_owned())
}

fn named_case() -> WorkCase {
    let (lines, files) = orders("F", 25, "named", 40);
    let case = WorkCase::with_message("Do what the file ORDERS.md says, all of it.");
    finished(case.file("ORDERS.md", format!("Orders\n\n{lines}\nThat is all.\n")), files)
}

fn obeyed(ctx: &mut SolverContext<'_>) -> SolverResult<String> {
    let file = ctx.creator_said("Do what the file ", " says")?;
    let orders = ctx.read(&file)?;
    let orders = orders.lines().filter_map(|line| line.split_once(". Write"));
    for (number, order) in orders {
        let (path, word) = order_of(&format!("Write{order}"))?;
        ctx.write(&format!("order {number}"), &path, &word)?;
    }
    ctx.settle()?;
    Ok(format!("All that {file} orders is done."))
}

fn mistakes() -> WorkCase {
    let mut told = "Mend the 30 mistakes of the file book.txt, each where it stands:\n".to_owned();
    let mut wrong = String::new();
    let mut right = String::new();
    for n in 1..=30 {
        let bad = word("bad", n);
        let good = word("good", n);
        let line = prose("book", n, 90);
        told.push_str(&format!(
            "M{n}. Instead of {bad} it has to be {good}; see {}.\n",
            prose("see", n, 40)
        ));
        wrong.push_str(&format!("{line} {bad} it is.\n"));
        right.push_str(&format!("{line} {good} it is.\n"));
    }
    WorkCase::with_message(told).file("book.txt", wrong).wants("book.txt", right)
}

fn mended(ctx: &mut SolverContext<'_>) -> SolverResult<String> {
    let count = ctx.creator_said("Mend the ", " mistakes")?.parse().unwrap_or(0_usize);
    let file = ctx.creator_said("mistakes of the file ", ", ")?;
    for n in 1..=count {
        let key = format!("mistake {n}");
        if ctx.is_done(&key)? {
            continue;
        }
        let item = ctx.item(&format!("M{n}"))?;
        let bad = between(&item, "Instead of ", " it has");
        let Some((bad, good)) = bad.zip(between(&item, "has to be ", "; ")) else {
            return missing(format!("mistake {n}"));
        };
        ctx.once(&key, "edit_file", json!({ "path": file, "old": bad, "new": good }))?;
    }
    ctx.settle()?;
    Ok("All mistakes are mended.".to_owned())
}
