//! Pure: takes here documents out of a script before it is parsed.
//!
//! Most long commands write a file with a here document, whose text does not matter to the
//! grammar. It is replaced by a line with its number. The parser must then find a here document
//! with exactly this line as its text, for each of them, or the script is rejected. So a text
//! that only looks like a here document hides nothing.

/// The most unterminated announcements that are searched for. Each search reads the rest of the
/// script.
const ENDLESS_MAX: u32 = 32;

/// A here document that was taken out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HereDocument {
    /// The text, without leading tabs if the script says so.
    pub(super) text: String,
    /// True if the parser found it.
    pub(super) found: bool,
}

/// Returns the line that replaces a document.
pub(super) fn mark(number: usize) -> String {
    format!("document {number}\n")
}

/// Splits a script into the script without its here documents, and the documents.
pub(super) fn cut(script: &str) -> (String, Vec<HereDocument>) {
    let mut kept = String::with_capacity(script.len());
    let mut documents = Vec::new();
    let mut endless = 0;
    let mut lines = script.split_inclusive('\n');
    while let Some(line) = lines.next() {
        kept.push_str(line);
        if endless > ENDLESS_MAX {
            continue;
        }
        for (delimiter, strips) in announced_delimiters(line) {
            let bare = |line: &str| {
                let line = line.strip_suffix('\n').unwrap_or(line);
                if strips { line.trim_start_matches('\t').to_owned() } else { line.to_owned() }
            };
            let body: Vec<&str> =
                lines.clone().take_while(|line| bare(line) != delimiter).collect();
            // Without its end it is not a document. If a line only begins with the delimiter,
            // shells disagree.
            let ends = lines.clone().nth(body.len()).is_some();
            endless += u32::from(!ends);
            if !ends || body.iter().any(|line| bare(line).starts_with(&delimiter)) {
                break;
            }
            let text = body.iter().map(|line| bare(line) + "\n").collect();
            kept.push_str(&mark(documents.len()));
            documents.push(HereDocument { text, found: false });
            kept.extend(lines.by_ref().take(body.len() + 1).skip(body.len()));
        }
    }
    (kept, documents)
}

/// Returns the delimiters that a line may announce, and whether leading tabs are removed.
fn announced_delimiters(line: &str) -> Vec<(String, bool)> {
    let mut found = Vec::new();
    let mut rest = line;
    while let Some((_, after)) = rest.split_once("<<") {
        rest = after;
        if let Some(string) = after.strip_prefix('<') {
            rest = string.trim_start_matches('<');
            continue;
        }
        let (after, strips) = match after.strip_prefix('-') {
            Some(after) => (after, true),
            None => (after, false),
        };
        let word = after.trim_start_matches([' ', '\t']);
        let delimiter = match word.chars().next() {
            Some(quote @ ('\'' | '"')) => word.get(1..).and_then(|w| w.split(quote).next()),
            _ => word
                .trim_start_matches('\\')
                .split(|c: char| !c.is_ascii_alphanumeric() && !"_-.+".contains(c))
                .next(),
        };
        found.extend(delimiter.filter(|d| !d.is_empty()).map(|d| (d.to_owned(), strips)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_taken_out_and_everything_else_stays() {
        let script = "cat <<A - <<-'B' >x\n$(1\nA\n\t'2\n\tB\nls <<<A\nA\n";
        let (kept, documents) = cut(script);
        assert_eq!(kept, "cat <<A - <<-'B' >x\ndocument 0\nA\ndocument 1\n\tB\nls <<<A\nA\n");
        let texts: Vec<&str> = documents.iter().map(|d| d.text.as_str()).collect();
        assert_eq!(texts, ["$(1\n", "'2\n"]);
        for whole in ["cat <<E\na\n", "cat <<E\nEx\nE\n", "a << b", "", "$((1<<2))\n2x\n"] {
            assert_eq!(cut(whole), (whole.to_owned(), vec![]), "{whole}");
        }
    }
}
