//! Pure: text of strangers, made fit for a terminal.
//!
//! Models, tools and senders write what they like; escape sequences of theirs
//! must never reach a terminal, since they could rewrite what is shown.

use automaton_core::text::visible;

/// The text without what is not seen, above all control characters; newlines stay, tabs
/// become spaces.
pub(crate) fn plain(text: &str) -> String {
    visible(text).replace('\t', " ")
}

/// The text on one line, at most so many characters, with what was left out.
pub(crate) fn short(text: &str, chars_max: usize) -> String {
    let one_line = plain(text).split_whitespace().collect::<Vec<_>>().join(" ");
    let count = one_line.chars().count();
    if count <= chars_max {
        return one_line;
    }
    let kept: String = one_line.chars().take(chars_max).collect();
    format!("{kept}… (+{} characters)", count - chars_max)
}

/// The beginning of a text on one line, to the end of a word.
pub(crate) fn gist(text: &str, chars_max: usize) -> String {
    let one_line = plain(text).split_whitespace().collect::<Vec<_>>().join(" ");
    let Some((end, _)) = one_line.char_indices().nth(chars_max) else { return one_line };
    let kept = one_line[..end].rsplit_once(' ').map_or(&one_line[..end], |(kept, _)| kept);
    format!("{kept} …")
}

/// A path whose beginning is called `~` where that is the user's own folder.
pub(crate) fn tilde(path: &str, user_home: Option<&str>) -> String {
    let path = plain(path);
    let own = user_home.filter(|own| own.len() > 1);
    match own.and_then(|own| path.strip_prefix(own.trim_end_matches('/'))) {
        Some("") => "~".to_owned(),
        Some(rest) if rest.starts_with('/') => format!("~{rest}"),
        _ => path,
    }
}

/// Every line of the text behind a margin.
pub(crate) fn indented(text: &str, margin: &str) -> String {
    let lines: Vec<String> =
        plain(text).lines().map(|line| format!("{margin}{line}").trim_end().to_owned()).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_escape_sequence_survives() {
        assert_eq!(plain("a\u{1b}[2Jb\r\n\u{9b}31mc\u{202e}d\te"), "a[2Jb\n31mcd e");
        assert_eq!(plain("a\u{200b}b\u{feff}c\u{e0041}d\u{2067}e\u{2060}f"), "abcdef");
        assert_eq!(short("one\n  two\u{7} three", 9), "one two t… (+4 characters)");
        assert_eq!(indented("a\n\nb", "  "), "  a\n\n  b");
    }

    #[test]
    fn a_gist_ends_with_a_word() {
        assert_eq!(gist("I look at it", 9), "I look …");
        assert_eq!((gist("I look", 9), gist("reports", 3)), ("I look".into(), "rep …".into()));
    }

    #[test]
    fn the_users_own_folder_is_called_so() {
        let home = Some("/home/ada");
        assert_eq!(tilde("/home/ada/.automaton", home), "~/.automaton");
        assert_eq!(tilde("/home/ada", home), "~");
        assert_eq!(tilde("/home/adam/x", home), "/home/adam/x");
        assert_eq!((tilde("/root", Some("/")), tilde("/x", None)), ("/root".into(), "/x".into()));
    }
}
