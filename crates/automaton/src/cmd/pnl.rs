//! `pnl`: what the automaton earned and spent, from its ledger.
//!
//! It only looks, also while the automaton lives. Amounts are shown to the last unit:
//! a sum that is rounded cannot be checked.

use automaton_core::money::Microcents;
use automaton_core::pnl::{
    ExchangeTotals, PnlGrouping, PnlLine, ProfitAndLoss, Sums, beginning_of,
};
use automaton_core::time::{Clock, SystemClock, Timestamp};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::CommandContext;
use crate::error::CliError;
use crate::ui::phrases;
use crate::ui::text::short;
use crate::ui::units::capital;
use crate::ui::when::WallClock;

/// Characters of a goal that are shown.
const NAME_MAX: usize = 40;

/// Arguments of `pnl`.
#[derive(Debug, Args)]
pub(crate) struct PnlArgs {
    /// Grouping of the sums
    #[arg(long, value_name = "WHAT", default_value = "category", value_parser = by())]
    by: PnlGrouping,
    /// Only so many days, today included; days are those of UTC [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=36_500))]
    days: Option<u32>,
}

fn by() -> impl TypedValueParser<Value = PnlGrouping> {
    PossibleValuesParser::new(PnlGrouping::ALL.map(PnlGrouping::name))
        .try_map(|name| PnlGrouping::by_name(&name).ok_or("that is no way to add up"))
}

/// Shows the account.
pub(crate) fn run(context: &CommandContext, args: &PnlArgs) -> Result<(), CliError> {
    let (.., reader) = context.record()?;
    let since = args.days.map_or(Timestamp::EPOCH, |days| beginning_of(days, SystemClock.now()));
    let account = reader.profit_and_loss(args.by, since)?;
    context.format.answer(&account, || in_words(&account, &context.clock()))
}

fn in_words(account: &ProfitAndLoss, clock: &WallClock) -> String {
    let ProfitAndLoss { since, by, lines, left_out, total, net, exchanged } = account;
    let mut rows = vec![[capital(by.name()), "Earned".into(), "Spent".into(), "Net".into()]];
    for PnlLine { name, sums, net } in lines {
        let name = name.as_deref().map_or_else(|| "none".to_owned(), |name| short(name, NAME_MAX));
        let name =
            if *by == PnlGrouping::Category { phrases::category(&name).to_owned() } else { name };
        rows.push(row(&name, sums, Some(*net)));
    }
    // silent-ok: a net that cannot be counted is shown as unknown.
    rows.extend(left_out.map(|older| row("older", &older, older.net().ok())));
    rows.push(row("Total", total, Some(*net)));
    let mut text = match *since {
        Timestamp::EPOCH => String::new(),
        since => format!("Since {}\n", clock.at(since)),
    };
    text.push_str(&table(&rows));
    let ExchangeTotals { paid, got } = exchanged;
    text.push_str(&format!("Credits bought: {got} for {paid}"));
    text
}

fn row(name: &str, sums: &Sums, net: Option<Microcents>) -> [String; 4] {
    let net = net.map_or_else(|| "unknown".to_owned(), |net| net.to_string());
    [name.to_owned(), sums.revenue.to_string(), sums.cost.to_string(), net]
}

/// Names to the left, amounts to the right.
fn table(rows: &[[String; 4]]) -> String {
    let width = |column: usize| {
        rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default()
    };
    let widths: [usize; 4] = std::array::from_fn(width);
    let line = |[name, revenue, cost, net]: &[String; 4]| {
        let [first, second, third, last] = widths;
        format!("{name:<first$}  {revenue:>second$}  {cost:>third$}  {net:>last$}\n")
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use automaton_core::money::MicroUsdc;

    use super::*;

    #[test]
    fn amounts_stand_below_each_other_to_the_last_unit() {
        let sums =
            |revenue, cost| Sums { revenue: Microcents::new(revenue), cost: Microcents::new(cost) };
        let line = |name: Option<&str>, sums: Sums| PnlLine {
            name: name.map(str::to_owned),
            sums,
            net: sums.net().unwrap(),
        };
        let total = sums(500_000_000, 67_401);
        let account = ProfitAndLoss {
            since: Timestamp::EPOCH,
            by: PnlGrouping::Goal,
            lines: vec![
                line(Some("fly\u{1b}[2J"), sums(0, 67_400)),
                line(None, sums(500_000_000, 0)),
            ],
            left_out: Some(sums(0, 1)),
            total,
            net: total.net().unwrap(),
            exchanged: ExchangeTotals {
                paid: MicroUsdc::new(5_000_000),
                got: Microcents::new(500_000_000),
            },
        };
        let shown = in_words(&account, &WallClock::utc());
        let expected = "\
Goal    Earned        Spent           Net
fly[2J   $0.00    $0.000674    -$0.000674
none     $5.00        $0.00         $5.00
older    $0.00  $0.00000001  -$0.00000001
Total    $5.00  $0.00067401   $4.99932599
Credits bought: $5.00 for 5.00 USDC";
        assert_eq!(shown, expected);
    }
}
