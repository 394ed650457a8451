//! `turn`: everything about one turn in one view.
//!
//! What woke it, what the model was asked with and answered, what was decided about
//! each call, what it did, and what all that cost. It only looks; what the record cannot
//! give again is said to be missing, and never made up.

use std::fmt::Write;
use std::sync::Arc;

use automaton_agent::prompt::{PromptLayerRecord, PromptRecord, recorded_prompt};
use automaton_agent::{APPROVED_MODEL, ToolSet};
use automaton_core::id::TurnId;
use automaton_core::money::MicroUsdc;
use automaton_core::payment::Rail;
use automaton_core::record::{CallRecord, TurnInput, TurnRecord};
use automaton_core::time::Span;
use automaton_policy::guard::Guard;
use automaton_store::{
    CallDetails, DecisionContext, DecisionRecord, NewDecision, PaymentDetails, TurnDetails,
    TurnRef, WakeCauseDetails,
};
use clap::Args;

use super::CommandContext;
use crate::error::CliError;
use crate::ui::text::{indented, plain, short};
use crate::ui::units::{capital, many, number, span};
use crate::ui::when::WallClock;
use crate::ui::{Format, phrases, words, wrap};
use crate::view::turns::TurnDetailsView;

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

/// Shows one turn.
pub(crate) fn run(context: &CommandContext, args: &TurnArgs) -> Result<(), CliError> {
    let (.., reader) = context.record()?;
    let which = args.which.as_str();
    let reference = match (which.parse::<u64>(), which.parse::<TurnId>()) {
        _ if which == "last" => TurnRef::Last,
        (Ok(seq), _) => TurnRef::Seq(seq),
        (_, Ok(id)) => TurnRef::Id(id),
        _ => {
            let which = short(which, 60);
            let what = format!("'{which}' is neither the number nor the id of a turn, nor `last`");
            return Err(CliError::user(what).hint("`automaton turns` lists them"));
        }
    };
    let dossier = reader.turn_details(reference)?.ok_or_else(|| {
        CliError::user(format!("there is no turn {which}")).hint("`automaton turns` lists them")
    })?;
    let tools = Arc::new(ToolSet::built_in()?);
    let mut prompt = recorded_prompt(&reader, &dossier.turn, &Arc::new(Guard::new()?), &tools)?;
    if context.format == Format::Json && !args.prompt {
        prompt.iter_mut().flat_map(|sent| &mut sent.layers).for_each(PromptLayerRecord::drop_text);
    }
    let shown = TurnDetailsView::new(&dossier, prompt.as_ref());
    context.format.answer(&shown, || {
        let screen = context.screen();
        let told = in_full(&dossier, prompt.as_ref(), args, &screen.when);
        wrap::hanging(&told, screen.width())
    })
}

fn in_full(
    dossier: &TurnDetails,
    prompt: Option<&PromptRecord>,
    args: &TurnArgs,
    clock: &WallClock,
) -> String {
    let turn = &dossier.turn;
    let mut text = head(turn, clock);
    for WakeCauseDetails { at, cause } in &dossier.woke {
        add(&mut text, format_args!("\nWoken at {}: {}", clock.at(*at), words::cause(cause)));
    }
    for TurnInput { said: input, .. } in &turn.inputs {
        let by = phrases::author(input.label);
        let source = plain(input.source.as_str());
        add(&mut text, format_args!("\n\nIt answered this, by {by} ({source}):\n"));
        text.push_str(&indented(&input.text, "  "));
    }
    match prompt {
        Some(sent) => write_prompt(&mut text, sent, args, clock),
        None => text.push_str("\n\nThe prompt that it was asked with is not on record"),
    }
    if !turn.thought.trim().is_empty() {
        text.push_str("\n\nIt said:\n");
        text.push_str(&indented(&turn.thought, "  "));
    }
    for call in &turn.calls {
        let decision = dossier.decisions.iter().find(|decision| decision.call == call.id);
        let effort = dossier.efforts.iter().find(|effort| effort.call == call.id);
        called(&mut text, call, decision, effort);
    }
    money(&mut text, dossier);
    text
}

fn head(turn: &TurnRecord, clock: &WallClock) -> String {
    let TurnRecord { seq, id, status, opened_at, session, .. } = turn;
    let mut text = format!("Turn {seq}: {}", phrases::turn(*status));
    add(&mut text, format_args!(", begun {}", clock.with_age(*opened_at)));
    if let Some(committed) = turn.committed_at {
        add(&mut text, format_args!(", took {}", span(committed.since(*opened_at))));
    }
    add(&mut text, format_args!("\nIts id is {id}, that of its wake {session}"));
    text
}

