//! Origins of values, by the texts on record.
//!
//! Only what the creator and what others wrote is looked at: what the automaton or its
//! tools say it may have from either. A value must never become the creator's because a
//! stranger quotes it.

use automaton_core::origin::{TargetValue, ValueKind, ValueOrigin};
use automaton_core::trust::Label;
use rusqlite::{Connection, params};

use crate::Store;
use crate::codec::{CallText, get, maybe};
use crate::error::{StoreError, TxError};
use crate::thread::{ConnectionExt, Tx, sql};

impl Store {
    /// Returns the origin of each of these values.
    ///
    /// # Errors
    /// When SQLite fails.
    pub async fn origins(
        &self,
        values: Vec<TargetValue>,
    ) -> Result<Vec<(TargetValue, ValueOrigin)>, StoreError> {
        let work = move |tx: &Tx<'_>| {
            // Nearly always nobody else has written anything, and a script has many commands.
            let has_others = others_wrote(tx)?;
            let found = values.into_iter().map(|value| {
                let is_asked = has_others || value.kind == ValueKind::Recipient;
                let origin = if is_asked { origin(tx, &value)? } else { ValueOrigin::Own };
                Ok((value, origin))
            });
            found.collect()
        };
        self.run("look for who named a value", work).await
    }
}

/// Returns true if there is any text that neither the creator nor the automaton wrote.
pub(crate) fn others_wrote(connection: &Connection) -> Result<bool, TxError> {
    Ok(connection.one(sql!("outside_any"), [], |_| Ok(()))?.is_some())
}

fn origin(connection: &Connection, value: &TargetValue) -> Result<ValueOrigin, TxError> {
    // The texts have the words; how these follow each other is seen here.
    let word = value.text.split(' ').max_by_key(|word| word.len()).unwrap_or_default();
    let from = match value.kind.is_lasting() {
        true => 0,
        false => {
            // What a stranger's turn left in the sum of older turns is still read.
            let statement = "SELECT iif((SELECT label FROM digests ORDER BY upto DESC LIMIT 1) \
                 IN ('peer', 'web'), 0, history_from) AS seen_from FROM automaton";
            connection.one(statement, [], |row| row.get::<_, i64>("seen_from"))?.unwrap_or(0)
        }
    };
    let outside = connection
        .all(sql!("outside_texts"), params![word, from], |row| {
            let has = |text: &CallText| text.0.to_ascii_lowercase().contains(word);
            let text = get(row, "text")?;
            let said = maybe(row, "said")?;
            // A result that repeats what its call said has not named it.
            let names = has(&text) && !said.is_some_and(|said| has(&said)) && value.is_in(&text.0);
            Ok((get::<Label>(row, "label")?, names))
        })?
        .into_iter()
        .filter_map(|(label, names)| names.then_some(label))
        .max();
    let named = connection
        .all(sql!("creator_texts"), params![word], |row| row.get::<_, String>("text"))?
        .iter()
        .any(|text| value.is_in(text));
    Ok(match outside {
        _ if named => ValueOrigin::Creator,
        Some(label) => ValueOrigin::Outside(label),
        None => ValueOrigin::Own,
    })
}
