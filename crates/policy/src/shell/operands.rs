//! Pure: classifies the arguments of a program as files, programs or patterns.
//!
//! `sed 's/a/b/' x` names one file and `grep -f a b` names two. For a program that is not in the
//! table, each argument may be a file.

use super::ShellCommand;

/// The argument syntax of a program.
struct Syntax {
    names: &'static [&'static str],
    /// True if the first operand is a program or pattern, unless an option gives one.
    code_first: bool,
    /// Options whose value is a program or pattern.
    code: &'static [&'static str],
    /// Options whose value is a file that contains one.
    code_files: &'static [&'static str],
    /// Options whose value selects files.
    selections: &'static [&'static str],
    /// Options with another value.
    values: &'static [&'static str],
    /// Letters of options whose optional value is in the same word.
    attached: &'static str,
}

/// The syntax of a program without options that take a value.
const PLAIN: Syntax = Syntax {
    names: &[],
    code_first: true,
    code: &[],
    code_files: &[],
    selections: &[],
    values: &[],
    attached: "",
};

/// The programs that take a program or a pattern.
const SYNTAXES: [Syntax; 5] = [
    Syntax {
        names: &["sed", "gsed"],
        code: &["-e", "--expression"],
        code_files: &["-f", "--file"],
        values: &["-l", "--line-length"],
        attached: "i",
        ..PLAIN
    },
    Syntax {
        names: &["awk", "gawk", "mawk", "nawk"],
        code: &["-e", "--source"],
        code_files: &["-f", "--file", "-E", "--exec"],
        values: &["-F", "-v", "-i", "-l", "--field-separator", "--assign", "--include", "--load"],
        attached: "dopDL",
        ..PLAIN
    },
    Syntax {
        names: &["grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack"],
        code: &["-e", "--regexp"],
        code_files: &["-f", "--file"],
        selections: &["-g", "--include", "--glob", "--iglob"],
        values: &[
            "-A",
            "-B",
            "-C",
            "-m",
            "-d",
            "-D",
            "-t",
            "-T",
            "-j",
            "-M",
            "--max-count",
            "--context",
            "--after-context",
            "--before-context",
            "--label",
            "--type",
            "--type-not",
            "--max-depth",
            "--threads",
            "--replace",
            "--encoding",
            "--sort",
            "--binary-files",
            "--directories",
            "--devices",
            "--max-columns",
            "--colors",
        ],
        ..PLAIN
    },
    Syntax {
        names: &["perl", "ruby"],
        code_first: false,
        code: &["-e", "-E"],
        attached: "iFMmICxVDT",
        ..PLAIN
    },
    Syntax {
        names: &["jq", "yq", "gojq"],
        code_files: &["-f", "--from-file"],
        values: &["--indent", "-L", "-o", "-p", "--output-format", "--input-format"],
        attached: "i",
        ..PLAIN
    },
];

/// The classified arguments of a command.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Operands<'a> {
    /// Programs and patterns.
    pub(crate) code: Vec<&'a str>,
    /// Words that may name files, including values of options.
    pub(crate) files: Vec<&'a str>,
    /// True if files are changed in place.
    pub(crate) edits: bool,
}

/// Classifies the arguments of a command.
pub(crate) fn read_operands(command: &ShellCommand) -> Operands<'_> {
    let program = command.program();
    let arguments = without_excludes(command.arguments());
    match SYNTAXES.iter().find(|syntax| syntax.names.contains(&program)) {
        Some(syntax) => classify(syntax, &arguments),
        None => Operands { files: arguments, ..Operands::default() },
    }
}

/// Returns the arguments without those that exclude files.
fn without_excludes(arguments: &[String]) -> Vec<&str> {
    let mut kept = Vec::new();
    let mut words = arguments.iter().map(String::as_str);
    while let Some(word) = words.next() {
        let (name, value) = word.split_once('=').map_or((word, None), |(n, v)| (n, Some(v)));
        let excludes = name.starts_with("--exclude") || name.starts_with("--ignore-f");
        if excludes && value.is_none() {
            words.next();
        }
        if !excludes {
            kept.push(word);
        }
    }
    kept
}

/// The meaning of an option's value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Code,
    CodeFile,
    Selection,
    Value,
    Attached,
    /// The option is not in the table. A value in the same word may be a file.
    Unknown,
}

impl Syntax {
    fn role(&self, option: &str) -> Role {
        let letter = option.strip_prefix('-').unwrap_or_default();
        if self.code.contains(&option) {
            Role::Code
        } else if self.code_files.contains(&option) {
            Role::CodeFile
        } else if self.selections.contains(&option) {
            Role::Selection
        } else if self.values.contains(&option) {
            Role::Value
        } else if letter.len() == 1 && self.attached.contains(letter) {
            Role::Attached
        } else {
            Role::Unknown
        }
    }
}

