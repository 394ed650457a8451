//! Pure: tasks that are about what stands in files.

use super::super::solver::{SolverContext, SolverResult, missing};
use super::super::view::{after, between};
use super::{WorkCase, WorkTask, choice, prose, word};

pub(super) const TASKS: &[WorkTask] = &[
    WorkTask {
        name: "audit",
        what: "forty files, all findings in one report",
        case: audit,
        solver: audited,
    },
    WorkTask {
        name: "ledgers",
        what: "forty ledgers whose sums are checked",
        case: ledgers,
        solver: summed,
    },
    WorkTask {
        name: "log-grep",
        what: "the cause of a failure in a log of 2 MB",
        case: log,
        solver: by_grep,
    },
    WorkTask {
        name: "log-search",
        what: "the same, by the tool that searches",
        case: log,
        solver: by_search,
    },
    WorkTask {
        name: "log-line",
        what: "one line of it, by its number",
        case: log_line,
        solver: by_line,
    },
    WorkTask {
        name: "middle",
        what: "a chapter in the middle of 90 KB",
        case: book,
        solver: chapter,
    },
    WorkTask {
        name: "minutes",
        what: "40 KB read through, fourteen resolutions",
        case: minutes,
        solver: through,
    },
    WorkTask {
        name: "chain",
        what: "25 files, each of which names the next",
        case: chain,
        solver: followed,
    },
    WorkTask {
        name: "compare",
        what: "two files of 1,500 lines compared",
        case: versions,
        solver: compared,
    },
    WorkTask {
        name: "count",
        what: "a word counted over twelve files",
        case: shelves,
        solver: counted,
    },
    WorkTask {
        name: "ten-questions",
        what: "ten questions about ten files, one answer",
        case: ten,
        solver: answers,
    },
    WorkTask {
        name: "flood",
        what: "one value of an output of 20,000 lines",
        case: flood,
        solver: fished,
    },
];

fn audit() -> WorkCase {
    let told = "Audit every file of the folder site. Some have a line `defect: WORD`. Write the \
                findings to audit.txt: a line `FILE WORD` for each such file, in the order of \
                their names.";
    let mut case = WorkCase::with_message(told);
    let mut report = String::new();
    for n in 1..=40 {
        let name = format!("{n:02}.txt");
        let defect = word("defect", n);
        let bad = choice("bad", n, 3) > 0;
        let line = if bad { format!("defect: {defect}") } else { "nothing here".to_owned() };
        let before = prose("site", n, 70);
        let behind = prose("site", n + 100, 70);
        let text = format!(
            "{}{line}\n{}",
            format!("{before}\n").repeat(12),
            format!("{behind}\n").repeat(12)
        );
        case = case.file(format!("site/{name}"), text);
        if bad {
            report.push_str(&format!("{name} {defect}\n"));
        }
    }
    case.wants("audit.txt", report)
}

fn audited(ctx: &mut SolverContext<'_>) -> SolverResult<String> {
    let folder = ctx.creator_said("Audit every file of the folder ", ".")?;
    let mut report = String::new();
    for name in ctx.listed(&folder)? {
        let defect = ctx.memo(&format!("defect of {name}"), |ctx| {
            let text = ctx.read(&format!("{folder}/{name}"))?;
            let found = text.lines().find_map(|line| line.strip_prefix("defect: "));
            Ok(found.unwrap_or("none").to_owned())
        })?;
        if defect != "none" {
            report.push_str(&format!("{name} {defect}\n"));
        }
    }
    let path = ctx.creator_said("findings to ", ":")?;
    ctx.write("the report", &path, &report)?;
    ctx.settle()?;
    Ok(format!("The findings are in {path}."))
}

fn ledgers() -> WorkCase {
    let told = "Check the forty ledgers of the folder books: does the total of each agree with \
                its amounts? Write wrong.txt with a line `FILE SUM` for each one that is wrong, \
                SUM being what its amounts come to, in the order of their names.";
    let mut case = WorkCase::with_message(told);
    let mut report = String::new();
    for n in 1..=40 {
        let amounts = (0..24).map(|at| choice("amount", n * 100 + at, 900) + 1);
        let amounts: Vec<usize> = amounts.collect();
        let (sum, wrong) = (amounts.iter().sum::<usize>(), choice("wrong", n, 4) == 0);
        let lines = amounts.iter().enumerate();
        let lines =
            lines.map(|(at, amount)| format!("{}: {amount}\n", word("entry", n * 100 + at)));
        let total = if wrong { sum + 7 } else { sum };
        let text = format!("{}total: {total}\n", lines.collect::<String>());
        case = case.file(format!("books/{n:02}.txt"), text);
        if wrong {
            report.push_str(&format!("{n:02}.txt {sum}\n"));
        }
    }
    case.wants("wrong.txt", report)
}

