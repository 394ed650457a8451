//! Pure: reads a shell script well enough to see what it is about.
//!
//! Splits a script into simple commands with their words as the shell would
//! see them: quotes and backslashes removed, known variables put in, here
//! documents and substitutions taken apart. It is no shell: loops run once,
//! both branches of a condition count, and what is only known at run time stays
//! as it is written. It must never be relied upon to stop anything; the sandbox
//! does that. It may only see too much, and it gives up loudly.

use std::collections::{BTreeMap, VecDeque};
use std::iter::Peekable;
use std::str::Chars;

/// Scripts within scripts that are followed.
const DEPTH_MAX: u32 = 8;
/// What is read of all scripts together, in bytes.
const READ_BYTES_MAX: usize = 1024 * 1024;
/// What variables may add to one script, in bytes: a value that names itself
/// twice doubles with each assignment.
const ADDED_BYTES_MAX: usize = 16 * 1024;

/// Why a script was not read to its end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unreadable {
    /// Scripts lie within scripts.
    #[error("the command has more than {DEPTH_MAX} commands within each other")]
    Deep,
    /// The scripts are long in sum.
    #[error("the command and those within it have more than {READ_BYTES_MAX} bytes")]
    Long,
}

/// One simple command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Command {
    /// The program and its arguments. Empty for a lone redirection.
    pub(crate) words: Vec<String>,
    /// Files that it reads by redirection.
    pub(crate) reads: Vec<String>,
    /// Files that it writes by redirection.
    pub(crate) writes: Vec<String>,
    /// Its here documents.
    pub(crate) inputs: Vec<String>,
}

impl Command {
    /// The program's name without its folder.
    pub(crate) fn program(&self) -> &str {
        let word = self.words.first().map_or("", String::as_str);
        word.rsplit('/').next().unwrap_or(word)
    }

    /// What follows the program.
    pub(crate) fn arguments(&self) -> &[String] {
        self.words.get(1..).unwrap_or(&[])
    }
}

/// The simple commands of a script and of all scripts within it.
pub(crate) fn commands(script: &str) -> Result<Vec<Command>, Unreadable> {
    let mut found = Vec::new();
    let mut left = READ_BYTES_MAX;
    let mut queue = VecDeque::from([(script.to_owned(), 0)]);
    while let Some((script, depth)) = queue.pop_front() {
        if depth > DEPTH_MAX {
            return Err(Unreadable::Deep);
        }
        left = left.checked_sub(script.len()).ok_or(Unreadable::Long)?;
        let reader = Reader::new(&script).read();
        queue.extend(reader.nested.into_iter().map(|script| (script, depth + 1)));
        for mut command in reader.commands {
            strip_wrappers(&mut command.words);
            queue.extend(scripts_of(&command).map(|script| (script, depth + 1)));
            found.push(command);
        }
    }
    Ok(found)
}

/// Takes away what only says how a command runs, so that the program is first.
fn strip_wrappers(words: &mut Vec<String>) {
    const WRAPPERS: [&str; 24] = [
        "sudo", "doas", "env", "nohup", "exec", "command", "builtin", "time", "nice", "ionice",
        "setsid", "stdbuf", "busybox", "xargs", "timeout", "then", "else", "do", "if", "while",
        "until", "elif", "!", "{",
    ];
    while let Some(first) = words.first() {
        let is_wrapper = WRAPPERS.contains(&first.rsplit('/').next().unwrap_or(first));
        let is_timeout = first.ends_with("timeout");
        if !is_wrapper && assignment(first).is_none() {
            return;
        }
        let options = words[1..].iter().take_while(|word| is_wrapper && word.starts_with('-'));
        let skipped = 1 + options.count();
        words.drain(..skipped);
        if is_timeout && !words.is_empty() {
            words.remove(0);
        }
    }
}

/// The scripts that a command hands to a shell.
fn scripts_of(command: &Command) -> impl Iterator<Item = String> {
    const SHELLS: [&str; 6] = ["sh", "bash", "dash", "ash", "zsh", "ksh"];
    let mut scripts = Vec::new();
    if command.program() == "eval" {
        scripts.push(command.arguments().join(" "));
    } else if SHELLS.contains(&command.program()) {
        let is_flag = |word: &String| word.starts_with('-') && !word.starts_with("--");
        let flag = command.arguments().iter().position(|word| is_flag(word) && word.contains('c'));
        match flag {
            Some(at) => scripts.extend(command.arguments().get(at + 1).cloned()),
            None => scripts.extend(command.inputs.iter().cloned()),
        }
    }
    scripts.into_iter()
}

/// The name and value of a word that sets a variable.
fn assignment(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let is_name = !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name.then_some((name, value))
}

/// What the next word is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Argument,
    Read,
    Write,
    HereDocument,
}

/// Goes through one script.
struct Reader<'a> {
    rest: Peekable<Chars<'a>>,
    variables: BTreeMap<String, String>,
    left_to_add: usize,
    word: Option<String>,
    place: Place,
    command: Command,
    /// Delimiters of here documents that begin on the next line.
    awaited: Vec<String>,
    commands: Vec<Command>,
    nested: Vec<String>,
}

