//! Pure: the files that a `find` command selects.

/// Options before the folders.
const LINK_OPTIONS: [&str; 3] = ["-H", "-L", "-P"];
/// Actions and settings of an expression, which select nothing.
const PICKS_NOTHING: [&str; 24] = [
    "-true",
    "-mindepth",
    "-maxdepth",
    "-depth",
    "-d",
    "-xdev",
    "-mount",
    "-noleaf",
    "-follow",
    "-ignore_readdir_race",
    "-print",
    "-print0",
    "-printf",
    "-fprint",
    "-fprintf",
    "-ls",
    "-delete",
    "-exec",
    "-execdir",
    "-ok",
    "-okdir",
    "-a",
    "-and",
    "-daystart",
];
/// Actions that run a command up to `;` or `+`.
const RUNNERS: [&str; 4] = ["-exec", "-execdir", "-ok", "-okdir"];
/// A placeholder for files that a test selects.
const PICKED: &str = "{}";

/// The selection of a `find` command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FoundFiles {
    /// The folders themselves, if everything in them is selected. Otherwise a path for each
    /// searched name, or `FOLDER/{}` if there is none.
    pub(crate) paths: Vec<String>,
    /// The words of each command that is run, with `{}` unchanged.
    pub(crate) commands: Vec<Vec<String>>,
    /// True if everything selected is deleted.
    pub(crate) deletes: bool,
}

/// Parses the arguments of `find`.
pub(crate) fn read_find(arguments: &[String]) -> FoundFiles {
    let options = arguments.iter().take_while(|word| LINK_OPTIONS.contains(&word.as_str()));
    let after = arguments.get(options.count()..).unwrap_or(&[]);
    let is_folder = |word: &&String| !word.starts_with(['-', '(', '!']);
    let mut folders: Vec<&str> = after.iter().take_while(is_folder).map(String::as_str).collect();
    let (expression, commands) = cut_commands(after.get(folders.len()..).unwrap_or(&[]));
    if folders.is_empty() {
        folders.push(".");
    }
    let tests = read_tests(&expression);
    let paths = match (tests.picks, tests.names.is_empty()) {
        (Picks::All, _) => folders.iter().map(|folder| (*folder).to_owned()).collect(),
        (Picks::Files, _) => join(&folders, &["*"]),
        (Picks::Some, true) => join(&folders, &[PICKED]),
        (Picks::Some, false) => join(&folders, &tests.names),
    };
    let deletes = expression.contains(&"-delete");
    FoundFiles { paths, commands, deletes }
}

/// Separates the commands from the rest of an expression.
fn cut_commands(words: &[String]) -> (Vec<&str>, Vec<Vec<String>>) {
    let mut expression = Vec::new();
    let mut commands = Vec::new();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        if RUNNERS.contains(&word.as_str()) {
            commands.push(rest.by_ref().take_while(|w| *w != ";" && *w != "+").cloned().collect());
        } else {
            expression.push(word.as_str());
        }
    }
    (expression, commands)
}

/// The extent of a selection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Picks {
    /// Every file and folder.
    All,
    /// Every file, but no folders.
    Files,
    /// Entries that pass a test.
    Some,
}

/// The tests of an expression.
struct FindTests<'a> {
    picks: Picks,
    /// The searched names and paths.
    names: Vec<&'a str>,
}

fn read_tests<'a>(expression: &[&'a str]) -> FindTests<'a> {
    let mut tests = FindTests { picks: Picks::All, names: Vec::new() };
    let mut negated = false;
    for (at, word) in expression.iter().enumerate() {
        let value = expression.get(at + 1).copied().unwrap_or_default();
        match *word {
            "!" | "-not" => {
                negated = true;
                continue;
            }
            "-name" | "-iname" | "-path" | "-ipath" | "-wholename" | "-regex" => {
                if !matches!(value, "*" | "**" | "./*" | ".*") || negated {
                    tests.picks = Picks::Some;
                }
                if !negated {
                    tests.names.push(value);
                }
            }
            "-type" if !negated && value == "f" && tests.picks == Picks::All => {
                tests.picks = Picks::Files;
            }
            "-type" if !negated && (value.contains('d') || value.contains('f')) => {}
            word if is_test(word) => tests.picks = Picks::Some,
            _ => {}
        }
        negated = false;
    }
    tests
}

/// Returns true if a word is a test, and not a value such as the one of `-mtime -1`.
fn is_test(word: &str) -> bool {
    let name = word.strip_prefix('-').unwrap_or_default();
    name.starts_with(|c: char| c.is_ascii_alphabetic()) && !PICKS_NOTHING.contains(&word)
}

/// Joins each name to each folder. A pattern of a whole path is unchanged.
fn join(folders: &[&str], names: &[&str]) -> Vec<String> {
    let mut paths = Vec::new();
    for folder in folders {
        for name in names {
            let is_path = name.contains('/');
            paths.push(match is_path {
                true => (*name).to_owned(),
                false => format!("{}/{name}", folder.trim_end_matches('/')),
            });
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(arguments: &str) -> Vec<String> {
        let words: Vec<String> = arguments.split_whitespace().map(str::to_owned).collect();
        read_find(&words).paths
    }

    #[test]
    fn what_is_picked_follows_the_tests() {
        for (arguments, expected) in [
            (". -delete", vec!["."]),
            ("-delete", vec!["."]),
            ("-L a b -mindepth 1 -maxdepth 1 -print", vec!["a", "b"]),
            (". -name *", vec!["."]),
            (". -type f -delete", vec!["./*"]),
            (". -type d -delete", vec!["."]),
            (". -type l -delete", vec!["./{}"]),
            (". -name *.o -o -iname *.a", vec!["./*.o", "./*.a"]),
            ("/ -type f -name x", vec!["/x"]),
            (". -path ./a/*", vec!["./a/*"]),
            (". -mtime -1", vec!["./{}"]),
            (". ! -name keep", vec!["./{}"]),
            (". -not -type d", vec!["./{}"]),
            ("~ -size +10M -exec rm -- {} ;", vec!["~/{}"]),
            ("~ -exec rm -name x ;", vec!["~"]),
        ] {
            assert_eq!(paths(arguments), expected, "{arguments}");
        }
    }

    #[test]
    fn each_command_is_taken_out() {
        let words: Vec<String> =
            ". -exec a {} ; -name x -execdir b +".split(' ').map(str::to_owned).collect();
        let found = read_find(&words);
        assert_eq!(found.commands, [vec!["a".to_owned(), "{}".to_owned()], vec!["b".to_owned()]]);
        assert_eq!(found.paths, ["./x"]);
        assert!(!found.deletes);
    }
}
