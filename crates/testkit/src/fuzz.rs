//! Properties that must hold for any input bytes: of the guard, commands, paths, arguments of
//! calls, requests to models and replies of their servers.
//!
//! A fuzzer calls these functions with generated input (`fuzz/`), and the tests with saved input
//! (`corpora/fuzz`). Each panics if a property fails. None may read anything but its bytes, or
//! touch anything but its own folder.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::OnceLock;

use automaton_core::intent::{Intent, Intentional};
use automaton_core::origin::{Origins, ValueOrigin};
use automaton_core::tool::{ArgsHash, Risk};
use automaton_core::trust::Label;
use automaton_core::wire::chat::ChatUsage;
use automaton_inference::providers::http::anthropic::{chat_from_messages, messages_writer};
use automaton_inference::providers::http::responses::{
    ResponseHeading, chat_from_responses, responses_writer,
};
use automaton_inference::providers::http::{ApiFormat, FormatReader, ReplyFrames, StreamPiece};
use automaton_inference::{Checker, RawCall};
use automaton_policy::guard::{Guard, GuardAction, TextSource};
use automaton_policy::rates::Attempts;
use automaton_policy::{Facts, Verdict, judge};
use automaton_sandbox::{FsError, WorkspaceDir, WorkspacePath};
use automaton_tools::list;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::world::TempDir;

/// The content of a file outside of the workspace, and nowhere inside.
const OUTSIDE: &str = "canary-0f2b71";
/// The content of a file in the workspace.
const INSIDE: &str = "inside";
/// More bytes than any file here has.
const READ_MAX: u64 = 1024;

/// Returns the target with this name: `guard`, `command`, `path`, `call`, `asked` or `reply`.
#[must_use]
pub fn target(name: &str) -> Option<fn(&[u8])> {
    let targets: BTreeMap<&str, fn(&[u8])> = BTreeMap::from([
        ("guard", guard as fn(&[u8])),
        ("command", command),
        ("path", path),
        ("call", call),
        ("asked", asked),
        ("reply", reply),
    ]);
    targets.get(name).copied()
}

/// Checks any text of any source: the result has a bounded size, and scanning it again gives the
/// same result.
pub fn guard(bytes: &[u8]) {
    static GUARD: OnceLock<Guard> = OnceLock::new();
    let guard = GUARD.get_or_init(|| match Guard::new() {
        Ok(guard) => guard,
        Err(error) => panic!("the word lists cannot be read: {error}"),
    });
    let Some((first, rest)) = bytes.split_first() else { return };
    let source = TextSource::ALL[usize::from(*first) % TextSource::ALL.len()];
    let text = String::from_utf8_lossy(rest);
    let bytes_max = 64 << (first >> 5);
    let report = guard.scan(&text, source, bytes_max);
    let again = guard.scan(&report.sanitised, source, bytes_max);
    assert_eq!(report.level, again.level, "{text:?} became {:?}", report.sanitised);
    assert_eq!(report.action, again.action, "{text:?}");
    if report.action != GuardAction::Withhold {
        assert!(report.sanitised.len() <= bytes_max, "{} bytes", report.sanitised.len());
        assert_eq!(report.sanitised, again.sanitised, "{text:?}");
    }
}

/// A value with one intent.
struct FuzzCall(Intent);

impl Intentional for FuzzCall {
    fn intents(&self) -> Vec<Intent> {
        vec![self.0.clone()]
    }
}

fn is_allowed(intent: Intent) -> bool {
    let facts = Facts {
        input: Label::Creator,
        heard: Label::Creator,
        secrets: Vec::new(),
        origins: Origins::assumed(ValueOrigin::Creator),
        risk: Risk::Safe,
        creator: None,
        paid_hosts: Vec::new(),
        egress: std::sync::Arc::default(),
        attempts: Attempts::default(),
        creator_waits: false,
        gives_alone: false,
        published_before: false,
        purpose_asks: false,
        tier: None,
        hard_limit: None,
    };
    matches!(judge(FuzzCall(intent), &facts), Verdict::Allowed(..))
}

/// Checks any script: the judgement is the same each time, and a script that is refused alone is
/// also refused after another command.
pub fn command(bytes: &[u8]) {
    let script = String::from_utf8_lossy(bytes);
    let judged = |command: String| is_allowed(Intent::Exec { command, timeout_ms: 1000 });
    let alone = judged(script.to_string());
    assert_eq!(alone, judged(script.to_string()), "{script:?}");
    // A text without any command is refused for that reason.
    let is_nothing = |line: &str| line.trim().is_empty() || line.trim_start().starts_with('#');
    if !alone && !script.lines().all(is_nothing) {
        let before = format!("true\n{script}");
        assert!(!judged(before), "{script:?} after another command");
    }
}