/// Writes the prompt of a turn.
fn write_prompt(text: &mut String, sent: &PromptRecord, args: &TurnArgs, clock: &WallClock) {
    let PromptRecord { at, layers, window_tokens, answer_tokens, history_from } = sent;
    let at = clock.at(*at);
    add(text, format_args!("\n\nIt was asked at {at} with (tokens are estimated):\n"));
    let mut chars = 0_u32;
    let mut tokens = 0_u32;
    for layer in layers {
        (chars, tokens) = (chars.saturating_add(layer.chars), tokens.saturating_add(layer.tokens));
        line(text, &layer.name, layer.chars, layer.tokens);
        match history_from.filter(|_| layer.name == "history") {
            _ if !layer.on_record => text.push_str(", no longer on record as it was"),
            Some(from) => add(text, format_args!(", from turn {from} on")),
            None => {}
        }
        text.push('\n');
    }
    line(text, "together", chars, tokens);
    let window = number(*window_tokens);
    let answer = number(*answer_tokens);
    add(text, format_args!(" of {window}, and {answer} for the answer"));
    let shown = layers.iter().filter(|layer| args.prompt && layer.chars > 0);
    for PromptLayerRecord { name, text: body, .. } in shown {
        add(text, format_args!("\n\n=== {name}\n"));
        let missing = "(what it was made of has changed since; only its size is on record)";
        text.push_str(&plain(body.as_deref().unwrap_or(missing)));
    }
}

fn line(text: &mut String, name: &str, chars: u32, tokens: u32) {
    let name = plain(name);
    let chars = number(chars);
    let tokens = number(tokens);
    add(text, format_args!("  {name:<14} {chars:>9} characters {tokens:>9} tokens"));
}

/// One call, with what was decided about it and what it was to change.
fn called(
    text: &mut String,
    call: &CallRecord,
    decision: Option<&DecisionRecord>,
    effort: Option<&CallDetails>,
) {
    let CallRecord { tool, status, arguments, result, duration, .. } = call;
    add(text, format_args!("\n\nIt called {}: {}", plain(tool), phrases::call(*status)));
    if let Some(duration) = duration {
        add(text, format_args!(" in {}", span(duration.span())));
    }
    text.push('\n');
    text.push_str(&indented(arguments, "  "));
    if let Some(DecisionRecord { decision, .. }) = decision {
        let NewDecision { outcome, code, reason, risk, rules_evaluated, rules_triggered, under } =
            decision;
        let verdict = capital(phrases::verdict(*outcome));
        let reason = plain(reason);
        let risk = risk.name();
        add(text, format_args!("\n  {verdict}: {reason} (code {code}, risk: {risk})"));
        let DecisionContext { input, heard, authority, approval, latency_ms } = under;
        let input = phrases::author(*input);
        let heard = phrases::author(*heard);
        let authority = phrases::authority(*authority);
        let took = span(latency_ms.span());
        let told = format_args!(
            "\n  It answers {input} and has read texts by {heard}, so it acts for {authority}; \
             judged in {took}"
        );
        add(text, told);
        if let Some(approval) = approval {
            add(text, format_args!(", by your approval {approval}"));
        }
        add(text, format_args!("\n  Rules that were asked: {}", list(rules_evaluated)));
        add(text, format_args!("\n  Rules that objected: {}", list(rules_triggered)));
    }
    for intended in effort.into_iter().flat_map(|effort| &effort.intents) {
        // silent-ok: an intent is plain data, which always has a JSON form.
        let body = serde_json::to_string(&intended.intent).unwrap_or_default();
        add(text, format_args!("\n  Intent {}: {}", intended.id, short(&body, 300)));
    }
    if let Some(result) = result {
        add(text, format_args!("\n  Result, by {}:\n", phrases::author(result.label)));
        text.push_str(&indented(&result.text, "    "));
    }
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { plain(&names.join(", ")) }
}

/// Writes the usage of the model, the payments, and the bookings.
fn money(text: &mut String, dossier: &TurnDetails) {
    for payment in &dossier.payments {
        let PaymentDetails { id, purpose, rail, units, worth, payee, state, .. } = payment;
        let PaymentDetails { note, transaction, reason, .. } = payment;
        let amount = match rail {
            Rail::Usdc => MicroUsdc::new(*units).to_string(),
            Rail::Credits => format!("{worth} of credits"),
        };
        let purpose = phrases::purpose(*purpose);
        let state = phrases::payment(*state);
        add(text, format_args!("\n\nPayment {id} for {purpose}: {amount} to {payee}, {state}"));
        for detail in [Some(note), transaction.as_ref(), reason.as_ref()].into_iter().flatten() {
            add(text, format_args!("\n  {}", plain(detail)));
        }
    }
    if let Some(usage) = &dossier.turn.usage {
        if usage.model == APPROVED_MODEL {
            text.push_str("\n\nNo model was asked: it made the call that you approved");
            return book(text, dossier);
        }
        let took = |millis| span(Span::from_millis(millis));
        add(
            text,
            format_args!(
                "\n\n{} read {} ({} from the cache) and wrote {}, the first after {}, all in {}, \
                 for {}",
                plain(&usage.model),
                many(usage.prompt_tokens, "token"),
                number(usage.cached_tokens),
                number(usage.completion_tokens),
                took(usage.first_token_ms),
                took(usage.total_ms),
                usage.cost
            ),
        );
        if let Some(word) = &usage.unknown_end {
            add(text, format_args!("; {}", phrases::unknown_end(word)));
        }
    }
    book(text, dossier);
}

/// Writes the bookings of a turn.
fn book(text: &mut String, dossier: &TurnDetails) {
    for booked in &dossier.booked {
        let category = phrases::category(booked.category.name());
        add(text, format_args!("\nBooked: {category} {}", booked.amount));
    }
}

fn add(text: &mut String, what: std::fmt::Arguments<'_>) {
    // silent-ok: writing to a String cannot fail.
    text.write_fmt(what).ok();
}
