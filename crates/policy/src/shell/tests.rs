//! Tests of reading scripts.

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
    check("sudo -n env A=1 timeout 5 nice -n 9 /bin/rm x", &["/bin/rm", "x"]);
    check("echo \"it's\" it\\'s", &["echo", "it's", "it's"]);
}

fn programs(script: &str) -> Vec<String> {
    let found = commands(script).unwrap();
    found.iter().map(|command| command.program().to_owned()).collect()
}

#[test]
fn commands_are_told_apart() {
    assert_eq!(programs("a; b && c || d | e & f\n(g)"), ["a", "b", "c", "d", "e", "f", "g"]);
    assert_eq!(programs("if a; then b; else c; fi"), ["a", "b", "c"]);
    assert_eq!(programs("a $(b `c`) \"$(d)\""), ["c", "b", "d", "a"]);
    assert_eq!(
        programs("bash -lc 'a; sh -c \"b\"' ; eval c d"),
        ["a", "b", "sh", "bash", "c", "eval"]
    );
    assert_eq!(programs("sh <<EOF\na\nb\nEOF\nc"), ["a", "b", "sh", "c"]);
    assert_eq!(programs("cat > x <<'EOF'\nit's rm -rf /\nEOF\nls"), ["cat", "ls"]);
    assert_eq!(
        programs("case $x in a) b;; *) c;; esac; while d; do e; done"),
        ["b", "c", "d", "e"]
    );
    assert_eq!(programs("f() { a; }; f; [[ -n $(b) ]] && ((x = $(c)))"), ["a", "a", "f", "b", "c"]);
    assert_eq!(words("d=x; rm $d/y"), [["rm", "x/y"]]);
}

#[test]
fn values_that_are_known_are_put_in() {
    let last = |script: &str| words(script).pop().unwrap_or_default().join(" ");
    for (script, expected) in [
        ("x='rm -rf'; $x ~/a", "rm -rf ~/a"),
        ("x=a; x+=b; echo ${x}c", "echo abc"),
        ("echo ~/.auto{maton,}/x", "echo ~/.automaton/x ~/.auto/x"),
        ("{rm,-rf,x}", "rm -rf x"),
        ("echo $'\\x72\\155'", "echo rm"),
        ("echo ${x:-a} ${HOME#\\~}", "echo a ~"),
        ("x=abcd; echo ${x:1:2} ${x%d} ${x#a} ${x/bc/-} ${x^^}", "echo bc abc bcd a-d ABCD"),
        ("x=y y=z; echo ${!x}", "echo z"),
        ("a=(rm -rf); \"${a[@]}\" x", "rm -rf x"),
        ("if a; then x=1; else x=2; fi; echo $x", "echo 1 2"),
        ("set -- a b; echo $2 $*", "echo b a b"),
        ("read x <<< word; echo $x", "echo word"),
        ("printf -v x '%s' rm; echo $x", "echo rm"),
        ("echo $(echo a; printf '\\x62')", "echo a b"),
        ("echo $unknown", "echo $unknown"),
    ] {
        assert_eq!(last(script), expected, "{script}");
    }
}

#[test]
fn what_runs_what_is_followed() {
    let rm = vec!["rm".to_owned(), "-rf".to_owned(), "x".to_owned()];
    for script in [
        "sudo -u root env -i A=1 timeout -s KILL 5 nice -n 3 rm -rf x",
        "env -S 'rm -rf' x",
        "echo x | xargs -n 1 rm -rf",
        "find x -exec rm -rf {} \\;",
        "find . -name x -execdir sh -c 'rm -rf $1' _ x +",
        "echo 'rm -rf x' | sh",
        "sh -s <<< 'rm -rf x'",
        "echo cm0gLXJmIHg= | base64 -d | bash",
        "echo 'ez -es k' | tr a-z n-za-m | sh",
        "eval \"$(printf '\\162\\155 -%s x' rf)\"",
        "sh -c 'rm $1 $2' sh -rf x",
        "bash <(echo rm -rf x)",
        "echo rm -rf x > y.sh; sh ./y.sh",
        "echo rm -rf x | tee y.sh; chmod +x y.sh; ./y.sh",
        "f() { rm -rf $1; }; f x",
        "for d in x y; do rm -rf $d; done",
        "for d in a b c d e x; do sh -c \"rm -rf x\"; done",
        "echo x | while read d; do rm -rf $d; done",
        "alias r='rm -rf'; r x",
        "trap 'rm -rf x' EXIT",
        "su -c 'rm -rf x'",
        "watch -n 1 rm -rf x",
        "echo `echo \\`rm -rf x\\``",
        "cat <<A\n$(rm -rf x)\nA",
        "d=x; sh <<A\nrm -rf ${d}\nA",
        "echo ${y:-$(rm -rf x)}",
        "echo $(a $(b $(c $(rm -rf x))))",
        "coproc rm -rf x",
        "! time rm -rf x",
        "function g { rm -rf x; }",
        "command rm -rf x",
        "[[ $(rm -rf x) ]]",
    ] {
        assert!(words(script).contains(&rm), "{script}: {:?}", words(script));
    }
    assert_eq!(words("command -v rm"), [["command", "-v", "rm"]]);
}

