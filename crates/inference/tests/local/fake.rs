//! A model that does what it is told, well or badly.
//!
//! What the model's file says decides how it starts; what the last message
//! says decides how it answers.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::Duration;

use automaton_core::wire::brain::{
    LocalModelCompletion, LocalModelCompletionRequest, LocalModelFailure, LocalModelFailureCode,
    LocalModelFinishReason, LocalModelHello, LocalModelRequest, LocalModelResponse, VERSION,
};
use sha2::{Digest as _, Sha256};

/// Plays the helper until the peer hangs up.
pub(crate) fn run(arguments: &[String]) -> ExitCode {
    let value = |flag: &str| {
        let at = arguments.iter().position(|argument| argument == flag).unwrap();
        arguments[at + 1].clone()
    };
    let path = value("--model");
    let file = std::fs::read(&path).unwrap();
    assert_eq!(value("--sha256"), hex::encode(Sha256::digest(&file)));
    let descriptor = automaton_sandbox::process::take_inherited(value("--fd").parse().unwrap());
    let stream = UnixStream::from(descriptor.unwrap());
    let start = String::from_utf8(file).unwrap();
    if start.contains("truncated") {
        eprintln!("automaton-llama: {path} ends before its tensors do");
        return ExitCode::from(2);
    }
    if start.contains("sleeping") {
        std::thread::sleep(Duration::from_secs(60));
    }
    let hello = LocalModelHello {
        version: if start.contains("old") { VERSION + 1 } else { VERSION },
        model: "SmolLM2 135M Instruct".to_owned(),
        parameters: 135_000_000,
        context_tokens: value("--context-tokens").parse().unwrap(),
        load_ms: 7,
    };
    say(&stream, &LocalModelResponse::Hello(hello));
    for line in BufReader::new(&stream).lines() {
        let LocalModelRequest::Complete(request) = serde_json::from_str(&line.unwrap()).unwrap()
        else {
            return ExitCode::FAILURE;
        };
        if let Some(code) = answer(&stream, &request, &path) {
            return code;
        }
    }
    ExitCode::SUCCESS
}

fn answer(
    stream: &UnixStream,
    request: &LocalModelCompletionRequest,
    model: &str,
) -> Option<ExitCode> {
    let told = request.messages.last().unwrap().content.as_str();
    let text = match told {
        "die" => {
            say(stream, &LocalModelResponse::Token { text: "half an ".to_owned() });
            eprintln!("out of luck");
            return Some(ExitCode::from(3));
        }
        "hang" => {
            say(stream, &LocalModelResponse::Token { text: "half an ".to_owned() });
            std::thread::sleep(Duration::from_secs(60));
            return None;
        }
        "lie" => {
            write(stream, b"I am a teapot\n");
            return None;
        }
        "be short" => {
            let message = "no room is left".to_owned();
            say(
                stream,
                &LocalModelResponse::Failed(LocalModelFailure {
                    code: LocalModelFailureCode::TooLong,
                    message,
                }),
            );
            return None;
        }
        "look around" => surroundings(model),
        _ => format!("you said {told}"),
    };
    say(stream, &LocalModelResponse::Token { text: text.clone() });
    let done = LocalModelCompletion {
        text,
        calls: Vec::new(),
        finish: LocalModelFinishReason::Stop,
        prompt_tokens: 10,
        cached_tokens: 4,
        completion_tokens: 3,
        first_token_ms: 1,
        total_ms: 2,
    };
    say(stream, &LocalModelResponse::Done(done));
    (told == "die afterwards").then_some(ExitCode::SUCCESS)
}

/// What of the host can be reached from inside; nothing, if all is well.
fn surroundings(model: &str) -> String {
    let mut found = Vec::new();
    if std::fs::OpenOptions::new().write(true).open(model).is_ok() {
        found.push("the model can be written".to_owned());
    }
    if TcpStream::connect_timeout(&"1.1.1.1:53".parse().unwrap(), Duration::from_secs(2)).is_ok() {
        found.push("the net can be reached".to_owned());
    }
    let beside = std::fs::read_dir("/automaton").unwrap().count();
    if beside != 2 {
        found.push(format!("{beside} files instead of two"));
    }
    let processes = std::fs::read_dir("/proc").unwrap().filter(|entry| {
        entry.as_ref().unwrap().file_name().to_str().unwrap().bytes().all(|b| b.is_ascii_digit())
    });
    let processes = processes.count();
    if processes > 2 {
        found.push(format!("{processes} processes"));
    }
    found.join(", ")
}

fn say(stream: &UnixStream, reply: &LocalModelResponse) {
    let mut line = serde_json::to_vec(reply).unwrap();
    line.push(b'\n');
    write(stream, &line);
}

fn write(mut stream: &UnixStream, bytes: &[u8]) {
    // The peer may have hung up; the next read tells.
    drop(stream.write_all(bytes));
}