fn summed(ctx: &mut SolverContext<'_>) -> SolverResult<String> {
    let folder = ctx.creator_said("ledgers of the folder ", ":")?;
    let mut report = String::new();
    for name in ctx.listed(&folder)? {
        let sum = ctx.memo(&format!("sum of {name}"), |ctx| {
            let text = ctx.read(&format!("{folder}/{name}"))?;
            let pairs = text.lines().filter_map(|line| line.split_once(": "));
            // silent-ok: a line without a number has no amount.
            let amount = |text: &str| text.trim().parse::<usize>().unwrap_or(0);
            let mut sum = 0;
            let mut total = 0;
            for (entry, value) in pairs {
                if entry == "total" { total = amount(value) } else { sum += amount(value) }
            }
            Ok(if sum == total { "right".to_owned() } else { sum.to_string() })
        })?;
        if sum != "right" {
            report.push_str(&format!("{name} {sum}\n"));
        }
    }
    ctx.write("the report", "wrong.txt", &report)?;
    ctx.settle()?;
    Ok("The ledgers that are wrong are in wrong.txt.".to_owned())
}

/// Lines of a log of 2 MB, with a failed job and its cause.
fn log_text() -> String {
    let trace = word("trace", 1);
    let cause = word("cause", 1);
    let mut text = String::with_capacity(2 << 20);
    for n in 1..=24_000 {
        let line = match n {
            7_731 => format!("error job 512 failed, see trace {trace}"),
            16_902 => format!("warn trace {trace} ended, cause {cause}"),
            14_003 => format!("info the marker of this line is {}", word("marker", 1)),
            _ => format!(
                "info job {} ended, trace {} was kept, {}",
                n % 500,
                word("t", n),
                prose("log", n % 40, 30)
            ),
        };
        text.push_str(&format!("{:02}:{:02}:{:02} {line}\n", n / 3600, n / 60 % 60, n % 60));
    }
    text
}

fn log() -> WorkCase {
    let told = "Job 512 failed. Find out by what: app.log has a line that names its trace, and \
                elsewhere one with the cause of that trace. Write the cause alone to cause.txt.";
    WorkCase::with_message(told).file("app.log", log_text()).wants("cause.txt", word("cause", 1))
}