/// Checks any path: a path that the policy lets be read can be parsed, and nothing that it names
/// is outside of the workspace, whichever lookup is used.
pub fn path(bytes: &[u8]) {
    thread_local! {
        // Owned by the thread, so that it is removed with it.
        static PLACE: TempDir = match traps() {
            Ok(place) => place,
            Err(error) => panic!("no place for files: {error}"),
        };
    }
    PLACE.with(|place| path_in(place, bytes));
}

fn path_in(place: &TempDir, bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let named = WorkspacePath::parse(&text);
    if is_allowed(Intent::ReadPath { path: text.to_string() }) {
        assert!(named.is_ok(), "{text:?} is judged as a path and is none");
    }
    let Ok(named) = named else { return };
    assert!(named.names().all(|name| name != ".." && !name.contains('\0')), "{named:?}");
    let root = place.path().join("workspace");
    let by = |beneath: Result<WorkspaceDir, FsError>| match beneath {
        Ok(beneath) => beneath.read(&named, READ_MAX).ok().map(|read| read.bytes),
        Err(error) => panic!("the workspace is gone: {error}"),
    };
    let kernel = by(WorkspaceDir::open(&root));
    let walk = by(WorkspaceDir::open_walking(&root));
    assert_eq!(kernel, walk, "{text:?}");
    if let Some(bytes) = kernel {
        assert_eq!(bytes, INSIDE.as_bytes(), "{text:?}");
    }
}

/// Creates a workspace full of links to the outside.
fn traps() -> std::io::Result<TempDir> {
    let place = TempDir::new().map_err(std::io::Error::other)?;
    let root = place.path().join("workspace");
    let outside = place.path().join("outside");
    fs::create_dir_all(root.join("a/b"))?;
    fs::create_dir_all(&outside)?;
    fs::write(outside.join("f"), OUTSIDE)?;
    for inside in ["f", "a/f", "a/b/f"] {
        fs::write(root.join(inside), INSIDE)?;
    }
    symlink(&outside, root.join("o"))?;
    symlink(outside.join("f"), root.join("a/l"))?;
    symlink("../../outside", root.join("a/u"))?;
    symlink(Path::new("b"), root.join("a/c"))?;
    Ok(place)
}

/// Checks any arguments of any tool: arguments that pass its schema can be parsed or give an
/// error, have intents, and are the same call however they are written.
pub fn call(bytes: &[u8]) {
    static CHECKER: OnceLock<Checker> = OnceLock::new();
    let specs = list::specs();
    let checker = CHECKER.get_or_init(|| match Checker::new(&specs) {
        Ok(checker) => checker,
        Err(error) => panic!("the schemas cannot be read: {error}"),
    });
    let Some((first, rest)) = bytes.split_first() else { return };
    let tool = specs[usize::from(*first) % specs.len()].name.to_string();
    let arguments = String::from_utf8_lossy(rest).into_owned();
    let Ok(checked) = checker.check(&RawCall { provider_id: None, tool, arguments }) else {
        return;
    };
    let again = RawCall {
        provider_id: None,
        tool: checked.tool.to_string(),
        arguments: checked.arguments.to_string(),
    };
    let hash = checker.check(&again).map(|again| ArgsHash::of(&again.arguments));
    assert_eq!(hash.ok(), Some(ArgsHash::of(&checked.arguments)), "{again:?}");
    let Some(tool) = list::find(checked.tool.as_str()) else { return };
    if let Ok(prepared) = tool.parse(&checked.arguments) {
        assert!(!prepared.intents().is_empty(), "{again:?}");
    }
}

/// The API formats of model servers.
const FORMATS: [ApiFormat; 5] = [
    ApiFormat::ChatCompletions,
    ApiFormat::AnthropicMessages,
    ApiFormat::Responses,
    ApiFormat::Ollama,
    ApiFormat::Gemini,
];

/// Checks any request to a cloud: if it can be converted to another format, the result is a valid
/// body of that format, and results of calls name their call.
pub fn asked(bytes: &[u8]) {
    let Some((first, rest)) = bytes.split_first() else { return };
    let sees_images = !first.is_multiple_of(2);
    let chat = match (first / 2) % 3 {
        0 => Ok(rest.to_vec()),
        1 => chat_from_messages(rest, sees_images),
        _ => chat_from_responses(rest, sees_images),
    };
    let Ok(chat) = chat else { return };
    let is_ours = (first / 2) % 3 != 0;
    for format in FORMATS {
        let Ok(body) = format.body_from_chat(chat.clone(), 8192) else { continue };
        let text = String::from_utf8_lossy(&body);
        let is_passed_on = format == ApiFormat::ChatCompletions;
        let is_json = serde_json::from_str::<IgnoredAny>(&text).is_ok();
        assert!(is_json || (is_passed_on && !is_ours), "{format:?}: {text}");
        if is_passed_on && is_ours {
            let told: AskedMessages = match serde_json::from_str(&text) {
                Ok(told) => told,
                Err(error) => panic!("{text}: {error}"),
            };
            let mut results = told.messages.iter().filter(|it| it.role == "tool");
            assert!(results.all(|it| it.tool_call_id.is_some()), "{text}");
        }
    }
}

