//! How scripts are taken apart.

use super::*;
use proptest::prelude::*;

fn words(script: &str) -> Vec<Vec<String>> {
    commands(script).unwrap().into_iter().map(|command| command.words).collect()
}

#[test]
fn words_are_as_the_shell_sees_them() {
    let check = |script: &str, expected: &[&str]| assert_eq!(words(script), [expected], "{script}");
    check("rm -rf  ~/x", &["rm", "-rf", "~/x"]);
    check("rm ~/.auto''maton", &["rm", "~/.automaton"]);
    check("r\\m \"a b\"'c d'", &["rm", "a bc d"]);
    check("rm -rf \\\n~/x", &["rm", "-rf", "~/x"]);
    check("rm \"$HOME/x\" ${HOME}/y '$HOME'", &["rm", "~/x", "~/y", "$HOME"]);
    check("echo '' a # b", &["echo", "", "a"]);
    check("sudo -n env A=1 timeout 5 nice -n /bin/rm x", &["/bin/rm", "x"]);
    check("echo \"it's\" it\\'s", &["echo", "it's", "it's"]);
    check("echo 'never closed", &["echo", "never closed"]);
}

#[test]
fn commands_are_told_apart() {
    let programs = |script: &str| -> Vec<String> {
        let found = commands(script).unwrap();
        found.iter().map(|command| command.program().to_owned()).collect()
    };
    assert_eq!(programs("a; b && c || d | e & f\n(g)"), ["a", "b", "c", "d", "e", "f", "g"]);
    assert_eq!(programs("if a; then b; else c; fi"), ["a", "b", "c", "fi"]);
    assert_eq!(programs("a $(b `c`) \"$(d)\""), ["a", "b", "d", "c"]);
    assert_eq!(
        programs("bash -lc 'a; sh -c \"b\"' ; eval c d"),
        ["bash", "eval", "a", "sh", "c", "b"]
    );
    assert_eq!(programs("sh <<EOF\na\nb\nEOF\nc"), ["sh", "c", "a", "b"]);
    assert_eq!(programs("cat > x <<'EOF'\nit's rm -rf /\nEOF\nls"), ["cat", "ls"]);
    assert_eq!(programs("d=x; rm $d"), ["", "rm"]);
    assert_eq!(words("d=x; rm $d/y"), [vec![], vec!["rm".to_owned(), "x/y".to_owned()]]);
}

#[test]
fn redirections_are_no_arguments() {
    let found = commands("a b >c 2>>d <e 2>&1 &>f <<<word").unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].words, ["a", "b", "word"]);
    assert_eq!(found[0].writes, ["c", "d", "1", "f"]);
    assert_eq!(found[0].reads, ["e"]);
    let document = commands("a <<-X b\n\tone\n\tX\nc").unwrap();
    assert_eq!(document[0].inputs, ["\tone\n"]);
    assert_eq!((document[0].words.len(), document[1].program()), (2, "c"));
}

#[test]
fn too_many_layers_are_an_error() {
    let nested = |layers: usize| format!("{}a{}", "$(".repeat(layers), ")".repeat(layers));
    assert!(commands(&nested(8)).is_ok());
    assert_eq!(commands(&nested(9)), Err(Unreadable::Deep));
}

#[test]
fn a_script_that_is_too_long_is_an_error() {
    assert!(commands(&"x".repeat(READ_BYTES_MAX)).is_ok());
    assert_eq!(commands(&"x".repeat(READ_BYTES_MAX + 1)), Err(Unreadable::Long));
}

#[test]
fn a_value_that_doubles_does_not_run_away() {
    let script = format!("a=xxxxxxxx{}", "; a=$a$a".repeat(100));
    let found = commands(&script).unwrap();
    assert!(found.iter().all(|command| command.words.is_empty()));
}

proptest! {
    #[test]
    fn any_text_is_read_to_its_end(script in ".{0,200}") {
        // Reaching the end without a panic is what is tested.
        prop_assert!(commands(&script).is_ok_and(|found| found.len() <= 400) || script.contains(['$', '`']));
    }

    #[test]
    fn any_mixture_of_syntax_is_read_to_its_end(script in "([a-z]|[ ;|&<>()'\"$`\\\\\n{}#=!~/*-]|<<E\n|\\$\\(|eval |sh -c ){0,60}") {
        if let Ok(found) = commands(&script) {
            let words: usize = found.iter().map(|command| command.words.len()).sum();
            prop_assert!(words <= 60 * (DEPTH_MAX as usize + 1) * 8);
        }
    }

    #[test]
    fn quoting_a_word_gives_it_back(word in "[^'\0]{1,30}") {
        let found = commands(&format!("echo '{word}'")).unwrap();
        prop_assert_eq!(&found[0].words[1], &word);
    }
}
