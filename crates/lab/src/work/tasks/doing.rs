//! Pure: tasks in which something is built, mended or moved.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::solver::{SolverContext, SolverResult, missing};
use super::super::view::{after, between};
use super::{WorkCase, WorkExpectation, WorkTask, choice, order_of, prose, word};

pub(super) const TASKS: &[WorkTask] = &[
    WorkTask {
        name: "refactor",
        what: "a function renamed in twelve files, with a test",
        case: modules,
        solver: renamed,
    },
    WorkTask {
        name: "recover",
        what: "a build that fails five times and says why",
        case: build,
        solver: recovered,
    },
    WorkTask {
        name: "polled",
        what: "a long build that is polled",
        case: long_build,
        solver: polled,
    },
    WorkTask {
        name: "join",
        what: "a table out of three sources with traps",
        case: sources,
        solver: joined,
    },
    WorkTask {
        name: "maze",
        what: "forty steps, each told by the one before",
        case: maze,
        solver: walked,
    },
    WorkTask {
        name: "todo",
        what: "thirty small files that say what to do",
        case: todo,
        solver: worked_off,
    },
    WorkTask {
        name: "delete",
        what: "thirty files deleted except those that were named",
        case: junk,
        solver: deleted,
    },
];

/// The calls of a function in a module, as they were or as they must become.
fn module(n: usize, new: bool) -> String {
    let call = |at: usize| {
        let name = word("setting", n * 10 + at);
        if new { format!("read_config {name} strict\n") } else { format!("load_cfg {name}\n") }
    };
    let comment = |at: usize| format!("# {}\n", prose("module", n * 10 + at, 80));
    (0..3).map(|at| format!("{}{}", comment(at), call(at))).collect()
}

fn modules() -> WorkCase {
    let told = "In the modules of the folder mod, `load_cfg NAME` has to become `read_config NAME \
                strict`. Then `sh test.sh` must pass; it names what it still finds. Write the word \
                that it ends with to passed.txt.";
    let code = word("passed", 1);
    let test = format!(
        "found=$(grep -rl load_cfg mod more | head -n 3)\n\
         if [ -n \"$found\" ]; then echo \"these still call load_cfg: $found\"; exit 1; fi\n\
         count=$(cat mod/*.sh more/*.sh | grep -c ' strict$')\n\
         if [ $count -ne 39 ]; then echo \"$count calls of 39\"; exit 1; fi\necho \"all is well: {code}\"\n"
    );
    let mut case = WorkCase::with_message(told).file("test.sh", test).wants("passed.txt", code);
    for n in 1..=13 {
        // One is where nobody was told to look.
        let path = if n == 13 { "more/last.sh".to_owned() } else { format!("mod/{n:02}.sh") };
        case = case.file(path.clone(), module(n, false)).wants(path, module(n, true));
    }
    case
}

fn rename_in(ctx: &mut SolverContext<'_>, path: &str) -> SolverResult<()> {
    let key = format!("renamed in {path}");
    if ctx.is_done(&key)? {
        return Ok(());
    }
    if ctx.calls_in(path, "edit_file") == 0 {
        let text = ctx.read(path)?;
        for line in text.lines().filter(|line| line.starts_with("load_cfg ")) {
            let new = format!("{} strict", line.replace("load_cfg", "read_config"));
            ctx.begin(
                "edit_file",
                json!({ "path": path, "old": format!("{line}\n"), "new": format!("{new}\n") }),
            );
        }
        ctx.settle()?;
    }
    ctx.mark_done(&key);
    Ok(())
}

fn renamed(ctx: &mut SolverContext<'_>) -> SolverResult<String> {
    let folder = ctx.creator_said("modules of the folder ", ",")?;
    for name in ctx.listed(&folder)? {
        rename_in(ctx, &format!("{folder}/{name}"))?;
    }
    ctx.flush()?;
    let ran = ctx.run_since(ctx.since_edits(), "sh test.sh")?;
    if !ran.succeeded {
        let text = ran.text();
        let Some(files) = after(&text, "still call load_cfg: ") else {
            return missing("what the test found");
        };
        for file in files.split_whitespace() {
            rename_in(ctx, file)?;
        }
        return missing("why the test fails");
    }
    let text = ran.text();
    let Some(code) = after(&text, "all is well: ") else {
        return missing("the last word of the test");
    };
    ctx.write("the word", "passed.txt", code.trim())?;
    ctx.settle()?;
    Ok("The test passes.".to_owned())
}

fn build() -> WorkCase {
    let mut script = String::new();
    for n in 1..=5 {
        let path = format!("need/{n}.txt");
        let word = word("need", n);
        script.push_str(&format!(
            "grep -qx {word} {path} 2>/dev/null || {{ echo 'it lacks something: Write the word {word} \
             to the file {path}; then try again' >&2; exit {n}; }}\n"
        ));
    }
    script.push_str(&format!("echo {} > built.txt\necho built\n", word("built", 1)));
    let told = "Run `sh build.sh` until it succeeds; when it fails it says what it lacks.";
    WorkCase::with_message(told).file("build.sh", script).wants("built.txt", word("built", 1))
}

