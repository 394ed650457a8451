//! Pure: the module that deletes what is old says what becomes of every table.
//!
//! A new table that nobody thought of would grow for a whole life. Here only the names
//! are compared; whether what is said of a table is true, the tests of the store show.

use crate::tree::TextFile;

use super::Finding;

const MIGRATIONS: &str = "crates/store/migrations/";
const RETENTION: &str = "crates/store/src/retention.rs";

/// A finding for each table that the module does not name, and for each name without a table.
pub(crate) fn check(files: &[TextFile]) -> Vec<Finding> {
    let migrations = files.iter().filter(|file| file.path.starts_with(MIGRATIONS));
    let tables: Vec<_> = migrations.flat_map(tables).collect();
    let retention: Vec<_> = files.iter().filter(|file| file.path == RETENTION).collect();
    let named: Vec<_> = retention.iter().flat_map(|file| named(file)).collect();
    let missing = tables.iter().filter(|(_, _, table)| !named.iter().any(|(_, _, it)| it == table));
    let missing = missing.map(|(path, line, table)| {
        let sentence =
            format!("`{RETENTION}` does not say what becomes of `{table}`. Say it there.");
        Finding::new(path, *line, sentence)
    });
    let gone = named.iter().filter(|(_, _, name)| !tables.iter().any(|(_, _, it)| it == name));
    let gone = gone.map(|(path, line, name)| {
        Finding::new(path, *line, format!("There is no table `{name}`. Take it off the list."))
    });
    missing.chain(gone).collect()
}

/// The path, the line and the name of each table that a migration makes.
fn tables(file: &TextFile) -> impl Iterator<Item = (&str, usize, &str)> {
    file.text.lines().enumerate().filter_map(|(index, line)| {
        let made = line.strip_prefix("CREATE TABLE ");
        let made = made.or_else(|| line.strip_prefix("CREATE VIRTUAL TABLE "))?;
        Some((file.path.as_str(), index + 1, made.split([' ', '(']).next()?))
    })
}

/// The same of each row of the list in the module's documentation.
fn named(file: &TextFile) -> impl Iterator<Item = (&str, usize, &str)> {
    file.text.lines().enumerate().filter_map(|(index, line)| {
        let name = line.strip_prefix("//! | `")?.split('`').next()?;
        Some((file.path.as_str(), index + 1, name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(sql: &str, module: &str) -> Vec<String> {
        let file =
            |path: &str, text: &str| TextFile { path: path.to_owned(), text: text.to_owned() };
        let migration = format!("{MIGRATIONS}0001_init.sql");
        let files = [file(&migration, sql), file(RETENTION, module)];
        check(&files).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_table_is_on_the_list_and_nothing_else() {
        let sql = "CREATE TABLE a (\n) STRICT;\nCREATE VIRTUAL TABLE b USING fts5 (x);";
        assert!(found(sql, "//! | `a` | stays |\n//! | `b` | goes |\n").is_empty());
        let missing = found(sql, "//! | `a` | stays |\n");
        assert_eq!(missing.len(), 1);
        assert!(missing[0].starts_with("crates/store/migrations/0001_init.sql:3: "), "{missing:?}");
        let gone = found(sql, "//! | `a` | stays |\n//! | `b` | goes |\n//! | `c` | goes |\n");
        assert_eq!(
            gone,
            ["crates/store/src/retention.rs:3: There is no table `c`. Take it off the list."]
        );
    }
}