/// The parts of a request that must be present.
#[derive(Deserialize)]
struct AskedMessages {
    messages: Vec<AskedMessage>,
}

#[derive(Deserialize)]
struct AskedMessage {
    role: String,
    tool_call_id: Option<String>,
}

/// Checks any reply of a model server: it is parsed the same however it is cut, and the version
/// that a cloud passes on says the same.
pub fn reply(bytes: &[u8]) {
    let [first, size, rest @ ..] = bytes else { return };
    let format = FORMATS[usize::from(*first) % FORMATS.len()];
    let whole = pieces(format, [rest]);
    let cut = pieces(format, rest.chunks(1 + usize::from(*size % 16)));
    assert_eq!(whole, cut, "{format:?}");
    let Ok(told) = format.reader().document(&String::from_utf8_lossy(rest)) else { return };
    let passed_on = match serde_json::to_string(&told) {
        Ok(passed_on) => passed_on,
        Err(error) => panic!("{told:?} cannot be written: {error}"),
    };
    let again = match ApiFormat::ChatCompletions.reader().document(&passed_on) {
        Ok(again) => again,
        Err(what) => panic!("{passed_on}: {what}"),
    };
    assert_eq!((&told.choices, &told.model), (&again.choices, &again.model), "{format:?}");
    check_sold_reply(&passed_on);
}

/// Checks replies in other formats for a cloud's clients: a stream and a document say the same.
fn check_sold_reply(reply: &str) {
    let heading = || ResponseHeading {
        id: "resp".to_owned(),
        model: "m".to_owned(),
        created: 0,
        told_back: BTreeMap::new(),
    };
    let writers = [
        (ApiFormat::Responses, responses_writer(heading()), responses_writer(heading())),
        (
            ApiFormat::AnthropicMessages,
            messages_writer("msg".to_owned(), "m".to_owned()),
            messages_writer("msg".to_owned(), "m".to_owned()),
        ),
    ];
    for (format, mut stream, mut whole) in writers {
        let taken = (stream.take(reply), whole.take(reply));
        let (Ok((mut frames, _)), Ok(_)) = taken else { continue };
        stream.done();
        whole.done();
        let usage = ChatUsage::default();
        let (end, document) = match (stream.end(&usage), whole.finish_whole(&usage)) {
            (Ok(end), Ok(document)) => (end, document),
            (Err(_), Err(_)) => continue,
            (end, document) => panic!("{format:?}: {end:?}, {document:?}"),
        };
        frames.extend(end);
        let mut reader = format.reader();
        let mut text = String::new();
        for frame in frames {
            match reader.passed_on(&frame.data) {
                Ok(StreamPiece::Chunk(chunk) | StreamPiece::Last(chunk)) => {
                    let of = chunk.choices.into_iter().filter_map(|it| it.delta.content);
                    text.extend(of);
                }
                Ok(StreamPiece::Done) => {}
                Err(what) => panic!("{frame:?}: {what}"),
            }
        }
        let document = String::from_utf8_lossy(&document).into_owned();
        let told = match format.reader().document(&document) {
            Ok(told) => told,
            Err(what) => panic!("{document}: {what}"),
        };
        assert_eq!(told.choices[0].message.content.clone().unwrap_or_default(), text, "{reply}");
    }
}

/// Returns the pieces of a stream that arrives in these parts, up to its end or an error.
fn pieces<'a>(
    format: ApiFormat,
    bytes: impl IntoIterator<Item = &'a [u8]>,
) -> Vec<Result<StreamPiece, String>> {
    let mut reader = format.reader();
    let mut frames = ReplyFrames::default();
    let mut told = Vec::new();
    for piece in bytes {
        match frames.push(piece) {
            Ok(complete) => {
                if !take_all(&mut reader, complete, &mut told) {
                    return told;
                }
            }
            Err(error) => {
                told.push(Err(error.to_string()));
                return told;
            }
        }
    }
    match frames.finish() {
        Ok(complete) => drop(take_all(&mut reader, complete, &mut told)),
        Err(error) => told.push(Err(error.to_string())),
    }
    told
}

/// Reads pieces up to the last one. Returns true if the reply continues.
fn take_all(
    reader: &mut FormatReader,
    complete: Vec<String>,
    told: &mut Vec<Result<StreamPiece, String>>,
) -> bool {
    complete.into_iter().all(|data| {
        let piece = reader.passed_on(&data);
        let goes_on = matches!(piece, Ok(StreamPiece::Chunk(_)));
        told.push(piece);
        goes_on
    })
}