fn classify<'a>(syntax: &Syntax, arguments: &[&'a str]) -> Operands<'a> {
    let mut read = Operands::default();
    let mut operands: Vec<&'a str> = Vec::new();
    let mut words = arguments.iter().copied().peekable();
    let mut has_code = !syntax.code_first;
    while let Some(word) = words.next() {
        if word == "--" {
            operands.extend(words.by_ref());
            break;
        }
        let Some(option) = read_option(syntax, word) else {
            operands.push(word);
            continue;
        };
        read.edits |= option.edits;
        let value = match option.role {
            Role::Attached | Role::Unknown => option.value,
            _ => option.value.or_else(|| words.next()),
        };
        has_code |= matches!(option.role, Role::Code | Role::CodeFile) || word == "--files";
        match (option.role, value) {
            (Role::Code, Some(code)) => read.code.push(code),
            (Role::Value, Some("inplace")) => read.edits = true,
            (Role::CodeFile | Role::Unknown, Some(file)) => read.files.push(file),
            // A pattern with `!` excludes files.
            (Role::Selection, Some(pattern)) if !pattern.starts_with('!') => {
                read.files.push(pattern);
            }
            _ => {}
        }
        // Some versions take the suffix of `-i` from the next word. An empty suffix means none.
        if word == "-i" && option.edits && words.peek() == Some(&"") {
            words.next();
        }
    }
    let codes = usize::from(!has_code).min(operands.len());
    let (code, files) = operands.split_at(codes);
    read.code.extend(code);
    read.files.extend(files);
    read
}

/// The last option of a word.
struct ProgramOption<'a> {
    role: Role,
    /// The value in the same word.
    value: Option<&'a str>,
    /// True if it changes files in place.
    edits: bool,
}

/// Parses a word as options. Returns `None` if it is an operand.
fn read_option<'a>(syntax: &Syntax, word: &'a str) -> Option<ProgramOption<'a>> {
    if word.starts_with("--") {
        let (name, value) = word.split_once('=').map_or((word, None), |(n, v)| (n, Some(v)));
        let edits = name == "--in-place" || name == "--inplace";
        let value = if edits { None } else { value };
        return Some(ProgramOption { role: syntax.role(name), value, edits });
    }
    let letters = word.strip_prefix('-').filter(|letters| !letters.is_empty())?;
    for (at, letter) in letters.char_indices() {
        let role = syntax.role(&format!("-{letter}"));
        if role == Role::Unknown {
            continue;
        }
        let rest = letters.get(at + letter.len_utf8()..).filter(|rest| !rest.is_empty());
        let edits = role == Role::Attached && letter == 'i';
        return Some(ProgramOption { role, value: rest, edits });
    }
    Some(ProgramOption { role: Role::Unknown, value: None, edits: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the code, the files and whether these are changed, for words separated by one
    /// blank.
    fn read(words: &str) -> (String, String, bool) {
        let words = words.split(' ').map(str::to_owned).collect();
        let command = ShellCommand { words, ..ShellCommand::default() };
        let read = read_operands(&command);
        (read.code.join(" "), read.files.join(" "), read.edits)
    }

    #[test]
    fn programs_and_patterns_are_told_from_files() {
        for (words, code, files, edits) in [
            ("sed s/a/b/ x y", "s/a/b/", "x y", false),
            ("sed -n -e p -e d x", "p d", "x", false),
            ("sed -ne p x", "p", "x", false),
            ("sed -f y x", "", "y x", false),
            ("sed --file=y x", "", "y x", false),
            ("sed -i.bak -E s/a/b/ x", "s/a/b/", "x", true),
            ("sed -Ei s/a/b/ x", "s/a/b/", "x", true),
            ("sed x -e p", "p", "x", false),
            ("sed -i  s/a/b/ x", "s/a/b/", "x", true),
            ("sed --in-place=.b --expression=p x", "p", "x", true),
            ("sed -l 5 p -- -x", "p", "-x", false),
            ("awk -F: -v a=.* {print} x", "{print}", "x", false),
            ("gawk -i inplace {print} x", "{print}", "x", true),
            ("awk -f p.awk x", "", "p.awk x", false),
            ("grep -A 3 -rn a x", "a", "x", false),
            ("grep -ie a -f b x", "a", "b x", false),
            ("grep -r --include=.env --exclude=y --exclude-dir z a .", "a", ".env .", false),
            ("rg -g !.env -g *.rs a", "a", "*.rs", false),
            ("rg --files x", "", "x", false),
            ("perl -i -pe s/a/b/ x", "s/a/b/", "x", true),
            ("perl -0pi -e s/a/b/ x", "s/a/b/", "x", true),
            ("perl x.pl y", "", "x.pl y", false),
            ("jq -r .a x", ".a", "x", false),
            ("yq -i .a=1 x", ".a=1", "x", true),
            ("cat -n x", "", "-n x", false),
            ("tar czf x --exclude=y z", "", "czf x z", false),
        ] {
            let expected = (code.to_owned(), files.to_owned(), edits);
            assert_eq!(read(words), expected, "{words}");
        }
    }
}