fn cause_of(
    ctx: &mut SolverContext<'_>,
    find: fn(&mut SolverContext<'_>, &str) -> SolverResult<String>,
) -> SolverResult<String> {
    let line = find(ctx, "job 512 failed")?;
    let Some(trace) = line.split("trace ").nth(1).map(str::trim) else {
        return missing("the trace");
    };
    let line = find(ctx, &format!("trace {trace} ended"))?;
    let Some(cause) = line.split("cause ").nth(1).map(str::trim) else {
        return missing("the cause");
    };
    ctx.write("the cause", "cause.txt", cause)?;
    ctx.settle()?;
    Ok(format!("Job 512 failed by {cause}."))
}

fn by_grep(ctx: &mut SolverContext<'_>) -> SolverResult<String> {
    cause_of(ctx, |ctx, piece| {
        let ran = ctx.run(&format!("grep -n '{piece}' app.log"))?;
        Ok(ran.text())
    })
}

fn by_search(ctx: &mut SolverContext<'_>) -> SolverResult<String> {
    cause_of(ctx, |ctx, piece| match ctx.search(piece, "app.log")?.into_iter().next() {
        Some(line) => Ok(line),
        // The tool may not have searched all of it.
        None => ctx.run(&format!("grep -n '{piece}' app.log")).map(|ran| ran.text()),
    })
}

fn log_line() -> WorkCase {
    let told = "What is the marker that line 14003 of app.log names? Answer with the marker.";
    WorkCase::with_message(told).file("app.log", log_text()).hears(word("marker", 1))
}

fn by_line(ctx: &mut SolverContext<'_>) -> SolverResult<String> {
    let line = ctx.creator_said("line ", " of app.log")?.parse().unwrap_or(1);
    let line = ctx.lines("app.log", line, 1)?.pop().unwrap_or_default();
    match after(&line, "marker of this line is ") {
        Some(marker) => Ok(format!("The marker is {marker}.")),
        None => missing("the marker of that line"),
    }
}

fn book() -> WorkCase {
    let mut text = String::new();
    for n in 1..=60 {
        text.push_str(&format!("Chapter {n}. {}\n", word("title", n)));
        let items = (1..=5).map(|item| format!("- {}\n", word("item", n * 10 + item)));
        text.extend(items);
        for line in 0..14 {
            text.push_str(&format!("{}\n", prose("book", n * 20 + line, 95)));
        }
    }
    let wanted: Vec<String> = (1..=5).map(|item| word("item", 31 * 10 + item)).collect();
    let told = "Which five things does chapter 31 of book.txt list below its title? Write them to \
                things.txt, one a line.";
    WorkCase::with_message(told).file("book.txt", text).wants("things.txt", wanted.join("\n"))
}

fn chapter(ctx: &mut SolverContext<'_>) -> SolverResult<String> {
    let number = ctx.creator_said("does chapter ", " of ")?;
    let found = ctx.search(&format!("^Chapter {number}\\."), "book.txt")?;
    let line = found.first().and_then(|line| line.split(':').nth(1)?.parse::<usize>().ok());
    let Some(line) = line else { return missing("the line of the chapter") };
    let items = ctx.lines("book.txt", line + 1, 5)?;
    let items: Vec<&str> = items.iter().filter_map(|line| line.strip_prefix("- ")).collect();
    ctx.write("the things", "things.txt", &items.join("\n"))?;
    ctx.settle()?;
    Ok("The five things are in things.txt.".to_owned())
}

fn minutes() -> WorkCase {
    let mut text = String::new();
    let mut wanted = String::new();
    for line in 0..400 {
        if line % 28 == 11 {
            let number = line / 28 + 1;
            let what = word("resolved", line / 28);
            text.push_str(&format!(
                "After some talk number {number} was resolved, which is {what}, by all.\n"
            ));
            wanted.push_str(&format!("{what}\n"));
        } else {
            text.push_str(&format!("{}\n", prose("minutes", line, 90)));
        }
    }
    let told = "Read minutes.txt from its first line to its last. Here and there something was \
                resolved. Write what was resolved to resolved.txt, one a line, in their order.";
    WorkCase::with_message(told).file("minutes.txt", text).wants("resolved.txt", wanted)
}

fn through(ctx: &mut SolverContext<'_>) -> SolverResult<String> {
    ctx.scan("minutes.txt", |line| {
        let number = between(line, "number ", " was resolved")?;
        Some((format!("resolution {number}"), between(line, "which is ", ",")?.to_owned()))
    })?;
    let mut all = String::new();
    for number in 1.. {
        match ctx.noted(&format!("resolution {number}"))? {
            Some(what) => all.push_str(&format!("{what}\n")),
            None => break,
        }
    }
    ctx.write("the resolutions", "resolved.txt", &all)?;
    ctx.settle()?;
    Ok("What was resolved is in resolved.txt.".to_owned())
}

fn chain() -> WorkCase {
    let name = |n: usize| if n > 25 { "nothing".to_owned() } else { word("link", n) + ".txt" };
    let told = format!(
        "Begin with the file links/{}; it has a piece and names the next file of that folder, and \
         so on, until one names nothing. Write all pieces to pieces.txt, one a line.",
        name(1)
    );
    let mut case = WorkCase::with_message(told);
    let mut pieces = String::new();
    for n in 1..=25 {
        let piece = word("piece", n);
        let next = name(n + 1);
        let text = format!("{}\npiece: {piece}\nnext: {next}\n", prose("link", n, 500));
        case = case.file(format!("links/{}", name(n)), text);
        pieces.push_str(&format!("{piece}\n"));
    }
    case.wants("pieces.txt", pieces)
}

fn followed(ctx: &mut SolverContext<'_>) -> SolverResult<String> {
    let mut name = ctx.creator_said("Begin with the file links/", ";")?;
    let mut pieces = String::new();
    while name != "nothing" {
        let found = ctx.memo(&format!("link {name}"), |ctx| {
            let text = ctx.read(&format!("links/{name}"))?;
            let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key));
            match value("piece: ").zip(value("next: ")) {
                Some((piece, next)) => Ok(format!("{piece} {next}")),
                None => missing(format!("the piece in {name}")),
            }
        })?;
        let Some((piece, next)) = found.split_once(' ') else { return missing("the next file") };
        pieces.push_str(&format!("{piece}\n"));
        name = next.to_owned();
    }
    ctx.write("the pieces", "pieces.txt", &pieces)?;
    ctx.settle()?;
    Ok("All pieces are in pieces.txt.".to_owned())
}

fn versions() -> WorkCase {
    let (mut old, mut new, mut wanted) = (String::new(), String::new(), String::new());
    for n in 1..=1500 {
        let line = prose("version", n % 90, 50);
        old.push_str(&format!("{n} {line}\n"));
        if n % 211 == 100 {
            let changed = word("changed", n);
            new.push_str(&format!("{n} {changed}\n"));
            wanted.push_str(&format!("{changed}\n"));
        } else {
            new.push_str(&format!("{n} {line}\n"));
        }
    }
    let told = "old.txt and new.txt differ in a few lines. Write the words that are new, without \
                the numbers before them, to changed.txt, one a line.";
    WorkCase::with_message(told)
        .file("old.txt", old)
        .file("new.txt", new)
        .wants("changed.txt", wanted)
}