impl<'a> Reader<'a> {
    fn new(script: &'a str) -> Self {
        Self {
            rest: script.chars().peekable(),
            variables: BTreeMap::from([("HOME".to_owned(), "~".to_owned())]),
            left_to_add: ADDED_BYTES_MAX,
            word: None,
            place: Place::Argument,
            command: Command::default(),
            awaited: Vec::new(),
            commands: Vec::new(),
            nested: Vec::new(),
        }
    }

    fn read(mut self) -> Self {
        while let Some(c) = self.rest.next() {
            match c {
                ' ' | '\t' | '\r' => self.end_word(),
                '#' if self.word.is_none() => while self.rest.next_if(|c| *c != '\n').is_some() {},
                '\n' => {
                    self.end_word();
                    self.take_here_documents();
                    self.end_command();
                }
                ';' | '|' | '(' | ')' => self.end_command(),
                '&' if self.rest.peek() != Some(&'>') => self.end_command(),
                '&' => {}
                '<' | '>' => self.redirect(c),
                '\'' => {
                    while let Some(c) = self.rest.next().filter(|c| *c != '\'') {
                        self.push(c);
                    }
                    self.push_str("");
                }
                '"' => self.double_quoted(),
                c => self.unquoted(c),
            }
        }
        self.end_command();
        self
    }

    /// A character that means itself, unless it is an escape or a `$`.
    fn unquoted(&mut self, c: char) {
        match c {
            '\\' => match self.rest.next() {
                Some('\n') | None => {}
                Some(escaped) => self.push(escaped),
            },
            '`' => self.backticks(),
            '$' => self.dollar(),
            c => self.push(c),
        }
    }

    fn double_quoted(&mut self) {
        self.push_str("");
        while let Some(c) = self.rest.next() {
            match c {
                '"' => return,
                '\\' => match self.rest.next() {
                    Some('\n') | None => {}
                    Some(c @ ('$' | '`' | '"' | '\\')) => self.push(c),
                    Some(c) => {
                        self.push('\\');
                        self.push(c);
                    }
                },
                '`' => self.backticks(),
                '$' => self.dollar(),
                c => self.push(c),
            }
        }
    }

    /// A substitution in backticks: a script of its own, kept in the word too.
    fn backticks(&mut self) {
        let mut script = String::new();
        while let Some(c) = self.rest.next().filter(|c| *c != '`') {
            script.push(if c == '\\' { self.rest.next().unwrap_or(c) } else { c });
        }
        self.push_str(&script);
        self.nested.push(script);
    }

    /// A variable or a substitution.
    fn dollar(&mut self) {
        if self.rest.next_if_eq(&'(').is_some() {
            let mut script = String::new();
            let mut open = 1_u32;
            for c in self.rest.by_ref() {
                open = match c {
                    '(' => open + 1,
                    ')' => open - 1,
                    _ => open,
                };
                if open == 0 {
                    break;
                }
                script.push(c);
            }
            self.push_str(&script);
            self.nested.push(script);
            return;
        }
        let braced = self.rest.next_if_eq(&'{').is_some();
        let mut name = String::new();
        while let Some(c) = self.rest.next_if(|c| c.is_ascii_alphanumeric() || *c == '_') {
            name.push(c);
        }
        if braced {
            while self.rest.next().is_some_and(|c| c != '}') {}
        }
        let left = self.left_to_add;
        match self.variables.get(&name).filter(|value| value.len() <= left).cloned() {
            Some(value) => {
                self.left_to_add -= value.len();
                self.push_str(&value);
            }
            None => self.push_str(&format!("${name}")),
        }
    }

    fn redirect(&mut self, c: char) {
        // A number right before it names a descriptor and is no word.
        if self.word.as_ref().is_some_and(|word| word.bytes().all(|b| b.is_ascii_digit())) {
            self.word = None;
        }
        self.end_word();
        self.place = if c == '>' { Place::Write } else { Place::Read };
        if c == '<' && self.rest.next_if_eq(&'<').is_some() {
            let is_string = self.rest.next_if_eq(&'<').is_some();
            self.place = if is_string { Place::Argument } else { Place::HereDocument };
        }
        while self.rest.next_if(|c| "<>|&-".contains(*c)).is_some() {}
    }

    /// Reads the documents that were announced on the line before.
    fn take_here_documents(&mut self) {
        for delimiter in std::mem::take(&mut self.awaited) {
            let mut document = String::new();
            while self.rest.peek().is_some() {
                let line: String = self.rest.by_ref().take_while(|c| *c != '\n').collect();
                if line.trim_start_matches('\t') == delimiter {
                    break;
                }
                document.push_str(&line);
                document.push('\n');
            }
            self.command.inputs.push(document);
        }
    }

    fn push(&mut self, c: char) {
        self.word.get_or_insert_default().push(c);
    }

    fn push_str(&mut self, text: &str) {
        self.word.get_or_insert_default().push_str(text);
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        match std::mem::replace(&mut self.place, Place::Argument) {
            Place::Read => self.command.reads.push(word),
            Place::Write => self.command.writes.push(word),
            Place::HereDocument => self.awaited.push(word),
            Place::Argument => {
                let is_first = self.command.words.is_empty();
                if let Some((name, value)) = assignment(&word).filter(|_| is_first) {
                    self.variables.insert(name.to_owned(), value.to_owned());
                }
                self.command.words.push(word);
            }
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        self.place = Place::Argument;
        let command = std::mem::take(&mut self.command);
        if command != Command::default() {
            self.commands.push(command);
        }
    }
}

#[cfg(test)]
mod tests;
