//! `schema`: the JSON Schemas of the configuration and of what commands print with `--json`.

use super::{CommandContext, print};
use crate::args::SchemaArgs;
use crate::config::file;
use crate::error::CliError;
use crate::ui::text::short;
use crate::view::schema::OutputNameView;
use crate::view::{VIEWS, find};

/// Prints a schema, or the names of the outputs that have one.
///
/// # Errors
/// When no output has that name.
pub(super) fn run(context: &CommandContext, args: &SchemaArgs) -> Result<(), CliError> {
    match &args.output {
        _ if args.list => VIEWS.iter().try_for_each(|view| {
            context.format.answer(&OutputNameView::from(view), || view.to_string())
        }),
        None => print::json_document(&file::schema()),
        Some(name) => {
            let view = find(name).ok_or_else(|| unknown(name))?;
            print::json_document(&(view.schema)())
        }
    }
}

/// Returns the error for a name that no output has, with the names that there are.
fn unknown(name: &str) -> CliError {
    let names: Vec<String> = VIEWS.iter().map(|view| format!("\n  {view}")).collect();
    let what = format!("no output is called '{}'", short(name, 60));
    CliError::user(what).hint(format!("name one of these:{}", names.concat()))
}
