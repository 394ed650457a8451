//! `turn`: everything about one turn in one view.
//!
//! What woke it, what the model was asked with and answered, what was decided about
//! each call, what it did, and what all that cost. It only looks; what the record cannot
//! give again is said to be missing, and never made up.

use std::fmt::Write;
use std::sync::Arc;

use automaton_agent::prompt::{Sent, SentLayer, sent};
use automaton_core::id::TurnId;
use automaton_core::money::MicroUsdc;
use automaton_core::record::{CallRecord, TurnRecord};
use automaton_core::spend::Rail;
use automaton_policy::guard::Guard;
use automaton_store::{
    DecisionRecord, Dossier, Effort, NewDecision, Payment, TurnRef, Under, Woke,
};
use clap::Args;
use serde::Serialize;

use super::Context;
use crate::error::Failure;
use crate::ui::Format;
use crate::ui::text::{indented, plain, short};

/// Arguments of `turn`.
#[derive(Debug, Args)]
pub(crate) struct TurnArgs {
    /// The turn's number, or its id, or `last`
    #[arg(value_name = "SEQ|ID|last")]
    which: String,
    /// Show the text of the prompt as well
    #[arg(long)]
    prompt: bool,
}

/// A turn as `--json` has it.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    dossier: &'a Dossier,
    prompt: Option<&'a Sent>,
}

/// Shows one turn.
pub(crate) fn run(context: &Context, args: &TurnArgs) -> Result<(), Failure> {
    let (.., reader) = context.record()?;
    let which = args.which.as_str();
    let reference = match (which.parse::<u64>(), which.parse::<TurnId>()) {
        _ if which == "last" => TurnRef::Last,
        (Ok(seq), _) => TurnRef::Seq(seq),
        (_, Ok(id)) => TurnRef::Id(id),
        _ => {
            let which = short(which, 60);
            let what = format!("'{which}' is neither the number nor the id of a turn, nor `last`");
            return Err(Failure::user(what).hint("`automaton turns` lists them"));
        }
    };
    let dossier = reader.dossier(reference)?.ok_or_else(|| {
        Failure::user(format!("there is no turn {which}")).hint("`automaton turns` lists them")
    })?;
    let mut prompt = sent(&reader, &dossier.turn, &Arc::new(Guard::new()?))?;
    if context.format == Format::Json && !args.prompt {
        prompt.iter_mut().flat_map(|sent| &mut sent.layers).for_each(SentLayer::drop_text);
    }
    let shown = Shown { dossier: &dossier, prompt: prompt.as_ref() };
    context.format.answer(&shown, || in_full(&dossier, prompt.as_ref(), args))
}

fn in_full(dossier: &Dossier, prompt: Option<&Sent>, args: &TurnArgs) -> String {
    let turn = &dossier.turn;
    let mut text = head(turn);
    for Woke { at, cause } in &dossier.woke {
        let (source, reason) = (cause.source, plain(&cause.reason.text));
        add(&mut text, format_args!("\nwoken at {at} by {source}: {reason}"));
    }
    for input in &turn.inputs {
        let source = plain(input.source.as_str());
        add(&mut text, format_args!("\n\nit answered {} ({source}):\n", input.label));
        text.push_str(&indented(&input.text, "  "));
    }
    match prompt {
        Some(sent) => asked(&mut text, sent, args),
        None => text.push_str("\n\nit was asked with a prompt that is not on record"),
    }
    if !turn.thought.trim().is_empty() {
        text.push_str("\n\nit said:\n");
        text.push_str(&indented(&turn.thought, "  "));
    }
    for call in &turn.calls {
        let decision = dossier.decisions.iter().find(|decision| decision.call == call.id);
        let effort = dossier.efforts.iter().find(|effort| effort.call == call.id);
        called(&mut text, call, (decision, effort));
    }
    money(&mut text, dossier);
    text
}

fn head(turn: &TurnRecord) -> String {
    let TurnRecord { seq, id, status, opened_at, session, .. } = turn;
    let mut text = format!("turn {seq} ({id}), {status}, opened {opened_at}");
    if let Some(committed) = turn.committed_at {
        add(&mut text, format_args!(", took {}", committed.since(*opened_at)));
    }
    add(&mut text, format_args!(", wake {session}"));
    text
}

