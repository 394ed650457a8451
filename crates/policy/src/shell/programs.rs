//! Pure: simple commands, and the commands that they run.

use rable::Node;

use super::folder::{self, WORKSPACE};
use super::walk::ShellWalker;
use super::{ScriptError, ShellCommand, base_name, find, say};

/// Programs that run the rest of their words, with the letters of their options that take the
/// next word, and the number of words before the program.
const WRAPPERS: [(&str, &str, usize); 24] = [
    ("sudo", "ugpChrtTD", 0),
    ("doas", "uC", 0),
    ("env", "uC", 0),
    ("nohup", "", 0),
    ("exec", "a", 0),
    ("command", "", 0),
    ("builtin", "", 0),
    ("time", "fo", 0),
    ("nice", "n", 0),
    ("ionice", "cnpPu", 0),
    ("setsid", "", 0),
    ("stdbuf", "ioe", 0),
    ("busybox", "", 0),
    ("toybox", "", 0),
    ("xargs", "IiLlnPsEda", 0),
    ("parallel", "jI", 0),
    ("timeout", "ks", 1),
    ("chroot", "", 1),
    ("flock", "wE", 1),
    ("taskset", "", 1),
    ("chrt", "", 1),
    ("unshare", "SG", 0),
    ("setpriv", "", 0),
    ("strace", "eopsEPu", 0),
];
/// The most wrappers and assignments before a program.
const WRAPPERS_MAX: u32 = 32;
/// Programs that run a script.
const SHELLS: [&str; 8] = ["sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "rbash"];
/// Programs that run the argument of `-c` in a shell.
const SHELL_USERS: [&str; 4] = ["su", "script", "watch", "runuser"];
/// Programs that change the working directory.
const FOLDER_CHANGERS: [&str; 3] = ["cd", "pushd", "popd"];
/// The most earlier folders that are remembered.
const FORMER_MAX: usize = 16;
/// Words that set variables.
const DECLARERS: [&str; 5] = ["export", "declare", "local", "readonly", "typeset"];

impl ShellWalker {
    /// Walks one simple command and the commands that it runs.
    pub(super) fn walk_simple_command(
        &mut self,
        assignments: &[Node],
        words: &[Node],
        redirects: &[Node],
        input: Option<&str>,
    ) -> Result<Option<String>, ScriptError> {
        for node in assignments {
            let text = self.expand_text(node)?;
            self.declare(&text);
        }
        let mut command = ShellCommand::default();
        for word in words {
            let more = self.expand_word(word)?;
            command.words.extend(more);
        }
        self.redirect(redirects, &mut command)?;
        let input = command.inputs.last().cloned().or_else(|| input.map(str::to_owned));
        if command.inputs.is_empty() {
            command.inputs.extend(input.clone());
        }
        self.run_command(command, input.as_deref())
    }

    /// Walks a command with known words. Returns its output, if it is known.
    fn run_command(
        &mut self,
        mut command: ShellCommand,
        input: Option<&str>,
    ) -> Result<Option<String>, ScriptError> {
        self.strip_wrappers(&mut command.words, input)?;
        if command.words.is_empty() && command.reads.is_empty() && command.writes.is_empty() {
            return Ok(Some(String::new()));
        }
        let said = self.apply_effects(&command, input)?;
        let said = said.or_else(|| self.print_path(&command));
        let said = said.or_else(|| say::output(&command, input));
        if let Some(said) = &said {
            self.spend(said.len())?;
            for file in command.writes.iter().chain(tee_files(&command)) {
                self.files.entry(without_dot_slash(file).to_owned()).or_default().push_str(said);
            }
        }
        let said = if command.writes.is_empty() { said } else { Some(String::new()) };
        self.record(command)?;
        Ok(said)
    }

    /// Sets a variable if the word is an assignment.
    fn declare(&mut self, word: &str) -> bool {
        let Some((name, value)) = word.split_once('=') else { return false };
        let (name, adds) = name.strip_suffix('+').map_or((name, false), |name| (name, true));
        let name = name.split('[').next().unwrap_or(name);
        let is_name = !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if is_name {
            let list = value.strip_prefix('(').and_then(|value| value.strip_suffix(')'));
            let old = self.variables.get(name).filter(|_| adds).and_then(|values| values.first());
            let value = old.cloned().unwrap_or_default() + list.unwrap_or(value);
            self.assign(name, value);
        }
        is_name
    }

    /// Removes wrappers and assignments, so that the program is first.
    fn strip_wrappers(
        &mut self,
        words: &mut Vec<String>,
        input: Option<&str>,
    ) -> Result<(), ScriptError> {
        // An alias may contain itself and is then not followed again.
        let mut aliased = false;
        let mut taken = 0;
        while let Some(first) = words.first().cloned() {
            taken += 1;
            if taken > WRAPPERS_MAX {
                return Err(ScriptError::Deep);
            }
            if self.declare(&first) {
                words.remove(0);
                continue;
            }
            if let Some(meaning) = self.aliases.get(&first).filter(|_| !aliased) {
                aliased = true;
                let meaning = meaning.split_whitespace().map(str::to_owned);
                words.splice(..1, meaning);
                self.spend(words.iter().map(String::len).sum())?;
                continue;
            }
            let name = base_name(&first);
            let Some((_, valued, before)) = WRAPPERS.iter().find(|(n, ..)| *n == name) else {
                return Ok(());
            };
            let options = option_count(words, valued);
            let asks =
                name == "command" && words.iter().take(options).any(|w| w.contains(['v', 'V']));
            // `env` alone prints the environment, and `command -v` only looks.
            if asks || words.len() == options {
                return Ok(());
            }
            let split = words.iter().position(|w| w == "-S" || w == "--split-string");
            if let Some(at) = split.filter(|at| name == "env" && *at < options) {
                let text = words.get(at + 1).cloned().unwrap_or_default();
                words.splice(..words.len().min(at + 2), text.split_whitespace().map(str::to_owned));
                continue;
            }
            words.drain(..words.len().min(options + before));
            if ["xargs", "parallel"].contains(&name) {
                words.extend(input.unwrap_or("").split_whitespace().map(str::to_owned));
                self.spend(input.map_or(0, str::len))?;
            }
        }
        Ok(())
    }

    /// Applies a command's effects to the known state, and walks the scripts that it runs.
    /// Returns their output.
    fn apply_effects(
        &mut self,
        command: &ShellCommand,
        input: Option<&str>,
    ) -> Result<Option<String>, ScriptError> {
        let arguments = command.arguments();
        let name = command.words.first().map_or("", String::as_str);
        match command.program() {
            "eval" => {
                return self.nested_level(|walk| walk.walk_script(&arguments.join(" "), input));
            }
            "trap" => {
                let script = arguments.first().filter(|word| !word.starts_with('-'));
                return script.map_or(Ok(None), |script| self.walk_nested(script));
            }
            "." | "source" => return self.walk_file(arguments, input),
            "find" => return self.walk_find(arguments),
            program if FOLDER_CHANGERS.contains(&program) => {
                self.change_folder(program, arguments);
            }
            "set" => {
                let values = arguments.iter().skip_while(|word| word.as_str() != "--").skip(1);
                self.arguments = values.cloned().collect();
            }
            "read" => {
                if let (Some(name), Some(input)) = (arguments.last(), input) {
                    self.assign(name, input.trim_end_matches('\n').to_owned());
                }
            }
            "printf" if arguments.first().is_some_and(|word| word == "-v") => {
                let format = ShellCommand {
                    words: [&["printf".to_owned()], arguments.get(2..).unwrap_or(&[])].concat(),
                    ..ShellCommand::default()
                };
                if let (Some(name), Some(said)) = (arguments.get(1), say::output(&format, None)) {
                    self.assign(name, said);
                }
            }
            "alias" => {
                for (name, value) in arguments.iter().filter_map(|word| word.split_once('=')) {
                    self.aliases.insert(name.to_owned(), value.to_owned());
                }
            }
            program if DECLARERS.contains(&program) => {
                for word in arguments {
                    self.declare(word);
                }
            }
            program if SHELLS.contains(&program) => {
                return self.in_subprocess(|walk| walk.walk_shell(arguments, input));
            }
            program if SHELL_USERS.contains(&program) => {
                let script = started_script(command, program);
                return script.map_or(Ok(None), |script| self.walk_nested(&script));
            }
            _ if self.functions.contains_key(name) => {
                return self.call_function(name, arguments, input);
            }
            _ if self.files.contains_key(without_dot_slash(name)) => {
                return self.walk_file(&command.words, input);
            }
            _ => {}
        }
        Ok(None)
    }

    /// Walks the script of a shell: after `-c`, in a file, or as its input.
    fn walk_shell(
        &mut self,
        arguments: &[String],
        input: Option<&str>,
    ) -> Result<Option<String>, ScriptError> {
        let is_flag = |word: &&String| word.starts_with(['-', '+']) && word.len() > 1;
        let takes_script =
            |word: &String| word.starts_with('-') && !word.starts_with("--") && word.contains('c');
        let Some(flag) = arguments.iter().position(takes_script) else {
            let files: Vec<String> = arguments.iter().skip_while(is_flag).cloned().collect();
            if files.is_empty() || arguments.iter().any(|word| word == "-s") {
                return input.map_or(Ok(None), |script| self.walk_nested(script));
            }
            return self.walk_file(&files, input);
        };
        let rest: Vec<String> =
            arguments.iter().skip(flag + 1).skip_while(is_flag).cloned().collect();
        let Some((script, values)) = rest.split_first() else { return Ok(None) };
        let outer =
            std::mem::replace(&mut self.arguments, values.iter().skip(1).cloned().collect());
        let said = self.nested_level(|walk| walk.walk_script(script, input));
        self.arguments = outer;
        said
    }

    /// Walks a file that the script itself wrote.
    fn walk_file(
        &mut self,
        words: &[String],
        input: Option<&str>,
    ) -> Result<Option<String>, ScriptError> {
        let Some((file, values)) = words.split_first() else { return Ok(None) };
        let Some(script) = self.files.get(without_dot_slash(file)).cloned() else {
            return Ok(None);
        };
        let outer = std::mem::replace(&mut self.arguments, values.to_vec());
        let said = self.nested_level(|walk| walk.walk_script(&script, input));
        self.arguments = outer;
        said
    }

    /// Walks a function call.
    fn call_function(
        &mut self,
        name: &str,
        arguments: &[String],
        input: Option<&str>,
    ) -> Result<Option<String>, ScriptError> {
        // The function has no name while it runs, so a recursive function is walked once.
        let Some(body) = self.functions.remove(name) else { return Ok(None) };
        let outer = std::mem::replace(&mut self.arguments, arguments.to_vec());
        let said = self.nested_level(|walk| walk.walk_node(&body, input));
        self.arguments = outer;
        self.functions.insert(name.to_owned(), body);
        said
    }

    /// Walks the commands that `find` runs, with the selected files in place of `{}`. Returns the
    /// files, which are its output if it has no other action.
    fn walk_find(&mut self, arguments: &[String]) -> Result<Option<String>, ScriptError> {
        let found = find::read_find(arguments);
        for command in &found.commands {
            let mut words = Vec::new();
            for word in command {
                match word.as_str() {
                    "{}" => words.extend(found.paths.iter().cloned()),
                    other => words.push(other.replace("{}", &found.paths.join(" "))),
                }
            }
            self.spend(words.iter().map(String::len).sum())?;
            let command = ShellCommand { words, ..ShellCommand::default() };
            self.nested_level(|walk| walk.in_subprocess(|walk| walk.run_command(command, None)))?;
        }
        let prints = found.commands.is_empty() && !arguments.iter().any(|a| a.contains("printf"));
        Ok(prints.then(|| found.paths.iter().map(|path| format!("{path}\n")).collect()))
    }

    /// Changes the working directory.
    fn change_folder(&mut self, program: &str, arguments: &[String]) {
        let target = arguments.iter().find(|word| !word.starts_with('-') || *word == "-");
        let last = self.former.last().cloned().flatten();
        let next = match (program, target.map(String::as_str)) {
            ("popd", _) => self.former.pop().flatten(),
            ("pushd", None) | (_, Some("-")) => last,
            (_, None) => Some(WORKSPACE.to_owned()),
            (_, Some(target)) => folder::resolve_path(target, self.folder.as_deref()),
        };
        let left = std::mem::replace(&mut self.folder, next);
        if program != "popd" {
            if self.former.len() == FORMER_MAX {
                self.former.remove(0);
            }
            self.former.push(left);
        }
    }

    /// Returns the output of a command that only prints a path.
    fn print_path(&self, command: &ShellCommand) -> Option<String> {
        let arguments = command.arguments();
        let folder = self.folder.as_deref();
        match command.program() {
            "pwd" => Some(format!("{}\n", folder?)),
            "basename" | "dirname" => name_part(command.program(), arguments),
            "readlink" if !arguments.iter().any(|word| word.starts_with("-f")) => None,
            "realpath" | "readlink" => {
                let words = arguments.iter().filter(|word| !word.starts_with('-'));
                words.map(|word| Some(folder::resolve_path(word, folder)? + "\n")).collect()
            }
            _ => None,
        }
    }
}

/// Returns the script in the arguments of a program that starts a shell, such as `su` or `watch`.
fn started_script(command: &ShellCommand, program: &str) -> Option<String> {
    let arguments = command.arguments();
    let flag = arguments.iter().position(|word| word == "-c" || word == "--command");
    match flag {
        Some(at) => arguments.get(at + 1).cloned(),
        None if program == "watch" => {
            let script = arguments.get(option_count(&command.words, "n") - 1..);
            Some(script.unwrap_or(&[]).join(" "))
        }
        None => None,
    }
}

/// Returns the output of `basename` or `dirname`.
fn name_part(program: &str, arguments: &[String]) -> Option<String> {
    let path = arguments.iter().find(|word| !word.starts_with('-'))?.trim_end_matches('/');
    let (folder, name) = path.rsplit_once('/').unwrap_or((".", path));
    let folder = if folder.is_empty() { "/" } else { folder };
    Some(format!("{}\n", if program == "basename" { name } else { folder }))
}

/// Returns the number of words that are the wrapper and its options.
fn option_count(words: &[String], valued: &str) -> usize {
    let mut at = 1;
    while let Some(word) = words.get(at).filter(|word| word.starts_with('-') && word.len() > 1) {
        at += 1;
        if word == "--" {
            break;
        }
        let takes_next = |c: char| !word.starts_with("--") && valued.contains(c);
        at += usize::from(word.chars().next_back().is_some_and(takes_next));
    }
    at.min(words.len())
}

/// Returns the files that `tee` writes.
fn tee_files(command: &ShellCommand) -> impl Iterator<Item = &String> {
    let is_tee = command.program() == "tee";
    command.arguments().iter().filter(move |word| is_tee && !word.starts_with('-'))
}

/// Returns a path without a leading `./`.
fn without_dot_slash(path: &str) -> &str {
    path.strip_prefix("./").unwrap_or(path)
}