fn recovered(ctx: &mut SolverContext<'_>) -> SolverResult<String> {
    let ran = ctx.run_since(ctx.since_edits(), "sh build.sh")?;
    if ran.succeeded {
        return Ok("It is built.".to_owned());
    }
    let result = ctx.last("exec").and_then(|done| done.result.clone()).unwrap_or_default();
    let (path, word) = order_of(&result)?;
    ctx.call("write_file", json!({ "path": path, "content": format!("{word}\n") }))
}

fn long_build() -> WorkCase {
    let script = format!(
        "for step in 1 2 3 4 5 6; do echo \"step $step of 6\"; sleep 0.15; done\n\
         echo \"the build has the number {}\"\n",
        word("number", 1)
    );
    let told = "Start the long build, `sh long.sh`, beside your turns, look after it until it has \
                ended, and tell me the number that it has then.";
    WorkCase::with_message(told).file("long.sh", script).hears(word("number", 1))
}

fn polled(ctx: &mut SolverContext<'_>) -> SolverResult<String> {
    let Some(started) = ctx.last("start_process").and_then(|done| done.result.clone()) else {
        return ctx.call("start_process", json!({ "command": "sh long.sh" }));
    };
    let Some(id) = between(&started, "Process ", " ").and_then(|id| id.parse::<u32>().ok()) else {
        return missing("the number of the process");
    };
    let said = ctx.last("read_process").and_then(|done| done.result.clone()).unwrap_or_default();
    match after(&said, "has the number ").and_then(|rest| rest.split_whitespace().next()) {
        Some(number) => Ok(format!("The build has ended and has the number {number}.")),
        None => ctx.call("read_process", json!({ "process": id, "wait": 250 })),
    }
}

/// Joins the three sources: an amount for each customer, in cents.
fn join_of(customers: &str, orders: &str, rates: &str, last_counts: bool) -> String {
    let pair = |line: &str, mark: char| {
        let (one, other) = line.split_once(mark)?;
        Some((one.trim().to_owned(), other.trim().to_owned()))
    };
    let rates: BTreeMap<_, _> = rates.lines().filter_map(|line| pair(line, '=')).collect();
    let mut taken: BTreeMap<String, (String, u64)> = BTreeMap::new();
    for line in orders.lines().skip(1) {
        let cells: Vec<&str> = line.split(';').map(str::trim).collect();
        let [number, customer, amount, currency] = cells[..] else { continue };
        let (whole, cents) = amount.split_once([',', '.']).unwrap_or((amount, "0"));
        let cents = whole.parse().unwrap_or(0_u64) * 100 + cents.parse().unwrap_or(0_u64);
        let rate = rates.get(currency).and_then(|rate| rate.parse().ok()).unwrap_or(100_u64);
        let worth = (customer.to_owned(), cents * rate / 100);
        if last_counts || !taken.contains_key(number) {
            taken.insert(number.to_owned(), worth);
        }
    }
    let mut table = String::new();
    for (id, name) in customers.lines().skip(1).filter_map(|line| pair(line, ';')) {
        let sum: u64 = taken.values().filter(|(of, _)| *of == id).map(|(_, worth)| worth).sum();
        table.push_str(&format!("{name};{sum}\n"));
    }
    let known = |id: &str| customers.lines().any(|line| line.starts_with(&format!("{id};")));
    let lost = taken.values().filter(|(of, _)| !known(of)).map(|(_, worth)| worth);
    table + &format!("unknown;{}\n", lost.sum::<u64>())
}

fn sources() -> WorkCase {
    let told = "Write joined.csv: for each customer of data/customers.csv, in that order, a line \
                `NAME;CENTS` with what the orders of data/orders.csv come to in our currency, by \
                the rates of data/rates.txt; and last a line `unknown;CENTS` for orders of nobody. \
                Read data/README first: the data have traps.";
    let readme = "Amounts have a comma or a point before the cents, always two digits. A rate is \
                  what a hundred of a currency are worth in ours. An order may stand there twice \
                  with the same number: then only the last one counts.\n";
    let mut customers = "id;name\n".to_owned();
    let mut orders = "number;customer;amount;currency\n".to_owned();
    for n in 1..=24 {
        customers.push_str(&format!("c{n};{}\n", word("customer", n)));
    }
    let rates = "eur=100\nusd=87\ngbp=116\nchf=104\n";
    for n in 1..=60 {
        let number = if n % 11 == 0 { n - 3 } else { n };
        let customer = choice("of", n, 27) + 1;
        let mark = [",", "."][n % 2];
        let currency = ["eur", "usd", "gbp", "chf"][choice("in", n, 4)];
        let whole = choice("whole", n, 400);
        let cents = choice("cents", n, 90) + 10;
        orders.push_str(&format!("o{number};c{customer};{whole}{mark}{cents};{currency}\n"));
    }
    let wanted = join_of(&customers, &orders, rates, true);
    WorkCase::with_message(told)
        .file("data/README", readme)
        .file("data/customers.csv", customers)
        .file("data/orders.csv", orders)
        .file("data/rates.txt", rates)
        .wants("joined.csv", wanted)
}