/// What the model was asked with.
fn asked(text: &mut String, sent: &Sent, args: &TurnArgs) {
    let Sent { at, layers, window_tokens, answer_tokens, history_from } = sent;
    add(text, format_args!("\n\nit was asked at {at} with (tokens are estimated):\n"));
    let (mut chars, mut tokens) = (0_u32, 0_u32);
    for layer in layers {
        (chars, tokens) = (chars.saturating_add(layer.chars), tokens.saturating_add(layer.tokens));
        line(text, &layer.name, (layer.chars, layer.tokens));
        match history_from.filter(|_| layer.name == "history") {
            _ if !layer.on_record => text.push_str(", no longer on record as it was"),
            Some(from) => add(text, format_args!(", from turn {from} on")),
            None => {}
        }
        text.push('\n');
    }
    line(text, "together", (chars, tokens));
    add(text, format_args!(" of {window_tokens}, and {answer_tokens} for the answer"));
    let shown = layers.iter().filter(|layer| args.prompt && layer.chars > 0);
    for SentLayer { name, text: body, .. } in shown {
        add(text, format_args!("\n\n=== {name}\n"));
        let missing = "(what it was made of has changed since; only its size is on record)";
        text.push_str(&plain(body.as_deref().unwrap_or(missing)));
    }
}

fn line(text: &mut String, name: &str, (chars, tokens): (u32, u32)) {
    let name = plain(name);
    add(text, format_args!("  {name:<14} {chars:>7} characters {tokens:>6} tokens"));
}

/// One call, with what was decided about it and what it was to change.
fn called(
    text: &mut String,
    call: &CallRecord,
    (decision, effort): (Option<&DecisionRecord>, Option<&Effort>),
) {
    let CallRecord { tool, status, arguments, result, duration, .. } = call;
    add(text, format_args!("\n\nit called {}: {status}", plain(tool)));
    if let Some(duration) = duration {
        add(text, format_args!(", {} ms", duration.span().as_millis()));
    }
    text.push('\n');
    text.push_str(&indented(arguments, "  "));
    if let Some(DecisionRecord { decision, .. }) = decision {
        let NewDecision { outcome, code, reason, risk, rules_evaluated, rules_triggered, under } =
            decision;
        let reason = plain(reason);
        add(text, format_args!("\n  decision: {outcome} ({code}): {reason}; risk {}", risk.name()));
        if let Some(Under { input, heard, authority, approval, latency_ms }) = under {
            let (authority, ms) = (authority.name(), latency_ms.span().as_millis());
            add(
                text,
                format_args!(
                    "\n  under: answers {input}, heard {heard}, authority {authority}, {ms} ms"
                ),
            );
            if let Some(approval) = approval {
                add(text, format_args!(", by {approval}"));
            }
        }
        add(text, format_args!("\n  rules that were asked: {}", list(rules_evaluated)));
        add(text, format_args!("\n  rules that objected: {}", list(rules_triggered)));
    }
    for intended in effort.into_iter().flat_map(|effort| &effort.intents) {
        // silent-ok: an intent is plain data, which always has a JSON form.
        let body = serde_json::to_string(&intended.intent).unwrap_or_default();
        add(text, format_args!("\n  intent {}: {}", intended.id, short(&body, 300)));
    }
    if let Some(result) = result {
        add(text, format_args!("\n  result ({}):\n", result.label));
        text.push_str(&indented(&result.text, "    "));
    }
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { plain(&names.join(", ")) }
}

/// What the model used, what was paid, and what was booked for it.
fn money(text: &mut String, dossier: &Dossier) {
    for payment in &dossier.payments {
        let Payment { id, purpose, rail, units, worth, payee, state, .. } = payment;
        let Payment { note, transaction, reason, .. } = payment;
        let amount = match rail {
            Rail::Usdc => MicroUsdc::new(*units).to_string(),
            Rail::Credits => format!("{worth} of credits"),
        };
        let (purpose, state) = (purpose.name(), state.name());
        add(text, format_args!("\n\npayment {id}: {purpose}, {amount} to {payee}: {state}"));
        for detail in [Some(note), transaction.as_ref(), reason.as_ref()].into_iter().flatten() {
            add(text, format_args!("\n  {}", plain(detail)));
        }
    }
    if let Some(usage) = &dossier.turn.usage {
        add(
            text,
            format_args!(
                "\n\n{}: {} tokens read ({} from the cache), {} written, first after {} ms, all in {} ms, {}",
                plain(&usage.model),
                usage.prompt_tokens,
                usage.cached_tokens,
                usage.completion_tokens,
                usage.first_token_ms,
                usage.total_ms,
                usage.cost
            ),
        );
    }
    for booked in &dossier.booked {
        add(text, format_args!("\nbooked: {} {}", booked.category.name(), booked.amount));
    }
}

fn add(text: &mut String, what: std::fmt::Arguments<'_>) {
    // silent-ok: writing to a String cannot fail.
    text.write_fmt(what).ok();
}