#[test]
fn redirections_are_no_arguments() {
    let found = commands("a b >c 2>>d <e 2>&1 &>f <<<word").unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].words, ["a", "b"]);
    assert_eq!(found[0].inputs, ["word\n"]);
    assert_eq!(found[0].writes, ["c", "d", "1", "f"]);
    assert_eq!(found[0].reads, ["e"]);
    let document = commands("a <<-X b\n\tone\n\tX\nc").unwrap();
    assert_eq!(document[0].inputs, ["one\n"]);
    assert_eq!((document[0].words.len(), document[1].program()), (2, "c"));
}

#[test]
fn what_cannot_be_read_to_its_end_is_an_error() {
    let nested = |layers: usize| format!("{}a{}", "$(".repeat(layers), ")".repeat(layers));
    assert!(commands(&nested(8)).is_ok());
    assert_eq!(commands(&nested(9)), Err(ScriptError::Deep));
    assert_eq!(commands(&nested(1000)), Err(ScriptError::Nested));
    assert!(commands(&"x".repeat(READ_BYTES_MAX / 2)).is_ok());
    assert_eq!(commands(&"x".repeat(READ_BYTES_MAX + 1)), Err(ScriptError::Long));
    for script in ["echo 'never closed", "if a; then", "a\nb )", "a | | b", "$(", "fi"] {
        assert!(matches!(commands(script), Err(ScriptError::Syntax { .. })), "{script}");
    }
    let told = commands("a\nb )").unwrap_err().to_string();
    assert!(told.starts_with("it is no shell script: line 2: "), "{told}");
    assert_eq!(commands("echo 'a <<X\nrm x\nX\n'"), Err(ScriptError::Document));
}

#[test]
fn nothing_runs_away() {
    let script = format!("a=xxxxxxxx{}", "; a=$a$a".repeat(100));
    assert!(words(&script).is_empty());
    let long = format!("a={}; echo {}", "x".repeat(10_000), "$a".repeat(1_000));
    assert_eq!(commands(&long), Err(ScriptError::Long));
    let loops = format!("{}a{}", "for i in 1 2 3 4; do ".repeat(8), "; done".repeat(8));
    assert_eq!(commands(&loops), Err(ScriptError::Long));
    assert!(commands("f() { f; f; }; f").is_ok());
    assert!(commands("a() { b; b; }; b() { a; a; }; a").is_ok());
    assert!(commands("alias a='a a'; a").is_ok());
    assert!(commands(&"{a,b}".repeat(100)).is_ok());
}

proptest! {
    #[test]
    fn any_text_ends(script in ".{0,200}") {
        // The test is that it ends without a panic.
        drop(commands(&script));
    }

    #[test]
    fn any_mixture_of_syntax_ends(script in "([a-z]|[ ;|&<>()'\"$`\\\\\n{}#=!~/*-]|<<E\n|\\$\\(|eval |sh -c |if |; then |; fi|for i in |; do |; done|\\$\\{x:-|f\\(\\) |xargs |\\$'){0,60}") {
        if let Ok(found) = commands(&script) {
            prop_assert!(found.len() <= 4096);
            prop_assert!(found.iter().flat_map(|c| &c.words).map(String::len).sum::<usize>() <= 4 * READ_BYTES_MAX);
        }
    }

    #[test]
    fn quoting_a_word_gives_it_back(word in "[^'\0\r]{1,30}") {
        prop_assume!(!word.contains("<<"));
        let found = commands(&format!("echo '{word}'")).unwrap();
        prop_assert_eq!(&found[0].words[1], &word);
    }
}
