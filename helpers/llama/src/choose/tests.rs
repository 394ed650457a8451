//! What a guide takes for the request.

use super::*;

fn asked(contents: &[(LocalModelRole, &str)]) -> String {
    let message = |(role, content): &(LocalModelRole, &str)| LocalModelMessage {
        role: *role,
        content: (*content).to_owned(),
        calls: Vec::new(),
    };
    request(&contents.iter().map(message).collect::<Vec<_>>()).to_owned()
}

#[test]
fn the_newest_words_of_a_user_are_the_request() {
    let first = (LocalModelRole::User, "Message from your creator:\nPaint it.\n\nNow: noon.");
    let check = |more: &[(LocalModelRole, &str)], expected: &str| {
        assert_eq!(asked(&[&[first], more].concat()), expected);
    };
    check(&[], "Paint it.");
    check(
        &[(LocalModelRole::Tool, "painted"), (LocalModelRole::User, "(Go on.)\n\nNow: one.")],
        "Paint it.",
    );
    check(&[(LocalModelRole::User, "(Turn 3.)\n\nYou wake.\n\nBefore: You slept.")], "Paint it.");
    check(&[(LocalModelRole::User, "Now: noon.\n\nMessage from your creator:\nRest.")], "Rest.");
    assert_eq!(
        asked(&[(LocalModelRole::User, "Paint it."), (LocalModelRole::User, "Sing: la la")]),
        "Sing: la la"
    );
    assert_eq!(
        asked(&[(LocalModelRole::System, "rules"), (LocalModelRole::User, "(Go on.)")]),
        EMPTY_REQUEST
    );
    assert_eq!(
        asked(&[(LocalModelRole::User, &"é".repeat(900))]).chars().count(),
        REQUEST_CHARS_MAX
    );
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