fn joined(ctx: &mut SolverContext<'_>) -> SolverResult<String> {
    let rule = ctx.memo("which counts", |ctx| {
        let readme = ctx.read("data/README")?;
        let rule = between(&readme, "then only the ", " one counts").map(str::to_owned);
        rule.map_or_else(|| missing("which of two orders counts"), Ok)
    })?;
    let customers = ctx.read("data/customers.csv")?;
    let rates = ctx.read("data/rates.txt")?;
    let orders = ctx.read("data/orders.csv")?;
    let table = join_of(&customers, &orders, &rates, rule == "last");
    ctx.write("the table", "joined.csv", &table)?;
    ctx.settle()?;
    Ok("The table is in joined.csv.".to_owned())
}

fn maze() -> WorkCase {
    let door = |n: usize| word("door", n);
    let mut table = String::new();
    let mut letters = String::new();
    for n in 1..=40 {
        let letter = char::from(b'a' + u8::try_from(choice("letter", n, 26)).unwrap_or(0));
        let next = if n == 40 { "none".to_owned() } else { door(n + 1) };
        table.push_str(&format!("{} letter {letter} next {next}\n", door(n)));
        letters.push(letter);
    }
    let told = format!(
        "Walk the maze: `sh step.sh DOOR` tells a letter and the next door. Begin at the door {}; \
         at the end there is none. Write all letters, in their order, as one word to letters.txt. \
         Go through each door yourself.",
        door(1)
    );
    WorkCase::with_message(told)
        .file("step.sh", "grep \"^$1 \" .doors || echo 'no such door'\n")
        .file(".doors", table)
        .wants("letters.txt", letters)
}

fn walked(ctx: &mut SolverContext<'_>) -> SolverResult<String> {
    let mut door = ctx.creator_said("Begin at the door ", ";")?;
    let mut letters = String::new();
    while door != "none" {
        let found = ctx.memo(&format!("door {door}"), |ctx| {
            let text = ctx.run(&format!("sh step.sh {door}"))?.text();
            let letter = between(&text, "letter ", " next");
            match letter.zip(after(&text, "next ")) {
                Some((letter, next)) => Ok(format!("{letter} {}", next.trim())),
                None => missing(format!("what stood at the door {door}")),
            }
        })?;
        let Some((letter, next)) = found.split_once(' ') else { return missing("the next door") };
        letters.push_str(letter);
        door = next.to_owned();
    }
    ctx.write("the letters", "letters.txt", &letters)?;
    ctx.settle()?;
    Ok("The letters are in letters.txt.".to_owned())
}

fn todo() -> WorkCase {
    let mut case = WorkCase::with_message(
        "In the folder todo are files that each say something to be done. Do it all.",
    );
    for n in 1..=30 {
        let path = format!("done/{}.txt", word("at", n));
        let word = word("todo", n);
        let text = format!(
            "{}\nWrite the word {word} to the file {path}; that is it.\n",
            prose("todo", n, 300)
        );
        case = case.file(format!("todo/{n:02}.txt"), text).wants(path, word);
    }
    case
}

fn worked_off(ctx: &mut SolverContext<'_>) -> SolverResult<String> {
    let folder = ctx.creator_said("In the folder ", " are files")?;
    for name in ctx.listed(&folder)? {
        if ctx.is_done(&name)? {
            continue;
        }
        let text = ctx.read(&format!("{folder}/{name}"))?;
        let (path, word) = order_of(&text)?;
        ctx.write(&name, &path, &word)?;
    }
    ctx.settle()?;
    Ok("All is done.".to_owned())
}

fn junk() -> WorkCase {
    let mut case = WorkCase::default();
    let mut kept = Vec::new();
    for n in 1..=30 {
        let name = word("junk", n);
        let text = word("text", n);
        let path = format!("junk/{name}");
        case = case.file(path.clone(), text.clone());
        if choice("kept", n, 3) == 0 {
            kept.push(name);
            case = case.wants(path, text);
        } else {
            case.wants.push(WorkExpectation::NoFile(path));
        }
    }
    let told = format!(
        "Delete the files of the folder junk, each by a command of its own, except these: {}. Look \
         at each of them before you do.",
        kept.join(" ")
    );
    case.says(super::ScriptTiming::Start, told)
}

fn deleted(ctx: &mut SolverContext<'_>) -> SolverResult<String> {
    let names = ctx.memo("files of junk", |ctx| Ok(ctx.listed("junk")?.join(" ")))?;
    for name in names.split(' ') {
        let key = format!("saw {name}");
        if ctx.is_done(&key)? {
            continue;
        }
        let kept = ctx.creator_said("except these: ", ".")?;
        ctx.read(&format!("junk/{name}"))?;
        if !kept.split(' ').any(|kept| kept == name) {
            let command: Value = json!({ "command": format!("rm junk/{name}") });
            ctx.once(&key, "exec", command)?;
        } else {
            ctx.mark_done(&key);
        }
    }
    ctx.settle()?;
    Ok("They are deleted.".to_owned())
}
