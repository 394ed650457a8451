//! What a guide takes for the request.

use super::*;

fn asked(contents: &[(ChatRole, &str)]) -> String {
    let message = |(role, content): &(ChatRole, &str)| LocalModelMessage {
        role: *role,
        content: (*content).to_owned(),
        calls: Vec::new(),
    };
    request(&contents.iter().map(message).collect::<Vec<_>>()).to_owned()
}

#[test]
fn the_newest_words_of_a_user_are_the_request() {
    let first = (ChatRole::User, "Message from your creator:\nPaint it.\n\nNow: noon.");
    let check = |more: &[(ChatRole, &str)], expected: &str| {
        assert_eq!(asked(&[&[first], more].concat()), expected);
    };
    check(&[], "Paint it.");
    check(&[(ChatRole::Tool, "painted"), (ChatRole::User, "(Go on.)\n\nNow: one.")], "Paint it.");
    check(&[(ChatRole::User, "(Turn 3.)\n\nYou wake.\n\nBefore: You slept.")], "Paint it.");
    check(&[(ChatRole::User, "Now: noon.\n\nMessage from your creator:\nRest.")], "Rest.");
    assert_eq!(
        asked(&[(ChatRole::User, "Paint it."), (ChatRole::User, "Sing: la la")]),
        "Sing: la la"
    );
    assert_eq!(asked(&[(ChatRole::System, "rules"), (ChatRole::User, "(Go on.)")]), EMPTY_REQUEST);
    assert_eq!(asked(&[(ChatRole::User, &"é".repeat(900))]).chars().count(), REQUEST_CHARS_MAX);
}

#[test]
fn names_end_where_the_tools_no_longer_differ() {
    let tokens = |ids: &[i32]| ids.iter().copied().map(LlamaToken).collect::<Vec<_>>();
    // read " end end; read _file " end end
    let starts =
        Starts { shared: Vec::new(), rests: vec![tokens(&[1, 7, 8, 9]), tokens(&[1, 2, 7, 8, 9])] };
    assert_eq!(starts.names(), [tokens(&[1, 7]), tokens(&[1, 2, 7])]);
    let one = Starts { shared: Vec::new(), rests: vec![tokens(&[4])] };
    assert_eq!(one.names(), [tokens(&[4])]);
}