fn compared(ctx: &mut SolverContext<'_>) -> SolverResult<String> {
    let output = ctx.run("diff old.txt new.txt")?.output;
    if output.more {
        return missing("all lines in which the files differ");
    }
    let new = output.lines.iter().filter_map(|line| line.strip_prefix("> ")?.split_once(' '));
    let new: Vec<&str> = new.map(|(_, words)| words).collect();
    ctx.write("the changes", "changed.txt", &new.join("\n"))?;
    ctx.settle()?;
    Ok("What changed is in changed.txt.".to_owned())
}

fn shelves() -> WorkCase {
    let wanted = word("wanted", 1);
    let told =
        format!("How often does the word {wanted} stand in the files of the folder shelf, in all?");
    let mut case = WorkCase::with_message(told);
    let mut count = 0;
    for n in 1..=12 {
        let mut text = String::new();
        for line in 0..60 {
            let is = choice("is", n * 100 + line, 9) == 0;
            count += usize::from(is);
            let word = if is { wanted.clone() } else { word("other", n * 100 + line) };
            text.push_str(&format!("{} {word} {}\n", prose("s", line, 30), prose("h", line, 30)));
        }
        case = case.file(format!("shelf/{n:02}.txt"), text);
    }
    case.hears(format!("{count} times"))
}

fn counted(ctx: &mut SolverContext<'_>) -> SolverResult<String> {
    let word = ctx.creator_said("does the word ", " stand")?;
    let folder = ctx.creator_said("files of the folder ", ",")?;
    let ran = ctx.run(&format!("cat {folder}/*.txt | grep -o -w {word} | wc -l"))?;
    Ok(format!("{word} stands there {} times.", ran.text().trim()))
}

fn ten() -> WorkCase {
    let mut told = "Answer these ten questions, all in one message, a line for each:\n".to_owned();
    let mut case = WorkCase::default();
    for n in 1..=10 {
        let key = word("key", n);
        let value = word("value", n);
        told.push_str(&format!("Q{n}. What is {key} in conf/{n:02}.ini?\n"));
        let others = |from: usize| {
            let lines = (from..from + 4)
                .map(|at| format!("{} = {}\n", word("k", n * 100 + at), word("v", at)));
            lines.collect::<String>()
        };
        let text = format!("{}{key} = {value}\n{}", others(0), others(50));
        case = case.file(format!("conf/{n:02}.ini"), text).hears(format!("Q{n}: {value}"));
    }
    case.says(super::ScriptTiming::Start, told)
}

/// Without notes: ten short files are no more than a model keeps in its head.
fn answers(ctx: &mut SolverContext<'_>) -> SolverResult<String> {
    let mut answers = Vec::new();
    for n in 1..=10 {
        let question = ctx.item(&format!("Q{n}"))?;
        let key = between(&question, "What is ", " in ");
        let Some((key, path)) = key.zip(between(&question, " in ", "?")) else {
            return missing(format!("question {n}"));
        };
        let text = ctx.read(path)?;
        match text.lines().find_map(|line| line.strip_prefix(&format!("{key} = "))) {
            Some(value) => answers.push(format!("Q{n}: {value}")),
            None => return missing(format!("{key} in {path}")),
        }
    }
    Ok(answers.join("\n"))
}

fn flood() -> WorkCase {
    let key = word("flood", 1);
    let script = format!(
        "echo again >> ran.txt\ni=0\nwhile [ $i -lt 20000 ]; do\n  i=$((i + 1))\n  \
         if [ $i -eq 11213 ]; then echo \"yield of the run: {}\"; else echo \"step $i went well\"; fi\n\
         done\n",
        key.chars().rev().collect::<String>()
    );
    let told = "Run `sh flood.sh`, once only: each run costs money. It writes 20,000 lines. Tell me \
                the yield of the run, which it writes among them.";
    let case = WorkCase::with_message(told).file("flood.sh", script).wants("ran.txt", "again");
    case.hears(key.chars().rev().collect::<String>())
}

fn fished(ctx: &mut SolverContext<'_>) -> SolverResult<String> {
    let place = ctx.memo("where the output is", |ctx| {
        let ran = ctx.run("sh flood.sh")?;
        let yields = ran.output.lines.iter().find_map(|line| after(line, "yield of the run: "));
        match (yields, ran.output.file) {
            (Some(found), _) => Ok(format!("yield {found}")),
            (None, Some(file)) => Ok(file),
            (None, None) => missing("where the whole output is"),
        }
    })?;
    if let Some(found) = place.strip_prefix("yield ") {
        return Ok(format!("The yield is {found}."));
    }
    match ctx.find("yield of the run", &place)? {
        Some(line) => Ok(format!("The yield is {}.", after(&line, "run: ").unwrap_or_default())),
        None => missing("the yield in the output that was kept"),
    }
}
